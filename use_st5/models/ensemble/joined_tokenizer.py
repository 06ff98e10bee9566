"""Several tokenizers as one, for an ensemble whose members read through different ones."""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import tensorflow as tf

from use_st5._records import read_record
from use_st5.models.family import any_tokenizer_class
from use_st5.tokenizers.framed_tokenizer import written_assets
from use_st5.tokenizers.tokenizer import Tokenizer, Vocabulary

_KINDS_ASSET = "joined_stages.json"


@dataclasses.dataclass(frozen=True)
class JoinedVocabulary:
    """The vocabularies of several tokenizers.

    Attributes:
        parts: In the order of the stages.
    """

    parts: tuple[Vocabulary, ...]

    @property
    def size(self) -> int:
        """Of the largest of them."""
        return max(part.size for part in self.parts)


class JoinedTokenizer(tf.Module):
    """A row of ids has those of all stages by turns: the first of each, then the second of each.

    `Ensemble` takes them apart again: each member reads those of its stage.

    Args:
        stages: Two or more, whose files have different names: of several word-piece vocabularies
            there can be one.

    Attributes:
        stages: The same.
        vocabulary: Which ids they give.

    Raises:
        ValueError: There are fewer, or a SavedModel could not hold the files of two.
    """

    kind: ClassVar[str] = "joined"

    def __init__(self, stages: Sequence[Tokenizer]) -> None:
        super().__init__()
        names = [name for stage in stages for name in sorted(_asset_names(stage))]
        twice = sorted({name for name in names if names.count(name) > 1})
        if len(stages) < 2 or twice:
            kinds = ", ".join(stage.kind for stage in stages)
            raise ValueError(
                "Expected two or more tokenizers with files of different names, received "
                f"{kinds or 'none'}"
                + (f", of which several have {', '.join(twice)}." if twice else ".")
            )
        self.stages = tuple(stages)
        self.vocabulary = JoinedVocabulary(tuple(stage.vocabulary for stage in stages))
        kinds_file = json.dumps({"kinds": [stage.kind for stage in stages]})
        self._assets = written_assets(self, {_KINDS_ASSET: kinds_file})

    @classmethod
    def from_assets(cls, folder: Path) -> Self:
        """The tokenizers of an exported model, by their files among its assets."""
        remedy = "Export the model again."
        facts = read_record(folder / _KINDS_ASSET, dict[str, list[str]], remedy=remedy)
        return cls([any_tokenizer_class(kind).from_assets(folder) for kind in facts["kinds"]])

    def padded(self, text: tf.Tensor, max_tokens: int | None = None) -> tf.Tensor:
        """The ids of all stages by turns, those of one padded to the longest: `[batch, length]`."""
        parts = [stage.padded(text, max_tokens) for stage in self.stages]
        width = functools.reduce(tf.maximum, [tf.shape(part)[1] for part in parts])
        filled = [tf.pad(part, [[0, 0], [0, width - tf.shape(part)[1]]]) for part in parts]
        return _by_turns(filled)

    def token_ids(self, text: tf.Tensor, max_tokens: int) -> tf.Tensor:
        """The same in rows of `max_tokens` ids for each stage."""
        return _by_turns([stage.token_ids(text, max_tokens) for stage in self.stages])

    def token_counts(self, text: tf.Tensor) -> tf.Tensor:
        """The tokens of each text by the stage that makes most of it: int32 `[batch]`."""
        return functools.reduce(tf.maximum, [stage.token_counts(text) for stage in self.stages])


def _by_turns(parts: Sequence[tf.Tensor]) -> tf.Tensor:
    """The first ids of all parts, then the second ones: a row may be cut behind its last id."""
    return tf.reshape(tf.stack(parts, axis=2), [tf.shape(parts[0])[0], -1])


def joined_stage(encoders: Sequence[Any]) -> Tokenizer:
    """The tokenizer of an ensemble of encoders: the one that all have, or theirs joined.

    Args:
        encoders: With `tokenizer` each.

    Raises:
        ValueError: What `JoinedTokenizer` raises.
    """
    stages = distinct_stages(encoders)
    return stages[0] if len(stages) == 1 else JoinedTokenizer(stages)


def distinct_stages(encoders: Sequence[Any]) -> list[Tokenizer]:
    """The tokenizers of encoders, each once, in the order of those that have them."""
    stages: list[Tokenizer] = []
    for encoder in encoders:
        if not any(same_ids(encoder.tokenizer, stage) for stage in stages):
            stages.append(encoder.tokenizer)
    return stages


def same_ids(one: Tokenizer, other: Tokenizer) -> bool:
    """Whether two tokenizers give the same ids."""
    return (one.kind, one.vocabulary) == (other.kind, other.vocabulary)


def _asset_names(stage: Any) -> set[str]:
    """The names of the files that a SavedModel holds of a tokenizer."""
    return {
        Path(each.asset_path.numpy().decode()).name
        for each in tf.train.TrackableView(stage).descendants()
        if isinstance(each, tf.saved_model.Asset)
    }
