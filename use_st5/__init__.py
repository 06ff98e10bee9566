"""Universal sentence encoders with TensorFlow and Keras: build, train, evaluate, export, use.

Example:
    >>> import use_st5
    >>> encoder = use_st5.load("use_dan_en")
    >>> encoder.encode(["How old are you?", "What is your age?"]).shape
    (2, 512)

Importing this package imports neither TensorFlow nor Keras nor NumPy; each name below is
imported when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from use_st5.encoder import SentenceEncoder, load
    from use_st5.models.use_dan.model import USEDAN

__version__ = "0.1.0"

__all__ = ["USEDAN", "SentenceEncoder", "__version__", "load"]

_HOMES = {
    "SentenceEncoder": "use_st5.encoder",
    "USEDAN": "use_st5.models.use_dan.model",
    "load": "use_st5.encoder",
}


def __getattr__(name: str) -> object:
    """Imports a public name at its first use (PEP 562)."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Lists the public names, those not yet imported among them."""
    return sorted({*globals(), *__all__})
