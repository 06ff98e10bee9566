"""Trans-Encoder: its cycles, and pairs without a score in a user's file."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import keras
import numpy as np
import pytest

from tests.tiny_bert import write_tiny_bert
from tests.toy_encoders import Toy
from tests.training.test_train import SENTENCES, scored, write
from use_st5.models.bert.model import BertConfig, SentenceBert
from use_st5.models.cross_encoder.model import CrossEncoderModel
from use_st5.models.encoder_model import inference
from use_st5.training import tensorflow_step, trans_encoder
from use_st5.training.arguments import make_arguments
from use_st5.training.history import History
from use_st5.training.trans_encoder import (
    BI_LENGTH,
    CROSS_LENGTH,
    DistillationSettings,
    DistilledModel,
    PairIds,
    Student,
    TransEncoder,
    best,
    scores,
    settings_of_cycles,
    train_trans_encoder,
)

SHAPE = BertConfig(
    vocabulary_size=40, hidden_dim=8, num_layers=1, num_heads=2, intermediate_dim=16,
    max_positions=16, separator_id=3, dropout=0.1,
)  # fmt: skip
SMALL = TransEncoder(
    cycles=2,
    to_cross=DistillationSettings(
        objective="bce", learning_rate=1e-2, batch_size=8, epochs=2, warmup_share=0.1,
        both_orders=True,
    ),
    to_bi=DistillationSettings(objective="mse", learning_rate=1e-2, batch_size=8, epochs=4),
    evaluate_every=4,
)  # fmt: skip
OPTIONS: dict[str, Any] = {"steps_per_execution": 2, "progress": False, "jit_compile": False}


def some_pairs(count: int, seed: int) -> PairIds:
    """Pairs of texts of 1 to 6 tokens, so that batches have several widths."""
    rng = np.random.default_rng(seed)
    first, second = (
        [rng.integers(4, 40, length).tolist() for length in rng.integers(1, 7, count)]
        for _ in range(2)
    )

    def framed(*texts: list[list[int]]) -> np.ndarray:
        rows = [[2, *(i for text in row for i in (*text, 3))] for row in zip(*texts, strict=True)]
        width = max(map(len, rows))
        return np.array([row + [0] * (width - len(row)) for row in rows], np.int32)

    return PairIds(
        first=framed(first),
        second=framed(second),
        joined=framed(first, second),
        turned=framed(second, first),
    )


PAIRS, VALIDATION = some_pairs(32, 0), some_pairs(12, 1)
SCORES = np.random.default_rng(2).random(12)


def bi(pooling: str = "mean") -> keras.Model:
    model = SentenceBert(SHAPE, pooling=pooling)
    model.build()
    return model


def cross() -> keras.Model:
    model = CrossEncoderModel(SentenceBert(SHAPE, pooling="cls"))
    model.build()
    return model


def student(name: str = "one", **changes: Any) -> Student:
    made = Student(name=name, bi=bi, cross=cross, pairs=PAIRS, validation=VALIDATION)
    return dataclasses.replace(made, **changes)


def weights_of(folder: Path) -> dict[str, list[np.ndarray]]:
    return {
        str(path.relative_to(folder).parents[1]): _loaded(path)
        for path in sorted(folder.rglob("model.weights.h5"))
    }


def _loaded(path: Path) -> list[np.ndarray]:
    model = cross() if path.parents[1].name.startswith("cross") else bi()
    model.load_weights(path)
    return model.get_weights()


def test_the_paper_s_settings() -> None:
    # Table 16, base models, STS; the orders and the warm-up are those of its code.
    settings = TransEncoder()
    assert (settings.cycles, settings.refresh, BI_LENGTH, CROSS_LENGTH) == (3, True, 32, 64)
    assert settings.evaluate_every == 200
    to_cross, to_bi = settings.to_cross, settings.to_bi
    assert (to_cross.objective, to_cross.learning_rate) == ("bce", 2e-5)
    assert (to_cross.batch_size, to_cross.epochs) == (32, 1)
    assert (to_cross.warmup_share, to_cross.both_orders) == (0.1, True)
    assert (to_bi.objective, to_bi.learning_rate) == ("mse", 5e-5)
    assert (to_bi.batch_size, to_bi.epochs) == (128, 10)
    assert (to_bi.warmup_share, to_bi.both_orders) == (0.0, False)


def test_the_optimizer_is_that_of_the_papers_code() -> None:
    """AdamW (section 4); decay, exceptions and clipping are those of its library's `fit`."""
    settings = TransEncoder()
    rates = {
        # Shares of the peak at the steps 0, 5, 10, 55 and 100 of 100.
        (settings.to_cross, 1.0, 2e-5): [0, 0.5, 1, 0.5, 0],
        (settings.to_bi, 2.0, 1e-4): [1, 0.95, 0.9, 0.45, 0],
    }
    for (distillation, rate, peak), shares in rates.items():
        optimizer = trans_encoder._optimizer(distillation, rate, 100)
        found = [float(optimizer._learning_rate(step)) for step in (0, 5, 10, 55, 100)]
        assert found == pytest.approx([peak * each for each in shares])
        assert isinstance(optimizer, keras.optimizers.AdamW)
        assert (optimizer.weight_decay, optimizer.global_clipnorm) == (0.01, 1.0)
        kinds = {v.path.split("/")[-1]: optimizer._use_weight_decay(v) for v in cross().weights}
        assert kinds == {
            **dict.fromkeys(("embeddings", "kernel"), True),
            **dict.fromkeys(("bias", "gamma", "beta"), False),
        }


def test_both_orders_of_a_pair_have_its_score() -> None:
    settings, labels = TransEncoder(), np.arange(32) / 32
    _, arrays = trans_encoder._loss_and_arrays("cross", settings.to_cross, PAIRS, labels)
    for ids, part in ((PAIRS.joined, arrays["pair"][:32]), (PAIRS.turned, arrays["pair"][32:])):
        np.testing.assert_array_equal(part[:, : ids.shape[1]], ids)
    np.testing.assert_array_equal(arrays["score"], [*labels, *labels])
    _, of_bi = trans_encoder._loss_and_arrays("bi", settings.to_bi, PAIRS, labels)
    np.testing.assert_array_equal(of_bi["score"], labels)
    np.testing.assert_array_equal(of_bi["second"], PAIRS.second)


def test_scores_are_cosines_and_sigmoids_whatever_the_batches() -> None:
    keras.utils.set_random_seed(0)
    model, judge = bi(), cross()
    u, v = (np.asarray(model(ids)) for ids in (PAIRS.first, PAIRS.second))
    cosines = (u * v).sum(1) / np.linalg.norm(u, axis=1) / np.linalg.norm(v, axis=1)
    np.testing.assert_allclose(scores(inference(model), "bi", PAIRS), cosines, atol=1e-5)
    wider = dataclasses.replace(PAIRS, first=np.pad(PAIRS.first, [(0, 0), (0, 7)]))
    np.testing.assert_allclose(scores(inference(model), "bi", wider), cosines, atol=1e-5)
    logits = np.asarray(judge(PAIRS.joined))[:, 0]
    np.testing.assert_allclose(
        scores(inference(judge), "cross", PAIRS), 1 / (1 + np.exp(-logits)), atol=1e-6
    )


def test_ids_of_texts_are_cut_and_joined() -> None:
    class Letters:
        """One id for each letter."""

        def padded(self, texts: list[str], limit: int) -> np.ndarray:
            return np.array([[*map(ord, text[:limit].ljust(limit))] for text in texts])

    class Pairs(Letters):
        """Can join two texts."""

        def padded_pairs(self, first: list[str], second: list[str], limit: int) -> np.ndarray:
            return self.padded([a + b for a, b in zip(first, second, strict=True)], limit)

    limits = {"max_tokens": 2, "max_pair_tokens": 6}
    ids = PairIds.of_texts(Letters(), ["ab"], ["cdef"], pair_tokenizer=Pairs(), **limits)
    found = [bytes(rows[0].tolist()) for rows in (ids.first, ids.second, ids.joined, ids.turned)]
    assert found == [b"ab", b"cd", b"abcdef", b"cdefab"]
    alone = PairIds.of_texts(Letters(), ["ab"], ["cdef"], **limits)
    assert (alone.joined.shape, alone.turned.shape, len(alone)) == ((1, 0), (1, 0), 1)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[DistilledModel]]:
    folder = tmp_path_factory.mktemp("cycles")
    return folder, train_trans_encoder([student()], SCORES, folder, settings=SMALL, **OPTIONS)


def test_models_are_made_by_turns(whole: tuple[Path, list[DistilledModel]]) -> None:
    folder, models = whole
    order = [(each.kind, each.cycle) for each in models]
    assert order == [("bi", 0), ("cross", 1), ("bi", 1), ("cross", 2), ("bi", 2)]
    for each in models[1:]:
        model = cross() if each.kind == "cross" else bi()
        model.load_weights(each.weights)
        assert _correlates(model, each.kind) == pytest.approx(each.spearman, abs=1e-6)
    assert best(models, "one", "bi").spearman == max(models[i].spearman for i in (0, 2, 4))
    left = {path.name for path in folder.rglob("*") if path.is_file()} - {".use_st5.lock"}
    assert left == {"settings.json", "validation.json", "model.weights.h5"}


def drawn_by(seed: int, make: Callable[[], keras.Model]) -> Callable[[], keras.Model]:
    """Wraps `make` so that its models always have the same weights."""

    def made() -> keras.Model:
        keras.utils.set_random_seed(seed)
        return make()

    return made


def test_the_start_of_a_bi_encoder_is_evaluated_and_kept_if_nothing_beats_it(
    tmp_path: Path,
) -> None:
    start = drawn_by(1, bi)
    validation_scores = scores(inference(start()), "bi", VALIDATION)
    to_bi = dataclasses.replace(SMALL.to_bi, steps=2)
    settings = dataclasses.replace(SMALL, cycles=1, standard=True, to_bi=to_bi)
    begun, kept = train_trans_encoder(
        [student(bi=start)], validation_scores, tmp_path, settings=settings, **OPTIONS
    )
    assert (begun.spearman, kept.spearman, kept.step) == (pytest.approx(1), pytest.approx(1), 0)
    model = bi()
    model.load_weights(kept.weights)
    for here, there in zip(model.get_weights(), start().get_weights(), strict=True):
        np.testing.assert_array_equal(here, there)


def _correlates(model: keras.Model, kind: Any) -> float:
    from scipy.stats import spearmanr

    return float(spearmanr(scores(inference(model), kind, VALIDATION), SCORES).statistic)


def killed_at(at: int, real: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps `real` so that the call of this number kills the run."""
    calls = iter(range(1, 1000))

    def killing(*given: Any) -> Any:
        if next(calls) == at:
            raise KeyboardInterrupt
        return real(*given)

    return killing


@pytest.mark.end_to_end
def test_a_course_killed_twice_goes_on_to_the_same_weights(
    whole: tuple[Path, list[DistilledModel]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = partial(train_trans_encoder, [student()], SCORES, tmp_path, settings=SMALL, **OPTIONS)
    for at in (3, 10):  # the number of a remaining evaluation: in cycle 1, and in cycle 2
        correlation = killed_at(at, trans_encoder._Cycles.correlation)
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(trans_encoder._Cycles, "correlation", correlation)
            run()
    assert (tmp_path / "cycle_2").is_dir()
    assert [each.spearman for each in run()] == [each.spearman for each in whole[1]]
    first, again = weights_of(whole[0]), weights_of(tmp_path)
    assert set(first) == set(again)
    for name, weights in again.items():
        for here, there in zip(weights, first[name], strict=True):
            np.testing.assert_array_equal(here, there)


def recorded(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, np.ndarray]]:
    """A list that gets the kind and the labels of each training that follows."""
    given: list[tuple[str, np.ndarray]] = []
    real = trans_encoder._loss_and_arrays

    def material(kind: Any, distillation: Any, pairs: PairIds, labels: np.ndarray) -> Any:
        given.append((kind, labels))
        return real(kind, distillation, pairs, labels)

    monkeypatch.setattr(trans_encoder, "_loss_and_arrays", material)
    return given


class NoLoop:
    """Trains nothing, and notes what it was asked for; each model has a first score of its own."""

    asked: ClassVar[dict[str, tuple[bool, list[int]]]] = {}

    def __init__(self, _model: Any, tasks: Any, _optimizer: Any, args: Any, **options: Any) -> None:
        (self.task,), self.args, self.starts = tasks, args, options["evaluate_start"]

    def run(self, steps: int) -> History:
        self.asked[self.task.name] = self.starts, self.args.ends(steps, len(self.task.data))
        return History(best_score=0.5, best_step=steps)

    def restore_best(self) -> None:
        """Nothing was trained."""


def test_each_kind_learns_the_mean_of_all_teachers_scores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutual distillation, section 2.4."""
    monkeypatch.setattr(tensorflow_step, "TensorFlowLoop", NoLoop)
    given = recorded(monkeypatch)
    one = dataclasses.replace(SMALL, cycles=1)
    students = [
        student(name, bi=drawn_by(seed, bi), cross=drawn_by(10 + seed, cross))
        for seed, name in enumerate(("one", "two"))
    ]
    train_trans_encoder(students, SCORES, tmp_path, settings=one, **OPTIONS)
    assert [kind for kind, _ in given] == ["cross"] * 2 + ["bi"] * 2
    # The head of a cross-encoder is new: a start that is best by chance would be passed on. It
    # reads 32 pairs in both orders, 8 in a step; there is an evaluation at the end of each epoch.
    assert NoLoop.asked["cross_one"] == (False, [8, 16])
    assert NoLoop.asked["bi_one"] == (True, [4, 8, 12, 16])
    for number, kind in ((0, "bi"), (2, "cross")):  # what the teachers are
        views = [scores(inference(getattr(each, kind)()), kind, PAIRS) for each in students]
        assert np.ptp(views, axis=0).max() > 1e-4
        for _, labels in given[number : number + 2]:
            np.testing.assert_allclose(labels, np.mean(views, axis=0), atol=1e-6)


@pytest.mark.end_to_end
def test_without_refreshing_weights_go_from_kind_to_kind(tmp_path: Path) -> None:
    # At a learning rate of 0 nothing is learned: the bi-encoder keeps its weights throughout.
    still = dataclasses.replace(SMALL.to_bi, learning_rate=0.0)
    settings = dataclasses.replace(
        SMALL, cycles=1, refresh=False, to_bi=still,
        to_cross=dataclasses.replace(SMALL.to_cross, learning_rate=0.0),
    )  # fmt: skip
    models = train_trans_encoder([student()], SCORES, tmp_path, settings=settings, **OPTIONS)
    assert models[2].spearman == pytest.approx(models[0].spearman, abs=1e-6)
    judge, end = cross(), bi()
    judge.load_weights(models[1].weights)
    end.load_weights(models[2].weights)
    for here, there in zip(judge.encoder.get_weights(), end.get_weights(), strict=True):
        np.testing.assert_array_equal(here, there)


def test_a_folder_with_another_course_is_refused(
    whole: tuple[Path, list[DistilledModel]],
) -> None:
    with pytest.raises(ValueError, match=r"settings.json: .*\n  seed: begun with 0, now 3"):
        train_trans_encoder([student()], SCORES, whole[0], settings=SMALL, seed=3, **OPTIONS)


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """Pairs without a score, and scored ones."""
    pairs = [
        {"sentence1": a, "sentence2": b}
        for a, b in zip(SENTENCES[:40], SENTENCES[5:45], strict=True)
    ]
    return write(tmp_path / "pairs.csv", pairs), write(tmp_path / "dev.csv", scored(40, start=60))


def test_the_settings_of_cycles_are_the_papers() -> None:
    """Table 16, as Trans-Encoder's own settings have it."""
    assert settings_of_cycles(make_arguments("trans_encoder")) == TransEncoder()
    changed = settings_of_cycles(make_arguments(learning_rate=1e-3, steps=7, cycles=1))
    assert changed.to_bi.learning_rate == changed.to_cross.learning_rate == 1e-3
    assert (changed.cycles, changed.to_bi.steps, changed.to_cross.steps) == (1, 7, 7)
    with pytest.raises(ValueError, match="lora_rank, keep: expected no value"):
        settings_of_cycles(make_arguments(lora_rank=4, keep=0.5))


@pytest.mark.end_to_end
def test_a_bert_and_its_cross_encoder_teach_each_other(
    files: tuple[Path, Path], tmp_path: Path
) -> None:
    """The best cycle and the cross-encoder are exported; the same call again changes nothing."""
    import use_st5
    from use_st5.encode.cross_encoder import CrossEncoder
    from use_st5.training.train import train

    bert = str(write_tiny_bert(tmp_path / "bert", head=False))
    options = {"validation": files[1], "batch_size": 8, "steps": 10, "learning_rate": 1e-2}
    said: list[str] = []
    trained = train(bert, files[0], tmp_path / "tuned", log=said.append, **options)
    assert any("2 cycles: a cross-encoder is trained on the encoder's scores" in x for x in said)
    record = json.loads((trained.run / "history.json").read_text())[""]
    measured = [each["spearman"] for each in record["evaluations"]]
    assert [each["step"] for each in record["evaluations"]] == [0, 1, 2]
    assert trained.best_step == int(np.argmax(measured))
    assert trained.before["spearman"] == pytest.approx(measured[0])
    assert trained.after["spearman"] == pytest.approx(max(measured), abs=1e-6)
    card = (trained.folder / "README.md").read_text()
    assert "cycle 2 of 2" in card or "cycle 1 of 2" in card or "the start" in card
    pairs = [(SENTENCES[0], SENTENCES[1])]
    assert 0 < CrossEncoder.load(trained.run / "cross_encoder").predict(pairs).item() < 1
    vectors = use_st5.load(trained.folder).encode(SENTENCES[:3])
    again = train(bert, files[0], tmp_path / "tuned", **options)
    assert again.after == trained.after
    np.testing.assert_array_equal(use_st5.load(again.folder).encode(SENTENCES[:3]), vectors)


@pytest.mark.end_to_end
def test_another_encoder_learns_from_a_bert_or_from_a_trained_cross_encoder(
    files: tuple[Path, Path], toy_use_dan: Toy, tmp_path: Path
) -> None:
    """A USE-DAN cannot read pairs: a BERT does, or an existing cross-encoder scores them."""
    from use_st5.models.cross_encoder.model import CrossEncoderModel
    from use_st5.trainable_encoder import TrainableEncoder
    from use_st5.training.train import train

    start = str(toy_use_dan.folders["float32"])
    bert = write_tiny_bert(tmp_path / "bert", head=False)
    options = {"validation": files[1], "batch_size": 8, "steps": 4}
    with pytest.raises(
        ValueError, match="Expected a BERT or RoBERTa, received a USEDAN.*--teacher"
    ):
        train(start, files[0], tmp_path / "no", **options)
    taught = train(start, files[0], tmp_path / "a", teacher=str(bert), cycles=1, **options)
    assert taught.steps == 1
    below = TrainableEncoder.load(bert)
    cross_encoder = CrossEncoderModel(below.model.pooled("cls"))
    cross_encoder.build()
    TrainableEncoder(cross_encoder, below.tokenizer).export(tmp_path / "cross_encoder")
    trained = train(
        start, files[0], tmp_path / "b", teacher=str(tmp_path / "cross_encoder"), **options
    )
    assert trained.steps == 4
    record = json.loads((trained.run / "history.json").read_text())[""]
    assert list(record["task_steps"]) == ["pairs"]


def test_what_cannot_be_learnt_so(
    files: tuple[Path, Path], toy_use_dan: Toy, tmp_path: Path
) -> None:
    from use_st5.training.train import train

    start, to = str(toy_use_dan.folders["float32"]), tmp_path / "tuned"
    with pytest.raises(ValueError, match="cannot evaluate. Give --validation"):
        train(start, files[0], to)
    with pytest.raises(ValueError, match="pairs.csv: a file of unscored_pairs cannot evaluate"):
        train(start, files[0], to, validation=files[0])
    with pytest.raises(ValueError, match="received also scored_pairs.* trained in cycles"):
        more = write(tmp_path / "more.csv", scored(20, start=20))
        train(start, [files[0], more], to, validation=files[1])
    assert not to.exists()
