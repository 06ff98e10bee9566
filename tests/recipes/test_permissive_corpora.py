"""Each corpus is read from its own format; a missing one is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from use_st5.recipes._permissive_corpora import (
    dialogue_pairs,
    inference_pairs,
    running_text,
    sentences_by_source,
)


def test_every_source_gives_its_sentences(corpora: Path) -> None:
    found = {name: list(read()) for name, read in sentences_by_source(corpora).items()}
    assert found["definitions"] == ["a kind of animal", "another animal"]
    assert found["words"] == ["dog", "cat"]
    assert found["examples"] == ["The cat eats."]
    assert found["medical"] == ["Who eats?", "I. You."]
    assert found["trivia"] == ["Who eats food?"]
    assert found["stack_exchange"] == ["Which ball?", "The man's ball."]
    assert found["wikitext"] == ["A dog, a-cat, runs."]
    assert len(found["novels"]) == 70  # the first and the last sentence lack a neighbour
    assert len(found["dialogues"]) == 2 * 2 * 12 * 5
    assert len(found["inference"]) == 2 * (12 + 12 + 1 + 1)


def test_tasks_have_what_their_losses_read(corpora: Path) -> None:
    assert set(next(running_text(corpora))) == {"previous", "sentence", "next"}
    assert set(next(dialogue_pairs(corpora))) == {"input", "response"}
    assert {example["label"] for example in inference_pairs(corpora)} == {0, 1, 2}


def test_a_missing_corpus_is_named(corpora: Path) -> None:
    (corpora / "self_dialogue.jsonl").unlink()
    with pytest.raises(FileNotFoundError, match=r"self_dialogue\.jsonl"):
        dialogue_pairs(corpora)
