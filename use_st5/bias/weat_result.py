"""What a Word Embedding Association Test found."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class WEATResult:
    """The outcome of one test.

    Attributes:
        effect_size: How far apart the associations of `x` and `y` are, in standard deviations;
            positive where `x` is nearer to `a`. NaN where all targets are associated alike.
        effect_size_low: Lower end of its 95 % confidence interval, a percentile bootstrap over the
            targets. NaN where the effect size is, or where a group has a single target.
        effect_size_high: Upper end of the interval.
        p_value: Share of the partitions whose statistic is at least the observed one; one-sided,
            in `(0, 1]`.
        exact: Whether all partitions were counted, not a sample.
        partitions: How many were counted, the observed one among them.
    """

    effect_size: float
    effect_size_low: float
    effect_size_high: float
    p_value: float
    exact: bool
    partitions: int
