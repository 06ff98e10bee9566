"""Old names of options work, and a line names the new one."""

from __future__ import annotations

import pytest
import typer

from use_st5.cli.main import app
from use_st5.cli.renamed_options import RENAMED, Renamed, with_new_names


@pytest.fixture(autouse=True)
def table(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table with each kind of entry."""
    of_train = {
        "--old": Renamed("--new"),
        "--head": Renamed("--head-init", {"drawn": "random"}),
        "--freeze encoder": Renamed("--train-only embedding"),
    }
    monkeypatch.setitem(RENAMED, "train", of_train)


@pytest.mark.parametrize(
    ("given", "expected", "warning"),
    [
        ("train m --old 3", "train m --new 3", "--old is now --new"),
        ("train m --old=3", "train m --new=3", "--old is now --new"),
        ("train m --head drawn -v", "train m --head-init random -v", "--head is now --head-init"),
        ("train m --head=drawn", "train m --head-init random", "--head is now --head-init"),
        ("train m --head mine", "train m --head-init mine", "--head is now --head-init"),
        ("train --freeze encoder m", "train --train-only embedding m", "--freeze encoder is now"),
        ("train m --freeze embedding", "train m --freeze embedding", None),
        ("train m -- --old", "train m -- --old", None),
        ("embed --old", "embed --old", None),
    ],
)
def test_old_names_become_new_ones(
    given: str, expected: str, warning: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert with_new_names(given.split()) == expected.split()
    said = capsys.readouterr().err
    assert (warning in said and said.count("\n") == 1) if warning else not said


def test_the_new_names_are_options() -> None:
    commands = typer.main.get_command(app).commands
    for command in set(RENAMED) - {"train"}:
        known = {name for each in commands[command].params for name in each.opts}
        for renamed in RENAMED[command].values():
            assert renamed.option.split()[0] in known
