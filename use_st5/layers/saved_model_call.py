"""How a layer calls a SavedModel: directly or by a signature, and which output it takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from use_st5.export.loading import embed_text


class SavedModelCall:
    """Calls a SavedModel with the conventions of `hub.KerasLayer`.

    Args:
        model: The loaded SavedModel.
        arguments: Further arguments of the call, by name.
        signature: The signature to call; None: the SavedModel itself, or its first signature from
            a batch of strings to one tensor if it cannot be called.
        output_key: The output of a dict to return; None: all outputs.

    Raises:
        ValueError: The SavedModel has no such signature, or cannot be called and has none.
    """

    def __init__(
        self,
        model: Any,
        *,
        arguments: Mapping[str, Any],
        signature: str | None = None,
        output_key: str | None = None,
    ) -> None:
        names = [*getattr(model, "signatures", {})]
        if signature is not None and signature not in names:
            raise ValueError(f"Expected signature to be one of {names}, received {signature!r}.")
        if signature is None and not callable(model) and not names:
            raise ValueError(
                "Expected a SavedModel that can be called, or one with signatures, found neither."
            )
        self._model = model
        self._arguments = dict(arguments)
        self._signature = signature
        self._output_key = output_key

    def __call__(self, inputs: Any, *, training: bool) -> Any:
        """The output, or a dict of outputs, for a tensor or a dict of tensors."""
        if self._signature is None:
            result = embed_text(self._model, inputs, training=training, **self._arguments)
        else:
            function = self._model.signatures[self._signature]
            result = function(**self._named(function, inputs), **self._arguments)
        return result if self._output_key is None else self._output(result)

    def _named(self, function: Any, inputs: Any) -> dict[str, Any]:
        """The inputs of a signature by their names."""
        if isinstance(inputs, Mapping):
            return dict(inputs)
        names = [
            each for each in function.structured_input_signature[1] if each not in self._arguments
        ]
        if len(names) != 1:
            raise ValueError(
                f"Expected a dict of the inputs {names} for the signature {self._signature!r}, "
                "received one tensor."
            )
        return {names[0]: inputs}

    def _output(self, result: Any) -> Any:
        if not isinstance(result, Mapping):
            raise ValueError(
                f"output_key: expected none, because the SavedModel returns one tensor. Received "
                f"{self._output_key!r}."
            )
        if self._output_key not in result:
            raise ValueError(
                f"Expected output_key to be one of {sorted(result)}, received {self._output_key!r}."
            )
        return result[self._output_key]
