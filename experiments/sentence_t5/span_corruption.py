"""T5's pre-training task: predict the spans that were removed from a text."""

from __future__ import annotations

import dataclasses

import numpy as np

# Raffel et al. 2020, section 3.1.4: the share of the tokens that are taken out, and the mean length
# of a span in tokens.
_DENSITY, _MEAN_SPAN = 0.15, 3.0
# T5's vocabulary: `<extra_id_0>` has the highest id of the sentinels.
_FIRST_SENTINEL, _NUM_SENTINELS, _EOS_ID = 32_099, 100, 1


@dataclasses.dataclass(frozen=True)
class SpanCorruption:
    """Span corruption (Raffel et al. 2020, section 3.1.4) of texts of one length.

    Each span that is taken out is replaced by a sentinel of its own, the first by
    `<extra_id_0>`, the next by the id below it. The targets are the spans, each behind its
    sentinel. Both end in the end-of-sentence token:

        text    Thank you for inviting me to your party last week
        inputs  Thank you <X> me to your party <Y> week </s>
        targets <X> for inviting <Y> last </s>

    The number of tokens taken out and the number of spans depend on the length alone, and so do
    the lengths of inputs and targets: one compiled step serves all batches, and none is padded.
    As in `t5/data/preprocessors.py`, a text begins with a token that stays, spans never touch,
    and a text ends in a span.

    Args:
        length: Tokens of a text.
    """

    length: int

    def __post_init__(self) -> None:
        if self.length < 2:
            raise ValueError(f"Expected texts of at least 2 tokens. Received: {self.length}")
        if self.spans > _NUM_SENTINELS:
            raise ValueError(
                f"Expected at most {_NUM_SENTINELS} spans, one for each sentinel; a text of "
                f"{self.length} tokens has {self.spans}. Cut it into shorter ones."
            )

    @property
    def noise_tokens(self) -> int:
        """Tokens of a text that are taken out."""
        return max(1, round(self.length * _DENSITY))

    @property
    def spans(self) -> int:
        """The number of spans that these tokens form."""
        return max(1, round(self.noise_tokens / _MEAN_SPAN))

    @property
    def inputs_length(self) -> int:
        """Tokens of the inputs, the end-of-sentence token included."""
        return self.length - self.noise_tokens + self.spans + 1

    @property
    def targets_length(self) -> int:
        """Tokens of the targets, the end-of-sentence token included."""
        return self.noise_tokens + self.spans + 1

    def __call__(self, tokens: np.ndarray, *, seed: int) -> dict[str, np.ndarray]:
        """Corrupts texts.

        Args:
            tokens: Ids `[texts, length]`, without sentinels and end-of-sentence tokens.
            seed: Seed of the spans; the same seed and number of texts give the same spans.

        Returns:
            "inputs", int32 `[texts, inputs_length]`, and "targets", int32
            `[texts, targets_length]`.
        """
        if tokens.ndim != 2 or tokens.shape[1] != self.length:
            raise ValueError(f"Expected ids [texts, {self.length}]. Received: {list(tokens.shape)}")
        return self.take_out(tokens, self.masks(len(tokens), seed=seed))

    def masks(self, texts: int, *, seed: int) -> np.ndarray:
        """Draws the tokens that are taken out, bool `[texts, length]`; True: taken out."""
        random = np.random.default_rng(seed)
        kept_lengths = _random_lengths(texts, self.length - self.noise_tokens, self.spans, random)
        noise_lengths = _random_lengths(texts, self.noise_tokens, self.spans, random)
        # Kept and taken stretches alternate. A mask is True after an odd number of changes.
        stretches = np.stack([kept_lengths, noise_lengths], axis=2).reshape(texts, 2 * self.spans)
        starts = stretches.cumsum(axis=1)[:, :-1]
        changes = np.zeros((texts, self.length), np.int32)
        np.put_along_axis(changes, starts, 1, axis=1)
        return changes.cumsum(axis=1) % 2 == 1

    def take_out(self, tokens: np.ndarray, masks: np.ndarray) -> dict[str, np.ndarray]:
        """Inputs and targets of texts whose masks are given (see `masks`)."""
        if not len(tokens):
            lengths = {"inputs": self.inputs_length, "targets": self.targets_length}
            return {name: np.zeros((0, length), np.int32) for name, length in lengths.items()}
        return {
            "inputs": self._with_sentinels(tokens, masks),
            "targets": self._with_sentinels(tokens, ~masks),
        }

    def _with_sentinels(self, tokens: np.ndarray, masks: np.ndarray) -> np.ndarray:
        """Replaces each stretch of True in the mask by one sentinel; adds the end of sentence."""
        before = np.pad(masks[:, :-1], [(0, 0), (1, 0)])
        begins = masks & ~before
        sentinels = _FIRST_SENTINEL + 1 - begins.cumsum(axis=1)
        texts = len(tokens)
        # The same number of tokens stays in every row.
        ids = np.where(begins, sentinels, tokens)[begins | ~masks].reshape(texts, -1)
        ends = np.full((texts, 1), _EOS_ID)
        return np.concatenate([ids, ends], axis=1).astype(np.int32)


def _random_lengths(rows: int, total: int, parts: int, random: np.random.Generator) -> np.ndarray:
    """`total` cut into `parts` of at least 1, all cuts equally likely, int `[rows, parts]`."""
    cuts = np.zeros((rows, total - 1), bool)
    cuts[:, : parts - 1] = True
    cuts = random.permuted(cuts, axis=1)
    ends = np.nonzero(cuts)[1].reshape(rows, parts - 1) + 1
    edges = np.pad(ends, [(0, 0), (1, 0)])
    return np.diff(edges, axis=1, append=total)
