"""Names in a remote store that lead out of its folder; the long run in `run.py` draws others."""

from __future__ import annotations

from pathlib import Path

from tests.fuzz.remote_names import remote_names


def test_no_name_leads_out_of_the_folder(tmp_path: Path) -> None:
    assert remote_names(tmp_path / "disk") > 1
