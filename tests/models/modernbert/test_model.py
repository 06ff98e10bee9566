"""The window and the interval of a ModernBERT's attention."""

from __future__ import annotations

import dataclasses

import keras
import numpy as np
import pytest

from tests.models.token_vectors import token_vectors
from use_st5.models.family import family_of
from use_st5.models.modernbert.model import (
    MODERNBERT_PRESETS,
    ModernBertConfig,
    SentenceModernBert,
)

CONFIG = ModernBertConfig(
    300, 2, 8, 12, 2, max_positions=32, local_window=4, dropout=0.1, attention_dropout=0.1
)


def built(config: ModernBertConfig = CONFIG) -> SentenceModernBert:
    keras.utils.set_random_seed(0)
    model = SentenceModernBert(config)
    model.build()
    # The initial weights are so small that all vectors are nearly the same.
    for variable in model.trainable_variables:
        variable.assign(variable * 15 if len(variable.shape) == 2 else variable)
    return model


@pytest.mark.parametrize(("every", "changed"), [(1, 8), (2, 8), (9, 8)])
def test_a_token_reaches_its_window_in_a_local_block(every: int, changed: int) -> None:
    """It reaches two tokens on either side in the second block; the first attends to all."""
    model = built(dataclasses.replace(CONFIG, global_every=every))
    ids = np.arange(1, 9, dtype=np.int32)[None]
    first, second = model.blocks
    for layer in first.linear_layers.values():
        layer.kernel.assign(0 * layer.kernel)  # the first block changes nothing
    before = np.asarray(token_vectors(model, ids))
    ids[0, 0] = 77
    moved = np.abs(np.asarray(token_vectors(model, ids)) - before).max(axis=-1)[0] > 1e-5
    reach = 8 if every == 1 else 3
    assert moved.tolist() == [True] * reach + [False] * (8 - reach)
    assert changed == 8 and second.attention_norm is not None and first.attention_norm is None


def test_padding_changes_nothing() -> None:
    model = built()
    ids = np.array([[5, 6, 7]], np.int32)
    padded = np.pad(ids, [(0, 0), (0, 4)])
    np.testing.assert_allclose(model(padded), model(ids), atol=1e-6)


def test_presets() -> None:
    """The parameters that the paper states, section 2.2: 149 and 395 million."""
    for name, millions in (("modernbert_base", 149), ("modernbert_large", 395)):
        config = MODERNBERT_PRESETS[name]
        dim, inner = config.hidden_dim, config.intermediate_dim
        block = 4 * dim * dim + 3 * dim * inner
        total = config.vocabulary_size * dim + config.num_layers * block
        # The paper's numbers include the masked language model's head.
        assert (total + dim * dim + config.vocabulary_size) / 1e6 == pytest.approx(millions, abs=1)


def test_there_is_no_head_for_words() -> None:
    with pytest.raises(ValueError, match="no masked language model's head"):
        SentenceModernBert(CONFIG, head=True)
    model = built()
    assert family_of(model).word_model(model) is None
