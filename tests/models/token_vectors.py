"""The outputs of a BERT's blocks, before they are pooled."""

from __future__ import annotations

import dataclasses
from typing import Any

from use_st5.models.bert.model import SentenceBert
from use_st5.models.bert.names import weight_variables


def token_vectors(model: SentenceBert, ids: Any) -> Any:
    """The last block's outputs; rows at padding hold numbers without meaning."""
    return model._outputs(model.embedding(ids), ids, False)[0]


def first_blocks(model: SentenceBert, number: int) -> SentenceBert:
    """A model of the first blocks, with the same weights."""
    part = SentenceBert(dataclasses.replace(model.config, num_layers=number), pooling=model.pooling)
    part.build()
    weights = weight_variables(model)
    for path, variable in weight_variables(part).items():
        variable.assign(weights[path])
    return part
