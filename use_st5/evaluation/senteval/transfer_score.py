"""What an encoder reached on one transfer task."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TransferScore:
    """Accuracies in 0 … 1.

    Attributes:
        name: The set's name.
        protocol: The classifier's: "senteval" or "sklearn".
        accuracy: On the test samples.
        f1: Of class 1 on the test samples; None where there are more than two classes.
        dev_accuracy: Of the chosen regularisation.
        regularization: What was chosen, once for each final classifier.
        counts: Part → number of samples.
    """

    name: str
    protocol: str
    accuracy: float
    f1: float | None
    dev_accuracy: float
    regularization: tuple[float, ...]
    counts: dict[str, int]
