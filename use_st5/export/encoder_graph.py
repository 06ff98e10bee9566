"""The parts of an encoder that the writer of SavedModels needs."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import keras
import tensorflow as tf

from use_st5.export.embedding_tables import EmbeddingTable, raw_variables, rounded_kernel
from use_st5.export.int8_weights import Int8Weights, computing_with
from use_st5.tokenizers.tokenizer import Tokenizer

_IDS = tf.TensorSpec([None, None], tf.int32, name="ids")
# What a graph takes that reads one text at once, and what one takes that compares two.
TEXTS = {
    1: (tf.TensorSpec([None], tf.string, name="text"),),
    2: tuple(tf.TensorSpec([None], tf.string, name=name) for name in ("first", "second")),
}

# Variables of a model, and what each is stored as.
Rounded = Sequence[tuple[keras.Variable, Int8Weights]]


@dataclasses.dataclass(frozen=True, kw_only=True)
class EncoderGraph:
    """The functions, variables and resources that make an encoder's SavedModel.

    The writer (`use_st5.export.saved_model`) is the same for every family; this is all that a
    family must say about itself. `padded_graph` says it for any Keras model over padded ids.

    Attributes:
        embed_text: string `[batch]`, training → float32 `[batch, dimension]`; where it reads pairs
            two of these, training → logits `[batch, 1]`.
        embed_ids: int32 `[batch, length]`, training → float32 `[batch, dimension]`, free of string
            ops and of hash tables; of a fixed shape where the ids are.
        embed_tokens: The same with padding left out, whose shapes follow the ids.
        preprocess: string `[batch]`, or two of these → int32 `[batch, length]`, 0 = padding.
        token_counts: string `[batch]`, or two of these → int32 `[batch]`, tokens before any is cut;
            None where none is.
        dimension: Dimension of the sentence vector.
        max_length: Tokens beyond this number are cut; None where nothing is.
        precision: "float32", "bfloat16" or "int8".
        variables: All variables in the model's order, states of seed generators among them; codes
            and then their scales, where weights are stored so.
        trainable_variables: Those that fine-tuning changes.
        regularization_losses: Functions without arguments, each a scalar float32.
        tracked: What else the SavedModel's root must hold, by attribute name: the owners of hash
            tables and assets.
        texts: How many texts it reads at once: 1, or 2 where it compares a pair.
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
        **functions: Any,
    ) -> Self:
        """The graph of a Keras model; all but its functions can be read off.

        Args:
            model: Built.
            tokenizer: Gives its ids.
            table: What `model.embedding.embeddings` is stored as, where it is stored apart.
            rounded: What others of its variables are stored as.
            max_length: Tokens beyond this number are cut; None cuts nothing.
            unread: Variables that no vector depends on, which are not written.
            **functions: `embed_text`, `embed_ids` and `preprocess`, and `embed_tokens` where it
                is not `embed_ids`.

        Raises:
            ValueError: The vocabulary has more ids than the table has rows, or Keras runs on
                another backend than TensorFlow.
        """
        apart: dict[int, EmbeddingTable | Int8Weights] = {id(each): w for each, w in rounded}
        if table is not None:
            embeddings = model.embedding.embeddings
            _check_vocabulary(tokenizer, rows=embeddings.shape[0])
            apart[id(embeddings)] = table
        left_out = {id(each) for each in unread}
        read = [each for each in model.variables if id(each) not in left_out]
        trained = [each for each in model.trainable_variables if id(each) not in left_out]

        def stored(variable: keras.Variable) -> list[tf.Variable]:
            weights = apart.get(id(variable))
            return weights.variables if weights else raw_variables([variable])

        def tuned(variable: keras.Variable) -> list[tf.Variable]:
            weights = apart.get(id(variable))
            return weights.trainable_variables if weights else raw_variables([variable])

        functions.setdefault("embed_tokens", functions["embed_ids"])
        return cls(
            token_counts=None if max_length is None else tokenizer.token_counts,
            dimension=model.dimension,
            max_length=max_length,
            precision=model.variable_dtype if table is None else table.precision,
            variables=[raw for each in read for raw in stored(each)],
            trainable_variables=[raw for each in trained for raw in tuned(each)],
            regularization_losses=[
                _regularization(v) for v in trained if v.regularizer and id(v) not in apart
            ],
            tracked={"tokenizer": tokenizer, **(table.tracked() if table else {})},
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
    packed: bool = False,
) -> EncoderGraph:
    """The graph of any encoder over padded ids.

    Args:
        model: int32 `[batch, length]` → float32 `[batch, dimension]`, with an attribute
            `dimension`; where the table is stored apart with `encode_embedded(vectors, ids,
            training=)`, which is what follows it.
        tokenizer: Gives its ids.
        table: What its table is stored as, where that is not the model's own variable.
        kernels: Matrices `[inputs, outputs]` to store as int8 codes with a scale for each output.
            Each call multiplies them out, which takes 1 ms for 2 million entries on one core.
        max_length: Tokens beyond this number are cut; None cuts nothing.
        unread: As in `EncoderGraph.of_model`.
        packed: Whether of strings the tokens alone are computed, and not the padding behind them:
            for a model whose `encode_embedded` takes `packed=`.

    Raises:
        ValueError: As in `EncoderGraph.of_model`, or a kernel is not float32.
    """
    rounded = [(kernel, rounded_kernel(kernel)) for kernel in kernels]
    preprocess = graph_of(lambda text: tokenizer.padded(text, max_length), TEXTS[1])
    if table is None:
        embed_ids = embed_tokens = network_of(
            lambda ids, training: model(ids, training=training), [_IDS], model, rounded
        )
    else:
        embed_ids = embed_tokens = _behind_table(model, table, rounded)
        if packed:
            tokens_alone = _behind_table(model, table, rounded, packed=True)
            embed_tokens = functools.partial(_for_inference, tokens_alone, embed_ids)
    return EncoderGraph.of_model(
        model,
        tokenizer,
        table,
        rounded,
        max_length=max_length,
        unread=unread,
        embed_text=lambda text, training: embed_tokens(preprocess(text), training),
        embed_ids=embed_ids,
        embed_tokens=embed_tokens,
        preprocess=preprocess,
    )


def _behind_table(
    model: keras.Model, table: EmbeddingTable, rounded: Rounded, **how: bool
) -> Callable[[tf.Tensor, bool], tf.Tensor]:
    """Ids, training → vectors, by the table and what follows it in the model."""
    vectors = tf.TensorSpec([None, None, model.embedding.output_dim], tf.float32)
    network = network_of(
        lambda vectors, ids, training: model.encode_embedded(
            vectors, ids, training=training, **how
        ),
        [vectors, _IDS],
        model,
        rounded,
        dropout=not how.get("packed"),
    )
    return lambda ids, training: network(table.lookup(ids), ids, training)


def _for_inference(
    packed: Callable[..., tf.Tensor],
    padded: Callable[..., tf.Tensor],
    ids: tf.Tensor,
    training: bool,
) -> tf.Tensor:
    """Training computes what is padded, too: gradients of gathered rows would cost more."""
    return (padded if training else packed)(ids, training)


def graph_of(function: Callable[..., Any], inputs: Sequence[tf.TensorSpec]) -> Callable[..., Any]:
    """A function as one graph, which every function of the SavedModel calls."""
    return tf.function(function, autograph=False).get_concrete_function(*inputs)


def network_of(
    network: Callable[..., tf.Tensor],
    inputs: list[tf.TensorSpec],
    model: keras.Model,
    rounded: Rounded = (),
    *,
    dropout: bool = True,
) -> Callable[..., tf.Tensor]:
    """A network as one graph, and as another with dropout where its model has some.

    Args:
        network: Takes tensors and whether dropout acts.
        inputs: The tensors.
        model: Whose network it is.
        rounded: With what it computes in place of some of the model's variables.
        dropout: Whether it is ever asked for with dropout.
    """

    def through(*given: tf.Tensor, training: bool) -> tf.Tensor:
        with computing_with(rounded, model):
            return network(*given, training)

    plain = graph_of(functools.partial(through, training=False), inputs)
    # Only what draws at random has the state of a generator.
    random = dropout and any("seed_generator_state" in each.path for each in model.variables)
    dropping = graph_of(functools.partial(through, training=True), inputs) if random else plain
    return lambda *given: (dropping if given[-1] else plain)(*given[:-1])


def _regularization(variable: keras.Variable) -> Callable[[], tf.Tensor]:
    """One function for a regularised variable, as `hub.KerasLayer` collects them."""
    return lambda: tf.cast(variable.regularizer(variable.value), tf.float32)


def _check_vocabulary(tokenizer: Tokenizer, *, rows: int) -> None:
    if tokenizer.vocabulary.size > rows:
        raise ValueError(
            f"Expected a vocabulary of at most {rows} ids, the rows of the model's table, received "
            f"{tokenizer.vocabulary.size} ids. Export with the vocabulary of the training, or "
            "build the model with vocabulary.size rows."
        )
