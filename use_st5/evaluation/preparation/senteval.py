"""SentEval's layout of MR, CR, SUBJ, MPQA, SST and TREC out of the files they are published in."""

from __future__ import annotations

from collections.abc import Iterator

from use_st5.evaluation.preparation.downloads import Downloads
from use_st5.evaluation.preparation.penn_tokens import penn_tokens
from use_st5.evaluation.preparation.prepared_set import PreparedSet

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
WRITES = {
    **_SENTENCES,
    "TREC": _QUESTIONS,
    **{place: tuple(f"sentiment-{split}" for split in _SPLITS) for place in _SENTIMENT},
}


def senteval_sets(downloads: Downloads) -> Iterator[PreparedSet]:
    """Those of SentEval's transfer sets that are among the downloads, as its script leaves them.

    The script is data/downstream/get_transfer_data.bash of facebookresearch/SentEval. Its other
    sets need no preparation (MRPC) or have one of their own (SICK, the STS Benchmark).
    """
    for place, names in _SENTENCES.items():
        if (folder := downloads.folder_of(names)) is not None:
            yield PreparedSet(
                place, {name: _tokenised(downloads.read(folder, name)) for name in names}
            )
    if (folder := downloads.folder_of(_QUESTIONS)) is not None:
        yield PreparedSet(
            "TREC",
            {name: downloads.read(folder, name).translate(None, b"`'") for name in _QUESTIONS},
        )
    for place, pattern in _SENTIMENT.items():
        names = {pattern.format(split): f"sentiment-{split}" for split in _SPLITS}
        if (folder := downloads.folder_of(names)) is not None:
            yield PreparedSet(
                place, {new: downloads.read(folder, old) for old, new in names.items()}
            )


def _tokenised(content: bytes) -> bytes:
    lines = content.removesuffix(b"\n").split(b"\n")
    return b"".join(penn_tokens(line) + b"\n" for line in lines)
