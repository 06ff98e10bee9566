"""Trans-Encoder's experiments end to end on a tiny BERT, and the paper's settings."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from safetensors.numpy import load_file

from experiments.trans_encoder import starts
from experiments.trans_encoder import train as trans_encoder
from experiments.trans_encoder.starts import Opened, Start, write_start
from experiments.trans_encoder.train import VARIANTS
from tests.experiments.trans_encoder.pair_sets import some_pairs, write_sets
from tests.experiments.trans_encoder.small import small
from tests.tiny_bert import write_tiny_bert
from use_st5.hub.model_manifest import ModelManifest
from use_st5.training.trans_encoder import TransEncoder

pytest.importorskip("tensorflow_text", reason="the extra `text` is not installed")
pytest.importorskip("sklearn", reason="the extra `evaluation` is not installed")

PAIRS = [("the man runs", "the dog"), ("", "a cat"), ("the child eats", "the child reads")]
FIRST, SECOND = (list(each) for each in zip(*PAIRS, strict=True))


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_sets(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_bert(tmp_path_factory.mktemp("tiny") / "bert", head=False)


@pytest.fixture(scope="module")
def mutual(
    data: Path, bert: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, dict[str, float]]:
    output = tmp_path_factory.mktemp("mutual")
    return output, small("mutual").run(data, output, pretrained=bert, seed=3)


@pytest.mark.end_to_end
def test_both_kinds_are_exported_and_scored(mutual: tuple[Path, dict[str, float]]) -> None:
    output, scores = mutual
    vectors = tf.saved_model.load(str(output / "model"))(FIRST).numpy()
    assert vectors.shape == (3, 8)
    cross_encoder = tf.saved_model.load(str(output / "cross_encoder")).signatures["serving_default"]
    given = cross_encoder(first=tf.constant(FIRST), second=tf.constant(SECOND))
    assert given["scores"].shape == (3,)
    facts = ModelManifest.read(output / "model").metadata
    assert (facts["recipe"], facts["seed"]) == ("trans_encoder_mutual", 3)
    models = {name.split("/")[0] for name in scores}
    assert models == {f"{who}_{what}" for who in ("minilm", "second", "ensemble")
                      for what in ("start", "bi", "cross")}  # fmt: skip
    sets = {name.split("/")[1] for name in scores}
    assert sets == {"sts12", "sts13", "sts15", "stsb", "sickr", "pairs_mrpc"}
    assert json.loads((output / "scores.json").read_text()) == scores


@pytest.mark.end_to_end
def test_the_exported_encoders_are_the_best_of_their_kinds(
    data: Path, bert: Path, mutual: tuple[Path, dict[str, float]]
) -> None:
    output, scores = mutual
    rows = json.loads((output / "models.json").read_text())["models"]
    best = max((row for row in rows if row["kind"] == "bi"), key=lambda row: row["spearman"])
    opened = Opened.of(Start(name="x"), {"pretrained": bert})
    if best["weights"]:
        opened = dataclasses.replace(opened, bi=opened.trained("bi", output / best["weights"]))
        vectors = tf.saved_model.load(str(output / "model"))(FIRST).numpy()
        np.testing.assert_allclose(opened.bi.encode(FIRST), vectors, atol=1e-5)


@pytest.mark.end_to_end
def test_the_report_says_what_was_among_the_pairs(mutual: tuple[Path, dict[str, float]]) -> None:
    text = (mutual[0] / "report.md").read_text()
    rows = {line.split(" | ")[0].strip("| "): line for line in text.splitlines()}
    assert "transductive: 100% of pairs, 100% of sentences" in rows["STS13"]
    # Half of STS-B's test pairs are also in STS12, and are left out of the training pairs.
    assert "| 8 | inductive |" in rows["STS-B test"]
    assert "transductive: 50% of pairs" in rows["STS12"]
    assert "Not in the data folder: STS14, STS16, QQP, QNLI." in text
    assert rows["0"] != rows["1"]
    assert "| 1 | second, cross |" in text
    assert "mean of those without a pair in the pool" in text


@pytest.mark.process
def test_the_training_runs_under_jax_without_tensorflow(
    data: Path, bert: Path, tmp_path: Path, under_jax: Callable[..., str]
) -> None:
    small("mutual").run(data, tmp_path, part="prepare", pretrained=bert)
    under_jax("experiments/trans_encoder/small.py", tmp_path)
    scores = small("mutual").run(data, tmp_path, part="export", pretrained=bert)
    assert np.isfinite([*scores.values()]).all()
    assert (tmp_path / "cross_encoder/saved_model.pb").is_file()


@pytest.mark.end_to_end
def test_a_bundled_encoder_learns_from_a_cross_encoder_of_a_bert(
    data: Path, bert: Path, tmp_path: Path
) -> None:
    """The pairs are a user's own."""
    lines = "".join(f"{a}\t{b}\n" for a, b in some_pairs(9, 0))
    (tmp_path / "mine.tsv").write_text(lines)
    given = {"pretrained": bert, "pairs": tmp_path / "mine.tsv"}
    scores = small("use_dan_en").run(data, tmp_path / "run", **given)
    assert {name.split("/")[0] for name in scores} == {"start", "bi", "cross"}
    assert "9 pairs without labels" in (tmp_path / "run/report.md").read_text()
    assert ModelManifest.read(tmp_path / "run/model").family == "use_dan"
    with pytest.raises(ValueError, match="was begun with"):
        small("use_dan_en").run(data, tmp_path / "run", pretrained=bert)


def test_cross_encoders_begin_with_the_plain_language_model(tmp_path: Path) -> None:
    """Section 2.2: its pooler is the head's first layer; the bi-encoder is another checkpoint."""
    simcse = write_tiny_bert(tmp_path / "simcse", head=False, pooler=True)
    plain = write_tiny_bert(tmp_path / "plain", head=True, pooler=True, seed=1)
    start = Start(name="x", pooling="cls")
    for folders, source in (
        ({"pretrained": simcse}, simcse),
        ({"pretrained": simcse, "language_model": plain}, plain),
    ):
        opened = Opened.of(start, folders)
        bi, below = (load_file(each / "model.safetensors") for each in (simcse, source))
        name = "embeddings.word_embeddings.weight"
        np.testing.assert_array_equal(opened.bi.model.embedding.embeddings, bi[name])
        write_start(tmp_path / source.name / "prepared", opened, PAIRS, PAIRS)
        model = starts._cross(tmp_path / source.name / "prepared")
        np.testing.assert_array_equal(model.encoder.embedding.embeddings, below[name])
        np.testing.assert_array_equal(model.hidden.kernel, below["pooler.dense.weight"].T)
        np.testing.assert_array_equal(model.hidden.bias, below["pooler.dense.bias"])


def test_simcse_and_mirror_bert_are_begun_with_as_in_their_code() -> None:
    """run_unsup_example.sh and transformers' defaults; mirror_sentence_bert.sh and train.py."""
    expected = {
        # Rate at the steps 0 and 125 of 250, weight decay, clipping, batch, τ, directions, span.
        trans_encoder.SIMCSE: ([3e-5, 1.5e-5], 0.0, 1.0, 64, 0.05, False, 0),
        trans_encoder.MIRROR: ([2e-5, 2e-5], 0.01, None, 200, 0.04, True, 5),
    }
    for start, (rates, decay, clipping, batch, temperature, all_views, span) in expected.items():
        optimizer, loss = start.optimizer(), start.loss(4, 0)
        found = [float(optimizer._learning_rate(step)) for step in (0, 125)]
        assert found == pytest.approx(rates)
        assert (optimizer.weight_decay, optimizer.global_clipnorm) == (decay, clipping)
        assert (start.batch_size, loss.temperature) == (batch, temperature)
        assert (loss.all_views, loss.masked_span) == (all_views, span)


def test_published_has_the_papers_settings_and_pairs() -> None:
    published = VARIANTS["published"]
    assert published.settings == TransEncoder()
    assert [source.name for source in published.pool.sources] == [
        *("STS12", "STS13", "STS14", "STS15", "STS16"),
        *("STS-B train", "STS-B dev", "STS-B test", "SICK-R train", "SICK-R trial", "SICK-R test"),
    ]
    assert (published.pool.without, published.pool.complete) == ((), True)
    assert published.starts[0].pooling == "cls"
    assert len(VARIANTS["published_mutual"].starts) == 2
