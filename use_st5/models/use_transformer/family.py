"""The family of the USE Transformer: presets, tokenizers, precisions and graph."""

from __future__ import annotations

from typing import ClassVar

from use_st5.export.encoder_graph import EncoderGraph, padded_graph
from use_st5.export.stored_weights import stored_table
from use_st5.layers.lora_dense import LoRADense
from use_st5.models.family import Family
from use_st5.models.use_transformer.model import USE_TRANSFORMER_PRESETS, USETransformer
from use_st5.tokenizers.token_tokenizer import PieceTokenizer, UnigramTokenizer
from use_st5.tokenizers.tokenizer import Tokenizer


class USETransformerFamily(Family):
    """A Transformer encoder whose outputs are summed (`USETransformer`)."""

    name = "use_transformer"
    model_types = (USETransformer,)
    presets = USE_TRANSFORMER_PRESETS
    tokenizers: ClassVar = {kind.kind: kind for kind in (PieceTokenizer, UnigramTokenizer)}
    precisions = ("float32", "int8")
    learning_rates: ClassVar = {
        **{"": 1e-4, "pairs": 3e-4, "scored_pairs": 3e-4},
        **{"labels": 3e-4, "inference": 3e-4, "few_labels": 3e-4},
    }
    lora_targets: ClassVar = {
        "query_value": ("query", "value"),
        "all_linear": ("query", "key", "value", "output"),
    }

    def graph(
        self,
        model: USETransformer,
        tokenizer: Tokenizer,
        *,
        precision: str,
        max_length: int | None,
    ) -> EncoderGraph:
        """The graph over padded ids; in int8 all matrices are rounded."""
        table = stored_table(model.embedding.embeddings, precision)
        layers = [model.widen, *([] if model.projection is None else [model.projection])]
        for block in model.blocks:
            layers += [*block.attention.linear_layers.values(), block.inner, block.outer]
        kernels = [] if precision == "float32" else [layer.kernel for layer in layers]
        return padded_graph(model, tokenizer, table=table, kernels=kernels, max_length=max_length)

    def max_tokens(self, model: USETransformer) -> int:
        """The limit in the model's configuration."""
        return model.config.max_length

    def lora_layers(self, model: USETransformer) -> dict[str, LoRADense]:
        """The linear layers of the attention in every block."""
        return {
            f"{block.name}/attention/{role}": layer
            for block in model.blocks
            for role, layer in block.attention.linear_layers.items()
        }


FAMILY = USETransformerFamily()
