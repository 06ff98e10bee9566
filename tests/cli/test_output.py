from __future__ import annotations

import re
from pathlib import Path

import pytest
from rich.cells import cell_len

from use_st5.cli.output import echo, print_cards, print_table, say, write_table
from use_st5.training.rows import read_file

COLUMNS = ["task", "what it needs", "from"]
ROWS = [("sts12", "[bold]a[/bold]", "here"), ("weat1", "", "there")]


def test_a_pipe_gets_lines(capsys: pytest.CaptureFixture[str]) -> None:
    print_cards(COLUMNS, ROWS[:1])
    assert capsys.readouterr().out == "task\twhat it needs\tfrom\nsts12\t[bold]a[/bold]\there\n"


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl"])
def test_a_written_table_is_read_by_train(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"table.{suffix}"
    write_table(path, ["anchor", "positive"], [("a\rb", 'c\r\n"d", e'), ("f", "g")])
    rows = [tuple(" ".join(text.split()) for text in row.values()) for row in read_file(path)]
    assert rows == [("a b", 'c "d", e'), ("f", "g")]


def test_a_terminal_gets_cards_without_empty_cells(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    print_cards(COLUMNS, ROWS)
    assert capsys.readouterr().out.splitlines() == [
        "sts12",
        "  what it needs  [bold]a[/bold]",
        "  from           here",
        "weat1",
        "  from           there",
    ]


def drawn_table(
    columns: list[str],
    rows: list[tuple[str, ...]],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> list[str]:
    """The lines of a table in a terminal of 80 characters."""
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    print_table(columns, rows, title="Title")
    title, *drawn = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out).splitlines()
    assert title == "Title"
    assert all(cell_len(line) <= 80 for line in drawn)
    return [line.rstrip() for line in drawn]


def test_numbers_and_names_are_never_folded_in_80_characters(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = ["test", "targets", "attributes", "effect size d", "95 % interval", "p"]
    words = ("European American names / African American names", "Pleasant / Unpleasant")
    rows = [("seat3b", *words, "−1.25", "−1.80 to −0.50", "0.00001")]
    lines = drawn_table(columns, rows, capsys, monkeypatch)
    assert any(line.endswith("−1.25  −1.80 to −0.50  0.00001") for line in lines)
    matrix = ["", "text", *map(str, range(1, 11))]
    texts = [(str(n), "[b]A sentence. " * 5 + "日本語" * 9, *["0.12"] * 10) for n in range(1, 11)]
    lines = drawn_table(matrix, texts, capsys, monkeypatch)
    assert sum(line.endswith("  0.12" * 10) for line in lines) == 10
    name = "probing_coordination_inversion_mlp"
    rows = [(name, "a title of words " * 4, "senteval_sklearn", "unknown")]
    lines = drawn_table(["task", "title", "group", "there"], rows, capsys, monkeypatch)
    assert any(line.startswith(f"{name}  a title") for line in lines)
    assert any(line.endswith("  senteval_sklearn  unknown") for line in lines)


def test_a_narrow_table_stays_narrow(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [("use_dan_en", "1,234"), ("x", "7")]
    assert drawn_table(["model", "memory, MB"], rows, capsys, monkeypatch) == [
        "model       memory, MB",
        "──────────────────────",
        "use_dan_en       1,234",
        "x                    7",
    ]


# Clears the screen, sets the title, the same by C1, rings, hides what stands before, turns around.
HOSTILE = "a\x1b[2Jb\x1b]0;title\x07c\x9b2Jd\re\x7ff\u202eg\u2066h\u200fi"
SHOWN = "a�[2Jb�]0;title�c�2Jd�e�f�g�h�i"


def test_a_terminal_gets_no_control_characters_of_foreign_texts(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for stream in ("stdout", "stderr"):
        monkeypatch.setattr(f"sys.{stream}.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "200")
    echo(f"{HOSTILE}\n\tcard")
    say(HOSTILE)
    captured = capsys.readouterr()
    assert captured == (f"{SHOWN}\n\tcard\n", f"{SHOWN}\n")
    print_cards([HOSTILE, HOSTILE], [(HOSTILE, HOSTILE)])
    print_table([HOSTILE, HOSTILE], [(HOSTILE, HOSTILE)], title=HOSTILE)
    drawn = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out)
    assert SHOWN in drawn
    assert not {*drawn} & {*"\x1b\x07\x9b\r\x7f\u202e\u2066\u200f"}


def test_a_pipe_gets_texts_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    echo("c\x9bd\u202ee")
    assert capsys.readouterr().out == "c\x9bd\u202ee\n"
