"""Engines run exported models without TensorFlow, behind `use_st5.load(…, backend=…)`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from use_st5._public import public_names

if TYPE_CHECKING:
    from use_st5.engines.engine import BACKENDS as BACKENDS
    from use_st5.engines.engine import Backend as Backend
    from use_st5.engines.engine import Engine as Engine
    from use_st5.engines.engine import FamilyEngine as FamilyEngine
    from use_st5.engines.onnx_model import open_engine as open_engine
    from use_st5.engines.token_ids import open_tokenizer as open_tokenizer
    from use_st5.engines.word_ids import NGramIds as NGramIds

__getattr__, __dir__, __all__ = public_names(__name__)
