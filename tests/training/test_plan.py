"""The lines about a training that are printed before its first step."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.toy_encoders import Toy
from tests.training.words import Words
from use_st5.losses.contrastive_loss import ContrastiveLoss
from use_st5.losses.definition_loss import DefinitionLoss
from use_st5.losses.matryoshka_loss import MatryoshkaLoss
from use_st5.losses.simcse_loss import SimCSELoss
from use_st5.trainable_encoder import TrainableEncoder
from use_st5.training.arguments import make_arguments
from use_st5.training.rows import TrainingFile, add_statistics, read_file
from use_st5.training.train import check_dimensions, make_plan


def test_validation_and_test_are_told_apart(toy_use_dan: Toy, tmp_path: Path) -> None:
    """Rows that are set aside, files for one of them, and too few rows for a test."""

    def rows(name: str, count: int, start: int = 0) -> TrainingFile:
        lines = (f"{n} a b,{n} c" for n in range(start, start + count))
        (tmp_path / name).write_text("\n".join(["anchor,positive", *lines]))
        return read_file(tmp_path / name)

    many, few = rows("many.csv", 300), rows("few.csv", 60)
    dev, test = rows("dev.csv", 9, start=900), rows("test.csv", 7, start=905)
    encoder = TrainableEncoder.load(toy_use_dan.folders["float32"])

    def said(train: TrainingFile, dev: list[TrainingFile], test: list[TrainingFile]) -> list[str]:
        settings = make_arguments(steps=2, batch_size=8, evaluations=1)
        return [*make_plan("toy", encoder, [train], dev, test, settings).evaluation_lines()]

    mrr = "mrr, mean reciprocal rank of what belongs to a text, by cosine"
    assert said(many, [], []) == [
        "No --validation: 30 rows are held out for validation.",
        "No --test: 30 rows are held out for the test.",
        f"validation on many: {mrr}; 30 rows",
        f"test on many: {mrr}; 30 rows",
    ]
    optimistic = (
        "No test rows: the final scores are optimistic, because they are the best of up to 2 "
        "evaluations on the same rows. Give other rows with --test."
    )
    assert said(few, [], []) == [
        "No --validation: 12 rows are held out for validation.",
        f"validation on few: {mrr}; 12 rows",
        optimistic,
    ]
    assert said(few, [dev], []) == [f"validation on dev: {mrr}; 9 rows", optimistic]
    assert said(few, [dev], [test]) == [
        f"validation on dev: {mrr}; 5 rows",
        f"test on test: {mrr}; 7 rows",
    ]
    assert said(few, [], [test])[:2] == [
        "No --validation: 12 rows are held out for validation.",
        f"validation on few: {mrr}; 12 rows",
    ]


def test_steps_and_precision(toy_use_dan: Toy, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("\n".join(["anchor,positive", *(f"{n} a,{n} b" for n in range(30))]))
    encoder = TrainableEncoder.load(toy_use_dan.folders["int8"])
    # Four passes over 24 rows: each is one step, because a batch has up to 64.
    passes = make_plan("toy", encoder, [read_file(path)], [], [], make_arguments(epochs=4))
    assert (passes.steps, passes.arguments.precision) == (4, "int8")
    with pytest.raises(ValueError, match="precision: expected float32 or int8 .* received int4"):
        make_plan("toy", encoder, [read_file(path)], [], [], make_arguments(precision="int4"))


@pytest.mark.parametrize("languages", [["en"], ["de"]])
def test_other_languages_than_the_models_are_said_before(
    languages: list[str], toy_use_dan: Toy, tmp_path: Path
) -> None:
    encoder = TrainableEncoder.load(toy_use_dan.folders["float32"])
    encoder.metadata["languages"] = languages
    path = tmp_path / "a.csv"
    said = {}
    for language, text in {"de": "weiß der {} es?", "en": "what is the {} for?"}.items():
        rows = (f"{text.format(n)},{text.format(n)}" for n in range(100))
        path.write_text("\n".join(["anchor,positive", *rows]), encoding="utf-8")
        made = make_plan("toy", encoder, [read_file(path)], [], [], make_arguments(steps=2))
        said[language] = any("not English, but toy knows only" in line for line in made.lines())
    assert said == {"de": languages == ["en"], "en": False}


@pytest.mark.parametrize(("asked", "per_call"), [(7, 1), (104, 10)])
def test_as_many_steps_are_planned_as_are_asked_for(asked: int, per_call: int) -> None:
    arguments = make_arguments(steps=asked)
    assert (arguments.steps_of(9), arguments.execution_steps(asked)) == (asked, per_call)


@pytest.mark.parametrize(
    ("columns", "settings", "kind", "temperature"),
    [
        # Ours for pairs; Ni et al. 2021, section 4.1 (τ = 0.01); Gao et al. 2021, section 3.
        ("anchor positive", {}, ContrastiveLoss, 0.05),
        ("anchor positive", {"loss": {"temperature": 0.02}}, ContrastiveLoss, 0.02),
        ("anchor positive", {"name": "sentence_t5"}, ContrastiveLoss, 0.01),
        ("text", {}, SimCSELoss, 0.05),
        ("text", {"name": "simcse"}, SimCSELoss, 0.05),
    ],
)
def test_the_temperature(
    columns: str,
    settings: dict[str, Any],
    kind: type,
    temperature: float,
    table: Callable[..., TrainingFile],
) -> None:
    width = len(columns.split())
    rows = [tuple(f"word {n} {column}" for column in range(width)) for n in range(4)]
    found = add_statistics(table("mine", columns, rows), Words())
    loss = found.task.make_loss(found, None, make_arguments(**settings).loss)
    assert type(loss) is kind
    assert loss.temperature == temperature


def test_vectors_that_can_be_cut_need_a_loss_of_vectors(toy_use_dan: Toy) -> None:
    encoder = TrainableEncoder.load(toy_use_dan.folders["float32"])
    arguments = make_arguments(matryoshka_dimensions=(4, 16))
    loss = MatryoshkaLoss(ContrastiveLoss(), dimensions=(4, 16))
    check_dimensions([loss, DefinitionLoss()], encoder, arguments)
    with pytest.raises(ValueError, match="needs only vectors, received DefinitionLoss"):
        check_dimensions([DefinitionLoss()], encoder, arguments)
