from __future__ import annotations

import io

import pytest
from rich.console import Console
from rich.progress import Progress as Bars

from tests.evaluation.toys import words_task
from use_st5.cli.evaluation_tasks import EvaluationProgress, drawn_progress


@pytest.fixture
def screen() -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=80)


def test_sentences_reach_the_encoder_as_they_are_and_are_counted(screen: Console) -> None:
    asked: list[list[str]] = []

    def encode(sentences: list[str]) -> list[list[float]]:
        asked.append(sentences)
        return [[float(sentence), 1.0] for sentence in sentences]

    with Bars(console=screen, auto_refresh=False) as bars:
        encoding = EvaluationProgress(bars).encoding(encode)
        assert len(bars.tasks) == 1, "no bar before there is something to encode"
        texts = [str(number) for number in range(2500)]
        assert encoding(texts)[7] == [7.0, 1.0]
        encoding(["8"])
        assert asked == [texts, ["8"]]
        assert (bars.tasks[1].description.strip(), bars.tasks[1].completed) == (
            "sentences encoded",
            2501,
        )


def test_bars_name_the_task_and_each_score_is_printed(
    screen: Console, capsys: pytest.CaptureFixture[str]
) -> None:
    with Bars(console=screen, auto_refresh=False) as bars:
        progress = EvaluationProgress(bars)
        progress.started(words_task(), 2, 5)
        assert (bars.tasks[0].description, bars.tasks[0].completed) == ("Words", 1)
        assert progress.done == 0
        result = {"main": "mean", "scores": {"mean": 0.25}, "seconds": 1.26}
        progress.finished("words", result, cached=False)
        progress.finished("more", result | {"scores": {"mean": None}}, cached=True)
        assert progress.done == 2
    assert capsys.readouterr().err.splitlines() == [
        "1 of 5: words: mean 0.2500 (1.3 s)",
        "2 of 5: more: mean undefined (from the cache)",
    ]


def test_nothing_is_drawn_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with drawn_progress() as progress:
        progress.started(words_task(), 1, 1)
        assert progress.encoding(len)(["a"]) == 1
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "")
