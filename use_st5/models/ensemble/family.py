"""Ensembles among the families: each member is asked through its own family."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import keras

from use_st5.export.encoder_graph import EncoderGraph
from use_st5.layers.lora_dense import LoRADense
from use_st5.models.ensemble.ensemble import Ensemble
from use_st5.models.family import Family, family_named, family_of, text_stage_of_any
from use_st5.text.vectorizer import Vectorizer


class EnsembleFamily(Family):
    """Several encoders of one text stage (`Ensemble`), each of any family."""

    name = "ensemble"
    model_types = (Ensemble,)
    presets: ClassVar = {}
    vectorizers: ClassVar = {}
    storages = ("float32", "int8")
    lora_targets: ClassVar = {
        "query_value": ("query", "value"),
        "all_linear": ("query", "key", "value", "output", "inner", "linear", "outer"),
    }

    def text_stage(self, kind: str) -> type[Vectorizer]:
        """The text stage of a kind, which may be that of any family."""
        return text_stage_of_any(kind)

    def graph(
        self, model: Ensemble, vectorizer: Vectorizer, *, storage: str, max_length: int | None
    ) -> EncoderGraph:
        """The members' graphs, whose vectors are combined.

        Texts that are cut are turned into ids once. Where they are not, each member reads them in
        its own way: that of a USE-DAN takes little memory for long ones.
        """
        graphs = [
            self._graph_of(member, vectorizer, storage, max_length) for member in model.members
        ]
        first = graphs[0]

        def embed_ids(ids: Any, training: bool) -> Any:
            return model.combined([graph.embed_ids(ids, training) for graph in graphs])

        def embed_tokens(ids: Any, training: bool) -> Any:
            return model.combined([graph.embed_tokens(ids, training) for graph in graphs])

        def embed_text(text: Any, training: bool) -> Any:
            if first.max_length is not None:
                return embed_tokens(first.preprocess(text), training)
            return model.combined([graph.embed_text(text, training) for graph in graphs])

        return EncoderGraph(
            embed_text=embed_text,
            embed_ids=embed_ids,
            embed_tokens=embed_tokens,
            preprocess=first.preprocess,
            token_counts=first.token_counts,
            dimension=model.dimension,
            max_length=_the_same("max_length", [graph.max_length for graph in graphs]),
            storage=_the_same("storage", [graph.storage for graph in graphs]),
            variables=[each for graph in graphs for each in graph.variables],
            trainable_variables=[each for graph in graphs for each in graph.trainable_variables],
            regularization_losses=[
                each for graph in graphs for each in graph.regularization_losses
            ],
            tracked={"vectorizer": vectorizer},
        )

    def longest(self, model: Ensemble) -> int | None:
        """What the member reads that reads the least."""
        limits = [family_of(member).longest(member) for member in model.members]
        return min((limit for limit in limits if limit is not None), default=None)

    def _graph_of(
        self, member: keras.Model, vectorizer: Vectorizer, storage: str, max_length: int | None
    ) -> EncoderGraph:
        family = family_of(member)
        if storage not in family.storages:
            raise ValueError(
                f"Unknown storage: {storage!r}. Expected one of {family.storages} for a member "
                f"that is a {type(member).__name__}."
            )
        return family.graph(member, vectorizer, storage=storage, max_length=max_length)

    def config(self, model: Ensemble) -> dict[str, Any]:
        """Mode, and each member's family and configuration."""
        members = [(family_of(member), member) for member in model.members]
        return {
            "mode": model.mode,
            "normalize": model.normalize,
            "members": [
                {"family": family.name, "config": family.config(member)}
                for family, member in members
            ],
        }

    def restore(self, config: Mapping[str, Any], *, dtype: Any = None) -> Ensemble:
        """The members by their families, and the ensemble of them."""
        try:
            members = [
                family_named(each["family"]).restore(each["config"], dtype=dtype)
                for each in config["members"]
            ]
            model = Ensemble(members, mode=config["mode"], normalize=config["normalize"])
        except (KeyError, TypeError) as error:
            raise ValueError(
                f"Expected the configuration of an Ensemble, received {dict(config)} "
                f"({type(error).__name__}: {error}). Export the model again."
            ) from error
        model.build()
        return model

    def lora_layers(self, model: Ensemble) -> dict[str, LoRADense]:
        """Those of all members, each below its number."""
        return {
            f"member_{number}/{path}": layer
            for number, member in enumerate(model.members)
            for path, layer in family_of(member).lora_layers(member).items()
        }

    def lora_base(self, model: Ensemble) -> dict[str, Any]:
        """What each member says of itself."""
        return {
            f"member_{number}": family_of(member).lora_base(member)
            for number, member in enumerate(model.members)
        }


def _the_same(name: str, values: list[Any]) -> Any:
    """What all members have.

    Raises:
        ValueError: They differ.
    """
    if any(value != values[0] for value in values):
        raise ValueError(f"Expected members with the same {name}, received {values}.")
    return values[0]


FAMILY = EnsembleFamily()
