"""The model of a command: loads it, and counts the texts that it cuts."""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

import use_st5
from use_st5.cli.output import say, waiting
from use_st5.hub.model_names import is_checkpoint, model_folder, model_name
from use_st5.io.files import as_written, remote_path

if TYPE_CHECKING:
    import numpy as np

    from use_st5.encode.cross_encoder import CrossEncoder
    from use_st5.encode.encoder import SentenceEncoder

DEFAULT_MODEL = "use_dan_en"

ModelOption = Annotated[
    str,
    typer.Option(
        "--model", "-m", help="A bundled model's name, a folder, or a hub's name (hf://ORG/NAME)."
    ),
]


Backend = Literal["tensorflow", "onnx", "onnx-int8"]
BackendChoice = Annotated[
    Backend, typer.Option("--backend", help="The engine; onnx runs without TensorFlow.")
]
QuickBackendChoice = Annotated[
    Backend | None,
    typer.Option(
        "--backend", help="The engine. Default: onnx, without TensorFlow, if the model has it."
    ),
]
PromptOption = Annotated[
    str | None,
    typer.Option("--prompt", metavar="TEXT", help="Text to put before each text."),
]
PromptNameOption = Annotated[
    str | None,
    typer.Option("--prompt-name", metavar="NAME", help="The name of one of the model's prompts."),
]


BatchSizeOption = Annotated[
    int | None,
    typer.Option(min=1, help="Texts in one call of the model. Default: the model's own."),
]
OverwriteOption = Annotated[
    bool, typer.Option("--overwrite", help="Replace the output if it exists.")
]


@dataclass(frozen=True)
class ModelChoice:
    """The values of `--model`, `--backend`, `--prompt` and `--prompt-name`.

    If `backend` is None, it is "onnx" for a model that has this engine, whose vectors are equal.
    """

    name: str
    backend: Backend | None = "tensorflow"
    prompt: str | None = None
    prompt_name: str | None = None

    def __post_init__(self) -> None:
        if self.prompt is not None and self.prompt_name is not None:
            raise typer.BadParameter("expected --prompt or --prompt-name, received both.")

    def check_tensorflow(self, why: str) -> None:
        """Refuses another backend than TensorFlow; `why` says in the message what needs it."""
        if self.backend != "tensorflow":
            raise typer.BadParameter(f"expected --backend tensorflow {why}.")

    def prompt_of(self, encoder: SentenceEncoder, usual: Sequence[str] = ()) -> str:
        """The prompt that is put before each text.

        If no prompt is given, it is the first of the prompts named `usual` that the model has, or
        else its default prompt.
        """
        from use_st5.encode.options import chosen_prompt, first_prompt_name

        prompts = encoder.prompts
        name = self.prompt_name or first_prompt_name(usual, prompts)
        try:
            return chosen_prompt(self.prompt, name, prompts, encoder.default_prompt_name)
        except ValueError as error:
            raise typer.BadParameter(str(error), param_hint="--prompt-name") from error


# TensorFlow and Keras import these if they can, in two seconds, for wrappers no command uses.
_OPTIONAL = ("IPython", "jax", "matplotlib", "pandas", "sklearn")


def start_tensorflow() -> None:
    """Imports TensorFlow, which takes seconds, without its log messages."""
    if "tensorflow" in sys.modules:
        return
    backend = os.environ.setdefault("KERAS_BACKEND", "tensorflow")
    level = os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    silent = _native_errors_dropped() if level == "3" else contextlib.nullcontext()
    try:
        with silent, waiting("starting TensorFlow"), _left_out({*_OPTIONAL} - {backend}):
            tensorflow = importlib.import_module("tensorflow")
    except Exception as error:
        reason = f"TensorFlow could not be imported ({type(error).__name__}: {error})"
        raise ImportError(f"{reason}; `use-st5 doctor` shows what to do") from error
    tensorflow.get_logger().setLevel("ERROR")  # Its Python logs are not for users.
    if level == "3" and tensorflow.__version__.startswith("2.20."):
        # Its loop optimizer prints warnings at every log level.
        tensorflow.config.optimizer.set_experimental_options({"loop_optimization": False})


@contextlib.contextmanager
def _left_out(names: Iterable[str]) -> Iterator[None]:
    """Packages that nobody has imported yet cannot be imported in the block; later they can."""
    absent = dict.fromkeys(name for name in names if name not in sys.modules)
    sys.modules.update(absent)  # type: ignore[arg-type]  # None: the import fails
    try:
        yield
    finally:
        for name in absent:
            del sys.modules[name]


@contextlib.contextmanager
def _native_errors_dropped() -> Iterator[None]:
    """Drops what native code writes to standard error, but keeps what Python code writes.

    This is for the import of TensorFlow, which logs before it reads its settings.
    """
    with os.fdopen(os.dup(2), "w", buffering=1, errors="backslashreplace") as stderr_copy:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 2)
        os.close(null)
        try:
            with contextlib.redirect_stderr(stderr_copy):
                yield
        finally:
            os.dup2(stderr_copy.fileno(), 2)


def start_keras(command: str) -> None:
    """Imports TensorFlow for a command that makes or changes a Keras model."""
    if (os.environ.get("KERAS_BACKEND") or "tensorflow") != "tensorflow":
        raise ValueError(f"`use-st5 {command}` needs TensorFlow: unset KERAS_BACKEND.")
    start_tensorflow()


def find_model(model: str | os.PathLike[str]) -> Path:
    """The folder of a SavedModel with any kind of name; loading and converting show a message."""
    is_local = model_name(model) is None and remote_path(model) is None
    if is_local and not is_checkpoint(Path(model)):
        return model_folder(model)
    start_tensorflow()
    with waiting(f"loading {as_written(model)}"):
        return model_folder(model)


def _load(name: str, backend: Backend) -> SentenceEncoder:
    """Loads a model, and shows a message meanwhile."""
    if backend == "tensorflow":
        start_tensorflow()
    with waiting(f"loading {name}"):
        return use_st5.load(name, backend=backend)


def load_encoder(model: str | ModelChoice) -> SentenceEncoder:
    """Loads a model by its name, folder or choice."""
    chosen = ModelChoice(model) if isinstance(model, str) else model
    encoder = None
    if chosen.backend is None:
        # A checkpoint that is not yet converted imports TensorFlow.
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
        with contextlib.suppress(ImportError, ValueError):
            encoder = _load(chosen.name, "onnx")
    if encoder is None:
        encoder = _load(chosen.name, chosen.backend or "tensorflow")
    chosen.prompt_of(encoder)  # An unknown name is an error before any text is read.
    return encoder


def load_cross_encoder(model: str) -> CrossEncoder:
    """Loads a cross-encoder, and shows a message meanwhile."""
    start_tensorflow()
    from use_st5.encode.cross_encoder import CrossEncoder

    with waiting(f"loading {model}"):
        return CrossEncoder.load(model)


def encode_counting(
    encoder: SentenceEncoder, texts: list[str], *, prompt: str, **options: Any
) -> tuple[np.ndarray, int]:
    """The vectors of texts with a prompt before each, and the number of texts that were cut."""
    vectors = encoder.encode(texts, prompt=prompt, on_truncation="ignore", **options)
    return vectors, len(encoder.truncated([prompt + text for text in texts] if prompt else texts))


def say_truncated(
    encoder: SentenceEncoder | CrossEncoder, count: int, total: int, *, what: str = "texts"
) -> None:
    """Prints how many texts of a command were cut, if any."""
    if count and encoder.max_length is not None:
        from use_st5.encode.token_limit import truncation_message

        message = truncation_message(count, total, encoder.max_length, what=what)
        say(f"{message}; the rest was not read")


class CountingEncoder:
    """Encodes like the model, and counts the texts that it cuts instead of warning."""

    def __init__(self, encoder: SentenceEncoder, choice: ModelChoice) -> None:
        self._encoder, self._choice = encoder, choice
        self._total = self._truncated = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._encoder, name)

    def encode(self, texts: list[str], *, usual: Sequence[str] = (), **options: Any) -> np.ndarray:
        """Vectors of texts; without a chosen prompt, with the model's first of those in `usual`."""
        options = {"prompt": self._choice.prompt_of(self._encoder, usual), **options}
        vectors, truncated = encode_counting(self._encoder, texts, **options)
        self._total += len(texts)
        self._truncated += truncated
        return vectors

    def encode_query(self, texts: list[str], **options: Any) -> np.ndarray:
        """Like `encode`, with the model's prompt for queries, unless another is chosen."""
        from use_st5.encode.options import QUERY

        return self.encode(texts, usual=QUERY, **options)

    def encode_document(self, texts: list[str], **options: Any) -> np.ndarray:
        """Like `encode`, with the model's prompt for documents, unless another is chosen."""
        from use_st5.encode.options import DOCUMENT

        return self.encode(texts, usual=DOCUMENT, **options)

    def document_windows(self, texts: list[str]) -> tuple[list[str], np.ndarray]:
        """As of the model, with its prompt for documents, unless another is chosen."""
        from use_st5.encode.options import DOCUMENT

        prompt = self._choice.prompt_of(self._encoder, DOCUMENT)
        return self._encoder.document_windows(texts, prompt=prompt)

    def say_truncated(self) -> None:
        """Prints how many texts were cut so far, if any."""
        say_truncated(self._encoder, self._truncated, self._total)


@dataclass(frozen=True)
class NamedEncoder:
    """A model to evaluate.

    `identity` is a text that changes with its weights and the prompt; None if unknown. `prompts`
    are those of a "query" and a "document", unless the user chose one for all texts.
    """

    name: str
    identity: str | None
    encode: Callable[[list[str]], Any]
    say_truncated: Callable[[], None]
    prompts: Mapping[str, str]


def named_encoder(chosen: ModelChoice, *, batch_size: int | None = None) -> NamedEncoder:
    """Loads a model, or an object of the user, as `FILE.py:NAME` or `package.module:NAME`.

    If NAME is a class, or has no `encode`, it is called without arguments. The `encode` of such an
    object gets the prompt or the name of the prompt.
    """
    from use_st5.encode.options import default_prompt, usual_prompts

    model = chosen.name
    place, _, name = model.rpartition(":")
    options: dict[str, Any] = {} if batch_size is None else {"batch_size": batch_size}
    encoder: Any
    is_own = place and name.isidentifier() and not Path(model).exists()
    if is_own:
        encoder = _own_encoder(place, name)
        given = {"prompt": chosen.prompt, "prompt_name": chosen.prompt_name}
        options |= {option: text for option, text in given.items() if text is not None}
        prompt = default_prompt(encoder) if chosen.prompt is None else chosen.prompt
    else:
        encoder = CountingEncoder(load_encoder(chosen), chosen)
        prompt = chosen.prompt_of(encoder)
    identity = getattr(encoder, "identity", None)
    # The same weights give other vectors, and folders with the same weights may have other default
    # prompts. The object alone knows the text of a name.
    if identity and is_own and chosen.prompt_name is not None:
        identity = f"{identity} with the prompt named {chosen.prompt_name!r}"
    elif identity and (prompt or default_prompt(encoder)):
        identity = f"{identity} with the prompt {prompt!r}"
    encoder_name = getattr(encoder, "name", None)
    name = encoder_name if isinstance(encoder_name, str) and encoder_name else name
    encode = functools.partial(encoder.encode, **options)
    say_truncated = (lambda: None) if is_own else encoder.say_truncated
    is_chosen = chosen.prompt is not None or chosen.prompt_name is not None
    prompts = {} if is_chosen else usual_prompts(encoder)
    identity = None if identity is None else str(identity)
    return NamedEncoder(name, identity, encode, say_truncated, prompts)


def _own_encoder(place: str, name: str) -> Any:
    """The encoder `name` of a file that ends in .py, or of a module from the current folder."""
    file = Path(place)
    is_file = file.suffix == ".py"
    if is_file and not file.is_file():
        raise FileNotFoundError(f"{place}: expected a Python file, found none")
    # As with `python FILE` and `python -m MODULE`, modules in the same folder can be imported.
    sys.path.insert(0, str(file.resolve().parent if is_file else Path.cwd()))
    try:
        module = importlib.import_module(file.stem if is_file else place)
    except Exception as error:
        reason = f"{place} could not be imported ({type(error).__name__}: {error})"
        raise ImportError(f"{reason}; write a file as FILE.py:NAME") from error
    encoder: Any = getattr(module, name, None)
    try:
        if isinstance(encoder, type) or not hasattr(encoder, "encode"):
            encoder = encoder()
        encoder.encode  # noqa: B018
    except Exception as error:
        expected = f"{place}:{name}: expected an object with encode(list of str) → array"
        problem = f"{type(error).__name__}: {error}"
        raise ValueError(f"{expected}, or a function that returns one ({problem})") from error
    return encoder
