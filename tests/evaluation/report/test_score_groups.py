from __future__ import annotations

import pytest

from use_st5.evaluation.published.published_tables import published_tables
from use_st5.evaluation.registry import groups
from use_st5.evaluation.report.score_group import ScoreGroup
from use_st5.evaluation.report.score_groups import MULTILINGUAL, SCORE_GROUPS, SHOWN_OTHERWISE


def test_every_featured_row_is_published() -> None:
    rows = [row for table in published_tables() for row in table.rows]
    featured = {one for group in SCORE_GROUPS.values() for one in group.featured} | {*MULTILINGUAL}
    for model, settings in featured:
        assert any(row.model == model and row.settings.startswith(settings) for row in rows), (
            f"no published row of {model}, {settings}"
        )


@pytest.mark.parametrize("group", SCORE_GROUPS.values(), ids=SCORE_GROUPS)
def test_published_scores_fit_the_columns(group: ScoreGroup) -> None:
    for benchmark in group.benchmarks:
        rows = [row for table in published_tables(benchmark) for row in table.rows]
        keys = {key for row in rows for key in row.scores}
        columns = {name.removesuffix(group.suffix) for name in group.order} | {"average"}
        assert not group.order or keys & columns


@pytest.mark.parametrize("group", SCORE_GROUPS.values(), ids=SCORE_GROUPS)
def test_averaged_tasks_come_first(group: ScoreGroup) -> None:
    assert group.order[: len(group.average)] == group.average


def test_every_task_has_its_place_and_no_place_waits_for_an_unknown_task() -> None:
    registered = {group: {task.name for task in tasks} for group, tasks in groups().items()}
    for group in SCORE_GROUPS.values():
        assert {*group.order, *group.apart} <= registered[group.group]
    assert {*registered} == {*SHOWN_OTHERWISE, *(group.group for group in SCORE_GROUPS.values())}
