"""The pre-training recipe in a size for tests."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from use_st5.data.span_corruption import SpanCorruption
from use_st5.models.t5 import t5
from use_st5.models.t5.config import T5_PRESETS
from use_st5.recipes import pretrain_t5


def make_small(set_attribute: Callable[[Any, str, Any], None]) -> None:
    """Makes the recipe's own preset, its texts and its batches small: a T5 of 8 dimensions."""
    tiny = dataclasses.replace(
        T5_PRESETS["t5_mini_en"], num_layers=1, hidden_dim=8, num_heads=1, num_decoder_layers=1
    )
    changes = {"CORRUPTION": SpanCorruption(20), "BATCH": 8, "DTYPE": "float32"}
    for name, value in changes.items():
        set_attribute(pretrain_t5, name, value)
    set_attribute(t5, "T5_PRESETS", {**T5_PRESETS, pretrain_t5.PRESET: tiny})
    set_attribute(pretrain_t5, "T5_PRESETS", t5.T5_PRESETS)
