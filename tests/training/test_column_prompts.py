"""Prompts by column: which text gets which prompt, and what the trained model keeps."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from use_st5.training.sources import (
    Prompts,
    Source,
    check_prompts,
    exported_prompts,
    prompts_by_key,
)
from use_st5.training.tasks import INFERENCE, LABELS, NEIGHBOURS, PAIRS, SCORED_PAIRS, TaskSpec
from use_st5.training.validation import with_prompts

FAQ = {"anchor": "title", "positive": "body", "negative": "negative"}
Q, P = "query: ", "passage: "


def source(kind: TaskSpec, columns: Mapping[str, str], given: Prompts) -> Source:
    return Source("absent.tsv", kind, columns, prompts=prompts_by_key(given, kind, columns))


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({}, {}),
        ("", {}),
        (Q, {"anchor": Q, "positive": Q, "negative": Q}),
        ({"anchor": Q, "positive": P}, {"anchor": Q, "positive": P}),
        ({"title": Q, "negative": P, "positive": ""}, {"anchor": Q, "negative": P}),
    ],
)
def test_a_column_is_named_by_its_key_or_as_in_the_file(
    given: Prompts, found: dict[str, str]
) -> None:
    assert prompts_by_key(given, PAIRS, FAQ) == found


def test_scores_and_labels_are_no_texts() -> None:
    columns = {"sentence1": "sentence1", "sentence2": "sentence2", "score": "score"}
    assert prompts_by_key(Q, SCORED_PAIRS, columns) == {"sentence1": Q, "sentence2": Q}


def test_columns_that_no_file_has_are_refused() -> None:
    sources = [source(PAIRS, FAQ, ""), source(LABELS, {"text": "text", "label": "label"}, "")]
    for known in (Q, {"title": Q, "positive": P, "text": Q}):
        check_prompts(known, sources)
    with pytest.raises(ValueError, match="title, positive, body, negative, text; received label."):
        check_prompts({"anchor": Q, "label": P}, sources)


def test_the_prompt_stands_before_the_text_and_a_row_may_lack_one() -> None:
    row = {"anchor": "a", "positive": "b", "score": 1.0}
    found = with_prompts(row, {"anchor": Q, "negative": P})
    assert found == {"anchor": "query: a", "positive": "b", "score": 1.0}
    assert row["anchor"] == "a"


PREMISE = {"premise": "premise", "hypothesis": "hypothesis", "label": "label"}


@pytest.mark.parametrize(
    ("sources", "named", "default"),
    [
        ([(PAIRS, FAQ, {})], {}, None),
        ([(PAIRS, FAQ, Q)], {"query": Q, "document": Q}, "query"),
        ([(LABELS, {"text": "text"}, {"text": Q})], {"query": Q, "document": Q}, "query"),
        ([(NEIGHBOURS, {"text": "text"}, Q)], {"query": Q, "document": Q}, "query"),
        ([(PAIRS, FAQ, {"anchor": Q, "positive": P})], {"query": Q, "document": P}, None),
        # Only questions have a prompt: documents get none, even if the start had one.
        ([(PAIRS, FAQ, {"anchor": Q})], {"query": Q, "document": ""}, None),
        ([(INFERENCE, PREMISE, {"premise": Q, "hypothesis": P})],
         {"premise": Q, "hypothesis": P}, None),
        ([(PAIRS, FAQ, {"anchor": Q, "positive": P}), (LABELS, {"text": "text"}, {"text": "t: "})],
         {"query": Q, "document": P, "text": "t: "}, None),
    ],
)  # fmt: skip
def test_what_the_trained_model_keeps(
    sources: list[tuple[TaskSpec, Mapping[str, str], Prompts]],
    named: dict[str, str],
    default: str | None,
) -> None:
    assert exported_prompts([source(*each) for each in sources]) == (named, default)
