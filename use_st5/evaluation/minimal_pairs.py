"""Minimal pairs: does an encoder tell near things apart?

An item is a sentence, a paraphrase of it in other words, and an altered sentence: almost the same
words with another meaning. The score is the share of the items whose paraphrase is nearer to the
sentence than the altered sentence is. There are 50 items of each of eight kinds of alteration.

The items are our own (Apache-2.0). In each of them, the altered sentence shares at least as many
words with the sentence as the paraphrase does, by Dice's coefficient. The cosine of the counts of
words scores 1 of 400. Random vectors score a half.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from use_st5.encode.similarity import cosine
from use_st5.evaluation.task import EvaluationTask, TaskContext, TaskResult

# Kind → items of three sentences each.
_ITEMS = Path(__file__).with_name("minimal_pairs.json")


def minimal_pairs() -> dict[str, list[list[str]]]:
    """Kind of alteration → its items [sentence, paraphrase, altered one], in the tables' order.

    The kinds are negation, roles (who does it to whom), numbers, antonyms, tense, entities,
    quantifiers, and relations of time and place.
    """
    kinds: dict[str, list[list[str]]] = json.loads(_ITEMS.read_text(encoding="utf-8"))
    return kinds


def _score(context: TaskContext, kinds: dict[str, list[list[str]]]) -> TaskResult:
    """The share of items whose paraphrase is nearer by cosine; a tie counts as a miss."""
    vectors = context.embed([text for items in kinds.values() for item in items for text in item])
    nearer = cosine(vectors[::3], vectors[1::3]) > cosine(vectors[::3], vectors[2::3])
    parts = np.split(nearer, np.cumsum([len(items) for items in kinds.values()])[:-1])
    scores = {"accuracy": float(nearer.mean())}
    for kind, part in zip(kinds, parts, strict=True):
        scores[f"accuracy_{kind}"] = float(part.mean())
    return TaskResult("accuracy", scores, {"items": len(nearer)})


TASKS = (
    EvaluationTask(
        "minimal_pairs",
        "minimal_pairs",
        "Minimal pairs",
        "Share of 400 items (50 of each kind) whose paraphrase in other words has a higher cosine "
        "with the sentence than an altered sentence in almost the same words; a tie counts as a "
        "miss; the cosine of word counts scores 0.0025; items of use_st5",
        score=_score,
        reader=lambda _: minimal_pairs(),
    ),
)
