from __future__ import annotations

import pytest

from use_st5.models.bert.config import BERT_PRESETS, BertConfig, ProjectionConfig
from use_st5.models.bert.sentence_bert import SentenceBert

# Of the published models (google-research/bert, fairseq, all-MiniLM-L6-v2), whose count has the
# pooler, a square dense layer, and two rows more in RoBERTa's table of positions.
PUBLISHED = {
    "bert_base_uncased": 109_482_240,
    "bert_base_cased": 108_310_272,
    "bert_large_uncased": 335_141_888,
    "bert_large_cased": 333_579_264,
    "roberta_base": 124_645_632,
    "roberta_large": 355_359_744,
    "minilm_l6": 22_713_216,
}


def test_published_sizes() -> None:
    sizes = {}
    for name, config in BERT_PRESETS.items():
        dim = config.hidden_dim
        unread_rows = 2 if name.startswith("roberta") else 0
        sizes[name] = config.parameters + dim * dim + dim + unread_rows * dim
    assert sizes == PUBLISHED


def test_the_count_is_that_of_the_built_model() -> None:
    config = BertConfig(11, 3, 8, 12, 2, max_positions=7, separator_id=3)
    model = SentenceBert(config)
    model.build()
    assert model.count_params() == config.parameters
    dense = SentenceBert(config, dense=ProjectionConfig(5), head=True)
    dense.build()
    assert dense.count_params() - model.count_params() == 8 * 5 + 5 + (8 * 8 + 3 * 8) + 11


def test_refusals() -> None:
    with pytest.raises(ValueError, match="num_heads: expected a divisor of hidden_dim, 8"):
        BertConfig(11, 1, 8, 8, 3)
    with pytest.raises(ValueError, match="Unknown activation: 'swish'"):
        BertConfig(11, 1, 8, 8, 2, activation="swish")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="Unknown activation: 'softmax'"):
        ProjectionConfig(3, activation="softmax")  # type: ignore[arg-type]
