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


def test_bars_name_the_task_and_the_steps_within(screen: Console) -> None:
    with Bars(console=screen, auto_refresh=False) as bars:
        progress = EvaluationProgress(bars)
        progress.started(words_task(), 2, 5)
        assert (bars.tasks[0].description, bars.tasks[0].completed) == ("Words", 1)
        seen = []
        for step in progress.track("abc", "letters"):
            seen.append(step)
            assert bars.tasks[1].total == 3
            assert bars.tasks[1].description.strip() == "letters"
        assert seen == ["a", "b", "c"]
        assert [*progress.track(iter("ab"), "unknown length")] == ["a", "b"]
        assert len(bars.tasks) == 1


def test_a_step_that_fails_takes_its_bar_along(screen: Console) -> None:
    with Bars(console=screen, auto_refresh=False) as bars:
        with pytest.raises(ZeroDivisionError):
            for step in EvaluationProgress(bars).track([1, 0], "steps"):
                1 / step
        assert len(bars.tasks) == 1


def test_nothing_is_drawn_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with drawn_progress() as progress:
        assert [*progress.track([1, 2], "steps")] == [1, 2]
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "")
