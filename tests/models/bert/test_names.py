"""Names and shapes of a BERT's weights."""

from __future__ import annotations

import dataclasses

import pytest

from tests.models.bert.huggingface_folder import CONFIG, HF_NAMES
from use_st5.models.bert import names as bert_names
from use_st5.models.bert.model import SentenceBert


@pytest.mark.parametrize("head", [False, True])
def test_every_weight_has_a_path_a_shape_and_a_name(head: bool) -> None:
    model = SentenceBert(CONFIG, head=head)
    model.build()
    found = bert_names.weight_variables(model)
    shapes = bert_names.weight_shapes(CONFIG, head=head)
    assert {path: tuple(variable.shape) for path, variable in found.items()} == shapes
    assert {id(each) for each in found.values()} == {id(each) for each in model.weights}
    for roberta in (False, True):
        names = HF_NAMES[roberta].names(CONFIG, head=head)
        assert names.keys() == shapes.keys()
        assert len({*names.values()}) == len(names)


def test_names_by_hand() -> None:
    names = bert_names.HUGGING_FACE.names(dataclasses.replace(CONFIG, num_layers=12), head=True)
    assert names["words"] == "embeddings.word_embeddings.weight"
    assert names["block_11/query/kernel"] == "encoder.layer.11.attention.self.query.weight"
    assert names["block_0/output_norm/shift"] == "encoder.layer.0.output.LayerNorm.bias"
    assert names["head/transform/bias"] == "cls.predictions.transform.dense.bias"
    assert names["head/bias"] == "cls.predictions.bias"
    roberta = bert_names.HUGGING_FACE_ROBERTA.names(CONFIG, head=True)
    assert (roberta["head/bias"], roberta["head/norm/scale"]) == (
        "lm_head.bias",
        "lm_head.layer_norm.weight",
    )
