"""Several devices train like one, for every task, also with batches of two text widths.

Each backend has one process for the case of `make test`, and one for all the others.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.training.device_cases import BATCH, BUCKETS, CASES, STEPS, task, ways
from use_st5.training.task import shuffling_seed
from use_st5.training.tasks import TASKS

RUN = Path(__file__).with_name("devices_run.py")
FIRST = ["pairs/plain"]
ALL = [f"{name}/{way}" for name in CASES for way in ways(name)]
OTHERS = [case for case in ALL if case not in FIRST]
# Under JAX the ways of a step are tried with pairs alone: each program takes seconds to compile.
PLAIN = [case for case in OTHERS if case.endswith("/plain")]


def sets(others: list[str]) -> pytest.MarkDecorator:
    """The first case, and the others as an end-to-end test."""
    of_others = pytest.param(others, id="others", marks=pytest.mark.end_to_end)
    return pytest.mark.parametrize("cases", [pytest.param(FIRST, id="pairs"), of_others])


def assert_alike(output: str, cases: list[str], places: set[str]) -> None:
    runs = json.loads(output.strip().splitlines()[-1])
    assert [*runs] == cases
    for case, found in runs.items():
        assert found.keys() - {"known sizes"} == places
        assert ("known sizes" in found) == (case == "pairs/plain" and "files" in places)
        for place in found.keys() - {"one"}:
            for what, expected in found["one"].items():
                # Devices differ in the order of their sums.
                np.testing.assert_allclose(
                    found[place][what], expected, rtol=1e-4, atol=1e-4, err_msg=f"{case}, {place}"
                )
        assert len(found["one"]["losses"]) == STEPS
        assert len({*found["one"]["losses"]}) == STEPS, case
    if "pairs/both" in runs:
        # With negatives of only the micro-batch, the loss is another: the comparison can fail.
        whole, cut = (runs[f"pairs/{way}"]["one"]["losses"] for way in ("cached", "both"))
        assert cut != pytest.approx(whole, rel=1e-2)


@pytest.mark.process
@sets(OTHERS)
def test_two_devices_and_batch_files_teach_what_one_device_teaches(
    cases: list[str], fresh_python: Callable[..., str]
) -> None:
    assert_alike(fresh_python(RUN, *cases, timeout=900), cases, {"one", "two", "files"})


@pytest.mark.process
@sets(PLAIN)
def test_two_devices_of_jax_teach_what_one_teaches(
    cases: list[str], under_jax: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    # The programs run only three times, so they are compiled quickly, without optimization.
    flags = "--xla_force_host_platform_device_count=2 --xla_backend_optimization_level=0"
    monkeypatch.setenv("XLA_FLAGS", f"{flags} --xla_llvm_disable_expensive_passes=true")
    found = under_jax("training/devices_run.py", *cases)
    assert_alike(found, cases, {"one", "two"})


def test_every_task_is_tried_with_a_batch_that_crosses_a_border() -> None:
    assert {*CASES} == {*TASKS, "teacher"}
    for name in CASES:
        data = task(name).data
        if not data.buckets:
            continue
        ids = next(each for each in data.arrays if each in data._ids)
        batches = [data.batch(n, BATCH, shuffling_seed(name, seed=0))[ids] for n in range(STEPS)]
        first = [np.count_nonzero(each[: BATCH // 2], axis=1).max() for each in batches]
        assert sorted(each.shape[1] for each in batches) == [BUCKETS[0], *[BUCKETS[1]] * 2], name
        assert sorted(first)[1] <= BUCKETS[0] < sorted(first)[2], name
