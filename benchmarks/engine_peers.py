"""The peers of `benchmarks.engines`: other libraries with the same weights."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from use_st5.hub.cache import MODELS, kept_content
from use_st5.hub.model_names import bundled_folder

Encode = Callable[[list[str]], Any]
_LIMITS: dict[str, Any] = {"truncation": True, "max_length": 256}


def minilm() -> Path:
    """all-MiniLM-L6-v2 as sentence-transformers stores it."""
    from experiments.minilm import minilm_folder

    return minilm_folder()


def t5_base() -> Path:
    """T5 1.0 base with random weights."""
    return _t5("base", d_model=768, d_ff=3072, num_heads=12, num_layers=12)


def t5_small() -> Path:
    """T5 1.0 small with random weights."""
    return _t5("small", d_model=512, d_ff=2048, num_heads=8, num_layers=6)


def _t5(size: str, **shape: int) -> Path:
    """A T5 with random weights, the real vocabulary and mean pooling, in the cache."""

    def write(content: Path) -> None:
        import torch
        import transformers
        from sentence_transformers import SentenceTransformer, models

        (vocabulary,) = (bundled_folder("st5_mini_en") / "assets").glob("*.model")
        torch.manual_seed(0)
        config = transformers.T5Config(vocab_size=32_128, **shape)
        transformers.T5EncoderModel(config).save_pretrained(content)
        shutil.copyfile(vocabulary, content / "spiece.model")
        transformers.T5Tokenizer.from_pretrained(content).save_pretrained(content)
        network = models.Transformer(os.fspath(content), max_seq_length=256)
        modules = [network, models.Pooling(shape["d_model"], "mean"), models.Normalize()]
        SentenceTransformer(modules=modules).save(os.fspath(content))

    return kept_content(MODELS, f"benchmark-t5-{size}", f"T5-{size} with random weights", write)


# Model → the folder of its weights.
FOLDERS = {"minilm": minilm, "t5_base": t5_base, "t5_small": t5_small}


def exported(model: str) -> Path:
    """A model of `FOLDERS` as a model of use_st5; the first of our engines to run exports it."""

    def export(content: Path) -> None:
        import use_st5

        use_st5.TrainableEncoder.load(FOLDERS[model]()).export(content)

    return kept_content(MODELS, f"benchmark-{model}-export", model, export)


def loaded(engine: str, model: str) -> Encode:
    """The function of an engine that encodes."""
    if engine == "static":
        return _static()
    if engine == "model2vec":
        return _model2vec()
    name, _, precision = engine.partition("-")
    if name == "ct2":
        return _ctranslate2(FOLDERS[model](), precision or "float32")
    if name == "ort":
        return _onnx_runtime(FOLDERS[model](), int8=precision == "int8")
    return _sentence_transformers(FOLDERS[model](), engine.removeprefix("st-"))


def _sentence_transformers(folder: Path, backend: str) -> Encode:
    """sentence-transformers with one of its backends; int8 is for AVX-512 with VNNI or AVX2."""
    from sentence_transformers import SentenceTransformer

    options: dict[str, Any] = {}
    name, _, precision = backend.partition("-")
    if name == "onnx":
        options = {"provider": "CPUExecutionProvider", "session_options": _session_options()}
    if name == "openvino":  # On processors with bfloat16 it would round to bfloat16.
        options["ov_config"] = {
            "INFERENCE_PRECISION_HINT": "f32",
            "INFERENCE_NUM_THREADS": str(threads()),
        }
    if precision:
        folder = _quantized(folder)
        options["file_name"] = next((folder / "onnx").glob("*int8*")).name
    model = SentenceTransformer(os.fspath(folder), device="cpu", backend=name, model_kwargs=options)
    return lambda texts: model.encode(texts, batch_size=len(texts), show_progress_bar=False)


def threads() -> int:
    """Threads of an engine's computations; 0 is its default."""
    return int(os.environ.get("OMP_NUM_THREADS", "0"))


def _session_options() -> Any:
    """The session options of ONNX Runtime, which does not read OMP_NUM_THREADS itself."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads()
    return options


def _quantized(folder: Path) -> Path:
    """The folder with the graph that sentence-transformers rounds to int8, in the cache."""

    def write(content: Path) -> None:
        from sentence_transformers import (
            SentenceTransformer,
            export_dynamic_quantized_onnx_model,
        )

        from use_st5.engines.int8 import has_vnni

        model = SentenceTransformer(os.fspath(folder), device="cpu", backend="onnx")
        model.save_pretrained(os.fspath(content))
        kind = "avx512_vnni" if has_vnni() else "avx2"
        export_dynamic_quantized_onnx_model(model, kind, os.fspath(content), file_suffix="int8")

    return kept_content(MODELS, f"benchmark-int8-{folder.name}", folder.name, write)


def _onnx_runtime(folder: Path, *, int8: bool) -> Encode:
    """ONNX Runtime with the graph of torch, in batches padded to their longest text."""
    import onnxruntime

    def write(content: Path) -> None:
        import torch
        import transformers
        from onnxruntime.quantization import QuantType, quantize_dynamic

        from use_st5.engines.int8 import has_vnni

        content.mkdir()
        float_path, int8_path = (
            os.fspath(content / f"{each}.onnx") for each in ("float32", "int8")
        )
        network = transformers.T5EncoderModel.from_pretrained(folder).eval()
        network.config.return_dict = False
        ids = torch.ones((2, 8), dtype=torch.int64)
        axes = {0: "batch", 1: "tokens"}
        torch.onnx.export(
            network,
            (ids, ids),
            float_path,
            input_names=["input_ids", "attention_mask"],
            output_names=["states"],
            dynamic_axes=dict.fromkeys(("input_ids", "attention_mask", "states"), axes),
            dynamo=False,
        )
        options = {"per_channel": True, "reduce_range": not has_vnni()}
        quantize_dynamic(float_path, int8_path, weight_type=QuantType.QInt8, **options)

    content = kept_content(MODELS, f"benchmark-ort-{folder.name}", folder.name, write)
    session = onnxruntime.InferenceSession(
        content / ("int8.onnx" if int8 else "float32.onnx"),
        _session_options(),
        providers=["CPUExecutionProvider"],
    )
    tokenizer = _tokenizer(folder)

    def encode(texts: list[str]) -> np.ndarray:
        encoding = tokenizer(texts, padding=True, return_tensors="np", **_LIMITS)
        inputs = {name: encoding[name] for name in ("input_ids", "attention_mask")}
        (states,) = session.run(["states"], inputs)
        return _unit_means(states, inputs["attention_mask"])

    return encode


def _tokenizer(folder: Path) -> Any:
    import transformers

    return transformers.AutoTokenizer.from_pretrained(folder)


def _unit_means(states: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """The means of the outputs of each text's tokens, as unit vectors."""
    sums = np.einsum("btd,bt->bd", states, mask.astype(np.float32))
    return sums / np.linalg.norm(sums, axis=1, keepdims=True)


def _ctranslate2(folder: Path, compute_type: str) -> Encode:
    """CTranslate2 with the tokenizer of transformers; the mean of the outputs, as unit vectors."""
    import ctranslate2
    import transformers

    def write(content: Path) -> None:
        if "T5" in transformers.AutoConfig.from_pretrained(folder).architectures[0]:
            _convert_t5_encoder(folder, content)
        else:
            ctranslate2.converters.TransformersConverter(os.fspath(folder)).convert(
                os.fspath(content)
            )

    model_folder = kept_content(MODELS, f"benchmark-ct2-{folder.name}", folder.name, write)
    tokenizer = _tokenizer(folder)
    encoder = ctranslate2.Encoder(
        os.fspath(model_folder),
        compute_type=compute_type,
        intra_threads=threads(),
    )

    def encode(texts: list[str]) -> np.ndarray:
        ids = tokenizer(texts, **_LIMITS)["input_ids"]
        states = np.array(encoder.forward_batch(ids).last_hidden_state)
        lengths = np.array([len(each) for each in ids])
        return _unit_means(states, np.arange(states.shape[1]) < lengths[:, None])

    return encode


def _convert_t5_encoder(folder: Path, content: Path) -> None:
    """Converts the encoder of a T5; CTranslate2's converter reads a T5 only with its decoder."""
    import ctranslate2
    import transformers
    from ctranslate2.converters import transformers as converters
    from ctranslate2.specs import transformer_spec

    class Encoder(converters.T5Loader):  # type: ignore[misc]
        def get_model_spec(self, model: Any) -> Any:
            spec = super().get_model_spec(model)
            return transformer_spec.TransformerEncoderModelSpec(spec.encoder)

        def set_vocabulary(self, spec: Any, tokens: list[str]) -> None:
            spec.register_vocabulary(tokens)

        def set_config(self, config: Any, model: Any, tokenizer: Any) -> None:
            config.unk_token = tokenizer.unk_token

    full_model = transformers.T5ForConditionalGeneration(
        transformers.T5Config.from_pretrained(folder, num_decoder_layers=1)
    )
    encoder = transformers.T5EncoderModel.from_pretrained(folder)
    full_model.shared = full_model.encoder.embed_tokens = full_model.decoder.embed_tokens = (
        encoder.shared
    )
    full_model.encoder = encoder.encoder
    scratch = content.with_name("with_decoder")
    full_model.save_pretrained(scratch)
    _tokenizer(folder).save_pretrained(scratch)
    loaders = converters._MODEL_LOADERS
    t5_loader, loaders["T5Config"] = loaders["T5Config"], Encoder()
    try:
        ctranslate2.converters.TransformersConverter(os.fspath(scratch)).convert(os.fspath(content))
    finally:
        loaders["T5Config"] = t5_loader


def _vocabulary() -> Any:
    """A tokenizer of the 30,000 most frequent words of use_dan_en."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    from use_st5.tokenizers.ngram_vocabulary import NGramVocabulary

    vocabulary = NGramVocabulary.load(bundled_folder("use_dan_en") / "assets" / "vocabulary.txt")
    words = ["[PAD]", "[UNK]", *vocabulary.unigrams[:30_000]]
    tokenizer = Tokenizer(
        models.WordLevel(dict(zip(words, range(len(words)), strict=True)), "[UNK]")
    )
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return tokenizer


def _static() -> Encode:
    """StaticEmbedding of sentence-transformers, random vectors of 512 dimensions."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import StaticEmbedding

    modules = [StaticEmbedding(_vocabulary(), embedding_dim=512)]
    model = SentenceTransformer(modules=modules, device="cpu")
    return lambda texts: model.encode(texts, batch_size=len(texts), show_progress_bar=False)


def _model2vec() -> Encode:
    """model2vec, random vectors of 512 dimensions."""
    from model2vec import StaticModel

    tokenizer = _vocabulary()
    rows = np.random.default_rng(0).normal(size=(tokenizer.get_vocab_size(), 512))
    model = StaticModel(rows.astype(np.float32), tokenizer)
    return lambda texts: model.encode(texts, use_multiprocessing=False)
