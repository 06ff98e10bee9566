"""Where `train` trains: `--strategy` and `--tpu`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer


class Strategy(StrEnum):
    """The strategies of one machine."""

    ONE = "one"
    MIRRORED = "mirrored"
    TPU = "tpu"


StrategyOption = Annotated[
    Strategy | None,
    typer.Option("--strategy", help="Where to train. Default: the first GPU, or the CPU."),
]
TpuOption = Annotated[
    str | None, typer.Option("--tpu", metavar="NAME", help="The TPU's name or address.")
]


def strategy_name(strategy: Strategy | None, tpu: str | None) -> str | None:
    """What the library takes: a strategy's name, with the TPU's behind it.

    Raises:
        typer.BadParameter: A TPU is named, and the strategy is another.
    """
    if tpu is None:
        return None if strategy is None else strategy.value
    if strategy not in (None, Strategy.TPU):
        raise typer.BadParameter(f"does not go with --strategy {strategy}.", param_hint="--tpu")
    return f"{Strategy.TPU.value}:{tpu}"
