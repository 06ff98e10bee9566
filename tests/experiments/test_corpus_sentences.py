"""The sentences of every source."""

from __future__ import annotations

import json
from pathlib import Path

from experiments.corpus_sentences import nouns, sentences_by_source


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
    assert len(found["tasks"]) == 2 * 12 * 5
    assert (len(found["films"]), len(found["talk"])) == (0, 12 * 6)
    assert len(found["inference"]) == 2 * (12 + 12 + 1 + 1)


def test_nouns(corpora: Path) -> None:
    assert nouns(corpora) == {"dog"}


def test_self_dialogues_about_films(corpora: Path) -> None:
    rows = [("movies", "I liked it."), ("baseball", "They won.")]
    lines = (json.dumps({"topic": topic, "turns": [turn]}) + "\n" for topic, turn in rows)
    (corpora / "self_dialogue.jsonl").write_text("".join(lines), encoding="utf-8")
    sources = sentences_by_source(corpora)
    assert [*sources["films"]()] == ["I liked it."]
    assert [*sources["talk"]()] == ["They won."]
