"""The parts of an encoder that the writer of SavedModels needs."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import keras
import tensorflow as tf

from use_st5.export.stored_weights import (
    EmbeddingTable,
    Int8Weights,
    MultipliedOut,
    computing_with,
    raw_variables,
    rounded_kernel,
)
from use_st5.tokenizers.tokenizer import Tokenizer

_IDS = tf.TensorSpec([None, None], tf.int32, name="ids")
# The inputs of a graph that reads one text at once, and of one that compares two.
TEXTS = {
    1: (tf.TensorSpec([None], tf.string, name="text"),),
    2: tuple(tf.TensorSpec([None], tf.string, name=name) for name in ("first", "second")),
}

# Variables of a model, and the weights that each is stored as.
Rounded = Sequence[tuple[keras.Variable, Int8Weights]]


@dataclasses.dataclass(frozen=True, kw_only=True)
class EncoderGraph:
    """The functions, variables and resources that make an encoder's SavedModel.

    The writer (`use_st5.export.saved_model`) is the same for every family; these attributes are all
    that it needs from a family. `padded_graph` makes them for any Keras model over padded ids.

    Attributes:
        embed_text: string `[batch]`, training → float32 `[batch, dimension]`; for pairs, two string
            `[batch]`, training → logits `[batch, 1]`.
        embed_ids: int32 `[batch, length]`, training → float32 `[batch, dimension]`, without string
            ops and hash tables; all shapes are fixed if that of the ids is.
        embed_tokens: The same, but padding is not computed, so that shapes depend on the ids.
        preprocess: string `[batch]`, or two of these → int32 `[batch, length]`, 0 = padding.
        token_counts: string `[batch]`, or two of these → int32 `[batch]`, the number of tokens
            before the cut; None if nothing is cut.
        dimension: Dimension of the sentence vector.
        max_length: Tokens beyond this number are cut; None if nothing is cut.
        precision: "float32", "bfloat16" or "int8".
        variables: All variables in the model's order, including states of seed generators; for
            weights that are stored as codes, the codes and then their scales.
        trainable_variables: The variables that fine-tuning changes.
        regularization_losses: Functions without arguments, each of which gives a scalar float32.
        tracked: The other objects that the SavedModel's root must hold, by attribute name: the
            owners of hash tables and assets.
        texts: How many texts it reads at once: 1, or 2 if it compares a pair.
    """

    embed_text: Callable[..., tf.Tensor]
    embed_ids: Callable[[tf.Tensor, bool], tf.Tensor]
    embed_tokens: Callable[[tf.Tensor, bool], tf.Tensor]
    preprocess: Callable[..., tf.Tensor]
    token_counts: Callable[..., tf.Tensor] | None
    dimension: int
    max_length: int | None
    precision: str
    variables: Sequence[tf.Variable]
    trainable_variables: Sequence[tf.Variable]
    regularization_losses: Sequence[Callable[[], tf.Tensor]]
    tracked: Mapping[str, Any]
    texts: int = 1

    @classmethod
    def of_model(
        cls,
        model: keras.Model,
        tokenizer: Tokenizer,
        table: EmbeddingTable | None = None,
        rounded: Rounded = (),
        *,
        max_length: int | None,
        unread: Sequence[keras.Variable] = (),
        multiplied_out: MultipliedOut | None = None,
        **functions: Any,
    ) -> Self:
        """The graph of a Keras model and its functions; the rest follows from the model.

        Args:
            model: A built model.
            tokenizer: The tokenizer that gives its ids.
            table: The stored form of `model.embedding.embeddings`, if it is stored apart.
            rounded: The stored forms of other variables.
            max_length: Tokens beyond this number are cut; None cuts nothing.
            unread: Variables that no vector depends on, which are not written.
            multiplied_out: Kernels that the functions read as they were when they were loaded.
            **functions: `embed_text`, `embed_ids` and `preprocess`, and `embed_tokens` if it
                is not `embed_ids`.
        """
        stored_forms: dict[int, EmbeddingTable | Int8Weights] = {id(each): w for each, w in rounded}
        if table is not None:
            embeddings = model.embedding.embeddings
            if tokenizer.vocabulary.size > embeddings.shape[0]:
                sizes = f"{tokenizer.vocabulary.size} ids, the table {embeddings.shape[0]} rows"
                raise ValueError(f"The vocabulary has {sizes}. Export with that of the training.")
            stored_forms[id(embeddings)] = table
        unread_ids = {id(each) for each in unread}
        variables = [each for each in model.variables if id(each) not in unread_ids]
        trainable = [each for each in model.trainable_variables if id(each) not in unread_ids]

        def stored(variable: keras.Variable, which: str = "variables") -> list[tf.Variable]:
            weights = stored_forms.get(id(variable))
            return getattr(weights, which) if weights else raw_variables([variable])

        functions.setdefault("embed_tokens", functions["embed_ids"])
        return cls(
            token_counts=None if max_length is None else tokenizer.token_counts,
            dimension=model.dimension,
            max_length=max_length,
            precision=model.variable_dtype if table is None else table.precision,
            variables=[raw for each in variables for raw in stored(each)],
            trainable_variables=[
                raw for each in trainable for raw in stored(each, "trainable_variables")
            ],
            regularization_losses=[
                _regularization(v) for v in trainable if v.regularizer and id(v) not in stored_forms
            ],
            tracked={
                "tokenizer": tokenizer,
                **(table.tracked() if table else {}),
                **({"computed_at_load": multiplied_out.resources} if multiplied_out else {}),
            },
            **functions,
        )


def padded_graph(
    model: keras.Model,
    tokenizer: Tokenizer,
    *,
    table: EmbeddingTable | None = None,
    kernels: Sequence[keras.Variable] = (),
    max_length: int | None = None,
    unread: Sequence[keras.Variable] = (),
) -> EncoderGraph:
    """The graph of any encoder over padded ids.

    Args:
        model: int32 `[batch, length]` → float32 `[batch, dimension]`, with an attribute
            `dimension`. If the table is stored apart, the model also has the part after the table,
            `encode_embedded(vectors, ids, training=)`; if it `packs`, it takes `packed=` there, and
            only the tokens of strings are computed, and not the padding after them.
        tokenizer: The tokenizer that gives its ids.
        table: The stored form of its table, if that is not the model's own variable.
        kernels: Matrices `[inputs, outputs]` to store as int8 codes with a scale for each output.
            Whoever loads the SavedModel multiplies them out once (`MultipliedOut`) for vectors of
            strings; training and `embed_ids`, which converters read, do so in each call.
        max_length: Tokens beyond this number are cut; None cuts nothing.
        unread: As in `EncoderGraph.of_model`.
    """
    rounded = [(kernel, rounded_kernel(kernel)) for kernel in kernels]
    stored_kernels = [stored for _, stored in rounded]
    multiplied_out = MultipliedOut(stored_kernels) if kernels else None
    preprocess = graph_of(lambda text: tokenizer.padded(text, max_length), TEXTS[1])
    if table is None:
        network = network_of(
            lambda ids, training: model(ids, training=training), [_IDS], model, kernels
        )
    else:
        network = _behind_table(model, table, kernels)
    inference = network
    if table is not None and getattr(model, "packs", False):
        inference = _behind_table(model, table, kernels, packed=True)

    def embed_ids(ids: tf.Tensor, training: bool) -> tf.Tensor:
        return network(ids, *(stored.whole() for stored in stored_kernels), training)

    # Training also computes the padding: gradients of gathered rows would cost more.
    def embed_tokens(ids: tf.Tensor, training: bool) -> tf.Tensor:
        if training:
            return embed_ids(ids, training)
        return inference(ids, *(multiplied_out.read() if multiplied_out else ()), training)

    return EncoderGraph.of_model(
        model,
        tokenizer,
        table,
        rounded,
        max_length=max_length,
        unread=unread,
        multiplied_out=multiplied_out,
        embed_text=lambda text, training: embed_tokens(preprocess(text), training),
        embed_ids=embed_ids,
        embed_tokens=embed_tokens,
        preprocess=preprocess,
    )


def _behind_table(
    model: keras.Model, table: EmbeddingTable, replaced: Sequence[keras.Variable], **how: bool
) -> Callable[..., tf.Tensor]:
    """Ids, values of `replaced`, training → vectors, by the table and the model after it."""
    vectors = tf.TensorSpec([None, None, model.embedding.output_dim], tf.float32)
    network = network_of(
        lambda vectors, ids, training: model.encode_embedded(
            vectors, ids, training=training, **how
        ),
        [vectors, _IDS],
        model,
        replaced,
        dropout=not how.get("packed"),
    )
    return lambda ids, *given: network(table.lookup(ids), ids, *given)


def graph_of(function: Callable[..., Any], inputs: Sequence[tf.TensorSpec]) -> Callable[..., Any]:
    """A function as one graph, which every function of the SavedModel calls."""
    return tf.function(function, autograph=False).get_concrete_function(*inputs)


def network_of(
    network: Callable[..., tf.Tensor],
    inputs: list[tf.TensorSpec],
    model: keras.Model,
    replaced: Sequence[keras.Variable] = (),
    *,
    dropout: bool = True,
) -> Callable[..., tf.Tensor]:
    """A network as one graph, and as a second one with dropout if its model has dropout.

    `network` is a function of tensors and of whether dropout is active. The result takes the
    tensors, then the values with which the model computes instead of its variables `replaced`,
    and `training`.
    """
    number = len(inputs)
    inputs = [*inputs, *(tf.TensorSpec(each.shape, tf.float32) for each in replaced)]

    def through(*given: tf.Tensor, training: bool) -> tf.Tensor:
        with computing_with([*zip(replaced, given[number:], strict=True)], model):
            return network(*given[:number], training)

    inference_graph = graph_of(functools.partial(through, training=False), inputs)
    # Only models with random layers have the state of a seed generator.
    is_random = dropout and any("seed_generator_state" in each.path for each in model.variables)
    training_graph = (
        graph_of(functools.partial(through, training=True), inputs)
        if is_random
        else inference_graph
    )
    return lambda *given: (training_graph if given[-1] else inference_graph)(*given[:-1])


def _regularization(variable: keras.Variable) -> Callable[[], tf.Tensor]:
    """The loss function of a regularised variable, as `hub.KerasLayer` collects them."""
    return lambda: tf.cast(variable.regularizer(variable.value), tf.float32)
