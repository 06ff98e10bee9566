"""The options `--strategy` and `--tpu` of `train`."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

StrategyOption = Annotated[
    Literal["one", "mirrored", "tpu"] | None,
    typer.Option("--strategy", help="The devices. Default: the first GPU, or the CPU."),
]
TpuOption = Annotated[
    str | None, typer.Option("--tpu", metavar="NAME", help="The TPU's name or address.")
]


def strategy_name(strategy: str | None, tpu: str | None) -> str | None:
    """The argument `strategy` of the library: `tpu:NAME` for a TPU with a name."""
    if tpu is not None and strategy not in (None, "tpu"):
        raise typer.BadParameter(f"--tpu expects --strategy tpu, received {strategy}.")
    return strategy if tpu is None else f"tpu:{tpu}"
