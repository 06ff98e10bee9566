"""The task that follows from the columns of a file."""

from __future__ import annotations

import dataclasses

import pytest

from use_st5.training.tasks import TASKS, task_for


@pytest.mark.parametrize(
    ("names", "task"),
    [
        (["anchor", "positive"], "pairs"),
        (["id", "Anchor ", "positive", "negative", "negative_2"], "pairs"),
        (["sent0", "sent1", "hard_neg"], "pairs"),  # SimCSE's file of triplets
        (["question", "answer"], "pairs"),
        (["sentence1", "sentence2", "score"], "scored_pairs"),
        (["premise", "hypothesis", "label"], "inference"),
        (["gold_label", "sentence1", "sentence2", "pairID"], "inference"),  # SNLI
        (["input", "response"], "responses"),
        (["word", "definition", "part_of_speech"], "definitions"),
        (["text", "label"], "labels"),
        (["text"], "neighbours"),
        (["sentence1", "sentence2"], "unscored_pairs"),
    ],
)
def test_the_columns_say_the_task(names: list[str], task: str) -> None:
    assert task_for(names, "a.tsv").name == task


def test_every_task_is_found_by_the_columns_that_it_needs() -> None:
    for kind in TASKS.values():
        assert task_for(kind.needed, "a.tsv", kind.name) is kind
        assert set(kind.needed) <= set(kind.columns_in([*kind.needed]))


def test_a_file_of_two_tasks_is_asked_about() -> None:
    names = ["sentence_A", "sentence_B", "relatedness_score", "entailment_judgment"]  # SICK
    with pytest.raises(ValueError, match="fit scored_pairs and inference.* --task"):
        task_for(names, "SICK.txt")
    kind = task_for(names, "SICK.txt", "inference")
    assert kind.columns_in(names)["label"] == "entailment_judgment"


def test_a_file_that_teaches_nothing_is_one_line_with_what_was_found_and_what_is_known() -> None:
    with pytest.raises(ValueError, match="found 'A plane is taking off.', '5.0'") as refused:
        task_for(["A plane is taking off.", "5.0"], "sts.csv")
    message = str(refused.value)
    assert "anchor, positive [, negative …]; sentence1, sentence2, score; premise" in message
    assert "begin with a line of column names?" in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("task", "message"),
    [
        ("triplets", "task: expected one of pairs, scored_pairs, .* received 'triplets'"),
        (
            "scored_pairs",
            "a.tsv: expected the columns score or relatedness_score.* for the task scored_pairs",
        ),
    ],
)
def test_a_task_that_cannot_be(task: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        task_for(["sentence1", "sentence2"], "a.tsv", task)


def test_names_of_own_columns_may_have_capitals() -> None:
    columns = {"title": ("Headline", "Title "), "article": ("Body",)}
    own = dataclasses.replace(TASKS["pairs"], name="news", columns=columns, optional=())
    names = ["ID", "body", " HEADLINE"]
    assert own.columns_in(names) == {"title": " HEADLINE", "article": "body"}
    assert task_for(names, "a.tsv", tasks=TASKS | {"news": own}) is own


def test_a_task_in_the_place_of_another_is_one_by_name_and_columns() -> None:
    labels = TASKS["labels"]
    assert dataclasses.replace(labels, description="mine").stands_in_for(labels)
    assert not dataclasses.replace(labels, name="topics").stands_in_for(labels)
    renamed = {"title": ("text",), "topic": ("label",)}
    assert not dataclasses.replace(labels, columns=renamed, label="topic").stands_in_for(labels)
