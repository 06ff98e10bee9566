"""Penn Treebank tokens as SentEval's files have them."""

from __future__ import annotations

import re

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
