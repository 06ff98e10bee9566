"""`Trainer`: data sets of any kind, losses, evaluation and callbacks, on a toy."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.toy_encoders import WORDS, Toy
from tests.training import toy
from use_st5.data.arrays import ArrayData
from use_st5.losses.contrastive_loss import ContrastiveLoss
from use_st5.losses.scored_pair_loss import ScoredPairLoss
from use_st5.models.bert.model import BertConfig, SentenceBert
from use_st5.models.t5.model import T5Config
from use_st5.models.t5.sentence_t5 import SentenceT5
from use_st5.trainable_encoder import TrainableEncoder
from use_st5.training import trainer as trainer_module
from use_st5.training.arguments import TrainingArguments
from use_st5.training.tasks import TASKS
from use_st5.training.tensorflow_step import TensorFlowLoop, kept_bytes
from use_st5.training.trainer import Trainer, frozen_parts
from use_st5.training.validation import ValidationSet

PAIRS = [{"anchor": f"{a} {b}", "positive": f"{b} {a}"} for a in WORDS[:4] for b in WORDS[4:9]]
SCORED = [
    {"sentence1": f"{a} {b}", "sentence2": f"{a} {a}", "score": float(a < b)}
    for a in WORDS[:4]
    for b in WORDS[4:9]
]
ARGS = TrainingArguments(
    learning_rate=0.01, batch_size=4, steps=4, evaluations=2, jit_compile=False
)


@pytest.fixture
def encoder(toy_use_dan: Toy) -> TrainableEncoder:
    """An encoder that each test may change."""
    return TrainableEncoder.load(toy_use_dan.folders["float32"])


def weights(encoder: TrainableEncoder) -> np.ndarray:
    """All weights as one vector."""
    return np.concatenate([each.ravel() for each in encoder.model.get_weights()])


def arrays_of(encoder: TrainableEncoder) -> ArrayData:
    """The pairs as arrays of ids, as wide as the longest text."""
    texts = {name: [row[name] for row in PAIRS] for name in ("anchor", "positive")}
    ids = {name: np.asarray(encoder.tokenizer.padded(each, 16)) for name, each in texts.items()}
    width = max(np.flatnonzero(each.any(axis=0)).max() + 1 for each in ids.values())
    return ArrayData({k: each[:, :width] for k, each in ids.items()}, buckets=(int(width),))


def test_two_data_sets_with_their_losses(encoder: TrainableEncoder, tmp_path: Path) -> None:
    """A metric chooses the weights, a callback sees the losses, and a second call goes on."""
    measured = ValidationSet("sts", TASKS["scored_pairs"], SCORED)
    tasks = {"faq": (PAIRS, ContrastiveLoss(temperature=0.05)), "sts": (SCORED, ScoredPairLoss())}
    seen: list[dict[str, Any]] = []
    callback = keras.callbacks.LambdaCallback(on_train_batch_end=lambda n, logs: seen.append(logs))
    options: dict[str, Any] = {
        "evaluate": measured.scores,
        "monitor": "spearman",
        "callbacks": [callback],
        "folder": tmp_path / "run",
        "keep_best": 2,
        "progress": False,
    }
    trainer = Trainer(encoder, tasks, ARGS, **options)
    history = trainer.train()
    assert (history.step, sum(history.task_steps.values())) == (4, 4)
    assert [each["step"] for each in history.evaluations] == [0, 2, 4]
    assert len(seen) == 4
    assert {*seen[0]} & {"faq/loss", "sts/loss"}
    assert measured.scores(encoder.encode)["spearman"] == pytest.approx(history.best_score)
    best = weights(encoder)
    trainer.restore_best(1)
    second = sorted(each["spearman"] for each in history.evaluations)[-2]
    assert measured.scores(encoder.encode)["spearman"] == pytest.approx(second)
    assert Trainer(encoder, tasks, ARGS, **options).train().step == 4, "nothing is left to do"
    np.testing.assert_array_equal(weights(encoder), best)


@pytest.mark.filterwarnings("ignore")
def test_trackers_note_each_evaluation(
    encoder: TrainableEncoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The callbacks of W&B and MLflow, offline."""
    wandb = pytest.importorskip("wandb", reason="not installed")
    wandb_keras = pytest.importorskip("wandb.integration.keras")
    mlflow = pytest.importorskip("mlflow", reason="not installed")
    for name, value in {"MODE": "offline", "SILENT": "true", "DIR": str(tmp_path)}.items():
        monkeypatch.setenv(f"WANDB_{name}", value)
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/mlflow.db")
    mlflow.create_experiment("toy", artifact_location=tmp_path.as_uri())
    mlflow.set_experiment("toy")
    with wandb.init(project="toy") as run, mlflow.start_run() as noted:
        callbacks = [wandb_keras.WandbMetricsLogger(), mlflow.keras.MlflowCallback()]
        options: dict[str, Any] = {"callbacks": callbacks, "progress": False}
        evaluate = ValidationSet("faq", TASKS["pairs"], PAIRS).scores
        tasks = {"faq": (PAIRS, ContrastiveLoss())}
        history = Trainer(encoder, tasks, ARGS, evaluate=evaluate, **options).train()
        summary = dict(run.summary)
    mlflow.flush_async_logging()
    data = mlflow.get_run(noted.info.run_id).data
    expected = history.evaluations[-1]["accuracy@1"]
    assert summary["epoch/accuracy_at_1"] == data.metrics["accuracy_at_1"] == expected
    assert {"epoch/learning_rate", "epoch/loss", "epoch/mrr"} <= summary.keys()
    assert {"loss", "mrr", "faq/loss"} <= data.metrics.keys()
    assert data.params["optimizer_name"] == "adam"
    assert not hasattr(encoder.model, "optimizer"), "it would keep the optimizer's memory"


def test_a_data_set_may_be_of_any_kind(encoder: TrainableEncoder) -> None:
    """Dicts, an Arrow table, a `tf.data.Dataset`, other names of columns, and arrays."""
    pyarrow = pytest.importorskip("pyarrow", reason="reads no Arrow tables")
    columns = {name: [row[name] for row in PAIRS] for name in ("anchor", "positive")}
    kinds = {
        "dicts": iter(PAIRS),
        "tensors": tf.data.Dataset.from_tensor_slices(columns),
        "others": [{"id": 1, "query": r["anchor"], "answer": r["positive"]} for r in PAIRS],
        "arrow": pyarrow.table(columns),
        "frame": pytest.importorskip("pandas", minversion="2.2").DataFrame(columns),
        "arrays": arrays_of(encoder),
    }
    found = {}
    for name, dataset in kinds.items():
        tasks = {"faq": (dataset, ContrastiveLoss())}
        (task,) = Trainer(encoder, tasks, ARGS, progress=False)._tasks
        found[name] = {**task.data.arrays, "buckets": task.data.buckets}
        for feature, ids in found[name].items():
            np.testing.assert_array_equal(ids, found["dicts"][feature], err_msg=name)


@pytest.mark.parametrize(
    ("rows", "args", "message"),
    [
        (SCORED, ARGS, "faq: ContrastiveLoss reads the columns anchor, positive; received"),
        ([], ARGS, "faq: expected rows, received an empty data set"),
        (3, ARGS, "Expected a data set: a DataFrame.* Received: int"),
        ([{"anchor": "a", "positive": 3}], ARGS, "faq: 'positive', examples 0 to 0: expected text"),
        (PAIRS[:3], TrainingArguments(batch_size=8, micro_batch_size=2), "at least 4 rows"),
    ],
)
def test_what_does_not_fit_is_refused_before_the_first_step(
    rows: Any, args: TrainingArguments, message: str, encoder: TrainableEncoder
) -> None:
    with pytest.raises(ValueError, match=message):
        Trainer(encoder, {"faq": (rows, ContrastiveLoss())}, args)


def test_arrays_are_kept_for_a_later_call(encoder: TrainableEncoder, tmp_path: Path) -> None:
    """The rows are read once, as a stream; a stream that fails is not read again."""

    def broken() -> Iterator[dict[str, str]]:
        yield PAIRS[0]
        raise RuntimeError("read again")

    for rows in (iter(PAIRS), broken()):
        tasks = {"faq": (rows, ContrastiveLoss())}
        assert Trainer(encoder, tasks, ARGS, arrays=tmp_path / "arrays").steps == 4


def test_the_last_weights_are_kept_where_the_best_are_not_asked_for(
    encoder: TrainableEncoder,
) -> None:
    scores, seen = iter([0.9, 0.2, 0.1]), []

    def evaluate(encode: Any) -> dict[str, float]:
        seen.append(weights(encoder))
        return {"x": next(scores)}

    tasks = {"faq": (PAIRS, ContrastiveLoss())}
    options: dict[str, Any] = {"evaluate": evaluate, "progress": False}
    history = Trainer(encoder, tasks, ARGS, restore_best=False, **options).train()
    assert (history.step, history.best_step) == (4, 0)
    np.testing.assert_array_equal(weights(encoder), seen[-1])
    assert np.abs(seen[-1] - seen[0]).max() > 1e-4


def test_a_keras_model_is_evaluated_itself(encoder: TrainableEncoder) -> None:
    loss, seen = ContrastiveLoss(), []

    def evaluate(model: keras.Model) -> dict[str, float]:
        seen.append(model)
        return {"x": float(len(seen))}

    tasks = {"faq": (arrays_of(encoder), loss)}
    Trainer(encoder.model, tasks, ARGS, evaluate=evaluate, progress=False).train()
    assert seen == [encoder.model] * 3


@pytest.mark.parametrize(("texts", "micro"), [(8, None), (7, 2), (4, 2), (1, 1)])
def test_a_micro_batch_fits_into_half_of_the_memory(
    texts: int, micro: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = SentenceT5(T5Config(40, 1, 8, 8, 2))
    model.build()
    memory = 2 * texts * kept_bytes(model, 4)
    monkeypatch.setattr(trainer_module, "machine_memory", lambda: memory)
    args = dataclasses.replace(ARGS, micro_batch_size="auto")
    ids = np.ones((8, 4), np.int32)
    data = ArrayData({"anchor": ids, "positive": ids})
    trainer = Trainer(model, {"pairs": (data, ContrastiveLoss())}, args)
    assert trainer.args.micro_batch_size == micro
    assert trainer.train().step == 4


def test_tasks_have_batches_of_their_own_size(encoder: TrainableEncoder) -> None:
    tasks = {"faq": (PAIRS, ContrastiveLoss()), "sts": (SCORED, ScoredPairLoss())}
    args = TrainingArguments(learning_rate=0.01, batch_size=4, epochs=1, jit_compile=False)
    trainer = Trainer(encoder, tasks, args, batch_sizes={"sts": 10}, progress=False)
    assert {task.name: task.batch_size for task in trainer._tasks} == {"faq": 4, "sts": 10}
    assert trainer.steps == 20 / 4 + 20 / 10, "an epoch of both"
    with pytest.raises(ValueError, match=r"batch_sizes: expected names among .* \['other'\]"):
        Trainer(encoder, tasks, args, batch_sizes={"other": 10})


def test_evaluations_may_leave_out_the_start_and_come_at_the_ends_of_epochs(
    encoder: TrainableEncoder,
) -> None:
    history = epochs_of(encoder, evaluate_start=False).train()
    assert [each["step"] for each in history.evaluations] == [4, 5, 8, 10, 12]


def epochs_of(encoder: TrainableEncoder, **options: Any) -> Trainer:
    """20 rows are an epoch of five batches of four: evaluations after 4, 5, 8, 10 and 12 steps."""
    args = TrainingArguments(
        learning_rate=0.01,
        batch_size=4,
        steps=12,
        evaluation_steps=4,
        evaluate_epochs=True,
        jit_compile=False,
    )
    evaluate = {"evaluate": lambda encode: {"x": 0.0}, "restore_best": False, "progress": False}
    tasks = {"faq": (PAIRS, ContrastiveLoss())}
    return Trainer(encoder, tasks, args, **evaluate, **options)


class Naming(toy.ToyEncoder):
    """The toy with the attributes of a family's model, and a dense layer as its head."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = self.table
        self.head = keras.Sequential([keras.layers.Dense(toy.DIMENSION)])
        self.head.build((None, toy.DIMENSION))

    def call(self, ids: Any, training: bool = False) -> Any:
        return self.head(super().call(ids, training=training))


def moved(parts: tuple[str, ...]) -> set[str]:
    """The names of the parts that a training step changes."""
    keras.utils.set_random_seed(0)
    model = Naming()
    groups = {"embedding": model.table, "encoder": model.dense, "head": model.head}
    before = {name: each.get_weights() for name, each in groups.items()}
    with frozen_parts(model, parts):
        tasks = toy.tasks(only=("nli",))
        toy.loop(TensorFlowLoop, model, tasks, keras.optimizers.Adam(0.1)).run(1)
    assert all(variable.trainable for variable in model.weights), "as before"
    return {
        name
        for name, each in groups.items()
        if any((a != b).any() for a, b in zip(each.get_weights(), before[name], strict=True))
    }


def test_what_is_frozen_stays_and_the_rest_learns() -> None:
    assert moved(()) == {"embedding", "encoder", "head"}
    assert moved(("embedding", "head")) == {"encoder"}
    assert moved(("encoder",)) == {"embedding", "head"}


def test_what_was_frozen_before_stays_so() -> None:
    model = Naming()
    model.dense.bias.trainable = False
    with pytest.raises(RuntimeError, match="killed"), frozen_parts(model, ["encoder", "head"]):
        assert [v.path for v in model.trainable_variables] == [model.table.embeddings.path]
        raise RuntimeError("killed")
    assert len(model.trainable_variables) == 4
    assert not model.dense.bias.trainable


def test_families_name_their_parts_alike() -> None:
    model = SentenceT5(T5Config(32, 1, 8, 16, 1, 8))
    model.build()
    with frozen_parts(model, ["embedding"]):
        frozen = [v for v in model.weights if not v.trainable]
        assert [np.shape(v) for v in frozen] == [(32, 8)]
    for part in ("head", "tail"):
        with pytest.raises(ValueError, match=rf"'encoder'\], received '{part}'"):
            frozen_parts(model, [part]).__enter__()


def test_all_embeddings_are_those_that_transformers_calls_so() -> None:
    config = BertConfig(
        vocabulary_size=20, hidden_dim=8, num_layers=1, num_heads=2, intermediate_dim=16,
        max_positions=6, separator_id=3,
    )  # fmt: skip
    model = SentenceBert(config, head=True)
    model.build()
    with frozen_parts(model, ["all_embeddings"]):
        frozen = [v for v in model.weights if not v.trainable]
    assert [np.shape(v) for v in frozen] == [(20, 8), (6, 8), (2, 8), (8,), (8,)]
    t5 = SentenceT5(T5Config(32, 1, 8, 16, 1, 8))
    t5.build()
    with frozen_parts(t5, ["all_embeddings"]):
        assert [np.shape(v) for v in t5.weights if not v.trainable] == [(32, 8)]
