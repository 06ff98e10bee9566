from __future__ import annotations

from use_st5.evaluation.retrieval.tasks import TASKS


def test_names_and_groups() -> None:
    assert [(task.group, task.name) for task in TASKS] == [
        ("tatoeba", "tatoeba"),
        ("bucc", "bucc_de-en"),
        ("bucc", "bucc_fr-en"),
        ("bucc", "bucc_ru-en"),
        ("bucc", "bucc_zh-en"),
    ]


def test_every_task_says_what_its_files_are_called_and_where_they_come_from() -> None:
    for task in TASKS:
        assert all(source.places and "https://" in source.origin for source in task.sources)
    assert [source.places for source in TASKS[1].sources] == [
        ("de-en.*.de",),
        ("de-en.*.en",),
        ("de-en.*.gold",),
    ]
