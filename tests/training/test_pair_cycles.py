"""Pairs without a score: Trans-Encoder on a user's file."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.tiny_bert import write_tiny_bert
from tests.toy_encoders import Toy
from tests.training.test_train import SENTENCES, scored, write
from use_st5.training.arguments import make_arguments
from use_st5.training.pair_cycles import settings_of_cycles
from use_st5.training.trans_encoder import TransEncoder


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """Pairs without a score, and scored ones."""
    pairs = [
        {"sentence1": a, "sentence2": b}
        for a, b in zip(SENTENCES[:40], SENTENCES[5:45], strict=True)
    ]
    return write(tmp_path / "pairs.csv", pairs), write(tmp_path / "dev.csv", scored(40, start=60))


def test_the_settings_of_the_paper() -> None:
    """Table 16, as Trans-Encoder's own settings have it."""
    assert settings_of_cycles(make_arguments("trans_encoder")) == TransEncoder()
    changed = settings_of_cycles(make_arguments(learning_rate=1e-3, steps=7, cycles=1))
    assert changed.to_bi.learning_rate == changed.to_cross.learning_rate == 1e-3
    assert (changed.cycles, changed.to_bi.steps, changed.to_cross.steps) == (1, 7, 7)
    with pytest.raises(ValueError, match="lora_rank, keep: expected no value"):
        settings_of_cycles(make_arguments(lora_rank=4, keep=0.5))


@pytest.mark.end_to_end
def test_a_bert_and_its_cross_encoder_teach_each_other(
    files: tuple[Path, Path], tmp_path: Path
) -> None:
    """The best cycle and the cross-encoder are exported; the same call again changes nothing."""
    import use_st5
    from use_st5.encode.cross_encoder import CrossEncoder
    from use_st5.training.train import train

    bert = str(write_tiny_bert(tmp_path / "bert", head=False))
    options = {"validation": files[1], "batch_size": 8, "steps": 10, "learning_rate": 1e-2}
    said: list[str] = []
    trained = train(bert, files[0], tmp_path / "tuned", log=said.append, **options)
    assert any("2 cycles: a cross-encoder is trained on the encoder's scores" in x for x in said)
    record = json.loads((trained.run / "history.json").read_text())[""]
    measured = [each["spearman"] for each in record["evaluations"]]
    assert [each["step"] for each in record["evaluations"]] == [0, 1, 2]
    assert trained.best_step == int(np.argmax(measured))
    assert trained.before["spearman"] == pytest.approx(measured[0])
    assert trained.after["spearman"] == pytest.approx(max(measured), abs=1e-6)
    card = (trained.folder / "README.md").read_text()
    assert "cycle 2 of 2" in card or "cycle 1 of 2" in card or "the start itself" in card
    pairs = [(SENTENCES[0], SENTENCES[1])]
    assert 0 < CrossEncoder.load(trained.run / "cross_encoder").predict(pairs).item() < 1
    vectors = use_st5.load(trained.folder).encode(SENTENCES[:3])
    again = train(bert, files[0], tmp_path / "tuned", **options)
    assert again.after == trained.after
    np.testing.assert_array_equal(use_st5.load(again.folder).encode(SENTENCES[:3]), vectors)


@pytest.mark.end_to_end
def test_another_encoder_learns_from_a_bert_or_from_a_trained_cross_encoder(
    files: tuple[Path, Path], toy_use_dan: Toy, tmp_path: Path
) -> None:
    """A USE-DAN cannot read pairs: a BERT does, or an existing cross-encoder scores them."""
    from use_st5.models.cross_encoder.model import CrossEncoderModel
    from use_st5.trainable_encoder import TrainableEncoder
    from use_st5.training.train import train

    start = str(toy_use_dan.folders["float32"])
    bert = write_tiny_bert(tmp_path / "bert", head=False)
    options = {"validation": files[1], "batch_size": 8, "steps": 4}
    with pytest.raises(
        ValueError, match="Expected a BERT or RoBERTa.* received a USEDAN.*--teacher"
    ):
        train(start, files[0], tmp_path / "no", **options)
    taught = train(start, files[0], tmp_path / "a", teacher=str(bert), cycles=1, **options)
    assert taught.steps == 1
    below = TrainableEncoder.load(bert)
    cross_encoder = CrossEncoderModel(below.model.pooled("cls"))
    cross_encoder.build()
    TrainableEncoder(cross_encoder, below.tokenizer).export(tmp_path / "cross_encoder")
    trained = train(
        start, files[0], tmp_path / "b", teacher=str(tmp_path / "cross_encoder"), **options
    )
    assert trained.steps == 4
    record = json.loads((trained.run / "history.json").read_text())[""]
    assert list(record["task_steps"]) == ["pairs"]


def test_what_cannot_be_learnt_so(
    files: tuple[Path, Path], toy_use_dan: Toy, tmp_path: Path
) -> None:
    from use_st5.training.train import train

    start, to = str(toy_use_dan.folders["float32"]), tmp_path / "tuned"
    with pytest.raises(ValueError, match="cannot evaluate a model. Give --validation"):
        train(start, files[0], to)
    with pytest.raises(
        ValueError, match="pairs.csv: expected a file that can evaluate, received unscored_pairs"
    ):
        train(start, files[0], to, validation=files[0])
    with pytest.raises(ValueError, match="trained in cycles, received also scored_pairs"):
        more = write(tmp_path / "more.csv", scored(20, start=20))
        train(start, [files[0], more], to, validation=files[1])
    assert not to.exists()
