"""Universal sentence encoders with TensorFlow and Keras: build, train, evaluate, export, use.

Examples:
    >>> import use_st5
    >>> encoder = use_st5.load("use_dan_en")
    >>> encoder.encode(["How old are you?", "What is your age?"]).shape
    (2, 512)

Importing this package does not import TensorFlow, Keras or NumPy. Each name below is imported when
it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from use_st5._public import public_names

if TYPE_CHECKING:
    from use_st5.encode.cross_encoder import CrossEncoder as CrossEncoder
    from use_st5.encode.encoder import SentenceEncoder as SentenceEncoder
    from use_st5.encode.encoder import load as load
    from use_st5.models.use_dan.model import USEDAN as USEDAN
    from use_st5.trainable_encoder import TrainableEncoder as TrainableEncoder
    from use_st5.training.distill import distill as distill
    from use_st5.training.train import train as train

__version__ = "0.2.0"

__getattr__, __dir__, __all__ = public_names(__name__)
