"""The engines of the families, which run their models without TensorFlow and Keras."""

from __future__ import annotations

import importlib

from use_st5.engines.engine import FamilyEngine

# The families with a file `models/NAME/engine.py`, which imports neither TensorFlow nor Keras.
_FAMILIES = ("use_dan", "static_embedding", "use_transformer", "bert", "mpnet", "t5")


def family_engine(name: str) -> FamilyEngine | None:
    """The engine of the family of this name; None if its models run on TensorFlow alone."""
    if name not in _FAMILIES:
        return None
    engine: FamilyEngine = importlib.import_module(f"use_st5.models.{name}.engine").ENGINE
    return engine
