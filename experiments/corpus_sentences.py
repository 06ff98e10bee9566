"""The sentences of all English corpora, source by source."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from experiments.corpora import (
    MEDQUAD,
    NOVELS,
    SELF_DIALOGUE,
    SGD,
    STACK_EXCHANGE,
    WIKITEXT,
    WORDNET,
    definitions,
    inference_pairs,
    json_rows,
    plain_text,
    stack_exchange_posts,
    trivia_questions,
)
from use_st5.data import split_sentences

# Topics of the self-dialogue corpus that count as films.
FILM_TOPICS = frozenset(
    [
        *("movies", "music_and_movies", "transition_music_movies", "disney", "star_wars"),
        *("thriller", "action", "comedy", "harry_potter", "horror", "superhero"),
        "fast_furious",
    ]
)


def sentences_by_source(data: Path) -> dict[str, Callable[[], Iterable[str]]]:
    """All sentences, source by source; each entry starts a fresh pass."""
    return {
        "novels": lambda: _texts(NOVELS.examples(data), "sentence"),
        "films": lambda: _self_dialogue(data, films=True),
        "talk": lambda: _self_dialogue(data, films=False),
        "tasks": lambda: _texts(SGD.examples(data), "input", "response"),
        "inference": lambda: _texts(inference_pairs(data), "premise", "hypothesis"),
        "definitions": lambda: _texts(definitions(data), "definition"),
        "words": lambda: _texts(definitions(data), "word"),
        "examples": lambda: _texts(definitions(data), "example"),
        "medical": lambda: _medical_sentences(data),
        "trivia": lambda: trivia_questions(data),
        "stack_exchange": lambda: _stack_exchange_sentences(data),
        "wikitext": lambda: _texts(WIKITEXT.examples(data), "sentence"),
    }


def nouns(data: Path) -> set[str]:
    """The nouns of Open English WordNet."""
    return {row["word"] for row in WORDNET.examples(data) if row["part_of_speech"] == "n"}


def _texts(examples: Iterable[Mapping[str, Any]], *keys: str) -> Iterator[str]:
    return (text for example in examples for key in keys if (text := str(example[key])))


def _self_dialogue(data: Path, *, films: bool) -> Iterator[str]:
    """The turns of the self-dialogues about films, or of the others."""
    for row in json_rows(SELF_DIALOGUE.files(data)):
        if (row.get("topic") in FILM_TOPICS) == films:
            yield from row["turns"]


def _medical_sentences(data: Path) -> Iterator[str]:
    for pair in MEDQUAD.examples(data):
        yield pair["anchor"]
        yield from split_sentences(pair["positive"])


def _stack_exchange_sentences(data: Path) -> Iterator[str]:
    for _, row in stack_exchange_posts(STACK_EXCHANGE.files(data)):
        for text in (row.get("Title"), row.get("Body")):
            yield from split_sentences(plain_text(text))
