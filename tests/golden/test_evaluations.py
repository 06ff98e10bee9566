"""The scores of a fixed encoder on fixed data are those that are stored."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden import evaluations
from tests.golden.write import read


def test_scores_and_counts(tmp_path: Path) -> None:
    pytest.importorskip("sklearn", reason="the extra `evaluation` is not installed")
    evaluations.write_data(tmp_path)
    found, stored = evaluations.scores(tmp_path), read("evaluations")
    assert found.keys() == stored.keys()
    for name, task in stored.items():
        assert found[name]["counts"] == task["counts"], name
        assert found[name]["scores"] == pytest.approx(task["scores"], rel=1e-4, abs=1e-5), name
