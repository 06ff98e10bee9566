"""A T5 in a checkpoint whose shape stands nowhere but in its tensors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from use_st5.convert.assignment import Target, assign_weights, check_shapes
from use_st5.convert.t5_names import T5Names
from use_st5.convert.weight_source import WeightSource
from use_st5.layers.random_normal import without_initial_values
from use_st5.models.t5.config import T5Config
from use_st5.models.t5.sentence_t5 import Pooling, SentenceT5
from use_st5.models.t5.t5 import T5


@dataclass(frozen=True)
class T5Checkpoint:
    """A checkpoint that was opened, with nothing read of it but names and shapes.

    Attributes:
        source: The checkpoint.
        names: What its format calls the tensors of a T5.
    """

    source: WeightSource
    names: T5Names

    @cached_property
    def config(self) -> T5Config:
        """The shape of the T5, from the shapes of its tensors; see `T5Names.config`.

        Raises:
            ValueError: The tensors are not those of a T5.
        """
        return self.names.config(self.source.shapes(), where=self.source.where)

    @property
    def projection_dim(self) -> int | None:
        """Width of the projection of a dual encoder; None where there is none."""
        shape = self.source.shapes().get(self.names.projection or "")
        return None if shape is None else shape[-1]

    def load_t5(
        self,
        *,
        with_decoder: bool = True,
        dtype: Any = None,
        on_tensor: Callable[[str], None] = lambda name: None,
    ) -> T5:
        """A T5 with the weights of the checkpoint, read tensor by tensor.

        Args:
            with_decoder: False loads the encoder alone.
            dtype: Keras dtype policy of the model, such as "bfloat16".
            on_tensor: Called with the name of each tensor that is in place.

        Raises:
            ValueError: Tensors are missing, left over or of other shapes.
        """
        untied = with_decoder and not self.config.tied_softmax
        self._check({}, decoder=with_decoder, logits=untied)
        model = T5(self.config, with_decoder=with_decoder, dtype=dtype)
        with without_initial_values():
            model.build()
        self._assign(model, self.names.targets(model), on_tensor)
        return model

    def load_sentence_t5(
        self,
        *,
        pooling: Pooling = "mean",
        dtype: Any = None,
        on_tensor: Callable[[str], None] = lambda name: None,
    ) -> SentenceT5:
        """A Sentence-T5 with the weights of the checkpoint, read tensor by tensor.

        Of a dual encoder it has the projection, and normalises; of a T5 it is the raw encoder of
        the paper's section 6.1, which does neither.

        Args:
            pooling: As for `SentenceT5`; checkpoints do not say it.
            dtype: Keras dtype policy of the model, such as "bfloat16"; the projection stays
                float32.
            on_tensor: Called with the name of each tensor that is in place.

        Raises:
            ValueError: Tensors are missing, left over or of other shapes.
        """
        width = self.projection_dim
        projection = {self.names.projection: (self.config.hidden_dim, width)} if width else {}
        self._check(projection, decoder=pooling == "decoder", logits=False)
        model = SentenceT5(
            self.config,
            pooling=pooling,
            projection_dim=width,
            normalize=width is not None,
            dtype=dtype,
        )
        with without_initial_values():
            model.build()
        mapping = self.names.targets(model)
        if width is not None:
            mapping[self.names.projection] = Target(model.projection.kernel)
        self._assign(model, mapping, on_tensor)
        return model

    def _check(self, further: dict[str, tuple[int, ...]], *, decoder: bool, logits: bool) -> None:
        """Holds the tensors against the configuration, before a model is built of its size."""
        shapes = self.names.shapes(self.config, self.source, decoder=decoder, logits=logits)
        check_shapes({**shapes, **further}, self.source, left_out=self._left_out(decoder))

    def _assign(
        self, model: T5 | SentenceT5, mapping: dict[str, Target], on_tensor: Callable[[str], None]
    ) -> None:
        left_out = self._left_out(model.decoder is not None)
        assign_weights(mapping, self.source, left_out=left_out, on_tensor=on_tensor)

    def _left_out(self, decoder: bool) -> Callable[[str], bool]:
        """Tells the tensors that a model with or without a decoder has no use for."""
        stack = self.names.decoder["norm"].split("/")[0] + "/"

        def left_out(name: str) -> bool:
            # The output layer is asked for only where the model has none.
            return (not decoder and name.startswith(stack)) or name == self.names.logits

        return left_out
