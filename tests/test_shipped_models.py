"""The models that ship keep the promises of their cards; tests/fuzz tests those of all vectors."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import use_st5
from use_st5.encode.encoder import SentenceEncoder
from use_st5.evaluation.sts import evaluate_sts, read_stsb
from use_st5.hub.model_manifest import ModelManifest, describe_files
from use_st5.hub.model_names import bundled_folder, bundled_names

pytestmark = pytest.mark.skipif(not bundled_names(), reason="no model is bundled")

MEGABYTE = 1_000_000
# STS-B dev, Pearson: a little below the cards' figures, which are rounded.
DEVELOPMENT = {
    "use_dan_en": 0.865,
    "use_dan_multilingual": 0.82,
    "use_transformer_en": 0.88,
    "st5_mini_en": 0.874,
}


@pytest.fixture(scope="module", params=bundled_names())
def encoder(request: pytest.FixtureRequest) -> Iterator[SentenceEncoder]:
    """Each bundled model."""
    return use_st5.load(request.param)


def test_size_files_and_card() -> None:
    total = 0
    for name in bundled_names():
        folder = bundled_folder(name)
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        assert size <= 40 * MEGABYTE, name
        total += size
        manifest = ModelManifest.read(folder)
        assert manifest.name == name
        files, model_hash = describe_files(folder)
        assert manifest.model_hash == model_hash, name
        assert files == manifest.files, name
        card = (folder / "README.md").read_text(encoding="utf-8")
        assert f"# {name}\n" in card
        assert re.search(r"## Scores.*## Training.*## Limits.*## Bias", card, re.DOTALL), name
    assert total <= 150 * MEGABYTE


def test_close_sentences_are_close(encoder: SentenceEncoder) -> None:
    question, same, other = encoder.encode(
        ["How old are you?", "What is your age?", "My phone is dead."]
    )
    assert question @ same > question @ other + 0.3


def test_development_score_of_the_card(encoder: SentenceEncoder, data_dir: Path) -> None:
    (path,) = data_dir.glob("**/sts-dev.csv")
    (score,) = evaluate_sts(encoder.encode, read_stsb(path))
    assert score.pearson["all"] >= DEVELOPMENT[encoder.name]


@pytest.mark.skipif("use_transformer_en" not in bundled_names(), reason="not bundled")
def test_the_transformer_reads_word_order_more_than_the_average_of_words() -> None:
    """Compares by how much a vector moves when subject and object are exchanged."""
    pairs = [
        ("The dog bit the man.", "The man bit the dog."),
        ("The teacher praised the student.", "The student praised the teacher."),
        ("Cats chase mice.", "Mice chase cats."),
        ("The car hit the tree after the storm.", "The tree hit the car after the storm."),
    ]
    mean = {}
    for name in ("use_dan_en", "use_transformer_en"):
        first, second = (
            use_st5.load(name).encode([pair[side] for pair in pairs]) for side in (0, 1)
        )
        mean[name] = float(np.mean(np.sum(first * second, axis=1)))
    assert mean["use_transformer_en"] < mean["use_dan_en"]


@pytest.mark.end_to_end
@pytest.mark.process
@pytest.mark.skipif(sys.platform == "win32", reason="needs the module resource")
@pytest.mark.parametrize("name", ["use_dan_en", "use_transformer_en"])
def test_a_long_text_takes_little_memory(name: str, fresh_python: Callable[..., str]) -> None:
    """The text is 4 MB of short tokens: all at once they take 400 MB, and with vectors 6 GB."""
    code = (
        "import resource, sys, tensorflow as tf\n"
        "peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        f"model = tf.saved_model.load({str(bundled_folder(name))!r})\n"
        "model(['a']); before = peak()\n"
        "model(['a! ' * 1_333_333])\n"
        "print((peak() - before) * (1 if sys.platform == 'darwin' else 1024))\n"
    )
    assert int(fresh_python("-c", code)) < 350 * MEGABYTE
