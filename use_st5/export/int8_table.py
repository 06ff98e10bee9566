"""An embedding table at a quarter of its size."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

_LARGEST = 127


class Int8Table:
    """A table of int8 codes with one float32 scale per row: `embedding = scale · codes`.

    The codes are fixed. The scales are trainable, so that fine-tuning still reaches the first
    stage: it changes how much each term weighs (in a USE-DAN's average, in a Transformer's input),
    not its direction. To train directions too, see `use_st5.export.dequantize`.

    Args:
        codes: int8 `[rows, dim]`, not trainable.
        scales: float32 `[rows]`.
    """

    storage = "int8"

    def __init__(self, codes: tf.Variable, scales: tf.Variable) -> None:
        self.variables = [codes, scales]
        self.trainable_variables = [scales]
        self._codes = codes
        self._scales = scales

    @classmethod
    def from_float(cls, table: np.ndarray) -> Int8Table:
        """Rounds float32 `[rows, dim]` to codes in −127 … 127.

        An entry moves by at most half its row's scale, `max |row| / 254`. A row of zeros stays one.

        Raises:
            ValueError: The table holds NaN or infinity.
        """
        if not np.isfinite(table).all():
            raise ValueError(
                "Expected a table of finite numbers to quantise, received NaN or infinity in rows "
                f"{np.flatnonzero(~np.isfinite(table).all(axis=1))[:5].tolist()} (the first five)."
            )
        largest = np.abs(table).max(axis=1)
        scales = np.where(largest > 0, largest / _LARGEST, 1.0).astype(np.float32)
        codes = np.rint(table / scales[:, None]).clip(-_LARGEST, _LARGEST).astype(np.int8)
        return cls(
            tf.Variable(codes, trainable=False, name="embedding_codes"),
            tf.Variable(scales, name="embedding_scales"),
        )

    def lookup(self, ids: tf.Tensor) -> tf.Tensor:
        """Gathers and scales rows: int32 `[...]` → float32 `[..., dim]`."""
        codes = tf.cast(tf.gather(self._codes, ids), tf.float32)
        return codes * tf.expand_dims(tf.gather(self._scales, ids), -1)

    def tracked(self) -> dict[str, tf.Variable]:
        """The variables by the names under which the SavedModel's root holds them."""
        return {"table_codes": self._codes, "table_scales": self._scales}
