"""Ensembles among the families: each member is asked through its own family."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import keras

from use_st5.export.encoder_graph import TEXTS, EncoderGraph, graph_of
from use_st5.models.compound_family import CompoundFamily, described, restored_member
from use_st5.models.ensemble.ensemble import Ensemble
from use_st5.models.ensemble.joined_tokenizer import JoinedTokenizer
from use_st5.models.family import family_of
from use_st5.tokenizers.tokenizer import Tokenizer


class EnsembleFamily(CompoundFamily):
    """Several encoders (`Ensemble`), each of any family, of one tokenizer or of several."""

    name = "ensemble"
    model_types: ClassVar[tuple[type[Ensemble], ...]] = (Ensemble,)
    tokenizers: ClassVar = {JoinedTokenizer.kind: JoinedTokenizer}

    def graph(
        self, model: Ensemble, tokenizer: Tokenizer, *, precision: str, max_length: int | None
    ) -> EncoderGraph:
        """The members' graphs, whose vectors are combined.

        Texts that are cut are turned into ids once, and so are those of several tokenizers. Where
        they are not, each member reads them in its own way: that of a USE-DAN takes little memory
        for long ones.
        """
        graphs = [
            self._graph_of(member, stage, precision, limit)
            for member, stage, limit in _readers(model, tokenizer, max_length)
        ]
        first = graphs[0]
        preprocess, token_counts = first.preprocess, first.token_counts
        if model.stages is not None:
            preprocess = graph_of(lambda text: tokenizer.padded(text, max_length), TEXTS[1])
            token_counts = None if max_length is None else tokenizer.token_counts
        else:
            max_length = _the_same("max_length", [graph.max_length for graph in graphs])

        def embed_ids(ids: Any, training: bool) -> Any:
            parts = zip(graphs, model.parts(ids), strict=True)
            return model.combined([graph.embed_ids(part, training) for graph, part in parts])

        def embed_tokens(ids: Any, training: bool) -> Any:
            parts = zip(graphs, model.parts(ids), strict=True)
            return model.combined([graph.embed_tokens(part, training) for graph, part in parts])

        def embed_text(*given: Any) -> Any:
            if max_length is not None or model.stages is not None:
                return embed_tokens(preprocess(*given[:-1]), given[-1])
            return model.combined([graph.embed_text(*given) for graph in graphs])

        return EncoderGraph(
            embed_text=embed_text,
            embed_ids=embed_ids,
            embed_tokens=embed_tokens,
            preprocess=preprocess,
            token_counts=token_counts,
            dimension=model.dimension,
            max_length=max_length,
            precision=_the_same("precision", [graph.precision for graph in graphs]),
            variables=[each for graph in graphs for each in graph.variables],
            trainable_variables=[each for graph in graphs for each in graph.trainable_variables],
            regularization_losses=[
                each for graph in graphs for each in graph.regularization_losses
            ],
            tracked={"tokenizer": tokenizer},
            texts=self.texts,
        )

    def _graph_of(
        self, member: keras.Model, tokenizer: Tokenizer, precision: str, max_length: int | None
    ) -> EncoderGraph:
        family = family_of(member)
        if precision not in family.precisions:
            raise ValueError(
                f"Unknown precision: {precision!r}. Expected one of {family.precisions} for a "
                f"member that is a {type(member).__name__}."
            )
        return family.graph(member, tokenizer, precision=precision, max_length=max_length)

    def members(self, model: Ensemble) -> dict[str, keras.Model]:
        """The members by number."""
        return {f"member_{number}": member for number, member in enumerate(model.members)}

    def config(self, model: Ensemble) -> dict[str, Any]:
        """Mode, and each member's family and configuration."""
        return {
            "mode": model.mode,
            "normalize": model.normalize,
            "unit_members": model.unit_members,
            "stages": model.stages,
            "members": [described(member) for member in model.members],
        }

    def restored(self, config: Mapping[str, Any], dtype: Any) -> Ensemble:
        """The members by their families, and the ensemble of them."""
        members = [restored_member(each, dtype) for each in config["members"]]
        return self.model_types[0](
            members,
            mode=config["mode"],
            normalize=config["normalize"],
            # Not in models that were exported before there were such ensembles.
            unit_members=config.get("unit_members", False),
            stages=config.get("stages"),
        )


def _readers(
    model: Ensemble, tokenizer: Tokenizer, max_length: int | None
) -> Iterator[tuple[keras.Model, Tokenizer, int | None]]:
    """Each member, its tokenizer, and where it cuts texts by itself.

    Raises:
        ValueError: The tokenizer is not that of the members.
    """
    stages = tokenizer.stages if isinstance(tokenizer, JoinedTokenizer) else ()
    if len(stages) != (max(model.stages) + 1 if model.stages else 0):
        raise ValueError(
            f"Expected the tokenizer that joined_stage gives for the members' stages "
            f"{model.stages}, received a {type(tokenizer).__name__}."
        )
    for number, member in enumerate(model.members):
        if model.stages is None:
            yield member, tokenizer, max_length
            continue
        # What reads texts of any length has no limit of its own; its ids are cut before.
        longest = family_of(member).longest(member)
        limit = longest if longest is None or max_length is None else min(longest, max_length)
        yield member, stages[model.stages[number]], limit


def _the_same(name: str, values: list[Any]) -> Any:
    """What all members have.

    Raises:
        ValueError: They differ.
    """
    if any(value != values[0] for value in values):
        raise ValueError(f"Expected members with the same {name}, received {values}.")
    return values[0]


FAMILY = EnsembleFamily()
