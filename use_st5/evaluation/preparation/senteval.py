"""SentEval's layout of MR, CR, SUBJ, MPQA, SST and TREC out of the files they are published in."""

from __future__ import annotations

import re

from use_st5.evaluation.preparation.downloads import Downloads

# One sentence a line; SentEval tokenises these, the others are published in tokens.
_SENTENCES = {
    "MR": ("rt-polarity.pos", "rt-polarity.neg"),
    "CR": ("custrev.pos", "custrev.neg"),
    "SUBJ": ("subj.subjective", "subj.objective"),
    "MPQA": ("mpqa.pos", "mpqa.neg"),
}
_QUESTIONS = ("train_5500.label", "TREC_10.label")
_SPLITS = ("train", "dev", "test")
# How the files of a set are called where SentEval's script gets them.
_SENTIMENT = {"SST/binary": "sentiment-{}", "SST/fine": "stsa.fine.{}"}

# Folder → files.
SENTEVAL = {
    **_SENTENCES,
    "TREC": _QUESTIONS,
    **{place: tuple(f"sentiment-{split}" for split in _SPLITS) for place in _SENTIMENT},
}


def read_senteval(downloads: Downloads) -> dict[str, dict[str, bytes]]:
    """Those of SentEval's transfer sets that are among the downloads, as its script leaves them.

    The script is data/downstream/get_transfer_data.bash of facebookresearch/SentEval. Its other
    sets need no preparation (MRPC) or have one of their own (SICK, the STS Benchmark).

    Returns:
        Folder → file → content, of the sets that are there whole.
    """
    found = {}
    for place, names in _SENTENCES.items():
        if (folder := downloads.folder_of(names)) is not None:
            found[place] = {name: _tokenised(downloads.read(folder, name)) for name in names}
    if (folder := downloads.folder_of(_QUESTIONS)) is not None:
        found["TREC"] = {
            name: downloads.read(folder, name).translate(None, b"`'") for name in _QUESTIONS
        }
    for place, pattern in _SENTIMENT.items():
        renamed = {pattern.format(split): f"sentiment-{split}" for split in _SPLITS}
        if (folder := downloads.folder_of(renamed)) is not None:
            found[place] = {new: downloads.read(folder, old) for old, new in renamed.items()}
    return found


def _tokenised(content: bytes) -> bytes:
    lines = content.removesuffix(b"\n").split(b"\n")
    return b"".join(penn_tokens(line) + b"\n" for line in lines)


# The rules of the Penn Treebank's tokenizer.sed (R. MacIntyre, 1995) in its order, on which the
# outcome depends: each is applied to all of the line before the next one.
_PUNCTUATION = (
    (r'^"', "`` "),
    (r'([ (\[{<])"', r"\1 `` "),
    (r"\.\.\.", " ... "),
    (r"[,;:@#$%&]", r" \g<0> "),
    # The full stop that ends the line, before what closes with it.
    (r"""([^.])\.([\])}>"']*)[ \t]*$""", r"\1 .\2 "),
    (r"[?!\[\](){}<>]", r" \g<0> "),
    ("--", " -- "),
    ("^|$", " "),  # so that the rules below find a space around every word
    ('"', " '' "),
    ("([^'])' ", r"\1 ' "),
)
_CLITICS = ("'[sSmMdD]", "'ll", "'re", "'ve", "n't", "'LL", "'RE", "'VE", "N'T")
_PAIRS = (
    ("[Cc]an", "not"),
    ("[Dd]'", "ye"),
    ("[Gg]im", "me"),
    ("[Gg]on", "na"),
    ("[Gg]ot", "ta"),
    ("[Ll]em", "me"),
    ("[Mm]ore", "'n"),
    ("'[Tt]", "is"),
    ("'[Tt]", "was"),
    ("[Ww]an", "na"),
)
_RULES = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        *_PUNCTUATION,
        *((f"{clitic} ", r" \g<0>") for clitic in _CLITICS),
        *((f" ({first}){second} ", rf" \1 {second} ") for first, second in _PAIRS),
        (" +", " "),
        ("^ ", ""),
    )
)


def penn_tokens(line: bytes) -> bytes:
    """A line of text as SentEval leaves it: after `cat -v | sed -f tokenizer.sed`.

    Args:
        line: A line in any encoding, without its line feed.

    Returns:
        ASCII: the tokens with single spaces between them and one after the last. A byte beyond
        ASCII is written as `cat -v` does ("é" in Latin-1 is "M-i"); SentEval's data, and so every
        published score, has them like this.
    """
    text = "".join(map(_visible, line))
    for pattern, replacement in _RULES:
        text = pattern.sub(replacement, text)
    return text.encode("ascii")


def _visible(byte: int) -> str:
    """One byte as `cat -v` shows it; tabs stay."""
    if byte >= 128:
        byte -= 128
        return f"M-{_visible(byte)}" if byte != 9 else "M-^I"
    if byte == 9 or 32 <= byte < 127:
        return chr(byte)
    return f"^{chr(byte ^ 64)}"
