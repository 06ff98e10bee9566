"""Strings to vectors with an exported model."""

from __future__ import annotations

import collections
import contextlib
import functools
import os
import sys
import threading
import warnings
import weakref
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Unpack, get_args

import numpy as np

from use_st5.encode.options import (
    DOCUMENT,
    EncodeOptions,
    SentenceTransformersKeywords,
    SentenceTransformersNames,
    chosen_prompt,
)
from use_st5.encode.sentences import (
    MANY_TEXTS,
    OnEmpty,
    check_batch_size,
    check_choice,
    empty_texts,
    language_message,
    length_sorted_batches,
    one_or_many,
)
from use_st5.encode.similarity import quantized
from use_st5.encode.token_limit import OnTruncation, TokenLimit, window_means
from use_st5.engines import BACKENDS, Backend, open_engine
from use_st5.hub.model_manifest import (
    SAVED_MODEL_FILE,
    ModelManifest,
    SimilarityName,
    describe_files,
    read_card,
)
from use_st5.hub.model_names import bundled_folder, bundled_names, model_folder
from use_st5.io.progress import with_progress
from use_st5.models.engines import family_engine

# The encoders in use, by folder, backend and version; `_last` keeps the last ones in memory.
_loaded: weakref.WeakValueDictionary[tuple[Path, str, int, int], SentenceEncoder] = (
    weakref.WeakValueDictionary()
)
_last: collections.deque[SentenceEncoder] = collections.deque(maxlen=4)
# Threads that load the same model get the same object.
_one_at_a_time = threading.Lock()


class SentenceEncoder(SentenceTransformersNames):
    """A sentence encoder, loaded from a SavedModel.

    Use `use_st5.load` to create it. It works with every SavedModel that takes strings, including
    those of TensorFlow Hub. The name, the card and the length limit are known only for models of
    use_st5.

    An encoder can be pickled and copied. The pickle contains the model's name or folder, not its
    weights. Pickling raises an error if the weights were changed in memory. If the model cannot be
    loaded again, or was replaced in its folder, the first use of the unpickled encoder raises the
    error.

    Args:
        folder: The SavedModel's folder.
        backend: As for `load`.

    Attributes:
        folder: The SavedModel's folder.
        backend: The backend that runs the model.
        manifest: The description in `use_st5.json`; None for other SavedModels.
        model: The loaded SavedModel. Call it with strings; it has `variables` and `signatures`.
            None with another backend than TensorFlow.
    """

    # The limit that was set, in tokens.
    _set_length: int | None = None
    # How many calls had enough texts to judge their language.
    _judged = 0

    def __init__(self, folder: str | os.PathLike[str], *, backend: Backend = "tensorflow") -> None:
        check_choice("backend", backend, BACKENDS)
        self.folder = model_folder(folder)
        self.backend = backend
        self.manifest = ModelManifest.read(self.folder)
        if self.manifest is not None:
            self.manifest.check_sizes(self.folder)
            if self.manifest.texts != 1:
                raise ValueError(f"{self.folder}: a cross-encoder. Use CrossEncoder.load.")
        self.model: Any = None
        self._run: Callable[[list[str]], np.ndarray]
        if backend != "tensorflow":
            engine = self._engine = open_engine(self.folder, self.manifest, backend, family_engine)
            counts = getattr(engine, "token_counts", None)
            self._limit = TokenLimit(engine.max_length, counts, takes_tensors=False)
            self._run, self._dimension = engine.run, engine.dimension
            return
        import tensorflow as tf  # Other backends do not need it.

        from use_st5.export import loading

        loading.refuse_after_fork()
        self.model = loading.load_saved_model(self.folder)
        if self.manifest is not None:  # Other SavedModels may contain infinity in unused weights.
            loading.check_finite_weights(self.model, self.folder)
        self._limit = TokenLimit.of_model(self.model, self.manifest)
        embed = loading.text_function(self.model)
        self._run = lambda texts: embed(tf.constant(texts, tf.string)).numpy()
        static = embed.structured_outputs.shape
        self._dimension = static[1] if static.rank and static[1] else self._run(["a"]).shape[1]

    @property
    def name(self) -> str:
        """The model's name; for other SavedModels, the folder's name."""
        return self.manifest.name if self.manifest else self.folder.name

    @property
    def identity(self) -> str:
        """A hash of the content of the model's files; int8 has another one: its vectors differ."""
        model_hash = self.manifest.model_hash if self.manifest else describe_files(self.folder)[1]
        limit = f"-{self._set_length}" if self._set_length else ""
        return f"{model_hash}{'-int8' if self.backend == 'onnx-int8' else ''}{limit}"

    @functools.cached_property
    def tokenizer(self) -> Any:
        """The tokenizer that made the ids of a model of use_st5; it needs TensorFlow."""
        manifest = self.manifest
        if manifest is None or manifest.family is None or manifest.tokenizer is None:
            raise ValueError(f"{self.folder}: its tokenizer is inside the SavedModel.")
        from use_st5.models.family import exported_tokenizer

        return exported_tokenizer(manifest.family, manifest.tokenizer, self.folder)

    @property
    def prompts(self) -> dict[str, str]:  # type: ignore[override]
        """The texts to put before other texts, by name; always with "query" and "document"."""
        model_prompts = self.manifest.prompts if self.manifest else {}
        return {**SentenceTransformersNames.prompts, **model_prompts}

    @property
    def default_prompt_name(self) -> str | None:  # type: ignore[override]
        """The name of the prompt that `encode` uses if none is given; None: no prompt."""
        return self.manifest.default_prompt_name if self.manifest else None

    @property
    def similarity_fn_name(self) -> SimilarityName:  # type: ignore[override]
        """The similarity for which the model was trained, "cosine" or "dot"."""
        return self.manifest.similarity_fn_name if self.manifest else "cosine"

    @property
    def dimension(self) -> int:
        """Dimension of the sentence vectors."""
        return self._dimension

    @property
    def max_length(self) -> int | None:
        """Maximum number of tokens that the model reads; None: no limit, or an unknown limit.

        It can be set to fewer tokens. The encoder then has another `identity`, and `load` no longer
        returns it.
        """
        return self._limit.max_length

    @max_length.setter
    def max_length(self, max_length: int) -> None:
        most, backend = self._limit.max_length if not self._set_length else None, self.backend
        most = most or (self.manifest and self.manifest.max_length) or sys.maxsize
        if not 1 <= max_length <= most or (backend != "tensorflow" and most == sys.maxsize):
            advice = "TrainableEncoder.load(…, max_length=…).export(folder) makes another model"
            raise ValueError(
                f"max_length: expected 1 to {most:,}, received {max_length}; {advice}."
            )
        if backend == "tensorflow":
            import tensorflow as tf

            tokenizer = self.tokenizer
            self._run = lambda texts: self.model.encode_ids(
                tokenizer.padded(tf.constant(texts, tf.string), max_length), False
            ).numpy()
            self._limit = TokenLimit(max_length, tokenizer.token_counts)
        else:
            self._engine.max_length = self._limit.max_length = max_length
        self._set_length = max_length
        for version, encoder in [*_loaded.items()]:
            if encoder is self:
                del _loaded[version]

    @property
    def card(self) -> str:
        """The model card in Markdown; empty if there is none."""
        return read_card(self.folder)

    def encode(
        self,
        sentences: str | bytes | Iterable[str | bytes],
        *,
        batch_size: int = 512,
        show_progress: bool | None = None,
        on_empty: OnEmpty = "encode",
        on_truncation: OnTruncation = "warn",
        workers: int = 1,
        **keywords: Unpack[SentenceTransformersKeywords],
    ) -> np.ndarray:
        """Turns sentences into vectors.

        The method sorts the sentences by length and encodes them in batches, so memory does not
        grow with the number of sentences, except for the result. The result has the order of the
        input. All sentences are checked before the first batch. `bytes` are decoded as UTF-8;
        invalid bytes and lone surrogates become U+FFFD.

        Args:
            sentences: One string, or any number of strings, also as an array or a string tensor.
            batch_size: Maximum number of sentences in a batch. A batch also has at most `200 ·
                batch_size` characters; a longer text is a batch of its own.
            show_progress: Whether to show a progress bar on standard error. None: only for long
                inputs in a terminal.
            on_empty: What to do with texts that are empty or white space. "encode": encode them
                like any text; "zero": return zeros; "raise": raise a ValueError.
            on_truncation: What to do with texts of more than `max_length` tokens. "warn": cut them,
                with one warning that gives their number; "ignore": cut them; "error": raise a
                ValueError; "split": encode overlapping windows of a text, and return the mean of
                their vectors, scaled to their length; "keep_end": cut them on the left, before a
                word, and keep the prompt.
            workers: Number of processes, for 100,000 texts and more. Each one loads the model. A
                script must then call `encode` below `if __name__ == "__main__":`.
            **keywords: Keywords of sentence-transformers: `prompt` and `prompt_name` (added before
                each text), `truncate_dim`, `normalize_embeddings`, `precision`,
                `show_progress_bar`; others if they change nothing.

        Returns:
            float32 `[n, dimension]`; `[dimension]` for one string; shorter with `truncate_dim`.

        Warns:
            UserWarning: Texts are cut, or the model gets 50 texts or more, many of which are not
                in its languages.
        """
        check_batch_size(batch_size)
        check_batch_size(workers, "workers")
        check_choice("on_empty", on_empty, get_args(OnEmpty))
        check_choice("on_truncation", on_truncation, get_args(OnTruncation))
        self._check_process()
        options = EncodeOptions.from_keywords(keywords, self.prompts, self.default_prompt_name)
        texts, single = one_or_many(sentences)
        empty = [] if on_empty == "encode" else empty_texts(texts, refuse=on_empty == "raise")
        if on_truncation in ("split", "keep_end"):
            last = on_truncation == "keep_end"
            texts, owners = self._limit.split(texts, options.prompt, last=last)
        else:
            texts = options.add_prompt(texts)
            self._limit.report(texts, on_truncation)
        languages = self.manifest.metadata.get("languages") if self.manifest else None
        if languages and len(texts) >= MANY_TEXTS and self._judged >= 0:
            self._judged += 1
            # Calls 1, 2, 4, 8 … are judged only, to save time, and one warning is enough.
            judged = self._judged & (self._judged - 1) == 0
            if message := judged and language_message(texts, languages, self.name):
                self._judged = -1
                warnings.warn(message, stacklevel=2)
        show = options.show_progress if show_progress is None else show_progress
        if on_truncation == "split":
            vectors = self._encoded(texts, EncodeOptions(), batch_size, workers, show)
            means = options.finish(window_means(vectors, owners))
            vectors = np.ascontiguousarray(means, np.float32)
        else:
            vectors = self._encoded(texts, options, batch_size, workers, show)
        if empty:
            vectors[empty] = 0.0
        vectors = quantized(vectors, options.precision)
        return vectors[0] if single else vectors

    def document_windows(
        self,
        sentences: str | bytes | Iterable[str | bytes],
        *,
        prompt: str | None = None,
        prompt_name: str | None = None,
    ) -> tuple[list[str], np.ndarray]:
        """Cuts documents that are too long into windows, whose vectors a `VectorIndex` may keep.

        Windows are whole words that fill `max_length`; an eighth of one, or more, is in the next.
        Encode them with `encode(windows, prompt="")`: they have the model's prompt for documents,
        or the given one. Other texts stay whole.

        Returns:
            The texts and windows with the prompt before each, and the index of the text of each,
            int64, ascending.
        """
        options = self._prompted({"prompt": prompt, "prompt_name": prompt_name}, DOCUMENT)
        chosen = chosen_prompt(
            prompt, options["prompt_name"], self.prompts, self.default_prompt_name
        )
        return self._limit.split(one_or_many(sentences)[0], chosen)

    def truncated(self, sentences: str | bytes | Iterable[str | bytes]) -> np.ndarray:
        """Returns the indices of the sentences that `encode` cuts.

        Args:
            sentences: As for `encode`.

        Returns:
            int64, in ascending order. Empty for models that cannot count tokens: SavedModels that
            are not from use_st5, and those from older versions.
        """
        self._check_process()
        return self._limit.longer(one_or_many(sentences)[0])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the model with its current weights and its card to a folder.

        This includes weights of `self.model` that you fine-tuned. A `SavedModelLayer` has its own
        copy of the weights: use the `save` of the layer for these.

        Args:
            path: The folder to write. An existing model of use_st5 there is replaced in one step.
        """
        if self.model is None:
            raise ValueError("Expected an encoder of the backend 'tensorflow', which has weights.")
        from use_st5.hub.model_manifest import write_again

        write_again(self.model, self.folder, path, dimension=self.dimension)

    def __reduce__(self) -> tuple[Callable[..., SentenceEncoder], tuple[Any, ...]]:
        name = self.folder.name
        bundled = name in bundled_names() and bundled_folder(name).resolve() == self.folder
        source = name if bundled else str(self.folder)
        return _loaded_again, (source, bundled, self.identity, self.backend, self._set_length)

    def _encoded(
        self,
        texts: list[str],
        options: EncodeOptions,
        batch_size: int,
        workers: int,
        show: bool | None,
    ) -> np.ndarray:
        """Computes the vectors of many texts, batch by batch, in this process or in others."""
        batches = [np.zeros(1, np.int64)]
        if len(texts) != 1:
            batches = list(length_sorted_batches(texts, sentences=batch_size))
        if len(batches) == 1 and not show:
            return np.ascontiguousarray(options.finish(self._run(texts)), np.float32)
        vectors = np.empty((len(texts), options.width(self.dimension)), np.float32)
        jobs = ([texts[index] for index in batch] for batch in batches)
        results = (self._run(job) for job in jobs)
        if workers > 1 and len(batches) > 1:
            from use_st5.encode.workers import encode_in_workers  # It imports multiprocessing.

            results = encode_in_workers(self, jobs, workers)
        with contextlib.closing(results):
            for batch in with_progress(batches, len(texts), show):
                vectors[batch] = options.finish(next(results))
        return vectors

    def _check_process(self) -> None:
        if self.backend == "tensorflow":
            # Other backends do not need TensorFlow.
            from use_st5.export.loading import refuse_after_fork, refuse_in_graph

            refuse_after_fork()
            refuse_in_graph()


def load(
    name_or_folder: str | os.PathLike[str], *, backend: Backend = "tensorflow"
) -> SentenceEncoder:
    """Loads a sentence encoder by name or from its folder.

    Each model is loaded once per process: a second call returns the same object, unless the model
    in the folder was replaced. The last four models stay in memory. To get a separate object, use
    `SentenceEncoder(folder)`.

    Args:
        name_or_folder: The name of a bundled model, such as "use_dan_en"; the folder of any
            SavedModel that turns strings into vectors; or a name that is downloaded once:
            "hf://ORG/NAME" and "hf://ORG/NAME@REVISION" of Hugging Face's hub,
            "kaggle://OWNER/MODEL/FRAMEWORK/VARIATION", or the URL of an archive. A checkpoint, such
            as a folder of sentence-transformers, is converted once, into the cache
            (`use-st5 cache`).
        backend: The software that runs the model. "tensorflow" runs every SavedModel. "onnx" starts
            in a second and imports no TensorFlow: a USE-DAN runs in NumPy, a Transformer in ONNX
            Runtime (extra `onnx`); it runs only models of use_st5. "onnx-int8" computes matrix
            products in int8 (for a USE-DAN, those of its dense layers, in ONNX Runtime); a model
            whose vectors change too much is refused.

    Examples:
        >>> encoder = load("use_dan_en")
        >>> encoder.encode(["How old are you?", "What is your age?"]).shape
        (2, 512)
    """
    folder = model_folder(name_or_folder)
    status = (folder / SAVED_MODEL_FILE).stat()
    version = (folder, backend, status.st_mtime_ns, status.st_ino)
    with _one_at_a_time:
        encoder = _loaded.get(version)
        if encoder is None:
            encoder = _loaded[version] = SentenceEncoder(folder, backend=backend)
        if encoder in _last:
            _last.remove(encoder)
        _last.append(encoder)
    return encoder


class _UnloadedEncoder(SentenceEncoder):
    """A pickled encoder that could not be loaded: every use raises the error."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # Libraries ask whether an object has special methods.
            raise AttributeError(name)
        raise self._error


def _loaded_again(
    place: str,
    bundled: bool,
    identity: str,
    backend: Backend = "tensorflow",
    max_length: int | None = None,
) -> SentenceEncoder:
    """Loads a pickled encoder, if the model is still the same."""
    try:
        folder = bundled_folder(place) if bundled else place
        if max_length is None:
            encoder = load(folder, backend=backend)
        else:
            encoder = SentenceEncoder(folder, backend=backend)
            encoder.max_length = max_length
        if encoder.identity != identity:
            raise ValueError(f"{encoder.folder}: the model was replaced. Pickle the encoder again.")
    except Exception as error:  # Raised here, `multiprocessing.Pool` would wait for it without end.
        return _UnloadedEncoder(error)
    return encoder
