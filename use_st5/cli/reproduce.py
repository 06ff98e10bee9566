"""`use-st5 reproduce`, which is gone: it says where the experiments are now."""

from __future__ import annotations

import typer

HELP = "Gone: the experiments of the papers are scripts of the repository, beside the package."
CONTEXT = {"allow_extra_args": True, "ignore_unknown_options": True}


def reproduce(context: typer.Context) -> None:
    """Says where to, with exit code 2."""
    del context
    raise typer.BadParameter(
        "the experiments are scripts now; in a checkout of the repository run `python -m "
        "experiments.PAPER.NAME --data DATA --out OUT`; experiments/README.md lists them."
    )
