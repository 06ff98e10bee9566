"""The order of the visits, the record on the way, and going on; no model runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.footprint.records import write_folder
from use_st5.cli.main import app
from use_st5.footprint import FootprintRecord, measure, measure_footprint
from use_st5.footprint.measure import find_models
from use_st5.footprint.record import Visit


class FakeProcess:
    """Figures that grow with the length; remembers every visit."""

    visits: list[tuple[str, str, int]]
    gpu: str | None
    fails_after: int | None

    def __init__(self, name: str, folder: Path, *, device: str, **options: int) -> None:
        self.name, self.device = name, device

    def facts(self) -> dict[str, Any]:
        return {"parameter_bytes": 4000, "gpu": self.gpu, "versions": {"tensorflow": "2.20"}}

    def visit(self, length: int) -> tuple[int, Visit]:
        if len(self.visits) == self.fails_after:
            raise KeyboardInterrupt
        self.visits.append((self.device, self.name, length))
        return length, Visit(1e-3, length * 1e-5, length * 100)

    def close(self) -> None:
        pass


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch) -> type[FakeProcess]:
    FakeProcess.visits, FakeProcess.gpu, FakeProcess.fails_after = [], None, None
    monkeypatch.setattr(measure, "ProbeProcess", FakeProcess)
    return FakeProcess


@pytest.fixture
def run(tmp_path: Path, process: type[FakeProcess]) -> Callable[..., FootprintRecord]:
    """Measures two models at 10 and 20 words, twice, into record.json."""
    folders = [write_folder(tmp_path / name, name) for name in ("a", "b")]

    def measured(**changes: Any) -> FootprintRecord:
        options = {"lengths": (20, 10), "repeats": 2, "models": folders, **changes}
        return measure_footprint(options.pop("models"), tmp_path / "record.json", **options)

    return measured


def test_models_take_turns_at_each_length(run: Callable, process: type[FakeProcess]) -> None:
    told: list[tuple[int, int]] = []
    record = run(on_visit=lambda done, total: told.append((done, total)))
    turn = [("cpu", name, length) for length in (10, 20) for name in ("a", "b")]
    assert process.visits == turn * 2
    assert told == [(number, 8) for number in range(1, 9)]
    assert [point.visits for point in record.points] == [2, 2, 2, 2]
    assert record.models[1].parameter_bytes == 4000
    assert record.points_by_key()["cpu", "b", 20].ids_seconds == (2e-4, 2e-4)


def test_an_interrupted_run_goes_on(
    run: Callable, process: type[FakeProcess], tmp_path: Path
) -> None:
    process.fails_after = 5
    with pytest.raises(KeyboardInterrupt):
        run()
    kept = FootprintRecord.read(tmp_path / "record.json")
    assert [point.visits for point in kept.points] == [2, 1, 1, 1]
    process.fails_after = None
    record = run()
    assert len(process.visits) == 8
    assert record == FootprintRecord.read(tmp_path / "record.json")
    run(lengths=(10, 20, 40), repeats=3)
    assert len(process.visits) == 3 * 2 * 3


def test_a_gpu_is_measured_where_there_is_one(run: Callable, process: type[FakeProcess]) -> None:
    process.gpu = "a GPU"
    told: list[int] = []
    record = run(on_visit=lambda done, total: told.append(total))
    assert record.devices == ("cpu", "gpu")
    assert [device for device, *_ in process.visits] == ["cpu"] * 8 + ["gpu"] * 8
    assert set(told) == {16}
    run(device="cpu")
    assert len(process.visits) == 16


@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_one_device_alone(run: Callable, process: type[FakeProcess], device: str) -> None:
    process.gpu = "a GPU"
    assert run(device=device).devices == (device,)


def test_with_a_model_that_changed_all_are_measured_anew(
    run: Callable, process: type[FakeProcess], tmp_path: Path
) -> None:
    """Ratios are of visits made one after the other, not in two runs."""
    before = run()
    write_folder(tmp_path / "b", "b", content="other weights")
    record = run()
    assert process.visits[8:] == process.visits[:8]
    assert [point.visits for point in record.points] == [2, 2, 2, 2]
    (same, old), (kept, new) = ([m.identity for m in made.models] for made in (before, record))
    assert kept == same
    assert new != old


def test_with_a_new_model_all_are_measured_anew(
    run: Callable, process: type[FakeProcess], tmp_path: Path
) -> None:
    run()
    folders = [*(tmp_path / name for name in "ab"), write_folder(tmp_path / "c", "c")]
    assert [point.visits for point in run(models=folders).points] == [2] * 6
    turn = [("cpu", name, length) for length in (10, 20) for name in "abc"]
    assert process.visits[8:] == turn * 2


def test_an_older_record_that_holds_more_is_kept(run: Callable, tmp_path: Path) -> None:
    run()
    with pytest.raises(FileExistsError, match=r"not asked for now \(b, 20 words\)"):
        run(models=[tmp_path / "a"], lengths=(10,))


def test_two_settings_do_not_mix(run: Callable) -> None:
    run()
    with pytest.raises(ValueError, match="measured with threads 1, now it would be threads 2"):
        run(threads=2)


@pytest.mark.parametrize("wrong", [{"lengths": ()}, {"lengths": (0,)}, {"repeats": 0}])
def test_arguments_out_of_range(run: Callable, wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="of at least 1, received"):
        run(**wrong)


@pytest.mark.end_to_end
@pytest.mark.process
def test_real_models_in_real_processes(
    exported: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole command: two small models, two lengths, one visit each."""
    monkeypatch.chdir(tmp_path)
    line = ["benchmark", *map(str, exported.values()), "-l", "3,12", "--repeats", "1", "--no-plots"]
    result = CliRunner().invoke(app, line)
    assert result.exit_code == 0, result.stderr
    record = FootprintRecord.read(tmp_path / "benchmark" / "resources.json")
    assert [model.name for model in record.models] == ["dan", "transformer"]
    assert all(model.parameter_bytes > 0 for model in record.models)
    assert [point.length for point in record.curve("cpu", "transformer")] == [3, 12]
    assert record.curve("cpu", "transformer")[1].tokens == 12
    assert all(point.text_seconds[0] > 0 for point in record.points)
    assert " cut\t" in result.stdout
    assert record.setting["processor"]
    assert record.versions["tensorflow"]


def test_models_that_share_a_name_are_called_by_their_folders(tmp_path: Path) -> None:
    given = [
        write_folder(tmp_path / "float32", "dan"),
        write_folder(tmp_path / "int8", "dan"),
        write_folder(tmp_path / "third", "transformer"),
    ]
    found = find_models(given)
    assert [model.name for _, model in found] == ["float32", "int8", "transformer"]
    assert [folder for folder, _ in found] == [folder.resolve() for folder in given]


def test_models_that_cannot_be_told_apart(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "a", "dan")
    with pytest.raises(ValueError, match="received 2 called a in folders of one name"):
        find_models([folder, folder])


def test_a_saved_model_of_another_origin(tmp_path: Path) -> None:
    (tmp_path / "saved_model.pb").write_text("graph")
    with pytest.raises(ValueError, match="expected a model that use_st5 exported"):
        find_models([tmp_path])


def test_no_models() -> None:
    with pytest.raises(ValueError, match="at least one model"):
        find_models([])
