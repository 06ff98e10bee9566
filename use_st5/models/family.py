"""The contract of a family of encoders, and the list of families."""

from __future__ import annotations

import abc
import dataclasses
import importlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

import keras

from use_st5.convert.checkpoint import Checkpoint
from use_st5.export.encoder_graph import EncoderGraph
from use_st5.layers.lora_dense import LoRADense
from use_st5.layers.random_normal import without_initial_values
from use_st5.tokenizers.tokenizer import Tokenizer

# The families of this package, imported when one is asked for.
_OWN = {
    # Before the family whose classifiers it reads: a checkpoint is of the first that knows it.
    "cross_encoder": "use_st5.models.cross_encoder.family",
    # Relatives of BERT before BERT, whose model theirs are.
    "mpnet": "use_st5.models.mpnet.family",
    "modernbert": "use_st5.models.modernbert.family",
    "bert": "use_st5.models.bert.family",
    "t5": "use_st5.models.t5.family",
    "static_embedding": "use_st5.models.static_embedding.family",
    "use_dan": "use_st5.models.use_dan.family",
    "use_transformer": "use_st5.models.use_transformer.family",
    "saved_model": "use_st5.models.saved_model.family",
    "kerashub": "use_st5.models.kerashub.family",
}


class Family(abc.ABC):
    """Everything that is particular to one kind of encoder.

    Nothing outside `use_st5.models` asks which class an encoder is of: it asks `family_of(model)`.
    A new family is a folder there with its model, its configuration and one subclass of this, and a
    line in the list above; one of a user's own calls `register`.

    Attributes:
        name: In `use_st5.json`.
        model_types: Its Keras model, int32 `[batch, length]` → float32 `[batch, dimension]`, with
            an attribute `dimension`; after it others of the same layers, which may have adapters.
        presets: Its named shapes, frozen dataclasses.
        tokenizers: The tokenizers that it can read through, by kind; the first is the usual one.
        precisions: Precisions for export. `graph` decides which weights "int8" rounds.
        texts: How many texts it reads at once: 1, or 2 where it compares a pair.
        max_length: Default limit of a text in tokens; None: the limit of the model.
        poolings: How it may make one vector of the tokens', where a checkpoint does not say it; the
            first is the usual one.
        reads: Whose checkpoints it reads, as people call these models; for messages.
        lora_targets: Groups of linear layers that adapters may be asked for, by name.
        learning_rates: The peak learning rate by the name of the task; "" is any other task. Used
            if the training arguments give none.
        compiles: Whether XLA can compile a training step.
        rebuilt: Whether an exported model is built anew from its `config`; False: it is loaded as
            the SavedModel that it is.
        train_only_when_fresh: The only part that is trained of a model with initial weights, where
            the user states none; None: all parts.
    """

    name: ClassVar[str]
    model_types: ClassVar[tuple[type[keras.Model], ...]]
    presets: ClassVar[Mapping[str, Any]]
    tokenizers: ClassVar[Mapping[str, type[Tokenizer]]]
    precisions: ClassVar[tuple[str, ...]] = ("float32",)
    texts: ClassVar[int] = 1
    max_length: ClassVar[int | None] = None
    poolings: ClassVar[tuple[str, ...]] = ()
    reads: ClassVar[tuple[str, ...]] = ()
    lora_targets: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    learning_rates: ClassVar[Mapping[str, float]] = {"": 3e-5}
    compiles: ClassVar[bool] = True
    rebuilt: ClassVar[bool] = True
    train_only_when_fresh: ClassVar[Literal["embedding"] | None] = None

    def fresh(
        self, preset: str, tokenizer: Tokenizer, *, dtype: Any = None, **changes: Any
    ) -> keras.Model:
        """A model of a named shape, built, with initial values.

        Args:
            preset: A key of `presets`.
            tokenizer: Gives its ids; a table `num_embeddings` has as many rows as these need.
            dtype: Keras dtype policy.
            **changes: What differs from the preset.

        Raises:
            ValueError: The preset is unknown, or a change does not fit it.
        """
        changes.setdefault("num_embeddings", tokenizer.vocabulary.size)
        model = self.model_types[0].from_preset(preset, dtype=dtype, **changes)
        model.build()
        return model

    def usual_tokenizer(self) -> Tokenizer | None:
        """The tokenizer where nobody names one; None: every model has its own vocabulary."""
        return None

    def tokenizer_class(self, kind: str) -> type[Tokenizer]:
        """The tokenizer of a kind that `use_st5.json` names.

        Raises:
            ValueError: It is none of the family's.
        """
        if kind not in self.tokenizers:
            raise ValueError(
                f"Expected a tokenizer of the family {self.name!r}, one of {[*self.tokenizers]}, "
                f"received {kind!r}. Update use_st5 or export the model again."
            )
        return self.tokenizers[kind]

    @abc.abstractmethod
    def graph(
        self, model: keras.Model, tokenizer: Tokenizer, *, precision: str, max_length: int | None
    ) -> EncoderGraph:
        """The parts of a SavedModel.

        Args:
            model: Of this family, built.
            tokenizer: Gives its ids.
            precision: One of `precisions`.
            max_length: Tokens beyond this number are cut: at most `longest`, the caller checks
                this (`use_st5.models.inference.checked_length`); None cuts nothing.

        Raises:
            ValueError: The model, the tokenizer and the settings do not fit each other.
        """

    def longest(self, model: keras.Model) -> int | None:
        """The most tokens that a model reads of a text; None: any number."""
        return None

    def prepare_for_training(self, model: keras.Model) -> None:  # noqa: B027 (most need nothing)
        """Changes, in place, settings of a loaded model that its training needs otherwise."""

    def word_model(self, model: keras.Model, *, pooling: str | None = None) -> keras.Model | None:
        """A copy whose head names words, as `DefinitionLoss` trains it.

        Args:
            model: Of this family.
            pooling: Of the copy; None: the model's own.

        Returns:
            None where the family has no such head.
        """
        return None

    def pair_model(self, model: keras.Model) -> keras.Model | None:
        """A copy that a cross-encoder is made of; None: the family cannot read two texts."""
        return None

    def config(self, model: keras.Model) -> dict[str, Any]:
        """The numbers, texts and lists of `use_st5.json` that `restore` needs."""
        base = keras.Model.get_config(model)
        return {name: value for name, value in model.get_config().items() if name not in base}

    def restore(self, config: Mapping[str, Any], *, dtype: Any = None) -> keras.Model:
        """A model of this shape, built; its weights are to be assigned.

        Args:
            config: What `config` gave.
            dtype: Keras dtype policy.

        Raises:
            ValueError: The configuration is not of this family.
        """
        kind = self.model_types[0]
        try:
            model = kind.from_config({**config, "dtype": dtype})
            with without_initial_values():
                model.build()
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(
                f"Expected the configuration of a {kind.__name__}, received {dict(config)} "
                f"({type(error).__name__}: {error}). Export the model again."
            ) from error
        return model

    def knows(self, checkpoint: Checkpoint) -> bool:
        """Whether a checkpoint contains an encoder of this family."""
        return False

    def read(
        self,
        checkpoint: Checkpoint,
        *,
        pooling: str | None = None,
        vocabulary: Path | None = None,
        dtype: Any = None,
        on_tensor: Callable[[str], None] = lambda name: None,
    ) -> tuple[keras.Model, Tokenizer]:
        """The encoder of a foreign checkpoint that it `knows`, and its tokenizer.

        Args:
            checkpoint: Opened, nothing read but names, shapes and settings. Its tensors, float32,
                bfloat16 or float16, are read one by one.
            pooling: Where the checkpoint does not say it; None: the family's usual one.
            vocabulary: File of the vocabulary; None: the checkpoint's, or the family's usual one
                where that fits.
            dtype: Keras dtype policy.
            on_tensor: Called with the name of each tensor that is in place.

        Raises:
            ValueError: Tensors, settings or vocabulary do not fit.
        """
        raise ValueError(
            f"{checkpoint.where}: the family {self.name!r} reads no checkpoints of other libraries."
        )

    def lora_layers(self, model: keras.Model) -> dict[str, LoRADense]:
        """Path → layer for every linear layer that may carry an adapter, in order.

        The last part of a path, after "/", is the layer's role, by which `lora_targets` and users
        name it.
        """
        return {}

    def lora_base(self, model: keras.Model) -> dict[str, Any]:
        """What a base must have in common with the one that adapters were trained on."""
        return dataclasses.asdict(model.config)


_registered: dict[str, Family] = {}


def register(family: Family) -> Family:
    """Makes a family known: its models can be exported, loaded, adapted and read from then on.

    Raises:
        ValueError: Another family has its name.
    """
    known = _registered.get(family.name)
    if family.name in _OWN or (known is not None and type(known) is not type(family)):
        raise ValueError(f"Expected a new name for a family, {family.name!r} is taken.")
    _registered[family.name] = family
    return family


def families() -> dict[str, Family]:
    """All families by name."""
    for name, module in _OWN.items():
        if name not in _registered:
            _registered[name] = importlib.import_module(module).FAMILY
    return dict(_registered)


def family_named(name: str) -> Family:
    """The family of this name.

    Raises:
        ValueError: There is none.
    """
    known = families()
    if name not in known:
        raise ValueError(
            f"Expected one of the families {sorted(known)}, received {name!r}. Import the module "
            "that registers it first, or update use_st5."
        )
    return known[name]


def known_family(model: keras.Model) -> Family | None:
    """The family of a model; None where it is of none that is known."""
    for family in families().values():
        if isinstance(model, family.model_types):
            return family
    return None


def family_of(model: keras.Model) -> Family:
    """The family of a model.

    Raises:
        TypeError: It is of none.
    """
    family = known_family(model)
    if family is None:
        known = ", ".join(each.model_types[0].__name__ for each in families().values())
        raise TypeError(
            f"Expected an encoder of a known family ({known}), received a {type(model).__name__}. "
            "use_st5.models.family.register adds a family."
        )
    return family


def any_tokenizer_class(kind: str) -> type[Tokenizer]:
    """The tokenizer of a kind, whichever family's it is: for models made of models.

    Raises:
        ValueError: It is none that is known.
    """
    tokenizers = {
        name: each for family in families().values() for name, each in family.tokenizers.items()
    }
    if kind not in tokenizers:
        raise ValueError(
            f"Expected one of the tokenizers {sorted(tokenizers)}, received {kind!r}. Update "
            "use_st5 or export the model again."
        )
    return tokenizers[kind]


def family_with(preset: str) -> Family:
    """The family that a preset is of.

    Raises:
        ValueError: No family has such a preset.
    """
    for family in families().values():
        if preset in family.presets:
            return family
    known = {name: [*family.presets] for name, family in families().items()}
    raise ValueError(f"Unknown preset: {preset!r}. Expected one of {known}.")


def family_that_knows(checkpoint: Checkpoint, pooling: str | None) -> Family:
    """The family of a checkpoint.

    Raises:
        ValueError: None knows it, or not this pooling.
    """
    for family in families().values():
        if family.knows(checkpoint):
            if pooling is None or pooling in family.poolings:
                return family
            raise ValueError(
                f"{checkpoint.where}: expected one of the poolings {family.poolings} of the family "
                f"{family.name!r}, received {pooling!r}."
            )
    *others, last = (name for family in families().values() for name in family.reads)
    raise ValueError(
        f"{checkpoint.where}: found {checkpoint.summary()}; use_st5 reads {', '.join(others)} and "
        f"{last}. KerasHub has others: TrainableEncoder.of_kerashub(keras_hub.models.TextEmbedder."
        "from_preset(…))."
    )
