"""`use-st5 sweep`: searches the arguments of a training."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from use_st5._imports import require
from use_st5.cli.models import OverwriteOption, start_keras
from use_st5.cli.output import manual, print_table, say
from use_st5.cli.train import (
    Words,
    continuing,
    named_words,
    parsed,
    train_options,
    with_train_options,
)

HELP = manual(
    r"""Train an encoder several times, and export the best training.

    MODEL, files and options are those of `use-st5 train`. --search gives the values of an option,
    of its loss as loss.NAME: a range, LOW:HIGH, or choices with commas between them. Optuna (extra
    sweep) draws the next values by the trials before. Whole numbers stay whole; the scale is
    logarithmic if the ends differ by a factor of ten or more. In a file of --from-config, a table
    \[search] has the same, and lists.

    The validation score of the best step chooses. Test rows choose nothing. The folder TO.run has
    the table sweep.csv, the plot sweep.svg (extra plots), Optuna's study.sqlite, and the run of
    each trial with its run.toml. The same command continues an interrupted sweep, and a larger
    --trials extends it.""",
    "use-st5 sweep use_dan_en --train pairs.tsv --to best --search learning_rate=1e-5:1e-3",
    "use-st5 sweep use_dan_en --train pairs.tsv --to best --trials 12 "
    "--search learning_rate=1e-5:1e-3 --search batch_size=16,32,64 --search epochs=1:4 "
    "--search loss.temperature=0.01:0.1",
)


def sweep(
    search: Annotated[
        Words,
        typer.Option(metavar="NAME=LOW:HIGH|A,B,…", help="The values of an option to try."),
    ] = None,
    trials: Annotated[int | None, typer.Option(help="Number of trainings. Default: 20.")] = None,
    overwrite: OverwriteOption = False,
    **options: Any,
) -> None:
    """Trains with drawn arguments; the other options are those of `train_options`."""
    given = named_words("--search", search) or None
    arguments = train_options(**options, search=given, trials=trials)
    ranges = {name: _values(words) for name, words in arguments.pop("search", {}).items()}
    start_keras("sweep")
    optuna = require("optuna", "sweep")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    from use_st5.training.sweeps import shown
    from use_st5.training.sweeps import sweep as run_sweep

    with continuing(overwrite):
        result = run_sweep(**arguments, search=ranges, overwrite=overwrite, log=say)
    rows = [
        (
            str(trial.number + 1),
            *map(shown, trial.arguments.values()),
            "failed" if trial.score is None else f"{100 * trial.score:.2f}",
            "–" if trial.best_step is None else str(trial.best_step),
        )
        for trial in result.trials
    ]
    print_table(["trial", *result.best.arguments, result.best.monitor, "best step"], rows)
    say(f"written: {arguments['to']}, trial {result.best.number + 1}: {result.best.line()}")


def _values(words: Any) -> Any:
    """A range as a tuple, choices as a list; a TOML file may give the list itself."""
    if not isinstance(words, str):
        return words
    low, colon, high = words.partition(":")
    if colon:
        return parsed(low), parsed(high)
    return [parsed(word) for word in words.split(",")]


sweep.__signature__ = with_train_options(sweep)  # type: ignore[attr-defined]
