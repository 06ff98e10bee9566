"""Writes SavedModels that turn strings into vectors, their cards, and other formats."""

from __future__ import annotations

from typing import TYPE_CHECKING

from use_st5._public import public_names

if TYPE_CHECKING:
    from use_st5.export.encoder_graph import EncoderGraph as EncoderGraph
    from use_st5.export.encoder_graph import padded_graph as padded_graph
    from use_st5.export.folders import write_archive as write_archive
    from use_st5.export.runtimes import to_litert as to_litert
    from use_st5.export.runtimes import to_onnx as to_onnx
    from use_st5.export.text_model import to_text_model as to_text_model
    from use_st5.export.web import to_web as to_web

__getattr__, __dir__, __all__ = public_names(__name__)
