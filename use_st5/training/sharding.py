"""Weights and batches on many devices under JAX, by Keras's distribution API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras
import numpy as np

# The axes of the devices' mesh: rows of a batch lie along the first, parts of weights along both.
BATCH, MODEL = "batch", "model"

Rules = Mapping[str, tuple[str | None, ...]]

# By the roles that layers have in every family: the units of a head and of a feed-forward layer
# stay together along "model" (Megatron-LM, section 3).
RULES: Rules = {
    ".*/(query|key|value|inner|linear)/kernel": (BATCH, MODEL),
    ".*/(output|outer)/kernel": (MODEL, BATCH),
    ".*(/|_)embedding/embeddings": (None, MODEL),
}


def sharded(*, model: int = 1, rules: Rules = RULES) -> keras.distribution.Distribution:
    """A distribution of weights and batches over the devices of JAX.

    With `model=1` each device holds all weights and a part of the batch (`DataParallel`). With more
    the devices are a mesh `[devices / model, model]` (`ModelParallel`): along one axis the batch is
    cut, and the linear layers and tables of the Transformers are cut along both (along the one as
    in Megatron-LM, Shoeybi et al. 2019, section 3, along the other as in ZeRO-3, Rajbhandari et al.
    2020), and so are Adam's moments. The losses are those of one device: an in-batch softmax has
    the candidates of the whole batch.

    Set it before the encoder is made; a loaded checkpoint's weights go where it says:

        >>> keras.distribution.set_distribution(sharded(model=4))
        >>> encoder = TrainableEncoder.load("t5-11b")
        >>> JaxLoop(encoder, [task], optimizer).run(1000)

    Args:
        model: Devices along which weights are cut; divides their number.
        rules: Pattern of a weight's path → for each of its axes the axis of the mesh along which it
            is cut, "batch", "model" or None; what no pattern finds lies whole on every device.

    Raises:
        ValueError: The numbers do not fit.
    """
    places = [*keras.distribution.list_devices()]
    if model < 1 or len(places) % model:
        raise ValueError(
            f"model: expected a number that divides the {len(places)} devices, received {model}."
        )
    if model == 1:
        return keras.distribution.DataParallel(devices=places, auto_shard_dataset=False)
    mesh = keras.distribution.DeviceMesh((len(places) // model, model), (BATCH, MODEL), places)
    layout = keras.distribution.LayoutMap(mesh)
    for pattern, axes in rules.items():
        layout[pattern] = axes
    return keras.distribution.ModelParallel(
        layout_map=layout, batch_dim_name=BATCH, auto_shard_dataset=False
    )


def placed(batch: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """A batch's arrays where the distribution that is set wants them; as they are without one."""
    distribution = keras.distribution.distribution()
    if distribution is None:
        return dict(batch)
    import jax

    return {
        name: jax.device_put(array, distribution.get_data_layout(array.shape).backend_layout)
        for name, array in batch.items()
    }


def parts_of_batch() -> int:
    """Into how many parts the distribution that is set cuts a batch; 1 without one."""
    distribution = keras.distribution.distribution()
    if distribution is None:
        return 1
    mesh = distribution.device_mesh
    return mesh.shape[mesh.axis_names.index(distribution.batch_dim_name)]
