"""What is said of a training before its first step."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.toy_encoders import Toy
from tests.training.topics import ABOUT

pytestmark = pytest.mark.usefixtures("without_xla")


@pytest.mark.parametrize(("head", "fitted"), [("fitted", 40), ("drawn", 0)])
def test_all_that_is_read_is_expected(
    head: str, fitted: int, toy_use_dan: Toy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second a text, and nothing for the weights."""
    from use_st5.trainable_encoder import TrainableEncoder
    from use_st5.training import course
    from use_st5.training.plan import plan
    from use_st5.training.settings import make_settings
    from use_st5.training.sources import open_source

    monkeypatch.setattr(course.Course, "_seconds_of_text", lambda self: 1.0)
    monkeypatch.setattr(course, "_seconds_of_float", lambda: 0.0)
    files = []
    for at, name in enumerate(("shown", "asked")):
        path = tmp_path / f"{name}.csv"
        path.write_text("\n".join(["text,label", *map(",".join, ABOUT[at::2])]))
        files.append(open_source(path))
    encoder = TrainableEncoder.load(toy_use_dan.folders["float32"])
    settings = make_settings(steps=2, batch_size=8, evaluations=1, head=head)
    made = plan("toy", encoder, files[:1], files[1:], [], settings)
    trained = 2 * 8 * 3  # a step reads its texts forward, and backward for twice as long
    measured = (40 + 40) * 3  # at the start, on the way and at the end; what is asked and shown
    exported = 40  # what the classifier of the exported encoder is fitted to
    seconds = 30 + trained + measured + fitted + exported
    assert round(seconds / 60) == (7 if fitted else 6)
    assert f"expected time: about {round(seconds / 60)} minutes on this machine" in made.lines()


def test_validation_and_test_are_told_apart(toy_use_dan: Toy, tmp_path: Path) -> None:
    """Rows that are set aside, files for one of them, and too few rows for a test."""
    from use_st5.trainable_encoder import TrainableEncoder
    from use_st5.training.plan import plan
    from use_st5.training.settings import make_settings
    from use_st5.training.sources import Source, open_source

    def rows(name: str, count: int, start: int = 0) -> Source:
        lines = (f"{n} a b,{n} c" for n in range(start, start + count))
        (tmp_path / name).write_text("\n".join(["anchor,positive", *lines]))
        return open_source(tmp_path / name)

    many, few = rows("many.csv", 300), rows("few.csv", 60)
    dev, test = rows("dev.csv", 9, start=900), rows("test.csv", 7, start=905)
    encoder = TrainableEncoder.load(toy_use_dan.folders["float32"])

    def said(train: Source, dev: list[Source], test: list[Source]) -> list[str]:
        settings = make_settings(steps=2, batch_size=8, evaluations=1)
        return [*plan("toy", encoder, [train], dev, test, settings).measuring()]

    mrr = "mrr, mean reciprocal rank of what belongs to a text, by cosine"
    assert said(many, [], []) == [
        "No --dev: 30 rows were set aside for validation.",
        "No --test: 30 rows were set aside for the test.",
        f"validation on many: {mrr}; 30 rows",
        f"test on many: {mrr}; 30 rows",
    ]
    optimistic = (
        "No test rows: the scores at the end are optimistic, the best of up to 2 measurements on "
        "the rows that chose it. Give rows that choose nothing with --test."
    )
    assert said(few, [], []) == [
        "No --dev: 12 rows were set aside for validation.",
        f"validation on few: {mrr}; 12 rows",
        optimistic,
    ]
    assert said(few, [dev], []) == [f"validation on dev: {mrr}; 9 rows", optimistic]
    assert said(few, [dev], [test]) == [
        f"validation on dev: {mrr}; 5 rows",
        f"test on test: {mrr}; 7 rows",
    ]
    assert said(few, [], [test])[:2] == [
        "No --dev: 12 rows were set aside for validation.",
        f"validation on few: {mrr}; 12 rows",
    ]


@pytest.mark.parametrize(
    ("storage", "asked", "line"),
    [
        ("int8", None, "stored in int8 as the start is"),
        ("int8", "float32", "stored in float32 as is asked"),
        ("float32", None, "stored in float32 as the start is"),
    ],
)
def test_the_room_and_the_storage_are_said_before(
    storage: str, asked: str | None, line: str, toy_use_dan: Toy, tmp_path: Path
) -> None:
    from use_st5.trainable_encoder import TrainableEncoder
    from use_st5.training.plan import plan
    from use_st5.training.settings import make_settings
    from use_st5.training.sources import open_source

    path = tmp_path / "a.csv"
    path.write_text("\n".join(["anchor,positive", *(f"{n} a,{n} b" for n in range(30))]))
    encoder = TrainableEncoder.load(toy_use_dan.folders[storage])
    settings = make_settings(steps=2, storage=asked)
    made = plan("toy", encoder, [open_source(path)], [], [], settings)
    (said,) = (each for each in made.lines() if each.startswith("disk: "))
    assert said.endswith(line)
    assert (made.recipe.storage, made.settings.storage) == (asked or storage,) * 2
    with pytest.raises(ValueError, match="storage: expected float32 or int8 .* received int4"):
        plan("toy", encoder, [open_source(path)], [], [], make_settings(storage="int4"))


@pytest.mark.parametrize(("asked", "per_call"), [(7, 1), (104, 10)])
def test_as_many_steps_are_planned_as_are_asked_for(asked: int, per_call: int) -> None:
    from use_st5.training.plan import _steps
    from use_st5.training.settings import make_settings

    assert _steps([], make_settings(steps=asked)) == (asked, per_call)
