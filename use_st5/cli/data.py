"""`use-st5 data`: lists the evaluation sets and prepares them."""

from __future__ import annotations

import contextlib
import functools
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from use_st5.cli.evaluate import DATA_VARIABLE
from use_st5.cli.output import manual, print_cards, say, waiting

if TYPE_CHECKING:
    from use_st5.data.data_folder import DataFolder, DataSource
    from use_st5.evaluation.task import EvaluationTask

HELP = manual(
    f"""List the evaluation sets that are available, and how to get the others.

    The command searches --data, or else the folder of the environment variable {DATA_VARIABLE}, and
    up to two folders deeper, for the published file names. It reads each set that it finds. If this
    fails, the reason is next to the place. use_st5 contains none of the sets, because each has its
    own licence.

    For some sets `use-st5 data prepare NAME` makes the files from a download. The last column has
    the NAME.""",
    "use-st5 data --data data",
    "use-st5 data prepare sts --from downloads --to data",
    "use-st5 data prepare glue/cola glue/rte --to data",
)

_PREPARE_HELP = manual(
    r"""Convert published data sets to the files that the evaluation reads.

    [bold]sts[/bold] makes STS12 to STS16, the STS Benchmark and SICK from SemEval's archives.
    [bold]senteval[/bold] makes MR, CR, SUBJ, MPQA, TREC and SST like SentEval's own script, with
    its tokenizer. Both read the downloads in --from, packed or unpacked, and write the sets that
    they find.

    [bold]glue/cola[/bold], glue/sst2, glue/mrpc, glue/stsb, glue/qqp, glue/mnli, glue/qnli and
    glue/rte come from TensorFlow Datasets. It downloads them, or reads its data_dir in --from.

    A set with an existing file is skipped, unless --overwrite is given. Other files in its folder
    are never changed. The command prints the folders that it wrote, one a line.""",
    "use-st5 data prepare sts --from downloads --to data",
    "use-st5 data prepare glue/cola glue/rte --from ~/tensorflow_datasets --to data",
)

app = typer.Typer(
    help=HELP, invoke_without_command=True, rich_markup_mode="rich", no_args_is_help=False
)


@app.callback()
def data(
    context: typer.Context,
    folder: Annotated[
        Path | None,
        typer.Option("--data", "-d", envvar=DATA_VARIABLE, help="The folder with the data sets."),
    ] = None,
) -> None:
    """Shows the data sets; runs only where no command of its own follows."""
    if context.invoked_subcommand is not None:
        return
    from use_st5.data.data_folder import DataFolder
    from use_st5.data.preparation import PREPARATIONS
    from use_st5.evaluation.registry import all_tasks

    data_folder = None if folder is None else DataFolder(folder)
    users: dict[DataSource, list[EvaluationTask]] = {}
    for task in all_tasks().values():
        for source in task.sources + task.optional_sources:
            users.setdefault(source, []).append(task)
    with waiting("reading the data sets"):
        states = [_state(source, tasks, data_folder) for source, tasks in users.items()]
    rows = [
        (
            source.name,
            state,
            ", ".join(dict.fromkeys(task.group for task in tasks)),
            source.origin,
            source.licence,
            " or ".join(name for name, each in PREPARATIONS.items() if each.gives(source)),
        )
        for (source, tasks), state in zip(users.items(), states, strict=True)
    ]
    print_cards(["data set", "found", "for", "from", "licence", "prepare"], rows)


@app.command("prepare", help=_PREPARE_HELP)
def prepare(
    names: Annotated[
        list[str], typer.Argument(metavar="NAME...", help="sts, senteval, glue/cola, …")
    ],
    to: Annotated[Path, typer.Option("--to", help="The data folder to write to.")],
    source: Annotated[
        Path | None, typer.Option("--from", help="The folder with the downloads.")
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace files that exist.")
    ] = False,
) -> None:
    """Prepares data sets."""
    from use_st5.data.preparation import PREPARATIONS
    from use_st5.data.preparation import prepare as write_folders

    for name in names:
        candidate = PREPARATIONS.get(name)
        if candidate is None:
            raise typer.BadParameter(
                f"expected one of {', '.join(PREPARATIONS)}, received {name!r}."
            )
        if candidate.reads_downloads and source is None:
            raise typer.BadParameter(
                f"expected a folder with {candidate.needs}, which {name} needs.",
                param_hint="--from",
            )
    for name in names:
        preparation = PREPARATIONS[name]
        # TFDS writes the progress of its downloads to standard output.
        with contextlib.redirect_stdout(sys.stderr):
            written, left = write_folders(preparation, to, source=source, overwrite=overwrite)
        for folder in written:
            typer.echo(str(folder))
        for folder in left:
            say(f"not changed: {folder}; --overwrite replaces its files")
        places = {to / place for place in preparation.writes}
        if absent := sorted(map(str, places - {*written, *left})):
            say(f"not written: {', '.join(absent)}; {source} lacks the downloads for it")


def _state(source: DataSource, tasks: list[EvaluationTask], folder: DataFolder | None) -> str:
    """The place of the data set, and if it cannot be read, the reason."""
    if folder is None:
        return "unknown"
    if not folder.has(source):
        return "missing"
    path = folder.find(source)
    place = path.relative_to(folder.path).as_posix()
    errors = [_reading_error(task, folder) for task in tasks]
    about_it = [error for error in errors if str(path) in error]
    # Another file of a task may be the reason. If any task was read, this set can be read.
    reason = next(iter(about_it), errors[0] if all(errors) else "")
    return f"{place}, cannot be read: {reason}" if reason else place


@functools.cache
def _reading_error(task: EvaluationTask, folder: DataFolder) -> str:
    """The error in a task's data sets; empty if they can be read, or if one is missing."""
    from use_st5.data.data_folder import MissingDataError

    try:
        task.read(folder)
    except MissingDataError:
        return ""
    except (OSError, ValueError) as error:
        return str(error)
    return ""
