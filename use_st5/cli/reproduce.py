"""`use-st5 reproduce` was removed: it prints the new place of the experiments."""

from __future__ import annotations

import typer

HELP = "Removed: the experiments of the papers are scripts in the repository, not in the package."
CONTEXT = {"allow_extra_args": True, "ignore_unknown_options": True}


def reproduce(context: typer.Context) -> None:
    """Prints the new commands, with exit code 2."""
    del context
    raise typer.BadParameter(
        "this command was removed. In a checkout of the repository run `python -m "
        "experiments.PAPER.NAME --data DATA --out OUT`; experiments/README.md lists the scripts."
    )
