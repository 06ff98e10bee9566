"""One object that is loaded, trained, exported and loaded again."""

from __future__ import annotations

import copy
import json
import pickle
import shutil
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from safetensors.numpy import save_file

import use_st5
from tests.convert.t5x_writer import write_file
from tests.models.t5 import numpy_t5
from tests.tiny_bert import write_tiny_bert
from use_st5 import trainable_encoder
from use_st5.hub.model_manifest import ModelManifest
from use_st5.layers.saved_model_layer import SavedModelLayer
from use_st5.models.cross_encoder.model import CrossEncoderModel
from use_st5.models.lora import apply_lora
from use_st5.models.t5.model import T5_ROWS
from use_st5.tokenizers.ngram_tokenizer import NGramTokenizer
from use_st5.tokenizers.ngram_vocabulary import NGramVocabulary
from use_st5.trainable_encoder import TrainableEncoder

TEXTS = ["the cat", "", "how old are you", "river bank zzz", "Ünïcödé 😀"]


def test_what_was_fine_tuned_as_a_saved_model_is_loaded(toy_bert: Any, tmp_path: Path) -> None:
    toy = toy_bert
    loaded = tf.saved_model.load(str(toy.folders["int8"]))
    loaded.table_scales.assign(loaded.table_scales * tf.range(1.0, toy.rows + 1.0))
    loaded.trainable_variables[1].assign_add(tf.ones_like(loaded.trainable_variables[1]) / 8)
    expected = loaded(TEXTS)
    tf.saved_model.save(loaded, str(tmp_path / "tuned"), signatures=loaded.signatures)
    manifest = json.loads((toy.folders["int8"] / "use_st5.json").read_bytes())
    (tmp_path / "tuned" / "use_st5.json").write_text(json.dumps({**manifest, "files": {}}))
    encoder = TrainableEncoder.load(tmp_path / "tuned")
    np.testing.assert_allclose(encoder.encode(TEXTS), expected, atol=1e-6)


def test_an_encoder_of_other_precision_is_exported_in_float32(
    toy_use_transformer: Any, tmp_path: Path
) -> None:
    """Without adapters, and with adapters that are merged on the way."""
    encoder = TrainableEncoder.load(toy_use_transformer.folder, dtype="mixed_bfloat16")
    encoder.export(tmp_path / "model")
    vectors = encoder.encode(["a b", "c"])
    found = TrainableEncoder.load(tmp_path / "model").encode(["a b", "c"])
    np.testing.assert_allclose(found, vectors, atol=0.02)
    for variable in apply_lora(encoder.model, rank=2, seed=0).tensors.values():
        variable.assign(variable + 0.1)
    encoder.export(tmp_path / "adapted")
    adapted = use_st5.load(tmp_path / "adapted").encode(["a b", "c"])
    np.testing.assert_allclose(adapted, encoder.encode(["a b", "c"]), atol=0.02)


def test_copies_of_a_used_encoder(toy_use_dan: Any) -> None:
    encoder = TrainableEncoder.load(toy_use_dan.folders["float32"])
    before = encoder.encode(TEXTS)
    deep, shallow = copy.deepcopy(encoder), copy.copy(encoder)
    np.testing.assert_array_equal(deep.encode(TEXTS), before)
    weight = encoder.model.embedding.embeddings
    weight.assign(weight + 0.1 * np.arange(weight.shape[-1]))
    np.testing.assert_array_equal(deep.encode(TEXTS), before)
    np.testing.assert_array_equal(shallow.encode(TEXTS), encoder.encode(TEXTS))
    with pytest.raises(TypeError, match=r"cannot be pickled: export it"):
        pickle.dumps(encoder)


def test_one_graph_serves_all_calls(toy_use_dan: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    toy = toy_use_dan
    encoder = TrainableEncoder(toy.model, toy.tokenizer, max_length=toy.max_length)
    made: list[keras.Model] = []
    compiled = trainable_encoder.inference
    monkeypatch.setattr(
        trainable_encoder, "inference", lambda model: made.append(model) or compiled(model)
    )
    for texts in (TEXTS, TEXTS[:2], "the cat"):
        encoder.encode(texts)
    assert len(made) == 1


def test_fresh_encoders() -> None:
    tokenizer = NGramTokenizer(NGramVocabulary(("a", "cat"), ("a cat",), unigram_buckets=2))
    shape = {"embedding_dim": 8, "hidden_dims": (8, 12)}
    keras.utils.set_random_seed(1)
    encoder = TrainableEncoder.fresh("use_dan_en", tokenizer, **shape)
    assert encoder.model.config.num_embeddings == tokenizer.vocabulary.size
    assert encoder.encode("a cat").shape == (12,)
    keras.utils.set_random_seed(1)
    same = TrainableEncoder.fresh("use_dan_en", tokenizer, **shape)
    np.testing.assert_array_equal(same.encode(TEXTS), encoder.encode(TEXTS))
    with pytest.raises(ValueError, match="tokenizer=NGramTokenizer"):
        TrainableEncoder.fresh("use_dan_en")
    with pytest.raises(ValueError, match=r"Unknown preset: 'use_dan'.*use_dan_v4"):
        TrainableEncoder.fresh("use_dan", tokenizer)


def test_refusals(toy_use_dan: Any, tmp_path: Path) -> None:
    toy = toy_use_dan
    folder = shutil.copytree(toy.folders["float32"], tmp_path / "copy")
    with pytest.raises(ValueError, match="leave pooling and vocabulary out"):
        TrainableEncoder.load(folder, pooling="mean")
    manifest = json.loads((folder / "use_st5.json").read_text())

    def changed(**fields: Any) -> Path:
        (folder / "use_st5.json").write_text(json.dumps({**manifest, **fields}))
        return folder

    foreign = TrainableEncoder.load(changed(family=None))  # as a SavedModel of another origin
    assert foreign.tokenizer.kind == "bytes"
    expected = use_st5.load(toy.folders["float32"]).encode(["a b", ""])
    np.testing.assert_allclose(foreign.encode(["a b", ""]), expected, atol=1e-5)
    with pytest.raises(ValueError, match=r"Expected one of the families .*received 'cnn'"):
        TrainableEncoder.load(changed(family="cnn"))
    with pytest.raises(ValueError, match="expected a tokenizer of"):
        TrainableEncoder.load(changed(tokenizer="letters"))
    with pytest.raises(ValueError, match="Expected the configuration of a"):
        TrainableEncoder.load(changed(config={"shape": 3}))
    config = manifest["config"]
    shape = {**config["config"], "embedding_dim": config["config"]["embedding_dim"] + 1}
    with pytest.raises(ValueError, match="Export (it|the model) again"):
        TrainableEncoder.load(changed(config={**config, "config": shape}))
    assert ModelManifest.read(folder).family == manifest["family"]


@pytest.mark.parametrize(
    ("family", "wrong"),
    [
        ("use_dan", {"num_embeddings": 10**8}),
        ("use_dan", {"hidden_dims": [10**6, 10**6]}),
        ("use_dan", {"hidden_dims": [8] * 20_000}),
        ("use_transformer", {"num_layers": 20_000}),
        ("bert", {"intermediate_dim": 10**7}),
    ],
)
def test_a_configuration_of_other_shapes_takes_no_memory(
    request: pytest.FixtureRequest, tmp_path: Path, family: str, wrong: dict[str, Any]
) -> None:
    toy = request.getfixturevalue(f"toy_{family}")
    folder = shutil.copytree(toy.folders["float32"], tmp_path / "model")
    facts = json.loads((folder / "use_st5.json").read_text())
    facts["config"]["config"].update(wrong)
    (folder / "use_st5.json").write_text(json.dumps(facts))
    with pytest.raises(ValueError, match="Export (it|the model) again"):
        TrainableEncoder.load(folder)


def test_a_checkpoint_becomes_an_encoder_of_strings(tmp_path: Path) -> None:
    pytest.importorskip("tensorflow_text", reason="the extra `text` is not installed")
    table = np.random.default_rng(0).normal(size=(T5_ROWS, 8)).astype(np.float32)
    tensors = {**numpy_t5.arrays(), "token_embedder/embedding": table}
    write_file(tmp_path / "file", tensors)
    encoder = TrainableEncoder.load(tmp_path / "file")
    assert encoder.max_length == 256
    ids = encoder.tokenizer.padded(["How old are you?"])[0].numpy().tolist()
    expected = numpy_t5.encode(tensors, ids).mean(0)
    np.testing.assert_allclose(encoder.encode("How old are you?"), expected, atol=1e-5)


def test_what_no_family_knows(tmp_path: Path) -> None:
    save_file({"a": np.zeros(1, np.float32)}, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "gpt2"}), encoding="utf-8")
    with pytest.raises(
        ValueError,
        match="model_type 'gpt2'; use_st5 reads MPNet, ModernBERT, BERT, .* mT5, .* and model2vec",
    ):
        TrainableEncoder.load(tmp_path)


def dtypes(model: keras.Model) -> set[str]:
    """The policies of the layers that compute: no inputs, and no layers of layers."""
    layers = [layer for layer in model._flatten_layers() if not layer._layers]
    return {
        layer.dtype_policy.name
        for layer in layers
        if not isinstance(layer, keras.layers.InputLayer)
    }


@pytest.mark.parametrize("global_policy", ["float16"], indirect=True)
@pytest.mark.usefixtures("global_policy")
def test_a_global_policy_changes_no_loaded_model(
    toy_use_dan: Any, toy_bert: Any, tmp_path: Path
) -> None:
    """Neither one that was exported, nor a checkpoint, a foreign model or a cross-encoder."""
    write_tiny_bert(tmp_path / "bert", head=False)
    foreign = shutil.copytree(toy_use_dan.folders["float32"], tmp_path / "foreign")
    (foreign / "use_st5.json").unlink()
    encoder = TrainableEncoder.load(tmp_path / "bert")
    assert dtypes(encoder.model) == {"float32"}
    encoder.export(tmp_path / "again")
    for source, folder in (
        (toy_bert.folders["int8"], toy_bert.folders["int8"]),
        (tmp_path / "bert", tmp_path / "again"),
        (foreign, toy_use_dan.folders["float32"]),
    ):
        found = TrainableEncoder.load(source).encode(TEXTS)
        np.testing.assert_allclose(found, use_st5.load(folder).encode(TEXTS), atol=1e-6)
    layer = SavedModelLayer(toy_bert.folders["int8"], precision="float32", trainable=True)
    expected = use_st5.load(toy_bert.folders["int8"]).encode(TEXTS)
    np.testing.assert_allclose(layer.vectors(tf.constant(TEXTS), False), expected, atol=1e-6)
    assert dtypes(CrossEncoderModel(encoder.model)) == {"float32"}


def fresh_encoder(**arguments: Any) -> TrainableEncoder:
    tokenizer = NGramTokenizer(NGramVocabulary(("a", "cat"), ("a cat",), unigram_buckets=2))
    shape = {"embedding_dim": 8, "hidden_dims": (8, 12), "term_dropout": 0.1}
    return TrainableEncoder.fresh("use_dan_en", tokenizer, **shape, **arguments)


@pytest.mark.parametrize("global_policy", ["mixed_bfloat16"], indirect=True)
def test_a_global_policy_changes_no_new_model(global_policy: str, tmp_path: Path) -> None:
    encoder = fresh_encoder()
    assert dtypes(encoder.model) == {"float32"}
    encoder.export(tmp_path / "model")
    again = TrainableEncoder.load(tmp_path / "model")
    np.testing.assert_allclose(again.encode(TEXTS), encoder.encode(TEXTS), atol=1e-6)
    model = type(encoder.model)(encoder.model.config)  # Keras's own: it has the global policy.
    model.build()
    assert dtypes(model) == {global_policy, "float32"}
    TrainableEncoder(model, encoder.tokenizer).export(tmp_path / "own")
    vectors = TrainableEncoder(model, encoder.tokenizer).encode(TEXTS)
    np.testing.assert_allclose(use_st5.load(tmp_path / "own").encode(TEXTS), vectors, atol=0.02)
    dtypes_given = dtypes(fresh_encoder(dtype="mixed_bfloat16").model)
    assert dtypes_given == {"mixed_bfloat16", "float32"}  # the norm is computed in float32
