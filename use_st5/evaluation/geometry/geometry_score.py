"""How the embeddings of a set of sentence pairs lie on the unit sphere."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class GeometryScore:
    """Alignment and uniformity; of both, lower is better.

    Attributes:
        alignment_above_4: Mean squared distance of the pairs with a gold score above 4, in
            `[0, 4]` (Sentence-T5); NaN where there is none.
        alignment_from_4: The same of the pairs with a gold score of 4 or more.
        uniformity: Logarithm of the mean Gaussian kernel of all pairs of distinct sentences, in
            `[−8, 0]`.
        uniformity_with_self_pairs: The same with each sentence paired with itself too
            (t5x_retrieval); higher, by little where the sentences are many.
        pairs: Number of pairs.
        positives_above_4: Number of those with a gold score above 4.
        positives_from_4: Number of those with a gold score of 4 or more.
        sentences: Number of distinct sentences.
    """

    alignment_above_4: float
    alignment_from_4: float
    uniformity: float
    uniformity_with_self_pairs: float
    pairs: int
    positives_above_4: int
    positives_from_4: int
    sentences: int
