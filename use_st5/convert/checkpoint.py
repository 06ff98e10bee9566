"""A checkpoint of another library, opened: what is in it, and nothing of it read yet."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from use_st5.convert.weight_source import WeightSource


@dataclasses.dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """What a family looks at to tell whether a checkpoint is one of its own, and reads it by.

    Attributes:
        where: Its folder, file or prefix.
        format: "sentence-transformers", "Hugging Face", "T5X", "TensorFlow".
        source: Its tensors by name.
        settings: The content of `config.json`; empty where the format has none.
        modules: Of sentence-transformers: type and folder of each stage after the Transformer, in
            order.
    """

    where: Path
    format: str
    source: WeightSource
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    modules: tuple[tuple[str, Path], ...] = ()
