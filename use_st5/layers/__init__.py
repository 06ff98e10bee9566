"""Layers that the models are built from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import keras

from use_st5._public import public_names

if TYPE_CHECKING:
    from use_st5.layers.attention import MultiHeadAttention as MultiHeadAttention
    from use_st5.layers.attention import TransformerBlock as TransformerBlock
    from use_st5.layers.deep_averaging import NGramEmbedding as NGramEmbedding
    from use_st5.layers.deep_averaging import ResidualFeedForward as ResidualFeedForward
    from use_st5.layers.lora_dense import LoRADense as LoRADense
    from use_st5.layers.pooling import L2Normalize as L2Normalize
    from use_st5.layers.pooling import first_token as first_token
    from use_st5.layers.pooling import last_token as last_token
    from use_st5.layers.pooling import masked_max as masked_max
    from use_st5.layers.pooling import masked_mean as masked_mean
    from use_st5.layers.pooling import masked_scaled_sum as masked_scaled_sum
    from use_st5.layers.pooling import masked_weighted_mean as masked_weighted_mean
    from use_st5.layers.positions import RelativePositionBias as RelativePositionBias
    from use_st5.layers.saved_model_layer import SavedModelLayer as SavedModelLayer

__getattr__, __dir__, __all__ = public_names(__name__)

# Keras finds the classes of a `.keras` file only if their modules were imported. `SavedModelLayer`
# needs TensorFlow; training with JAX does not.
for _name in __all__:
    if _name != "SavedModelLayer" or keras.config.backend() == "tensorflow":
        __getattr__(_name)
