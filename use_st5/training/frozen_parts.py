"""The parts of an encoder that are not trained."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator
from typing import Literal

import keras

ModelPart = Literal["embedding", "all_embeddings", "encoder", "head"]
# Attributes of a BERT: embeddings that are added to those of the tokens, and the norm of the sum.
_BESIDE_THE_TABLE = ("position_embedding", "type_embedding", "embedding_norm")


@contextlib.contextmanager
def frozen_parts(model: keras.Model, parts: Collection[ModelPart]) -> Iterator[None]:
    """Freezes parts of an encoder inside the block; after it they are trainable as before.

    The names are the same for every family. "embedding" is the token table, the attribute
    `embedding` of a model. "head" is the attribute `head`, which predicts masked words, if there is
    one. "encoder" is everything else. A table that the head uses too belongs to "embedding".
    "all_embeddings" is the token table and, in a BERT, also the tables of positions and token types
    and the norm of their sum; transformers calls these `bert.embeddings`.

    Args:
        model: A built model.
        parts: The parts to freeze.
    """
    by_part = _variables(model) if parts else {}
    for part in parts:
        if not by_part.get(part):
            part_names = [name for name, variables in by_part.items() if variables]
            raise ValueError(
                f"Expected parts of a {type(model).__name__} to freeze, among {part_names}. "
                f"Received: {part!r}"
            )
    frozen = [variable for part in parts for variable in by_part[part] if variable.trainable]
    for variable in frozen:
        variable.trainable = False
    try:
        yield
    finally:
        for variable in frozen:
            variable.trainable = True


def _variables(model: keras.Model) -> dict[str, list[keras.Variable]]:
    """The weights of each part."""
    embedding, head = (getattr(model, name, None) for name in ("embedding", "head"))
    table = {id(variable): variable for variable in getattr(embedding, "weights", [])}
    head_variables = {id(v): v for v in getattr(head, "weights", []) if id(v) not in table}
    rest = [v for v in model.weights if id(v) not in table and id(v) not in head_variables]
    side_layers = (getattr(model, name, None) for name in _BESIDE_THE_TABLE)
    inputs = table | {id(v): v for layer in side_layers if layer is not None for v in layer.weights}
    return {
        "embedding": [*table.values()],
        "all_embeddings": [*inputs.values()],
        "encoder": rest,
        "head": [*head_variables.values()],
    }
