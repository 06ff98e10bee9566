"""What a file teaches, read from the names of its columns."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

# Further hard negatives stand in columns of these names, from 2 on.
_NEGATIVE = "negative_{}"
_MOST_NEGATIVES = 16


@dataclasses.dataclass(frozen=True)
class TaskKind:
    """One way to learn from rows.

    Attributes:
        name: What `--task` takes.
        what: What is learnt, in words.
        columns: Key of a row → the names that its column may have in a file.
        optional: Keys of `columns` that a file need not have.
        label: The key that holds a class, if any.
        score: The key that holds a number, if any.
    """

    name: str
    what: str
    columns: Mapping[str, tuple[str, ...]]
    optional: tuple[str, ...] = ()
    label: str | None = None
    score: str | None = None

    @property
    def needed(self) -> tuple[str, ...]:
        """The keys without which a file is not of this kind."""
        return tuple(key for key in self.columns if key not in self.optional)

    @property
    def texts(self) -> tuple[str, ...]:
        """The keys that hold texts."""
        return tuple(key for key in self.columns if key != self.gold)

    @property
    def gold(self) -> str | None:
        """The key that holds what the texts are to be taught by, a class or a number, if any."""
        return self.label or self.score

    def found_in(self, names: Sequence[str]) -> dict[str, str]:
        """Key → name of the column, for the keys that have one among a file's names."""
        known = {name.strip().casefold(): name for name in reversed(names)}
        found = {}
        for key, alternatives in self.columns.items():
            there = [known[name] for name in alternatives if name in known]
            if there:
                found[key] = there[0]
        return found


def _negatives() -> dict[str, tuple[str, ...]]:
    first = ("negative", "hard_negative", "hard_neg", "negative_1")
    more = {_NEGATIVE.format(n): (_NEGATIVE.format(n),) for n in range(2, _MOST_NEGATIVES + 1)}
    return {"negative": first, **more}


_FIRST = ("sentence1", "sentence_1", "sentence_a", "text1")
_SECOND = ("sentence2", "sentence_2", "sentence_b", "text2")
_LABEL = ("label", "gold_label", "class", "entailment_judgment")

PAIRS = TaskKind(
    "pairs",
    "texts that belong together: contrastive, against the others of the batch and any negatives",
    {
        "anchor": ("anchor", "query", "question", "sent0"),
        "positive": ("positive", "answer", "sent1"),
        **_negatives(),
    },
    optional=tuple(_negatives()),
)
SCORED_PAIRS = TaskKind(
    "scored_pairs",
    "pairs with a score, which the similarity of the two vectors shall follow",
    {
        "sentence1": _FIRST,
        "sentence2": _SECOND,
        "score": ("score", "relatedness_score", "similarity_score", "similarity"),
    },
    score="score",
)
INFERENCE = TaskKind(
    "inference",
    "pairs with a label: natural language inference",
    {
        "premise": ("premise", *_FIRST, "prem"),
        "hypothesis": ("hypothesis", *_SECOND, "hyp", "hypo"),
        "label": _LABEL,
    },
    label="label",
)
RESPONSES = TaskKind(
    "responses",
    "inputs and responses: the response of an input among those of the batch",
    {"input": ("input", "context"), "response": ("response", "reply")},
)
DEFINITIONS = TaskKind(
    "definitions",
    "words and definitions: DefSent names the word that a definition defines",
    {"word": ("word",), "definition": ("definition",)},
)
LABELS = TaskKind(
    "labels",
    "texts with a label: a classifier over the encoder, which learns along",
    {"text": ("text", "sentence"), "label": _LABEL},
    label="label",
)
NEIGHBOURS = TaskKind(
    "neighbours",
    "running text: the sentences before and after a sentence, as Skip-Thought",
    {"text": ("text", "sentence")},
)
TEXTS = TaskKind(
    "texts",
    "single texts without a label: SimCSE, two views of a text among those of the batch",
    {"text": ("text", "sentence")},
)
UNSCORED_PAIRS = TaskKind(
    "unscored_pairs",
    "pairs without a score: Trans-Encoder, two kinds of encoder teach each other",
    {"sentence1": _FIRST, "sentence2": _SECOND},
)
TASK_KINDS = {
    kind.name: kind
    for kind in (
        *(PAIRS, SCORED_PAIRS, INFERENCE, RESPONSES, DEFINITIONS, LABELS),
        *(NEIGHBOURS, TEXTS, UNSCORED_PAIRS),
    )
}


def kind_of(names: Sequence[str], where: str, asked: str | None = None) -> TaskKind:
    """The task of a file.

    Of running text and single texts, which have the same column, it is the former; who reads the
    text may know better.

    Args:
        names: Of the file's columns.
        where: The file, for messages.
        asked: The task that the file is said to have; None: as its columns say.

    Raises:
        ValueError: No task fits the columns, or several do and none was asked for, or there is no
            such task.
    """
    if asked is not None:
        return _asked(names, where, asked)
    fitting = [each for each in TASK_KINDS.values() if {*each.needed} <= {*each.found_in(names)}]
    # A text with a label is more than a text, a scored pair more than a pair.
    used = [{*kind.found_in(names).values()} for kind in fitting]
    best = [
        kind for kind, mine in zip(fitting, used, strict=True) if not any(mine < o for o in used)
    ]
    if len(best) == 1 or best == [NEIGHBOURS, TEXTS]:
        return best[0]
    if best:
        fits = " and ".join(kind.name for kind in best)
        raise ValueError(
            f"{where}: the columns {[*names]} fit the tasks {fits}. Say which one: --task "
            f"{best[0].name}, or leave columns out."
        )
    raise ValueError(
        f"{where}: no task fits the columns that were found, {_shown(names)}. Known are: "
        f"{known_columns()}. Does the file begin with a line of column names?"
    )


def known_columns() -> str:
    """The columns of all tasks, in a line."""
    shown = dict.fromkeys(
        ", ".join(kind.needed) + (" [, negative …]" if kind is PAIRS else "")
        for kind in TASK_KINDS.values()
    )
    return "; ".join(shown)


def _asked(names: Sequence[str], where: str, asked: str) -> TaskKind:
    if asked not in TASK_KINDS:
        raise ValueError(f"task: expected one of {', '.join(TASK_KINDS)}, received {asked!r}.")
    kind = TASK_KINDS[asked]
    missing = [key for key in kind.needed if key not in kind.found_in(names)]
    if missing:
        wanted = "; ".join(" or ".join(kind.columns[key]) for key in missing)
        raise ValueError(
            f"{where}: the task {asked} needs a column {wanted}, found {_shown(names)}."
        )
    return kind


def _shown(names: Sequence[str]) -> str:
    """Names of columns, which may be the first line of a file without any."""
    return ", ".join(repr(name if len(name) <= 40 else name[:39] + "…") for name in names[:12])
