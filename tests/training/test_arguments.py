"""Defaults, and the settings of the papers by name: their numbers are the papers'."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from use_st5.models.family import family_named
from use_st5.training.arguments import NAMED_SETTINGS, completed, make_arguments
from use_st5.training.tasks import TASKS


def test_the_settings_of_the_papers() -> None:
    st5 = make_arguments("sentence_t5")
    assert (st5.batch_size, st5.learning_rate, st5.optimizer) == (512, 1e-3, "adafactor")
    assert st5.loss == {"temperature": 0.01, "bidirectional": True}
    sbert = make_arguments("sbert")
    assert (sbert.batch_size, sbert.learning_rate, sbert.epochs) == (16, 2e-5, 1.0)
    assert sbert.loss["parts"] == ("u", "v", "difference")
    # The papers' classifiers start at random; the default here is the start that forgets less.
    heads = {name: make_arguments(name).head_init for name in NAMED_SETTINGS}
    assert {name for name, head in heads.items() if head == "random"} == {"sbert", "use"}
    assert make_arguments().head_init == "linear-probe"
    simcse = make_arguments("simcse")
    assert (simcse.batch_size, simcse.learning_rate, simcse.loss) == (
        64,
        3e-5,
        {"temperature": 0.05},
    )
    defsent = make_arguments("defsent")
    assert (defsent.epochs, defsent.batch_size) == (1.0, 16)
    # In the paper's code, `bert.embeddings` and the head `cls` are frozen.
    assert defsent.freeze == ("all_embeddings", "head")
    assert defsent.learning_rate == pytest.approx(1.1313708e-5)  # k = 7 of 2^(k/2)·1e-6
    # Cer et al. 2018, "Conversational Input-Response": the response has two own layers of 512.
    assert make_arguments("use").loss == {"hidden_dims": (512, 512)}
    trans = make_arguments("trans_encoder")
    assert (trans.epochs, trans.batch_size, trans.cycles) == (10.0, 128, 3)
    assert set(NAMED_SETTINGS) == {
        *("sentence_t5", "sbert", "simcse", "defsent", "use", "trans_encoder", "setfit")
    }
    assert make_arguments(few_shot=True) == make_arguments("setfit")


def test_what_is_said_differs_from_the_named_settings() -> None:
    changed = make_arguments("sentence_t5", batch_size=64, loss={"temperature": 0.05})
    assert (changed.batch_size, changed.learning_rate) == (64, 1e-3)
    assert changed.loss == {"temperature": 0.05, "bidirectional": True}
    assert make_arguments("sentence_t5").loss["temperature"] == 0.01, "the paper's stay"


@pytest.mark.parametrize(
    ("name", "rates", "clipped"),
    [
        # Shares of the peak at the steps 0, 5, 10, 55 and 100 of 100. Ours, and SBERT's: Reimers
        # and Gurevych 2019, section 3.1, and `WarmupLinear` in its code, which clips to 1.
        (None, [0, 0.5, 1, 0.5, 0], 1.0),
        ("sbert", [0, 0.5, 1, 0.5, 0], 1.0),
        # Gao et al. 2021: run_unsup_example.sh and the defaults of transformers have no warm-up.
        ("simcse", [1, 0.95, 0.9, 0.45, 0], 1.0),
        # Tsukagoshi et al. 2022, appendix A, and lr_scheduler.py and trainer/default.yaml of the
        # code: a tenth, then level; gradient_clip_val is 0.
        ("defsent", [0, 0.5, 1, 1, 1], None),
    ],
)
def test_the_schedules_of_the_papers(
    name: str | None, rates: list[float], clipped: float | None
) -> None:
    settings = make_arguments(name, learning_rate=1e-3)
    adam = settings.make_optimizer(100)
    found = [float(adam._learning_rate(step)) for step in (0, 5, 10, 55, 100)]
    assert found == pytest.approx([1e-3 * each for each in rates])
    assert type(adam).__name__ == "Adam"
    assert not adam.weight_decay
    assert (adam.global_clipnorm, adam.epsilon) == (clipped, 1e-8)


def test_sentence_t5_has_adafactor() -> None:
    """Ni et al. 2021, section 4.3: the rate begins at its peak and ends at 0."""
    adafactor = make_arguments("sentence_t5").make_optimizer(100)
    rates = [float(adafactor._learning_rate(step)) for step in (0, 10, 55, 100)]
    assert rates == pytest.approx([1e-3, 1e-3, 5e-4, 0])
    assert (type(adafactor).__name__, adafactor.global_clipnorm) == ("Adafactor", None)


@pytest.mark.parametrize(
    ("family", "kind", "changes", "rate"),
    [
        ("use_dan", "pairs", {}, 1e-3),
        ("use_dan", "scored_pairs", {}, 3e-4),
        ("use_dan", "labels", {}, 1e-3),
        ("use_dan", "labels", {"head_init": "random"}, 1e-4),
        ("use_dan", "pairs", {"head_init": "random"}, 1e-3),
        ("use_transformer", "scored_pairs", {}, 3e-4),
        ("use_transformer", "inference", {"head_init": "random"}, 1e-4),
        ("bert", "labels", {}, 5e-5),
        ("bert", "inference", {"head_init": "random"}, 2e-5),
        ("use_dan", "scored_pairs", {"lora_rank": 4}, 3e-4),
        (None, "pairs", {}, 3e-5),
        ("use_dan", "pairs", {"learning_rate": 2e-5}, 2e-5),
    ],
)
def test_the_usual_rate_is_of_what_learns(
    family: str | None, kind: str, changes: dict[str, Any], rate: float
) -> None:
    known = None if family is None else family_named(family)
    settings = completed(
        make_arguments(**changes), known, [TASKS[kind]], fresh=False, from_teacher=False
    )
    assert (settings.learning_rate, settings.frozen) == (rate, ())


def test_several_tasks_have_the_smallest_of_their_rates() -> None:
    tasks = [TASKS[name] for name in ("pairs", "texts", "scored_pairs")]
    for several in (tasks, tasks[::-1]):
        settings = completed(
            make_arguments(), family_named("use_dan"), several, fresh=False, from_teacher=False
        )
        assert settings.learning_rate == 1e-4
    mine = dataclasses.replace(TASKS["texts"], name="mine", learning_rate={"use_dan": 7e-5, "": 1})
    assert mine.usual_learning_rate(
        family_named("use_dan"), lora=False, fresh=False, random_head=False
    ) == pytest.approx(7e-5)


def test_a_fresh_use_dan_alone_keeps_its_dense_layers() -> None:
    def frozen(
        family: str, *, fresh: bool = True, from_teacher: bool = False, **changes: Any
    ) -> Any:
        settings = completed(
            make_arguments(**changes),
            family_named(family),
            [TASKS["pairs"]],
            fresh=fresh,
            from_teacher=from_teacher,
        )
        assert settings.learning_rate == 1e-3
        return settings.frozen

    assert frozen("use_dan") == ("encoder",)
    assert frozen("use_dan", from_teacher=True) == ()
    assert frozen("use_dan", fresh=False) == ()
    assert frozen("use_transformer") == ()
    assert frozen("use_dan", freeze=()) == (), "what is said holds"
    assert frozen("use_transformer", train_only="embedding") == ("encoder",)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"early_stopping_patience": 0},
            "early_stopping_patience: expected a number above 0",
        ),
        ({"optimizer": "sgd"}, "optimizer: expected adam or adafactor, received 'sgd'"),
        ({"head_init": "cold"}, "head_init: expected linear-probe or random, received 'cold'"),
        ({"lr": 1e-4}, "Unknown argument 'lr'. Known are: learning_rate, .*precision.$"),
        ({"keep": -1}, "keep: expected a number of 0 or more"),
        ({"max_grad_norm": -1}, "max_grad_norm: expected a number of 0 or more"),
        ({"warmup_ratio": 1.0}, "warmup_ratio: expected a share"),
        ({"schedule": "cosine"}, "schedule: expected linear or constant, received 'cosine'"),
    ],
)
def test_values_that_cannot_be(changes: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_arguments(**changes)


@pytest.mark.parametrize(
    ("changes", "steps", "interval"),
    [
        ({"evaluations": 10}, 20, 2),
        ({"evaluations": 10}, 1050, 110),
        ({"evaluations": 3}, 2, 1),
        ({"evaluation_steps": 25}, 1050, 20),
    ],
)
def test_there_are_no_more_evaluations_than_asked_for(
    changes: dict[str, int], steps: int, interval: int
) -> None:
    arguments = make_arguments(**changes)
    assert arguments.evaluation_interval(steps) == interval
    if arguments.evaluation_steps is None:
        assert math.ceil(steps / interval) <= arguments.evaluations


@pytest.mark.parametrize(
    ("accumulation", "micro", "pieces"), [(1, 16, 4), (4, 8, 2), (4, 16, 1), (4, 32, 1), (8, 4, 2)]
)
def test_micro_batches_divide_the_accumulated_parts(
    accumulation: int, micro: int, pieces: int
) -> None:
    sizes = {"micro_batch_size": micro, "gradient_accumulation_steps": accumulation}
    assert make_arguments(batch_size=64, **sizes).pieces == pieces


def test_a_micro_batch_is_a_number_or_auto() -> None:
    assert make_arguments(micro_batch_size="auto").pieces == 1
    for wrong in ("most", 0):
        with pytest.raises((TypeError, ValueError), match="micro_batch_size"):
            make_arguments(micro_batch_size=wrong)


def test_a_micro_batch_that_does_not_divide_a_part_is_refused() -> None:
    sizes = {"batch_size": 60, "gradient_accumulation_steps": 4}
    with pytest.raises(ValueError, match="divides .*, 60, and its accumulated parts, 15, received"):
        make_arguments(micro_batch_size=10, **sizes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epochs": "3"}, "epochs: expected `float`, got `str`, received '3'"),
        ({"steps": True}, "steps: expected `int`, got `bool`"),
        ({"matryoshka_dimensions": 64}, "matryoshka_dimensions: expected `array`, got `int`"),
        ({"teacher": object()}, "teacher: expected `str`, got `object`"),
    ],
)
def test_a_wrong_type_is_told_with_its_argument(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        make_arguments(**changes)


def test_numbers_of_numpy_and_paths_are_kept_as_pythons_own() -> None:
    """The record of the run is JSON, which has only Python's own types."""
    made = make_arguments(
        steps=np.int64(3),
        learning_rate=np.float32(0.5),
        matryoshka_dimensions=[np.int32(4)],
        teacher=Path("t"),
    )
    kept = (made.steps, made.learning_rate, made.matryoshka_dimensions, made.teacher)
    assert kept == (3, 0.5, (4,), "t")
    assert [type(each) for each in (made.steps, made.learning_rate)] == [int, float]
