"""What a validated classifier reached."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class Classification:
    """Accuracies as SentEval reports them, with what led to them.

    Attributes:
        protocol: The classifier's name: "senteval" or "sklearn".
        dev_accuracy: Of the chosen regularisation, in 0 … 1; means over folds are rounded to four
            decimals, as the original rounds percents to two.
        test_accuracy: In 0 … 1, rounded likewise.
        predictions: The predicted class of each test row, `[rows]`; after `inner_kfold` each row's
            is that of the outer fold it was tested in.
        regularization: The chosen strengths, one per trained final classifier: SentEval's L2
            factor, or scikit-learn's C.
    """

    protocol: str
    dev_accuracy: float
    test_accuracy: float
    predictions: np.ndarray
    regularization: tuple[float, ...]
