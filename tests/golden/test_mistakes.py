"""The messages of the command line about mistakes are those of the table."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden import mistakes


def test_every_mistake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("USE_ST5_DATA", raising=False)
    mistakes.write_files(tmp_path)
    commands = mistakes.commands()
    assert len(commands) >= 40
    told = "\n".join(map(mistakes.told, commands))
    assert told == mistakes.TABLE.read_text(encoding="utf-8")
