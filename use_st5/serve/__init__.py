"""An HTTP server for encoders, with the embeddings API of OpenAI's clients (extra `serve`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from use_st5._public import public_names

if TYPE_CHECKING:
    from use_st5.serve.app import ServerLimits as ServerLimits
    from use_st5.serve.app import create_app as create_app

__getattr__, __dir__, __all__ = public_names(__name__)
