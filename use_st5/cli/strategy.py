"""The options `--strategy` and `--tpu` of `train`."""

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
    typer.Option("--strategy", help="The devices. Default: the first GPU, or the CPU."),
]
TpuOption = Annotated[
    str | None, typer.Option("--tpu", metavar="NAME", help="The TPU's name or address.")
]


def strategy_name(strategy: Strategy | None, tpu: str | None) -> str | None:
    """The argument `strategy` of the library: `tpu:NAME` for a TPU with a name.

    Raises:
        typer.BadParameter: A TPU is named, but the strategy is not "tpu".
    """
    if tpu is None:
        return None if strategy is None else strategy.value
    if strategy not in (None, Strategy.TPU):
        raise typer.BadParameter(
            f"expected --strategy tpu with it, received {strategy}.", param_hint="--tpu"
        )
    return f"{Strategy.TPU.value}:{tpu}"
