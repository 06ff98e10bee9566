"""The contract of a family of encoders, and the list of families."""

from __future__ import annotations

import abc
import dataclasses
import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

import keras

from use_st5.convert.checkpoint import Checkpoint
from use_st5.export.encoder_graph import EncoderGraph
from use_st5.layers.lora_dense import LoRADense
from use_st5.layers.random_normal import without_initial_values
from use_st5.tokenizers.tokenizer import Tokenizer

# The families of this package, imported on first use.
_OWN = {
    # Before the families whose classifiers it reads: the first family that knows a file reads it.
    "cross_encoder": "use_st5.models.cross_encoder.family",
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
    """Everything that is specific to one kind of encoder.

    Code outside `use_st5.models` does not check the class of an encoder; it calls
    `family_of(model)`. A new family is a folder in `use_st5.models` with its model, its
    configuration and one subclass of this class, and a line in the list above. Users add their own
    families with `register`.

    Attributes:
        name: The family's name in `use_st5.json`.
        model_types: The class of its Keras model, int32 `[batch, length]` → float32
            `[batch, dimension]`, with an attribute `dimension`; then other classes with the same
            layers, which may have adapters.
        presets: Its named shapes, frozen dataclasses.
        tokenizers: The classes of its tokenizers by kind; the first is the usual one.
        precisions: Precisions for export. `graph` decides which weights "int8" rounds.
        inputs: The number of texts that it reads at once: 1, or 2 if it compares a pair.
        max_length: Default limit of a text in tokens; None: the limit of the model.
        poolings: The poolings that a user can choose if a checkpoint does not state one; the first
            is the usual one.
        reads: The common names of the models whose checkpoints it reads, for messages.
        lora_targets: Groups of linear layers that can get adapters, by name.
        learning_rates: The peak learning rate by the name of the task; "" is any other task. Used
            if the training arguments give none.
        compiles: Whether XLA can compile a training step.
        rebuilt: Whether an exported model is rebuilt from its `config`; False: it is loaded as a
            SavedModel.
        train_only_when_fresh: The only part that is trained if the model has initial weights and
            the user names no part; None: all parts.
        harmless: Fields of the configuration that do not affect the vectors.
    """

    name: ClassVar[str]
    model_types: ClassVar[tuple[type[keras.Model], ...]]
    presets: ClassVar[Mapping[str, Any]]
    tokenizers: ClassVar[Mapping[str, type[Tokenizer]]]
    precisions: ClassVar[tuple[str, ...]] = ("float32",)
    inputs: ClassVar[int] = 1
    max_length: ClassVar[int | None] = None
    poolings: ClassVar[tuple[str, ...]] = ()
    reads: ClassVar[tuple[str, ...]] = ()
    lora_targets: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    learning_rates: ClassVar[Mapping[str, float]] = {"": 3e-5}
    compiles: ClassVar[bool] = True
    rebuilt: ClassVar[bool] = True
    train_only_when_fresh: ClassVar[Literal["embedding"] | None] = None
    harmless: ClassVar[tuple[str, ...]] = ()

    def fresh(
        self, preset: str, tokenizer: Tokenizer, *, dtype: Any = None, **changes: Any
    ) -> keras.Model:
        """Builds a model of a named shape with initial values.

        Args:
            preset: A key of `presets`.
            tokenizer: Makes the ids of the model; its vocabulary determines `num_embeddings`.
            dtype: Keras dtype policy.
            **changes: Fields that differ from the preset.
        """
        changes.setdefault("num_embeddings", tokenizer.vocabulary.size)
        model = self.model_types[0].from_preset(preset, dtype=dtype, **changes)
        model.build()
        return model

    def usual_tokenizer(self) -> Tokenizer | None:
        """The tokenizer if the user names none; None: every model has its own vocabulary."""
        return None

    def tokenizer_class(self, kind: str) -> type[Tokenizer]:
        """The tokenizer class of a kind that `use_st5.json` names."""
        tokenizers = self.tokenizers or {  # A family without its own has those of all families.
            name: tokenizer
            for family in families().values()
            for name, tokenizer in family.tokenizers.items()
        }
        if kind not in tokenizers:
            raise ValueError(f"{self.name}: expected a tokenizer of {[*tokenizers]}, not {kind!r}.")
        return tokenizers[kind]

    @abc.abstractmethod
    def graph(
        self, model: keras.Model, tokenizer: Tokenizer, *, precision: str, max_length: int | None
    ) -> EncoderGraph:
        """The parts of a SavedModel.

        Args:
            model: A built model of this family.
            tokenizer: Makes the ids of the model.
            precision: One of `precisions`.
            max_length: Tokens beyond this number are cut; None cuts nothing. The caller checks that
                it is at most `max_tokens` (`use_st5.models.encoder_model.checked_length`).
        """

    def max_tokens(self, model: keras.Model) -> int | None:
        """The maximum number of tokens that a model reads of a text; None: no limit."""
        return None

    def prepare_for_training(self, model: keras.Model) -> None:  # noqa: B027 (most need nothing)
        """Changes settings of a loaded model, in place, if training needs other values."""

    def word_model(self, model: keras.Model, *, pooling: str | None = None) -> keras.Model | None:
        """A copy whose head predicts words, for training with `DefinitionLoss`.

        Args:
            model: A model of this family.
            pooling: Pooling of the copy; None: the model's own.

        Returns:
            The copy; None if the family has no such head.
        """
        return None

    def pair_model(self, model: keras.Model) -> keras.Model | None:
        """A copy to build a cross-encoder from; None: the family cannot read two texts."""
        return None

    def config(self, model: keras.Model) -> dict[str, Any]:
        """The numbers, texts and lists of `use_st5.json` that `restore` needs."""
        base = keras.Model.get_config(model)
        return {name: value for name, value in model.get_config().items() if name not in base}

    def restore(self, config: Mapping[str, Any], *, dtype: Any = None) -> keras.Model:
        """Builds a model of this configuration; the caller must assign its weights.

        Args:
            config: The result of `config`.
            dtype: Keras dtype policy.
        """
        model_type = self.model_types[0]
        try:
            model = model_type.from_config({**config, "dtype": dtype})
            with without_initial_values():
                model.build()
        except (KeyError, TypeError, AttributeError) as error:
            name = model_type.__name__
            raise ValueError(f"Expected the configuration of a {name}, not {config}.") from error
        return model

    def can_read(self, checkpoint: Checkpoint) -> bool:
        """Whether a checkpoint contains an encoder of this family."""
        return False

    def read(self, checkpoint: Checkpoint, *, dtype: Any = None) -> tuple[keras.Model, Tokenizer]:
        """The encoder of another library's checkpoint that it `can_read`, and its tokenizer.

        Args:
            checkpoint: An open checkpoint, of which only names, shapes and settings were read. Its
                tensors (float32, bfloat16 or float16) are read one by one.
            dtype: Keras dtype policy.
        """
        raise NotImplementedError

    def lora_layers(self, model: keras.Model) -> dict[str, LoRADense]:
        """Path → layer for every linear layer that can have an adapter, in order.

        The last part of a path, after "/", is the layer's role. `lora_targets` and users refer to
        layers by role.
        """
        return {}

    def lora_base(self, model: keras.Model) -> dict[str, Any]:
        """The properties that a model must share with the base that adapters were trained on."""
        fields = dataclasses.asdict(model.config)
        return {name: value for name, value in fields.items() if name not in self.harmless}


def exported_tokenizer(family: str, kind: str, folder: Path) -> Tokenizer:
    """The tokenizer of the SavedModel in a folder; `use_st5.json` names its family and kind."""
    return family_named(family).tokenizer_class(kind).from_assets(folder / "assets")


_registered: dict[str, Family] = {}


def register(family: Family) -> Family:
    """Registers a family: then its models can be exported, loaded, adapted and read."""
    namesake = _registered.get(family.name)
    if family.name in _OWN or (namesake is not None and type(namesake) is not type(family)):
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
    """The family of this name."""
    known = families()
    if name not in known:
        raise ValueError(f"Expected one of the families {sorted(known)}, received {name!r}.")
    return known[name]


def known_family(model: keras.Model) -> Family | None:
    """The family of a model: that of the nearest of its classes; None if none is known."""
    for model_class in type(model).__mro__:
        for family in families().values():
            if model_class in family.model_types:
                return family
    return None


def family_of(model: keras.Model) -> Family:
    """The family of a model."""
    family = known_family(model)
    if family is None:
        known = f"a known family ({', '.join(families())}; register adds one)"
        raise TypeError(f"Expected an encoder of {known}, received a {type(model).__name__}.")
    return family


def family_with(preset: str) -> Family:
    """The family that has a preset."""
    for family in families().values():
        if preset in family.presets:
            return family
    presets = {name: [*family.presets] for name, family in families().items()}
    raise ValueError(f"Unknown preset: {preset!r}. Expected one of {presets}.")


def family_for(checkpoint: Checkpoint) -> Family:
    """The family of a checkpoint."""
    pooling = checkpoint.pooling
    for family in families().values():
        if family.can_read(checkpoint):
            if pooling is None or {*pooling.split("+")} <= {*family.poolings}:
                return family
            expected = f"one of the poolings {family.poolings} of {family.name}"
            raise ValueError(f"{checkpoint.where}: expected {expected}, received {pooling!r}.")
    *names, last = (name for family in families().values() for name in family.reads)
    others = "KerasHub has others: TrainableEncoder.of_kerashub(TextEmbedder.from_preset(…))."
    known = f"use_st5 reads {', '.join(names)} and {last}. {others}"
    raise ValueError(f"{checkpoint.where}: found {checkpoint.summary()}; {known}")
