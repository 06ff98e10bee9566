from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import FakeEncoder
from use_st5.cli import benchmark
from use_st5.hub.model_names import bundled_names


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> list[tuple]:
    """The arguments of the measuring processes, which return made-up figures."""
    asked: list[tuple] = []

    def measured(folder: str, lengths: list[int], *arguments: Any) -> dict[str, Any]:
        asked.append((Path(folder).name, lengths, *arguments))
        speeds = {length: 1e5 / length for length in lengths}
        return {"sentences_per_second": speeds, "memory_mb": 512.4}

    monkeypatch.setattr(benchmark, "_in_a_process", measured)
    return asked


def test_the_table_and_the_options(use: Callable, given: list) -> None:
    options = ("--lengths", "10, 20", "--batch-size", "4", "--threads", "1", "--seconds", "0.5")
    result = use("benchmark", "use_dan_en", *options)
    assert result.exit_code == 0, result.stderr
    assert given == [("use_dan_en", [10, 20], 4, 1, 0.5)]
    heads = "model\t10 words, sentences/s\t20 words, sentences/s\tmemory, MB"
    assert result.stdout == f"{heads}\nuse_dan_en\t10,000\t5,000\t512\n"


def test_json_of_the_bundled_models(use: Callable, given: list) -> None:
    found = json.loads(use("benchmark", "--json").stdout)
    assert [each["model"] for each in found] == [*bundled_names()]
    assert found[0]["sentences_per_second"] == {"10": 10_000, "100": 1_000}


def test_without_tensorflow_text_a_sentence_t5_is_left_out(
    use: Callable, given: list, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(benchmark.importlib.util, "find_spec", lambda name: None)
    found = json.loads(use("benchmark", "--json").stdout)
    assert [each["model"] for each in found] == ["use_dan_en", "use_transformer_en"]


def test_a_model_is_measured_at_each_length(fake: FakeEncoder) -> None:
    """The encoder is called on full batches of sentences with that number of words."""
    found = benchmark.measure("fake", [3, 30], 4, None, 0.01)
    assert set(found["sentences_per_second"]) == {3, 30}
    assert {len(text.split()) for text in fake.encoded} == {3, 30}
    assert set(fake.batch_sizes) == {4}
    assert found["memory_mb"] > 1


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--lengths", "10,x"), 2, "expects numbers such as"),
        (("--lengths", "0"), 2, "expects numbers such as"),
        (("absent",), 1, "'absent' is neither"),
    ],
)
def test_errors_are_one_line(
    use: Callable, arguments: tuple[str, ...], code: int, message: str
) -> None:
    result = use("benchmark", *arguments)
    assert result.exit_code == code
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.end_to_end
@pytest.mark.process
def test_a_process_for_each_model(use: Callable, tmp_path: Path) -> None:
    """The DAN is faster; a folder that cannot be loaded is an error of one line."""
    result = use("benchmark", "--json", "--seconds", "0.2", "--batch-size", "8")
    speeds = {each["model"]: each["sentences_per_second"] for each in json.loads(result.stdout)}
    assert speeds["use_dan_en"]["100"] > speeds["use_transformer_en"]["100"]
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "saved_model.pb").write_text("x")
    result = use("benchmark", "broken")
    assert result.exit_code == 1
    assert "broken" in result.stderr
