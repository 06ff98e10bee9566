"""The model card of a training."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from use_st5.io.progress import markdown_text
from use_st5.losses.task_loss import TaskLoss
from use_st5.training.arguments import PYTHON_ONLY, FileArguments
from use_st5.training.history import History
from use_st5.training.rows import TrainingFile
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
    """The model card in Markdown: data, command, and scores "before" and "after" the training."""
    files = [
        f"| {markdown_text(Path(file.name).name)} | {file.task.name} | {file.kept:,} "
        f"| {file.mixing_weight or ''} | `{file.content[:16]}` |"
        for file in plan.files
    ]
    command = command_line(plan, target)
    # Longer than every row of backticks in the command, which would end the block.
    fence = max(["``", *re.findall("`+", command)], key=len) + "`"
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
            *_scores(plan, history, validation, test),
            "## Data",
            "",
            *("| file | task | rows | weight | sha256 |", "|---|---|---|---|---|", *files),
            "",
            "## Command",
            "",
            f"{fence}text",
            command,
            fence,
            "",
        ]
    )


def _scores(
    plan: TrainingPlan,
    history: History,
    validation: Mapping[str, Scores],
    test: Mapping[str, Scores],
) -> Iterator[str]:
    """The tables of the validation and the test scores, each with the use of its rows."""
    best, unit = history.best_step or 0, plan.unit
    choice = (
        f"{unit} {best} of {history.step}, the best of {len(history.evaluations)} evaluations by "
        f"{plan.monitor}"
        if best
        else f"the start, because no {unit} was better by {plan.monitor}"
    )
    rows = _described(plan.sets, plan.validation)
    yield f"Scores are multiplied by 100. Validation, {rows}, chose the exported weights:"
    yield f"{markdown_text(choice)}." + (
        "" if plan.tests else " Without test rows, the scores are optimistic."
    )
    yield ""
    yield from _table("validation", validation)
    if plan.tests:
        yield f"Test, {_described(plan.tests, plan.test)}, chose nothing and was evaluated once."
        yield ""
        yield from _table("test", test)


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


def command_line(plan: TrainingPlan, target: Path) -> str:
    """The command line of this training, with all settings that differ from the defaults."""
    words = ["use-st5", "train", plan.start]
    all_files = (*plan.files, *plan.validation, *plan.test)
    in_memory = [file.name for file in all_files if file.in_memory]
    for file in plan.files:
        weight = f"={file.mixing_weight}" if file.mixing_weight else ""
        words += ["--train", f"{file.name}{weight}"]
        if file.task_given:
            words += ["--task", f"{file.name}={file.task.name}"]
    renamings = (f"{key}={f.columns[key]}" for f in all_files for key in f.columns_given)
    for option, values in (
        ("--validation", [file.name for file in plan.validation]),
        ("--test", [file.name for file in plan.test]),
        ("--column", dict.fromkeys(renamings)),
    ):
        words += [word for value in values for word in (option, value)]
    extras = [f"rows in memory ({', '.join(in_memory)})"] if in_memory else []
    for name, value in vars(plan.arguments).items():
        if value == getattr(FileArguments(), name):
            continue
        if name in PYTHON_ONLY or isinstance(value, TaskLoss) or callable(value):
            extras.append(name)
        else:
            words += _option(f"--{name.replace('_', '-')}", value)
    command = shlex.join([*words, "--to", target.name])
    return (
        f"{command}\n# and, of use_st5.train in Python: {', '.join(extras)}" if extras else command
    )


def _option(option: str, value: Any) -> list[str]:
    """An option with its value, repeated for each part of the model and each key of a mapping."""
    if option == "--freeze":
        return [word for part in value or ["nothing"] for word in (option, part)]
    if isinstance(value, Mapping):
        return [w for key, each in value.items() for w in (option, f"{key}={_loss_value(each)}")]
    return [option, ",".join(map(str, value)) if isinstance(value, tuple | list) else str(value)]


def _loss_value(value: Any) -> str:
    """A value as the command reads it: a comma marks a list, even one with no or one value."""
    if not isinstance(value, tuple | list):
        return str(value)
    return ",".join(map(str, value)) + "," * (len(value) < 2)
