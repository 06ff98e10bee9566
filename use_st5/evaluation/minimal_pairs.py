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
from typing import NamedTuple

import numpy as np

from use_st5._vectors import cosine
from use_st5.evaluation.task import EvaluationTask, TaskResult
from use_st5.vector_store import Encode, as_cache

# Kind → items of three sentences each.
_ITEMS = Path(__file__).with_name("minimal_pairs.json")


class MinimalPair(NamedTuple):
    """An item of the probe.

    Attributes:
        sentence: What the others are compared with.
        paraphrase: The same meaning in other words.
        altered: Another meaning in almost the same words.
    """

    sentence: str
    paraphrase: str
    altered: str


def minimal_pairs() -> dict[str, list[MinimalPair]]:
    """The items by what is altered, in the order of the tables.

    The kinds are negation, roles (who does it to whom), numbers, antonyms, tense, entities,
    quantifiers, and relations of time and place.
    """
    kinds = json.loads(_ITEMS.read_text(encoding="utf-8"))
    return {kind: [MinimalPair(*item) for item in items] for kind, items in kinds.items()}


def evaluate_minimal_pairs(encode: Encode, kinds: dict[str, list[MinimalPair]]) -> TaskResult:
    """The share of items whose paraphrase is nearer by cosine; a tie counts as a miss.

    Args:
        encode: Sentences → `[sentences, dim]`.
        kinds: Kind → its items, at least one.

    Returns:
        `accuracy` over all items, and `accuracy_KIND`.
    """
    embed = as_cache(encode)
    embed([text for items in kinds.values() for item in items for text in item])  # all in one call
    nearer = {kind: _nearer(embed, items) for kind, items in kinds.items()}
    of_all = np.concatenate([*nearer.values()])
    scores = {"accuracy": float(of_all.mean())}
    scores |= {f"accuracy_{kind}": float(each.mean()) for kind, each in nearer.items()}
    return TaskResult("accuracy", scores, {"items": len(of_all)})


def _nearer(embed: Encode, items: list[MinimalPair]) -> np.ndarray:
    """Whether the paraphrase is nearer, `[items]`."""
    sentences, paraphrases, altered = (embed([*texts]) for texts in zip(*items, strict=True))
    return cosine(sentences, paraphrases) > cosine(sentences, altered)


TASKS = (
    EvaluationTask(
        "minimal_pairs",
        "minimal_pairs",
        "Minimal pairs",
        "Share of 400 items (50 of each kind) whose paraphrase in other words has a higher cosine "
        "with the sentence than an altered sentence in almost the same words; a tie counts as a "
        "miss; the cosine of word counts scores 0.0025; items of use_st5",
        score=lambda context, _: evaluate_minimal_pairs(context.embed, minimal_pairs()),
    ),
)
