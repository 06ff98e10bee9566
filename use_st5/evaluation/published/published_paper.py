"""A paper whose tables the package knows."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PublishedPaper:
    """Where published results stand.

    Attributes:
        citation: For captions, for example "Ni et al. (2022)".
        title: As printed.
        authors: Their names, separated by commas.
        year: Of publication.
        venue: Of publication, for example "ICLR 2022".
        url: Where it can be read.
        notes: Which tables and figures are not among the data, and why.
    """

    citation: str
    title: str
    authors: str
    year: int
    venue: str
    url: str
    notes: str
