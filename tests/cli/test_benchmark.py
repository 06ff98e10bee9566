from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.footprint.records import record, write_folder
from use_st5.footprint import measure


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> list[tuple]:
    """What the measurement is asked for; it gives made-up figures."""
    asked: list[tuple] = []

    def measured(models: list[str], path: Path, **options: object) -> object:
        if "interrupt" in models:
            options["on_visit"](3, 8)
            raise KeyboardInterrupt
        asked.append((models, path, options))
        record().write(path)
        return record()

    monkeypatch.setattr(measure, "measure_footprint", measured)
    return asked


def test_table_files_and_options(use: Callable, given: list, tmp_path: Path) -> None:
    result = use("benchmark", "a", "b", "--lengths", "10, 20", "--batch-size", "4", "-o", "here")
    assert result.exit_code == 0, result.stderr
    ((models, path, options),) = given
    assert (models, path) == (["a", "b"], Path("here/resources.json"))
    assert (options["lengths"], options["batch_size"], options["device"]) == ([10, 20], 4, "all")
    assert "200\tsteep\t200\t4.00 (3.00-6.00) cut" in result.stdout
    assert "against flat" in result.stdout
    names = {path.name for path in (tmp_path / "here").iterdir()}
    assert {"resources.json", "resources.md", "memory_cpu.png", "text_time_cpu.png"} <= names


def test_json_without_plots(use: Callable, given: list, tmp_path: Path) -> None:
    result = use("benchmark", "a", "--no-plots", "--json")
    assert json.loads(result.stdout) == json.loads(json.dumps(record().content()))
    assert "lengths" not in given[0][2]
    assert not list((tmp_path / "benchmark").glob("*.png"))


def test_the_bundled_models_are_the_default(use: Callable, given: list) -> None:
    from use_st5._bundled import bundled_names

    use("benchmark", "--no-plots")
    assert tuple(given[0][0]) == bundled_names()


def test_an_interruption_says_what_is_kept(use: Callable, given: list) -> None:
    result = use("benchmark", "interrupt")
    assert result.exit_code == 130
    assert "interrupted: 3 of 8 measurements are kept in" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--lengths", "10,x"), 2, "expected numbers above 0, such as 10,100,500"),
        (("--lengths", "0"), 2, "expected numbers above 0"),
        (("--device", "tpu"), 2, "tpu"),
        (("--throughput",), 2, "python -m experiments.sentence_t5.figure_5"),
        (("absent",), 1, "found neither under 'absent'"),
        (("--out", "file"), 1, "expected a folder to write, found a file: file"),
    ],
)
def test_errors_are_one_line(
    use: Callable, tmp_path: Path, arguments: tuple[str, ...], code: int, message: str
) -> None:
    (tmp_path / "file").write_text("")
    result = use("benchmark", *arguments)
    assert result.exit_code == code
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.end_to_end
@pytest.mark.process
def test_a_model_that_cannot_be_loaded_and_a_gpu_that_is_not_there(
    use: Callable, tmp_path: Path
) -> None:
    write_folder(tmp_path / "broken", "broken")
    result = use("benchmark", "broken", "--device", "gpu")
    assert result.exit_code == 1
    assert "broken, loading it: ValueError: Expected a GPU, TensorFlow sees none" in result.stderr
