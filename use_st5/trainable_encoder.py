"""An encoder that can be loaded, converted, trained and exported."""

from __future__ import annotations

import copy
import functools
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NoReturn, Self, Unpack, get_args

import keras
import numpy as np

from use_st5.convert.checkpoint import Checkpoint, open_checkpoint
from use_st5.encode.options import (
    EncodeOptions,
    SentenceTransformersKeywords,
    SentenceTransformersNames,
)
from use_st5.encode.sentences import (
    OnEmpty,
    check_batch_size,
    check_choice,
    check_pairs,
    empty_texts,
    length_sorted_batches,
    one_or_many,
)
from use_st5.encode.similarity import quantized
from use_st5.encode.token_limit import OnTruncation, TokenLimit, window_means
from use_st5.export.loading import refuse_in_graph
from use_st5.hub.model_manifest import (
    SAVED_MODEL_FILE,
    ModelManifest,
    SimilarityName,
    check_replaceable,
    read_card,
)
from use_st5.hub.model_names import bundled_names, local_source, model_folder
from use_st5.io.progress import with_progress
from use_st5.models.encoder_model import checked_length, in_float32, inference
from use_st5.models.family import (
    exported_tokenizer,
    family_for,
    family_named,
    family_with,
    known_family,
)
from use_st5.tokenizers.tokenizer import PairTokenizer, Tokenizer

# Texts for which a restored model must give the vectors of its SavedModel, and the tolerance.
_PROBE = ("How old are you?", "", "Ünheard-of wörds, 3.5 of them: 😀!")
_TOLERANCE = 1e-4
# Keras's global policy has no effect: float16 would change the vectors without a word.
_DTYPE = "float32"


class TrainableEncoder(SentenceTransformersNames):
    """A tokenizer and a Keras model of one family.

    To convert a checkpoint, use `load` and `export`. To fine-tune an encoder, use `load`, train
    `model` and use `export`. A model of an unknown family can encode and be exported, but it cannot
    be loaded again.

    Args:
        model: The Keras model: int32 `[batch, length]` → float32 `[batch, dimension]`.
        tokenizer: The tokenizer, which makes the ids.
        name: Its name; None: the name of the exported folder.
        max_length: Texts are cut to this number of tokens; None: the limit of the model.
        card: The model card in Markdown.
        metadata: Entries for `use_st5.json`, such as `languages` and `license`.
        stored: How the original SavedModel stores large matrices: "float32" or "int8".
        prompts: Texts that `SentenceEncoder.encode` puts before queries, documents and the like, by
            name. `TrainableEncoder.encode` adds only a prompt that the call names, and `train` only
            its own `prompts`.
        default_prompt_name: The name of the prompt that `SentenceEncoder.encode` uses if none is
            given.
        similarity_fn_name: The similarity for which the model was trained, "cosine" or "dot".

    All are attributes; training changes the weights of `model`.

    Examples:
        >>> encoder = TrainableEncoder.load("use_dan_en")
        >>> Trainer(encoder, {"faq": (rows, ContrastiveLoss())}).train()
        >>> encoder.export("tuned")
        >>> use_st5.load("tuned").encode(sentences)
    """

    def __init__(
        self,
        model: keras.Model,
        tokenizer: Tokenizer,
        *,
        name: str | None = None,
        max_length: int | None = None,
        card: str = "",
        metadata: Mapping[str, Any] | None = None,
        stored: str = "float32",
        prompts: Mapping[str, str] | None = None,
        default_prompt_name: str | None = None,
        similarity_fn_name: SimilarityName = "cosine",
    ) -> None:
        if not model.built and known_family(model) is not None:
            model.build()
        self.model = model
        self.tokenizer: Tokenizer = tokenizer
        self.name = name
        self.max_length = max_length
        self.card = card
        self.metadata = dict(metadata or {})
        self.stored = stored
        self.prompts = dict(prompts or {})
        self.default_prompt_name = default_prompt_name
        self.similarity_fn_name = similarity_fn_name
        self._graph: tuple[list[int], Callable[[Any], Any]] | None = None

    @classmethod
    def fresh(
        cls,
        preset: str,
        tokenizer: Tokenizer | None = None,
        *,
        dtype: Any = None,
        max_length: int | None = None,
        **changes: Any,
    ) -> Self:
        """Returns a new encoder of a preset, with initial weights.

        `keras.utils.set_random_seed` makes the weights reproducible.

        Args:
            preset: "use_dan_en", "use_transformer_en", "t5_base" …; `Family.presets` lists all
                presets.
            tokenizer: The tokenizer; None: the tokenizer of the family. USE models have none,
                because their vocabulary comes from the training texts.
            dtype: Keras dtype policy, such as "bfloat16"; None: float32, whatever Keras's global
                policy is.
            max_length: As in the constructor; None: the default of the family.
            **changes: Changes of the preset, such as `pooling="first"` for a Sentence-T5, or
                `dropout=0.1`.
        """
        family = family_with(preset)
        tokenizer = family.usual_tokenizer() if tokenizer is None else tokenizer
        if tokenizer is None:
            kinds = " or ".join(kind.__name__ for kind in family.tokenizers.values())
            raise ValueError(f"{preset}: expected tokenizer={kinds}(your vocabulary).")
        model = family.fresh(preset, tokenizer, dtype=dtype or _DTYPE, **changes)
        return cls(model, tokenizer, max_length=max_length or family.max_length)

    @classmethod
    def load(
        cls,
        source: str | os.PathLike[str],
        *,
        pooling: str | None = None,
        vocabulary: str | os.PathLike[str] | None = None,
        dtype: Any = None,
        max_length: int | None = None,
    ) -> Self:
        """Loads an encoder from a model or a checkpoint of any supported format.

        Args:
            source: The name of a bundled model; the folder of a SavedModel that use_st5 exported
                (int8 weights become float32, and the vectors stay the same); the folder of another
                text embedding, such as USE of TensorFlow Hub, which is trained through its own
                variables; a checkpoint: a folder of sentence-transformers, Hugging Face or T5X, or
                a TensorFlow checkpoint; or the name of one of these on a hub: "hf://ORG/NAME".
            pooling: The pooling, such as "mean", if the checkpoint does not specify it.
            vocabulary: The vocabulary file of the checkpoint, if it is in another folder.
            dtype: Keras dtype policy, such as "mixed_bfloat16"; None: that of the SavedModel, or
                float32, whatever Keras's global policy is.
            max_length: Texts are cut to this number of tokens; None: the limit of the SavedModel or
                checkpoint, or the default of the family.
        """
        source = local_source(source)
        if os.fspath(source) in bundled_names() or Path(source, SAVED_MODEL_FILE).is_file():
            if pooling or vocabulary:
                raise ValueError(f"{source}: leave pooling and vocabulary out; the model has them.")
            return cls._of_saved_model(model_folder(source), dtype, max_length)
        return cls.of_checkpoint(
            open_checkpoint(source),
            pooling=pooling,
            vocabulary=vocabulary,
            dtype=dtype,
            max_length=max_length,
        )

    @classmethod
    def of_checkpoint(
        cls,
        checkpoint: Checkpoint,
        *,
        pooling: str | None = None,
        vocabulary: str | os.PathLike[str] | None = None,
        dtype: Any = None,
        max_length: int | None = None,
    ) -> Self:
        """Loads the encoder from an open checkpoint; see `load` for the arguments."""
        import tensorflow as tf

        checkpoint = checkpoint.chosen(pooling=pooling, vocabulary=vocabulary)
        family = family_for(checkpoint)
        model, tokenizer = family.read(checkpoint, dtype=dtype or _DTYPE)
        limits = (checkpoint.max_length or family.max_length, family.max_tokens(model))
        default_length = min(filter(None, limits), default=None)
        prompts, default = checkpoint.prompts
        encoder = cls(
            model,
            tokenizer,
            max_length=max_length or default_length,
            prompts=prompts,
            default_prompt_name=default,
            similarity_fn_name=checkpoint.similarity_fn_name,
        )
        if tf.distribute.has_strategy():  # In its scope no model can be called.
            return encoder
        if not np.isfinite(_probe_vectors(encoder)).all():  # Finite weights may be far too large.
            name = model.dtype_policy.name
            text = f"its weights are damaged, or too large for {name}"
            raise ValueError(f"{checkpoint.where}: {text}.")
        return encoder

    @classmethod
    def of_kerashub(cls, embedder: Any) -> Self:
        """Returns the encoder of a text embedder of KerasHub; it trains this embedder, not a copy.

        Args:
            embedder: A `keras_hub.models.TextEmbedder` with its preprocessor.
        """
        from use_st5.models.kerashub.family import read_text_embedder

        model, tokenizer, max_length = read_text_embedder(embedder)
        return cls(model, tokenizer, max_length=max_length)

    @classmethod
    def _of_saved_model(cls, folder: Path, dtype: Any, max_length: int | None) -> Self:
        # TensorFlow's part: training on JAX needs none of it.
        import tensorflow as tf

        from use_st5.export.loading import check_finite_weights, load_saved_model
        from use_st5.export.saved_model import only_shapes, restore_weights

        manifest = ModelManifest.read(folder)
        if manifest is None or manifest.family is None or manifest.tokenizer is None:
            # Its layers are unknown; it is trained through its own variables.
            from use_st5.models.saved_model.family import TextSavedModel
            from use_st5.tokenizers.byte_tokenizer import ByteTokenizer

            return cls(
                TextSavedModel(folder),
                ByteTokenizer(),
                name=manifest.name if manifest else folder.name,
                card=read_card(folder),
                metadata=manifest.metadata if manifest else {},
            )
        manifest.check_sizes(folder)
        family = family_named(manifest.family)
        tokenizer = exported_tokenizer(manifest.family, manifest.tokenizer, folder)
        stored = "bfloat16" if manifest.precision == "bfloat16" else _DTYPE
        loaded = load_saved_model(folder)
        check_finite_weights(loaded, folder)
        with only_shapes(loaded, manifest.config, folder):
            model = family.restore(manifest.config, dtype=dtype or stored)
        restore_weights(model, loaded)
        encoder = cls(
            model,
            tokenizer,
            name=manifest.name,
            max_length=max_length or manifest.max_length,
            card=read_card(folder),
            metadata=manifest.metadata,
            stored="int8" if manifest.precision == "int8" else "float32",
            prompts=manifest.prompts,
            default_prompt_name=manifest.default_prompt_name,
            similarity_fn_name=manifest.similarity_fn_name,
        )
        comparable = dtype is None and stored == _DTYPE
        comparable &= encoder.max_length == manifest.max_length
        if comparable and not tf.distribute.has_strategy():  # in its scope no model can be called
            _check_vectors(encoder, loaded, folder)
        return encoder

    @property
    def max_length(self) -> int | None:
        """Texts are cut to this number of tokens; None: they are not. It can be set."""
        return self._max_length

    @max_length.setter
    def max_length(self, max_length: int | None) -> None:
        self._max_length = checked_length(self.model, max_length)

    @property
    def dimension(self) -> int:
        """Dimension of the sentence vectors."""
        return self.model.dimension

    @property
    def inputs(self) -> int:
        """The number of texts that the model reads together: 1, or 2 if it compares pairs."""
        family = known_family(self.model)
        return 1 if family is None else family.inputs

    def encode(
        self,
        sentences: str | bytes | Iterable[Any],
        *,
        batch_size: int = 512,
        show_progress: bool | None = None,
        on_empty: OnEmpty = "encode",
        on_truncation: OnTruncation = "ignore",
        workers: int = 1,
        **keywords: Unpack[SentenceTransformersKeywords],
    ) -> np.ndarray:
        """Turns sentences into vectors, or pairs into logits, with the current weights.

        Args:
            sentences: One string, or any number of strings; for a cross-encoder, pairs of strings.
            batch_size: Maximum number of sentences in a batch.
            show_progress: Whether to show a progress bar on standard error; None: no.
            on_empty: What to do with texts that are empty or white space, as for
                `SentenceEncoder.encode`.
            on_truncation: What to do with texts that are cut, as there, but by default they are cut
                in silence, because training encodes often. Pairs are always cut.
            workers: Only 1: other processes load an exported model.
            **keywords: Keywords of sentence-transformers, as there, but the model's default prompt
                is not added. Pairs get no prompt.

        Returns:
            float32 `[n, dimension]`; `[dimension]` for one string; `[n, 1]` for pairs.
        """
        check_batch_size(batch_size)
        check_choice("on_empty", on_empty, get_args(OnEmpty))
        check_choice("on_truncation", on_truncation, get_args(OnTruncation))
        if workers != 1:
            raise ValueError(f"workers: expected 1, received {workers}. Export and load the model.")
        options = EncodeOptions.from_keywords(
            keywords, {**SentenceTransformersNames.prompts, **self.prompts}
        )
        refuse_in_graph()
        texts, to_ids, single = self._read(sentences)
        rows = texts[0] if len(texts) == 1 else list(map("".join, zip(*texts, strict=True)))
        empty = [] if on_empty == "encode" else empty_texts(rows, refuse=on_empty == "raise")
        owners = None
        if len(texts) == 1:
            limit = TokenLimit(self.max_length, self.tokenizer.token_counts)
            if on_truncation == "split":
                rows, owners = limit.split(rows, options.prompt)
            elif on_truncation == "keep_end":
                rows, _ = limit.split(rows, options.prompt, last=True)
            else:
                rows = options.add_prompt(rows)
                limit.report(rows, on_truncation)
            texts = (rows,)
        kept = options if owners is None else EncodeOptions()
        vectors = np.empty((len(rows), kept.width(self.dimension)), np.float32)
        embed = self._compiled()
        batches = list(length_sorted_batches(rows, sentences=batch_size))
        show = bool(options.show_progress if show_progress is None else show_progress)
        for indices in with_progress(batches, len(rows), show):
            ids = to_ids(*([each[i] for i in indices] for each in texts), self.max_length)
            vectors[indices] = kept.finish(keras.ops.convert_to_numpy(embed(ids)))
        if owners is not None:
            vectors = options.finish(window_means(vectors, owners)).astype(np.float32)
        vectors[empty] = 0.0
        vectors = quantized(vectors, options.precision)
        return vectors[0] if single else vectors

    def __copy__(self) -> Self:
        copied = object.__new__(type(self))
        vars(copied).update(vars(self), _graph=None)
        return copied

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        copied = self.__copy__()  # Without the graph, which cannot be copied.
        vars(copied).update(copy.deepcopy(vars(copied), memo))
        return copied

    def __reduce__(self) -> NoReturn:
        raise TypeError("A TrainableEncoder cannot be pickled: export it, or use copy.deepcopy.")

    def _read(self, given: Any) -> tuple[tuple[list[str], ...], Callable[..., Any], bool]:
        """Returns the lists of texts, the function that makes ids, and whether it is one text."""
        if isinstance(self.tokenizer, PairTokenizer) and self.inputs == 2:
            return check_pairs(given), self.tokenizer.padded_pairs, False
        texts, single = one_or_many(given)
        return (texts,), self.tokenizer.padded, single

    def _compiled(self) -> Callable[[Any], Any]:
        """Returns the model as one graph; makes it anew if adapters were added or removed."""
        variables = [id(variable) for variable in self.model.variables]
        if self._graph is None or self._graph[0] != variables:
            self._graph = variables, inference(self.model)
        return self._graph[1]

    def export(self, path: str | os.PathLike[str], *, precision: str = "float32") -> ModelManifest:
        """Writes the encoder as a SavedModel that takes strings.

        `use_st5.export.saved_model.write_graph` describes the folder.

        Args:
            path: The folder to write. An existing model of use_st5 there is replaced.
            precision: "float32", or "int8" for a quarter of the size. "int8" applies to the
                embedding table, and for a BERT also to kernels. In the SavedModel, the scales of
                int8 weights can be fine-tuned, but not the int8 weights.

        Returns:
            The written description.
        """
        from use_st5.export.encoder_graph import padded_graph
        from use_st5.export.saved_model import write_graph

        check_replaceable(path)
        family = known_family(self.model)
        precisions = family.precisions if family else ("float32",)
        if precision not in precisions:
            raise ValueError(f"precision: expected one of {precisions}, received {precision!r}.")
        build, facts, model = padded_graph, {}, self.model
        if family is not None and model.dtype_policy.name not in ("float32", "bfloat16"):
            adapted = any(layer.lora_enabled for layer in family.lora_layers(model).values())
            model = model if adapted else in_float32(model)  # A copy would lack the adapters.
        if family is not None:
            build = functools.partial(family.graph, precision=precision)
        if family is not None and family.rebuilt:
            facts = {"family": family.name, "config": family.config(model)}
        return write_graph(
            build(model, self.tokenizer, max_length=self.max_length),
            path,
            card=self.card,
            name=self.name or Path(path).resolve().name,
            metadata=self.metadata,
            tokenizer=self.tokenizer.kind,
            prompts=self.prompts,
            default_prompt_name=self.default_prompt_name,
            similarity_fn_name=self.similarity_fn_name,
            **facts,
        )


def _probe_vectors(encoder: TrainableEncoder) -> np.ndarray:
    pairs = list(zip(_PROBE, _PROBE[::-1], strict=True))
    return encoder.encode(_PROBE if encoder.inputs == 1 else pairs)


def _check_vectors(encoder: TrainableEncoder, loaded: Any, folder: Path) -> None:
    """Compares the vectors of the restored model with those of the original SavedModel."""
    pairs = [_PROBE, _PROBE[::-1]][: encoder.inputs]
    expected = np.asarray(loaded(*map(list, pairs)))
    shift = float(np.abs(_probe_vectors(encoder) - expected).max())
    if not shift <= _TOLERANCE:
        parts = f"{folder}: use_st5.json and the SavedModel do not belong together"
        raise ValueError(f"{parts}: vectors {shift:.2g} apart. Export the model again.")
