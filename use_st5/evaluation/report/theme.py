"""The colours and markers of a report: one of each per model, the same in every plot and table."""

from __future__ import annotations

from dataclasses import dataclass

# Matplotlib's marker and the character that looks like it.
_MARKERS = (("o", "●"), ("s", "■"), ("^", "▲"), ("D", "◆"), ("v", "▼"), ("P", "✚"), ("X", "✖"))
# After so many models the colours come again, then with a pattern in their bars.
COLOURS = 7
_HATCHES = ("", "////", "....", "xxxx")
_DASHES = ("-", "--", ":", "-.")


@dataclass(frozen=True)
class Theme:
    """Colours of the page and of the plots, for light or for dark screens.

    Attributes:
        ink: Text.
        muted: Text of less weight, and what was published.
        line: Rules, grids and frames.
        page: The background.
        models: The models' colours: Okabe and Ito's palette ("Color Universal Design", 2008), told
            apart with every common kind of colour vision, without its yellow, which vanishes on
            white; brightened where the page is dark.
    """

    ink: str
    muted: str
    line: str
    page: str
    models: tuple[str, ...]

    def colour(self, position: int) -> str:
        """The colour of the model at a position."""
        return self.models[position % COLOURS]


LIGHT = Theme(
    ink="#1f2328",
    muted="#59636e",
    line="#d8dee4",
    page="#ffffff",
    models=("#0072b2", "#d55e00", "#009e73", "#b8579a", "#c98500", "#3a9fdc", "#444b54"),
)
DARK = Theme(
    ink="#e6edf3",
    muted="#9aa4af",
    line="#353c45",
    page="#14181d",
    models=("#4da3e0", "#f0803c", "#2dbe94", "#e09ac4", "#f2b632", "#9fd6f5", "#c3cad2"),
)


def marker(position: int) -> str:
    """Matplotlib's marker of the model at a position."""
    return _MARKERS[_marker(position)][0]


def glyph(position: int) -> str:
    """The character like the marker of the model at a position."""
    return _MARKERS[_marker(position)][1]


def hatch(position: int) -> str:
    """The pattern in the bars of the model at a position."""
    return _HATCHES[position // COLOURS % len(_HATCHES)]


def dashes(position: int) -> str:
    """Matplotlib's style of the line of the model at a position."""
    return _DASHES[position // COLOURS % len(_DASHES)]


def _marker(position: int) -> int:
    # Models that share a colour differ in their marker.
    return (position + position // COLOURS) % len(_MARKERS)
