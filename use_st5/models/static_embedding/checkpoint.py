"""StaticEmbedding out of folders of sentence-transformers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from use_st5.convert.checkpoint import Checkpoint
from use_st5.convert.weights import RenamedSource, Target, assign_weights, check_shapes, listed
from use_st5.layers.random_normal import without_initial_values
from use_st5.models.static_embedding.model import StaticEmbedding

_TABLE = "embedding.weight"
# The second is what model2vec calls it.
_NAMES = (_TABLE, "embeddings")


def table_shape(checkpoint: Checkpoint) -> tuple[int, int]:
    """Rows and width of the table.

    Raises:
        ValueError: The file holds something else than one table.
    """
    shapes = checkpoint.source.shapes()
    if len(shapes) != 1 or not {*shapes} <= {*_NAMES} or len(*shapes.values()) != 2:
        raise ValueError(
            f"{checkpoint.source.where}: expected one table, {' or '.join(_NAMES)}, found "
            f"{listed(f'{name} {[*shape]}' for name, shape in sorted(shapes.items()))}. Save the "
            "model again (sentence-transformers: model.save(folder))."
        )
    ((rows, width),) = shapes.values()
    return rows, width


def read_static_embedding(
    checkpoint: Checkpoint,
    *,
    padding: int,
    dtype: Any = None,
    on_tensor: Callable[[str], None] = lambda name: None,
) -> StaticEmbedding:
    """The table of a checkpoint.

    Args:
        checkpoint: Of sentence-transformers; stored in float32, bfloat16 or float16.
        padding: Id of the padding in the checkpoint's vocabulary.
        dtype: Keras dtype policy of the model.
        on_tensor: Called with the name of the tensor when it is in place.

    Raises:
        ValueError: The file holds something else than one table, or numbers that are not finite.
    """
    rows, width = table_shape(checkpoint)
    (name,) = checkpoint.source.shapes()
    changed = {_TABLE: (padding + 1, [padding, *range(1, padding), 0])} if padding else {}
    source = RenamedSource(checkpoint.source, {_TABLE: name}, first_rows=changed)
    check_shapes({_TABLE: (rows, width)}, source)
    modules = checkpoint.modules
    normalize = modules is not None and modules.normalize
    model = StaticEmbedding(rows, width, normalize=normalize, dtype=dtype)
    with without_initial_values():
        model.build()
    assign_weights({_TABLE: Target(model.embedding.embeddings)}, source, on_tensor=on_tensor)
    return model
