from __future__ import annotations

import pytest

from use_st5.models.t5.config import T5_PRESETS, T5Config
from use_st5.models.t5.t5 import T5

# Derived from the published gin files; 110 M, 335 M, 1.24 B, 4.8 B and m-ST5's 5.7 B agree.
ENCODER_PARAMETERS = {
    "t5_small": 35_330_816,
    "t5_base": 109_628_544,
    "t5_large": 334_939_648,
    "t5_3b": 1_240_909_824,
    "t5_11b": 4_864_791_552,
    "t5_1_1_small": 35_332_800,
    "t5_1_1_base": 109_628_544,
    "t5_1_1_large": 341_231_104,
    "t5_1_1_xl": 1_223_527_424,
    "t5_1_1_xxl": 4_762_310_656,
    "mt5_small": 146_940_608,
    "mt5_base": 277_040_256,
    "mt5_large": 564_446_720,
    "mt5_xl": 1_669_958_656,
    "mt5_xxl": 5_655_173_120,
}
# With the bytes that an entry of the table takes where it is stored.
OURS = {"st5_small_en": 1, "t5_mini_en": 4}


def test_published_sizes() -> None:
    sizes = {name: config.encoder_parameters for name, config in T5_PRESETS.items()}
    assert {name: size for name, size in sizes.items() if name not in OURS} == ENCODER_PARAMETERS


@pytest.mark.parametrize(("name", "entry"), OURS.items())
def test_ours_fits_in_40_megabytes_with_its_projection(name: str, entry: int) -> None:
    config = T5_PRESETS[name]
    table = config.vocabulary_size * config.hidden_dim
    rest = config.encoder_parameters - table + 768 * config.hidden_dim
    assert entry * table + 4 * rest < 40e6


@pytest.mark.parametrize("activation", ["relu", "gated_gelu"])
def test_the_counts_are_those_of_the_built_model(activation: str) -> None:
    config = T5Config(11, 3, 10, 12, 2, 3, activation, num_decoder_layers=1)
    encoder = T5(config, with_decoder=False)
    whole = T5(config)
    encoder.build()
    whole.build()
    assert encoder.count_params() == config.encoder_parameters
    assert whole.count_params() == config.encoder_parameters + config.decoder_parameters
