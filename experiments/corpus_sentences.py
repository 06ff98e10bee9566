"""The sentences of all English corpora, source by source."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from experiments.corpora import (
    MEDQUAD,
    NOVELS,
    STACK_EXCHANGE,
    WIKITEXT,
    WORDNET,
    definitions,
    dialogue_pairs,
    inference_pairs,
    plain_text,
    stack_exchange_posts,
    trivia_questions,
)
from use_st5.data import split_sentences


def sentences_by_source(data: Path) -> dict[str, Callable[[], Iterable[str]]]:
    """All sentences, source by source; each entry starts a fresh pass."""
    return {
        "novels": lambda: _texts(NOVELS.examples(data), "sentence"),
        "dialogues": lambda: _texts(dialogue_pairs(data), "input", "response"),
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


def _medical_sentences(data: Path) -> Iterator[str]:
    for pair in MEDQUAD.examples(data):
        yield pair["anchor"]
        yield from split_sentences(pair["positive"])


def _stack_exchange_sentences(data: Path) -> Iterator[str]:
    for _, row in stack_exchange_posts(STACK_EXCHANGE.files(data)):
        for text in (row.get("Title"), row.get("Body")):
            yield from split_sentences(plain_text(text))
