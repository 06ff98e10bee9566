"""Ensembles among the families: each member is asked through its own family."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras

from use_st5.export.encoder_graph import EncoderGraph
from use_st5.models.compound_family import CompoundFamily, described, restored_member
from use_st5.models.ensemble.ensemble import Ensemble
from use_st5.models.family import family_of
from use_st5.text.vectorizer import Vectorizer


class EnsembleFamily(CompoundFamily):
    """Several encoders of one text stage (`Ensemble`), each of any family."""

    name = "ensemble"
    model_types = (Ensemble,)

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

        def embed_text(text: Any, training: bool) -> Any:
            if first.max_length is not None:
                return embed_ids(first.preprocess(text), training)
            return model.combined([graph.embed_text(text, training) for graph in graphs])

        return EncoderGraph(
            embed_text=embed_text,
            embed_ids=embed_ids,
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

    def members(self, model: Ensemble) -> dict[str, keras.Model]:
        """The members by number."""
        return {f"member_{number}": member for number, member in enumerate(model.members)}

    def config(self, model: Ensemble) -> dict[str, Any]:
        """Mode, and each member's family and configuration."""
        return {
            "mode": model.mode,
            "normalize": model.normalize,
            "members": [described(member) for member in model.members],
        }

    def restored(self, config: Mapping[str, Any], dtype: Any) -> Ensemble:
        """The members by their families, and the ensemble of them."""
        members = [restored_member(each, dtype) for each in config["members"]]
        return Ensemble(members, mode=config["mode"], normalize=config["normalize"])


def _the_same(name: str, values: list[Any]) -> Any:
    """What all members have.

    Raises:
        ValueError: They differ.
    """
    if any(value != values[0] for value in values):
        raise ValueError(f"Expected members with the same {name}, received {values}.")
    return values[0]


FAMILY = EnsembleFamily()
