"""The four groups of texts that a Word Embedding Association Test compares."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class WEATTest:
    """Two groups of target texts and two groups of attribute texts, by the paper's letters.

    Attributes:
        name: For example "weat1".
        x: The first targets, for example flowers.
        y: The second targets, for example insects; as many as `x`.
        a: The attributes that `x` is expected to be near to, for example pleasant words.
        b: The attributes that `y` is expected to be near to; any number.
        categories: What `x`, `y`, `a` and `b` are, in this order.

    Raises:
        ValueError: A group is empty; `x` and `y` differ in number.
    """

    name: str
    x: tuple[str, ...]
    y: tuple[str, ...]
    a: tuple[str, ...]
    b: tuple[str, ...]
    categories: tuple[str, str, str, str] = ("X", "Y", "A", "B")

    def __post_init__(self) -> None:
        groups = (self.x, self.y, self.a, self.b)
        if empty := [name for name, group in zip("xyab", groups, strict=True) if not group]:
            raise ValueError(
                f"{self.name}: expected texts in each group, received none in {empty}."
            )
        if len(self.x) != len(self.y):
            raise ValueError(
                f"{self.name}: expected as many texts in x as in y, received {len(self.x)} and "
                f"{len(self.y)}; leave some of the larger group out."
            )
