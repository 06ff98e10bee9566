"""A step as a TPU gets it: every size is known, with a trace for each width of the batches."""

from __future__ import annotations

from types import SimpleNamespace

import keras
import pytest
import tensorflow as tf

from tests.training import toy
from use_st5.training import strategies, tensorflow_loop
from use_st5.training.arguments import TrainingArguments
from use_st5.training.array_data import ArrayData
from use_st5.training.task import Task
from use_st5.training.train_step import TrainStep
from use_st5.training.trainer import Trainer


class OneChip(tf.distribute.TPUStrategy):
    """A stand-in for the strategy of a TPU with one chip."""

    num_replicas_in_sync = 1
    cluster_resolver = None

    def __init__(self) -> None:
        pass


def trained(
    *, tpu: bool, buckets: tuple[int, ...]
) -> tuple[tensorflow_loop.TensorFlowLoop, list[float]]:
    """Trains ten steps: one call from the host makes seven, the next one three."""
    keras.utils.set_random_seed(1)
    columns = {name: toy.arrays()[name] for name in ("premise", "hypothesis", "label")}
    task = Task("nli", toy.losses()["nli"], ArrayData(columns, buckets=buckets), batch_size=4)
    made = tensorflow_loop.TensorFlowLoop(
        toy.ToyEncoder(),
        [task],
        keras.optimizers.SGD(0.1),
        jit_compile="auto" if tpu else False,
        steps_per_execution=7,
        progress=False,
    )
    return made, [record["loss"] for record in made.run(10).records]


def test_every_width_has_a_trace_of_known_sizes_on_a_tpu(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[dict[str, tf.TensorSpec]] = []
    step = TrainStep._step

    def noting(self: TrainStep, batch: dict[str, tf.Tensor]) -> tf.Tensor:
        seen.append({name: tf.TensorSpec.from_tensor(value) for name, value in batch.items()})
        return step(self, batch)

    monkeypatch.setattr(TrainStep, "_step", noting)
    _, expected = trained(tpu=False, buckets=(2, 4, 5))
    assert [spec["premise"].shape.as_list() for spec in seen] == [[4, None]]
    seen.clear()
    monkeypatch.setattr(tensorflow_loop, "compiles_everything", lambda strategy: True)
    made, losses = trained(tpu=True, buckets=(2, 4, 5))
    assert losses == pytest.approx(expected, rel=1e-5)
    assert not made.jit_compile
    # The last call makes fewer steps with the same trace.
    assert made._train_steps["nli"]._steps.experimental_get_tracing_count() == 1
    assert [spec["premise"].shape.as_list() for spec in seen] == [[4, 2], [4, 4], [4, 5]]
    for spec in seen:
        assert all(each.shape.is_fully_defined() for each in spec.values())
        assert {each.dtype for each in spec.values()} == {tf.int32}


def test_xla_is_not_asked_for_within_what_a_tpu_compiles() -> None:
    with pytest.raises(ValueError, match="A TPU compiles the whole step"):
        strategies.check_xla(True, OneChip())
    strategies.check_xla(False, OneChip())
    model = toy.ToyEncoder()
    data = {"nli": (ArrayData(toy.arrays()), toy.losses()["nli"])}
    args = TrainingArguments(batch_size=4, steps=1)
    assert Trainer(model, data, args, strategy=OneChip())._jit_compile() == "auto"
    one = SimpleNamespace(num_replicas_in_sync=2)
    with pytest.raises(ValueError, match="jit_compile=True with 2 replicas"):
        strategies.check_xla(True, one)
