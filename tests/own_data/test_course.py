"""What is said of a training before its first step."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.own_data.topics import ABOUT
from tests.toy_encoders import Toy

pytestmark = pytest.mark.usefixtures("without_xla")


@pytest.mark.parametrize(("head", "fitted"), [("fitted", 40), ("drawn", 0)])
def test_all_that_is_read_is_expected(
    head: str, fitted: int, toy_use_dan: Toy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second a text, and nothing for the weights."""
    from use_st5.own_data import course
    from use_st5.own_data.plan import plan
    from use_st5.own_data.settings import make_settings
    from use_st5.own_data.sources import open_source
    from use_st5.trainable_encoder import TrainableEncoder

    monkeypatch.setattr(course.Course, "_seconds_of_text", lambda self: 1.0)
    monkeypatch.setattr(course, "_seconds_of_float", lambda: 0.0)
    files = []
    for at, name in enumerate(("shown", "asked")):
        path = tmp_path / f"{name}.csv"
        path.write_text("\n".join(["text,label", *map(",".join, ABOUT[at::2])]))
        files.append(open_source(path))
    encoder = TrainableEncoder.load(toy_use_dan.folders["float32"])
    settings = make_settings(steps=2, batch_size=8, evaluations=1, head=head)
    made = plan("toy", encoder, files[:1], files[1:], settings)
    trained = 2 * 8 * 3  # a step reads its texts forward, and backward for twice as long
    measured = (40 + 40) * 3  # at the start, on the way and at the end; what is asked and shown
    exported = 40  # what the classifier of the exported encoder is fitted to
    seconds = 30 + trained + measured + fitted + exported
    assert round(seconds / 60) == (7 if fitted else 6)
    assert f"expected time: about {round(seconds / 60)} minutes on this machine" in made.lines()
