"""Weights and batches on many devices under JAX, by Keras's distribution API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras
import numpy as np

# The axes of the devices' mesh: rows of a batch lie along the first, parts of weights along both.
BATCH, MODEL = "batch", "model"

Rules = Mapping[str, tuple[str | None, ...]]

# By the roles of layers, which are the same in every family: the units of a head and of a
# feed-forward layer stay together along "model" (Megatron-LM, section 3).
RULES: Rules = {
    ".*/(query|key|value|inner|linear)/kernel": (BATCH, MODEL),
    ".*/(output|outer)/kernel": (MODEL, BATCH),
    ".*(/|_)embedding/embeddings": (None, MODEL),
}


def sharded(*, model: int = 1, rules: Rules = RULES) -> keras.distribution.Distribution:
    """A distribution of weights and batches over the devices of JAX.

    With `model=1` each device holds all weights and a part of the batch (`DataParallel`). With a
    larger `model` the devices are a mesh `[devices / model, model]` (`ModelParallel`). The batch is
    cut along its first axis, "batch". The linear layers of the Transformers are cut along both
    axes: along "model" as in Megatron-LM (Shoeybi et al. 2019, section 3), along "batch" as in
    ZeRO-3 (Rajbhandari et al. 2020). Their tables are cut along "model". Adam's moments are cut
    like the weights. The losses are those of one device: an in-batch softmax has the candidates of
    the whole batch.

    Set the distribution before the encoder is made; it also places a loaded checkpoint's weights:

        >>> keras.distribution.set_distribution(sharded(model=4))
        >>> encoder = TrainableEncoder.load("t5-11b")
        >>> JaxLoop(encoder, [task], optimizer).run(1000)

    Args:
        model: Length of the axis "model", which divides the number of devices.
        rules: Pattern of a weight's path → for each of its axes the axis of the mesh along which it
            is cut, "batch", "model" or None. A weight that no pattern matches lies whole on every
            device.

    Raises:
        ValueError: `model` does not divide the number of devices.
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
    """Places a batch's arrays as the current distribution says; unchanged without one."""
    distribution = keras.distribution.distribution()
    if distribution is None:
        return dict(batch)
    import jax

    return {
        name: jax.device_put(array, distribution.get_data_layout(array.shape).backend_layout)
        for name, array in batch.items()
    }


def parts_of_batch() -> int:
    """The number of parts into which the current distribution cuts a batch; 1 without one."""
    distribution = keras.distribution.distribution()
    if distribution is None:
        return 1
    mesh = distribution.device_mesh
    return mesh.shape[mesh.axis_names.index(distribution.batch_dim_name)]
