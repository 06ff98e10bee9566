"""A run's folder: to which run it belongs, what is removed from it, and when a run is done."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf

from tests.toy_encoders import Toy
from use_st5.io.files import names_in
from use_st5.training.arguments import FileArguments
from use_st5.training.run_folder import (
    RESULT,
    begin,
    forget_result,
    model_hash,
    request_of,
    result_of,
    run_folder,
    write_result,
)

SETTINGS = json.loads(json.dumps(dataclasses.asdict(FileArguments()), default=list))
REQUEST: dict[str, Any] = {
    **{"model": "use_dan_en", "train": [], "dev": [], "test": [], "settings": SETTINGS},
    **{"model_hash": None, "teacher_hash": None},
}
# Some of the files that runs write.
OURS = (
    *("request.json", "history.json", "run.png", "result.json"),
    *("classifier.keras", "classifier_2.json", "prepared/train/score.bin"),
    *("checkpoints/checkpoint-000000010/state.json", "cross_encoder/saved_model.pb"),
)


def begun(target: Path, **changes: Any) -> Path:
    """The folder of a run that was begun."""
    request = {**REQUEST, **changes}
    with run_folder(target, request, overwrite=False) as work:
        begin(work, request, overwrite=False)
    return target.with_name(f"{target.name}.run")


def reading(given: str, place: str) -> dict[str, Any]:
    """The request of a run that reads `given` as its model, teacher or file."""
    if place == "model":
        return {**REQUEST, place: given}
    if place == "teacher":
        return {**REQUEST, "settings": {**SETTINGS, place: given}}
    return {**REQUEST, place: [{"name": given}]}


def left(folder: Path) -> list[str]:
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())


@pytest.mark.parametrize("base", ["here", "ram://test_run_folder_overwrite"])
def test_overwrite_removes_what_a_run_wrote_and_nothing_else(base: str, tmp_path: Path) -> None:
    target = f"{base}/m" if "://" in base else str(tmp_path / "m")
    work = f"{target}.run"
    others = ("pairs.tsv", "notes/thesis.txt", "scores_of_mine.json", "checkpoints/thesis.txt")
    for name in (*OURS, *others):
        tf.io.gfile.makedirs(f"{work}/{name}".rpartition("/")[0])
        with tf.io.gfile.GFile(f"{work}/{name}", "w") as file:
            file.write(json.dumps(REQUEST | {"format": 1}))
    begin(Path(work), REQUEST, overwrite=True)
    kept = {"request.json", "pairs.tsv", "notes", "scores_of_mine.json", "checkpoints"}
    assert {*names_in(work)} == kept
    assert names_in(f"{work}/checkpoints") == ["thesis.txt"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"url": "https://example.org"}, "expected an empty folder or an earlier run.*request"),
        ([1], "expected an empty folder or an earlier run.*request"),
        (REQUEST | {"format": "1"}, "format: expected int"),
        (REQUEST | {"format": 2}, "format: expected 1, received 2: a newer version"),
    ],
)
@pytest.mark.parametrize("overwrite", [True, False])
def test_any_file_called_request_is_no_run(
    content: Any, message: str, overwrite: bool, tmp_path: Path
) -> None:
    work = tmp_path / "m.run"
    work.mkdir()
    (work / "request.json").write_text(json.dumps(content))
    (work / "thesis.txt").write_text("years")
    with (
        pytest.raises(FileExistsError, match=message),
        run_folder(tmp_path / "m", REQUEST, overwrite=overwrite),
    ):
        pytest.fail("it would be emptied")
    assert left(work) == ["request.json", "thesis.txt"]


def test_a_run_is_continued_with_the_same_arguments_alone(tmp_path: Path) -> None:
    work = begun(tmp_path / "m", train=[{"name": "a.tsv"}])
    request = json.loads((work / "request.json").read_text())
    assert request == {"format": 1, **REQUEST, "train": [{"name": "a.tsv"}]}
    del request["settings"]["seed"]  # A setting that an earlier version did not know.
    (work / "request.json").write_text(json.dumps(request))
    begun(tmp_path / "m", train=[{"name": "a.tsv"}])
    with pytest.raises(FileExistsError, match="begun with another train, seed"):
        begun(tmp_path / "m", settings=SETTINGS | {"seed": 1})


@pytest.mark.parametrize("changed", ["model", "checkpoint", "teacher"])
def test_a_model_or_a_teacher_with_other_content_is_another_run(
    changed: str, toy_use_dan: Toy, toy_use_transformer: Toy, tmp_path: Path
) -> None:
    paths = {name: tmp_path / name for name in ("model", "checkpoint", "teacher")}
    paths["model"].symlink_to(toy_use_dan.folders["float32"], target_is_directory=True)
    paths["checkpoint"].mkdir()
    (paths["checkpoint"] / "model.safetensors").write_text("weights")
    paths["teacher"].write_text("vectors")

    def requested() -> dict[str, Any]:
        model = paths["checkpoint" if changed == "checkpoint" else "model"]
        return request_of(model, [], [], [], FileArguments(teacher=str(paths["teacher"])))

    begun(tmp_path / "m", **requested())
    begun(tmp_path / "m", **requested())  # It can be continued.
    if changed == "model":
        paths["model"].unlink()
        paths["model"].symlink_to(toy_use_transformer.folders["float32"], target_is_directory=True)
    elif changed == "checkpoint":
        (paths["checkpoint"] / "model.safetensors").write_text("changed")
    else:
        paths["teacher"].write_text("changed")
    content = "teacher" if changed == "teacher" else "model"
    with pytest.raises(FileExistsError, match=f"begun with another {content}_hash"):
        begun(tmp_path / "m", **requested())


@pytest.mark.parametrize(
    ("name", "place"),
    [
        *(("pairs.tsv", "train"), ("checkpoints/dev.tsv", "dev"), ("pairs.tsv", "test")),
        *((".", "model"), ("link.tsv", "train"), ("model", "model"), ("model", "teacher")),
    ],
)
def test_an_input_in_the_run_s_folder_is_refused(name: str, place: str, tmp_path: Path) -> None:
    work = begun(tmp_path / "m")
    (work / "checkpoints").mkdir()
    for each in ("pairs.tsv", "checkpoints/dev.tsv", "model"):
        (work / each).write_text("anchor\tpositive\n")
    given = work / name
    if name == "link.tsv":
        given = tmp_path / name
        given.symlink_to(work / "pairs.tsv")
    before = left(work)
    with (
        pytest.raises(ValueError, match="copy it; the run replaces files in .*m.run"),
        run_folder(tmp_path / "m", reading(str(given), place), overwrite=True),
    ):
        pytest.fail("it would be removed")
    assert left(work) == before


def test_an_input_elsewhere_is_refused_in_a_run_elsewhere_alone(tmp_path: Path) -> None:
    for target, given, refused in (
        ("ram://b1/m", "ram://b1/m.run/pairs.tsv", True),
        ("ram://b1/m", "ram://b1/m.running/pairs.tsv", False),
        (str(tmp_path / "m"), "ram://b1/m.run/pairs.tsv", False),
        ("ram://b1/m", "fresh:use_dan_en", False),
    ):
        try:
            with run_folder(Path(target), reading(given, "train"), overwrite=True):
                assert not refused
        except ValueError as error:
            assert refused, error


@pytest.fixture
def target(toy_use_dan: Toy, tmp_path: Path) -> Path:
    """The folder of an exported model."""
    folder = Path(toy_use_dan.folders["float32"])
    (tmp_path / "tuned").symlink_to(folder, target_is_directory=True)
    return tmp_path / "tuned"


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A run's folder with all that a run writes."""
    for name in (
        *("request.json", "prepared/a/ids.bin", "cross_encoder/use_st5.json"),
        *("checkpoints/checkpoint-000000003/state.json", "checkpoints/logs/events.1"),
        *("checkpoints/cycle_1/bi_encoder/best/weights", "checkpoints/batches/pairs-0/1"),
        *("checkpoints/thesis.txt", "notes/checkpoint-000000001"),
    ):
        (tmp_path / "tuned.run" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "tuned.run" / name).write_text("x")
    return tmp_path / "tuned.run"


def test_what_nothing_reads_goes_and_the_result_stays(work: Path, target: Path) -> None:
    assert result_of(work, target) is None
    write_result({"best_step": 3}, work, target)
    left = {path.relative_to(work).as_posix() for path in work.rglob("*") if path.is_file()}
    assert left == {
        *("request.json", RESULT, "cross_encoder/use_st5.json", "checkpoints/logs/events.1"),
        *("checkpoints/thesis.txt", "notes/checkpoint-000000001"),
    }
    record = result_of(work, target)
    assert record is not None
    assert record["best_step"] == 3
    forget_result(work)
    assert result_of(work, target) is None


def test_a_run_whose_model_is_gone_or_another_is_not_done(
    work: Path, target: Path, toy_use_transformer: Toy
) -> None:
    write_result({"best_step": 3}, work, target)
    target.unlink()
    assert result_of(work, target) is None
    assert model_hash(target) is None
    target.symlink_to(Path(toy_use_transformer.folders["float32"]), target_is_directory=True)
    assert result_of(work, target) is None
