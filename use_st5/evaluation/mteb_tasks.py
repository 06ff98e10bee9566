"""Tasks of the package mteb, by its names: `mteb:SciFact` (extra `integrations`).

mteb downloads the data of a task, runs it, and names its main score. The vectors are those of the
context, so that a text is encoded once for all tasks.
"""

from __future__ import annotations

from importlib import metadata
from typing import Any

import numpy as np

from use_st5._imports import require
from use_st5.encode.options import SentenceTransformersNames
from use_st5.evaluation.task import EvaluationTask, TaskContext, TaskResult


class _ContextEncoder(SentenceTransformersNames):
    """The encoder of a context with the names of sentence-transformers."""

    name, identity, max_length, dimension = "encoder", "context", None, 0

    def __init__(self, context: TaskContext) -> None:
        self._embed, self.dimension = context.embed, context.embed(["a"]).shape[1]
        self.prompts = {**SentenceTransformersNames.prompts, **context.prompts}

    def encode(self, texts: list[str], *, prompt: str | None = None, **_: Any) -> np.ndarray:
        return self._embed([(prompt or "") + text for text in texts])


def mteb_task(name: str) -> EvaluationTask:
    """The task that mteb calls `name`; a ValueError says which names are similar."""
    mteb: Any = require("mteb", "integrations")
    try:
        task = mteb.get_task(name)
    except KeyError as error:
        raise ValueError(f"tasks: expected a task of mteb; {error.args[0]}") from error
    main = task.metadata.main_score

    def score(context: TaskContext, _: None) -> TaskResult:
        wrapper = require("mteb.models", "integrations").SentenceTransformerEncoderWrapper
        encoder = wrapper(_ContextEncoder(context))
        (result,) = mteb.evaluate(encoder, [task], cache=None, show_progress_bar=False)
        parts = [
            {"split": split, "subset": row["hf_subset"], main: row["main_score"]}
            for split, rows in result.scores.items()
            for row in rows
        ]
        scores = {main: float(result.get_score())}
        return TaskResult(main, scores, {"parts": len(parts)}, {"parts": parts})

    options = {"revision": task.metadata.revision, "mteb": metadata.version("mteb")}
    protocol = f"{main} of mteb's task {task.metadata.name}, the mean of its splits and languages"
    return EvaluationTask(f"mteb:{name}", "mteb", name, protocol, score, options=options)
