"""The training of m-ST5 on a folder of mT5's format, with random weights."""

from __future__ import annotations

import json
from pathlib import Path

import keras
import ml_dtypes  # noqa: F401
import numpy as np
import pytest
import safetensors.numpy
import tensorflow as tf

pytest.importorskip("tensorflow_text", reason="the extra `text` is not installed")
pytest.importorskip("sklearn", reason="the extra `evaluation` is not installed")

from experiments.multilingual_st5 import train as multilingual_st5  # noqa: E402
from experiments.multilingual_st5.train import VARIANTS  # noqa: E402
from tests.experiments.multilingual_st5 import data as multilingual_data  # noqa: E402
from use_st5.convert.checkpoint import open_checkpoint  # noqa: E402
from use_st5.models.lora import load_lora  # noqa: E402
from use_st5.models.t5.checkpoint import (
    HUGGING_FACE,  # noqa: E402
    read_sentence_t5,  # noqa: E402
)
from use_st5.models.t5.model import T5Config  # noqa: E402
from use_st5.models.t5.sentence_t5 import SentenceT5  # noqa: E402
from use_st5.tokenizers.sentencepiece_tokenizer import (  # noqa: E402
    T5_VOCABULARY,
    SentencePieceTokenizer,
)

SHAPE = {"num_layers": 1, "d_model": 16, "d_ff": 24, "num_heads": 2, "d_kv": 8}


def write_mt5(folder: Path) -> None:
    """Writes a tiny encoder in bfloat16, in the layout of Hugging Face's folders."""
    folder.mkdir(parents=True)
    settings = {"model_type": "mt5", "vocab_size": 32_128, "feed_forward_proj": "gated-gelu"}
    settings |= SHAPE | {"tie_word_embeddings": False}
    (folder / "config.json").write_text(json.dumps(settings))
    config = T5Config(32_128, 1, 16, 24, 2, key_value_dim=8, activation="gated_gelu")
    model = SentenceT5(config, projection_dim=None, normalize=False)
    model.build()
    tensors = {
        name: np.ascontiguousarray(
            target.variable.numpy().T if target.transposed else target.variable.numpy()
        ).astype("bfloat16")
        for name, target in HUGGING_FACE.targets(model).items()
    }
    safetensors.numpy.save_file(tensors, folder / "model.safetensors")
    (folder / "spiece.model").write_bytes(T5_VOCABULARY.read_bytes())


@pytest.fixture
def data(tmp_path: Path) -> Path:
    root = tmp_path / "data"
    write_mt5(root / "models/mt5-large")
    for language in multilingual_data.WORDS:
        file = root / f"XNLI-MT-1.0/multinli/multinli.train.{language}.tsv"
        multilingual_data.write_pairs(file, language, count=50, header="premise\thypo\tlabel\n")
    rows = [multilingual_data.sentences("en", number) for number in range(130)]
    lines = ["sent0,sent1,hard_neg", *(",".join(row) for row in rows)]
    (root / "nli_for_simcse.csv").write_text("\n".join(lines) + "\n")
    multilingual_data.write_evaluation_sets(root)
    return root


@pytest.mark.end_to_end
@pytest.mark.parametrize(
    ("variant", "targets"),
    [("large_xnli", "query_value"), ("large_en_nli_all_linear", "all_linear")],
)
def test_trains_merges_exports_and_scores(
    data: Path, tmp_path: Path, variant: str, targets: str
) -> None:
    output = tmp_path / "run"
    # 150 and 130 triplets: an epoch is one batch of 128.
    scores = VARIANTS[variant].run(data, output)
    assert set(scores) == {"tatoeba", "jsts"}
    checkpoints = [path.name for path in (output / "checkpoints").glob("checkpoint-*")]
    assert checkpoints == ["checkpoint-000000001"]
    model = read_sentence_t5(open_checkpoint(data / "models/mt5-large"))
    adapters = load_lora(model, output / "adapters.safetensors")
    assert (adapters.rank, len(adapters.layers)) == (
        8,
        {"query_value": 2, "all_linear": 7}[targets],
    )
    assert any(tensor.numpy().any() for name, tensor in adapters.tensors.items() if name[-1] == "b")
    exported = tf.saved_model.load(output / "model")(tf.constant(["dog", "water street"]))
    expected = model(SentencePieceTokenizer().padded(["dog", "water street"]))
    np.testing.assert_allclose(exported, expected, atol=1e-5)
    # The vectors are raw means: neither projected nor of length 1.
    assert exported.shape == (2, 16)
    assert (np.abs(np.linalg.norm(exported, axis=1) - 1) > 1e-2).any()


def test_the_settings_of_the_paper() -> None:
    """Yano et al. 2024: LoRA of rank 8, batch 128, one epoch, the rates of Table 5.

    Alpha 32, the temperature 0.05 and AdamW are choices of the script; its head says so.
    """
    for name, each in {"xxl_xnli": multilingual_st5.EXPERIMENT, **VARIANTS}.items():
        args, task = each.arguments(1_000), each.task(0)
        loss, optimizer = task.loss(), args.make_optimizer(1_000)
        assert (loss.temperature, loss.hard_negatives, loss.bidirectional) == (0.05, True, False)
        assert (task.batch_size, args.batch_size, args.pieces) == (128, 128, 16)
        assert (type(optimizer), optimizer.weight_decay) == (keras.optimizers.AdamW, 0.0)
        peak = 5e-4 if "en_nli" in name else 5e-5
        rates = [float(optimizer._learning_rate(step)) for step in (0, 500, 1_000)]
        np.testing.assert_allclose(rates, [peak, peak / 2, 0], rtol=1e-5, atol=1e-12)
        targets = "all_linear" if name.endswith("all_linear") else "query_value"
        assert (each.rank, each.alpha, each.targets) == (8, 32.0, targets)
        assert (each.dtype, each.metadata["base"]) == ("bfloat16", f"mt5-{name.split('_')[0]}")
    assert len(VARIANTS) == 12
