"""The options of a runner, as Beam's own parsers read them."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Sequence
from typing import Any

from use_st5._imports import require


def parsed_options(runner: str, flags: Sequence[str]) -> Any:
    """Beam's `PipelineOptions` of a runner.

    Beam itself passes over what it does not know; a misspelt option of a job that costs money is
    refused here.

    Args:
        runner: The name of a runner, such as "DirectRunner", or the full name of a class.
        flags: Words of a command line, such as `--project`, `my-project`.

    Raises:
        ImportError: Beam is not installed.
        ValueError: A word is no option, or no value of one.
    """
    options: Any = require("apache_beam.options.pipeline_options", "beam")
    given = options.PipelineOptions(["--runner", runner, *flags])
    parser = options._BeamArgumentParser(allow_abbrev=False)
    for kind in {str(kind): kind for kind in options.PipelineOptions.__subclasses__()}.values():
        kind._add_argparse_args(parser)
    complaint = io.StringIO()
    try:
        with contextlib.redirect_stderr(complaint):
            _, unknown = parser.parse_known_args([*flags])
    except SystemExit:
        raise ValueError(
            f"Expected options of Beam: {complaint.getvalue().strip().splitlines()[-1]}"
        ) from None
    if unknown:
        raise ValueError(
            f"Expected options that Beam knows, received {' '.join(unknown)}. Beam's page of "
            "pipeline options lists them: https://beam.apache.org/documentation/"
        )
    return given


def check_runner(runner: str) -> None:
    """Checks that Beam has a runner.

    Raises:
        ImportError: Beam is not installed with what the runner needs.
        ValueError: There is none of this name.
    """
    runners: Any = require("apache_beam.runners.runner", "beam")
    try:
        runners.create_runner(runner)
    except (ImportError, AttributeError) as error:
        raise ImportError(
            f"The runner {runner} does not load ({error}). Check its name; DataflowRunner needs: "
            'pip install "apache-beam[gcp]"'
        ) from error
