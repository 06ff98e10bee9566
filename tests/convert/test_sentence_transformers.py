from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
from safetensors.numpy import save_file

from use_st5.convert.sentence_transformers import (
    LayerModule,
    SentenceModules,
    read_modules,
    read_prompts,
)

WEIGHTS = {
    "linear.weight": np.arange(12, dtype=np.float32).reshape(3, 4),
    "linear.bias": np.array([1, 2, 3], np.float32),
}
NORM = {
    "norm.weight": np.array([2, 1, 1], np.float32),
    "norm.bias": np.array([0, 0, 5], np.float32),
}


def write_json(path: Path, content: Any) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(content), encoding="utf-8")


def write(folder: Path, *kinds: str, pooling: Any = "cls", **dense: Any) -> None:
    """Writes `modules.json` and the settings, with a folder for each module."""
    modules = [{"type": f"sentence_transformers.models.{kind}", "path": kind} for kind in kinds]
    write_json(folder / "modules.json", modules)
    settings = pooling if isinstance(pooling, dict) else {"pooling_mode": pooling}
    write_json(folder / "Pooling" / "config.json", settings)
    write_json(folder / "Dense" / "config.json", {"out_features": 3, **dense})
    save_file(WEIGHTS, folder / "Dense" / "model.safetensors")
    write_json(folder / "LayerNorm" / "config.json", {"dimension": 3})
    save_file(NORM, folder / "LayerNorm" / "model.safetensors")


def only_dense(modules: SentenceModules) -> LayerModule:
    (dense,) = modules.behind_pooling
    assert dense.activation is not None
    return dense


def test_each_module(tmp_path: Path) -> None:
    write(tmp_path, "Transformer", "Pooling")
    modules = read_modules(tmp_path)
    assert modules.transformer == tmp_path / "Transformer"
    assert (modules.pooling, modules.behind_pooling, modules.normalize) == ("cls", (), False)
    write(tmp_path, "Transformer", "Pooling", "Dense", "Normalize")
    modules = read_modules(tmp_path)
    dense = only_dense(modules)
    assert (dense.width, dense.bias, modules.normalize) == (3, True, True)
    assert dense.activation == "Tanh", "what sentence-transformers takes if none is stated"


@pytest.mark.parametrize(
    ("settings", "pooling"),
    [
        ("mean", "mean"),
        (["max", "cls", "mean_sqrt_len_tokens"], "max+cls+mean_sqrt_len"),
        ({"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False}, "mean"),
        (
            {f"pooling_mode_{name}": True for name in ("lasttoken", "mean_tokens", "cls_token")},
            "cls+mean+lasttoken",
        ),
        ({"pooling_mode_max_tokens": True, "include_prompt": True}, "max"),
        ({"pooling_mode_mean_tokens": 0, "pooling_mode_cls_token": 1}, "cls"),
        ({}, ""),
    ],
)
def test_poolings_of_every_version(tmp_path: Path, settings: Any, pooling: str) -> None:
    write(tmp_path, "Transformer", "Pooling", pooling=settings)
    assert read_modules(tmp_path).pooling == pooling


def test_a_dense_layer_with_a_bias(tmp_path: Path) -> None:
    write(tmp_path, "Transformer", "Pooling", "Dense", activation_function="torch.nn.Tanh")
    dense = only_dense(read_modules(tmp_path))
    assert dense.activation == "Tanh"
    dense.check(4)
    with pytest.raises(ValueError, match=r"linear.weight: expected \[3, 5\], found \[3, 4\]"):
        dense.check(5)
    layer = keras.layers.Dense(3)
    layer.build((None, 4))
    dense.assign(layer)
    x = np.array([[1, 0, 0, 2]], np.float32)
    np.testing.assert_array_equal(layer(x), x @ WEIGHTS["linear.weight"].T + [1, 2, 3])
    write(tmp_path, "Transformer", "Pooling", "Dense", bias=False)
    without = only_dense(read_modules(tmp_path))
    with pytest.raises(ValueError, match=r"Unknown: linear.bias\."):
        without.check(4)


def test_dense_layers_and_norms_in_any_number_and_order(tmp_path: Path) -> None:
    write(tmp_path, "Transformer", "Pooling", "LayerNorm", "Dense", "Dense", "LayerNorm")
    modules = read_modules(tmp_path)
    assert [each.activation for each in modules.behind_pooling] == [None, "Tanh", "Tanh", None]
    norm = modules.behind_pooling[0]
    norm.check(3)
    with pytest.raises(ValueError, match=r"norm.weight: expected \[4\], found \[3\]"):
        norm.check(4)
    layer = keras.layers.LayerNormalization(epsilon=1e-5)
    layer.build((None, 3))
    norm.assign(layer)
    root = np.sqrt(1.5)  # 1, 2, 3 have the mean 2 and the variance 2/3
    found = layer(np.array([[1, 2, 3]], np.float32))
    np.testing.assert_allclose(found, [[-2 * root, 0, 5 + root]], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    "settings",
    [
        {"use_residual": True},
        {"module_input_name": "token_embeddings"},
        {"module_output_name": "c" * 10**5},
    ],
)
def test_a_dense_layer_of_something_else_is_refused(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    write(tmp_path, "Transformer", "Pooling", "Dense", **settings)
    with pytest.raises(ValueError, match="Dense.config.json: expected a layer of sent.{,400}$"):
        read_modules(tmp_path)


def test_other_modules_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"modules.json: expected a file"):
        read_modules(tmp_path)
    backwards = ("Transformer", "Pooling", "Normalize", "Dense")
    twice = ("Transformer", "Pooling", "Pooling")
    for kinds in (("Pooling",), (), ("Transformer",), backwards, twice):
        write(tmp_path, *kinds)
        found = ", ".join(kinds) or "none"
        with pytest.raises(ValueError, match=f"expected Transformer, Pooling.*found {found}"):
            read_modules(tmp_path)


def test_a_module_of_another_package_is_refused(tmp_path: Path) -> None:
    write(tmp_path, "Transformer", "Pooling")
    path = tmp_path / "modules.json"
    path.write_text(path.read_text().replace("sentence_transformers.models.P", "mine.P"))
    with pytest.raises(ValueError, match=r"found Transformer, mine\.Pooling"):
        read_modules(tmp_path)


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("sentence_bert_config.json", {"config_args": {"num_hidden_layers": 1}}, "num_hidden_la"),
        ("sentence_bert_config.json", {"tokenizer_args": {"model_max_length": 5}}, "model_max_len"),
        ("tokenizer_config.json", {"truncation_side": "left"}, "truncation_side"),
        ("sentence_bert_config.json", {"query_length": 8}, "query_length"),
        ("sentence_bert_config.json", {"processing_kwargs": {"text": {"truncation": False}}},
         "write truncation"),
        ("sentence_bert_config.json", {"processing_kwargs": {"common": {"add_special_tokens": 0}}},
         "write add_special_tokens"),
        ("sentence_bert_config.json", {"processing_kwargs": {"text": {"max_length": "8"}}},
         "max_length: .*expected int"),
    ],
)  # fmt: skip
def test_settings_that_change_vectors_are_refused(
    tmp_path: Path, file: str, content: dict[str, Any], message: str
) -> None:
    write(tmp_path, "Transformer", "Pooling")
    write_json(tmp_path / "Transformer" / file, content)
    with pytest.raises(ValueError, match=message):
        read_modules(tmp_path)


def test_a_static_embedding_stands_alone_or_before_the_normalisation(tmp_path: Path) -> None:
    for kinds, stated, limit in (
        (("StaticEmbedding",), {}, None),
        (("StaticEmbedding", "Normalize"), {"truncation": None, "model": {}}, None),
        (("StaticEmbedding",), {"truncation": {"max_length": 8, "direction": "Right"}}, 10),
    ):
        write(tmp_path, *kinds)
        write_json(tmp_path / "StaticEmbedding" / "tokenizer.json", stated)
        modules = read_modules(tmp_path)
        assert modules.static
        assert (modules.pooling, modules.max_length) == ("mean", limit)
        assert modules.normalize == (len(kinds) == 2)
    truncation = {"max_length": 8, "direction": "Left"}
    write_json(tmp_path / "StaticEmbedding" / "tokenizer.json", {"truncation": truncation})
    with pytest.raises(ValueError, match=r"tokenizer.json: .*direction"):
        read_modules(tmp_path)
    for others in (("StaticEmbedding", "Dense"), ("StaticEmbedding", "Pooling")):
        write(tmp_path, *others)
        with pytest.raises(ValueError, match=f"Normalize; found {', '.join(others)}"):
            read_modules(tmp_path)


def test_a_transformer_that_classifies_stands_alone(tmp_path: Path) -> None:
    write(tmp_path, "Transformer")
    settings = {"transformer_task": "sequence-classification", "max_seq_length": 20}
    write_json(tmp_path / "Transformer" / "sentence_bert_config.json", settings)
    modules = read_modules(tmp_path)
    assert (modules.pooling, modules.max_length) == (None, 20)
    assert modules.transformer == tmp_path / "Transformer"
    # Version 6 gives these to the tokenizer with each text, instead of its own limit.
    text = {"max_length": 8, "truncation": True, "padding": "max_length"}
    write_json(
        tmp_path / "Transformer" / "sentence_bert_config.json",
        settings | {"processing_kwargs": {"text": text, "image": {"size": 3}}},
    )
    assert read_modules(tmp_path).max_length == 8


def write_prompts(
    folder: Path, settings: Any, pooling: Any = None
) -> tuple[dict[str, str], str | None]:
    modules = [
        {"type": "sentence_transformers.models.Transformer", "path": ""},
        {"type": "sentence_transformers.models.Pooling", "path": "1_Pooling"},
    ]
    write_json(folder / "modules.json", modules)
    write_json(folder / "1_Pooling" / "config.json", pooling or {})
    if settings is not None:
        write_json(folder / "config_sentence_transformers.json", settings)
    return read_prompts(folder, read_modules(folder))


def test_prompts_that_are_read(tmp_path: Path) -> None:
    assert write_prompts(tmp_path, None) == ({}, None)
    settings = {"prompts": {"query": "q: ", "document": None}, "default_prompt_name": "query"}
    found = write_prompts(tmp_path, {**settings, "__version__": {}, "similarity_fn_name": "cosine"})
    assert found == ({"query": "q: ", "document": ""}, "query")


@pytest.mark.parametrize(
    ("settings", "pooling", "said"),
    [
        ({"prompts": {"a": 3}}, {}, "expected str . null, received int"),
        ({"default_prompt_name": "a"}, {}, "default_prompt_name 'a'"),
        ({"truncate_dim": 64}, {}, r"encode\(texts, truncate_dim=64\)"),
        ({}, {"include_prompt": False}, "1_Pooling.config.json: expected include_prompt to be tr"),
    ],
)
def test_prompts_that_are_refused(tmp_path: Path, settings: Any, pooling: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        write_prompts(tmp_path, settings, pooling)
