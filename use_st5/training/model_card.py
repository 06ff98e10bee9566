"""The model card of a training."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from use_st5.io.progress import markdown_text
from use_st5.training.arguments import FileArguments
from use_st5.training.history import History
from use_st5.training.rows import TrainingFile
from use_st5.training.run_folder import plain_arguments
from use_st5.training.validation import Scores, ValidationSet

if TYPE_CHECKING:
    from use_st5.training.train import TrainingPlan


def card(
    plan: TrainingPlan,
    history: History,
    validation: Mapping[str, Scores],
    test: Mapping[str, Scores],
    target: Path,
) -> str:
    """The model card in Markdown: scores "before" and "after" the training, data, settings."""
    files = [
        f"| {markdown_text(Path(file.name).name)} | {file.task.name} "
        f"| {markdown_text(', '.join(file.columns.values()))} | {file.kept:,} "
        f"| {file.mixing_weight or ''} | `{file.content[:16]}` |"
        for file in plan.files
    ]
    defaults = plain_arguments(FileArguments())
    given = plain_arguments(plan.arguments)
    changed = {name: value for name, value in given.items() if value != defaults[name]}
    settings = json.dumps(changed, indent=1, ensure_ascii=False)
    # Longer than every row of backticks in the settings, which would end the block.
    fence = max(["``", *re.findall("`+", settings)], key=len) + "`"
    best, unit = history.best_step or 0, plan.unit
    choice = (
        f"{unit} {best} of {history.step}, the best of {len(history.evaluations)} evaluations by "
        f"{plan.monitor}"
        if best
        else f"the start, because no {unit} was better by {plan.monitor}"
    )
    rows = _described(plan.sets, plan.validation)
    scores = [
        f"Scores are multiplied by 100. Validation, {rows}, chose the exported weights:",
        f"{markdown_text(choice)}."
        + ("" if plan.tests else " Without test rows, the scores are optimistic."),
        "",
        *_table("validation", validation),
    ]
    if not plan.sets:
        scores = [f"Trained on all rows without validation: step {history.step}, the last.", ""]
    if plan.tests:
        rows = _described(plan.tests, plan.test)
        scores += [f"Test, {rows}, chose nothing and was evaluated once.", ""]
        scores += _table("test", test)
    return "\n".join(
        [
            f"# {markdown_text(target.name)}",
            "",
            f"{markdown_text(plan.start)}, trained by use_st5 on {len(files)} file(s) of its "
            "user's.",
            "",
            "```python",
            "import use_st5",
            f'use_st5.load({target.name!r}).encode(["How old are you?"])',
            "```",
            "",
            "## Scores",
            "",
            *scores,
            "## Data",
            "",
            *("| file | task | columns | rows | weight | sha256 |", "|---" * 6 + "|", *files),
            "",
            "## Settings",
            "",
            "Arguments of `use_st5.train` that differ from the defaults:",
            "",
            f"{fence}json",
            settings,
            fence,
            "",
        ]
    )


def _described(sets: Sequence[ValidationSet], files: Sequence[TrainingFile]) -> str:
    """Describes the rows of sets, and their metrics."""
    origin = "separate files" if files else "held-out rows of the training files"
    texts = (
        f"{markdown_text(each.name)}, {len(each.rows):,} rows, {each.metric.description}"
        for each in sets
    )
    return f"{origin} ({'; '.join(texts)})"


def _table(use: str, scores: Mapping[str, Scores]) -> list[str]:
    before, after = scores["before"], scores["after"]
    rows = [
        f"| {markdown_text(name)} | {100 * before[name]:.2f} | {100 * after[name]:.2f} |"
        for name in after
    ]
    return [f"| {use} | before | after |", "|---|---|---|", *rows, ""]
