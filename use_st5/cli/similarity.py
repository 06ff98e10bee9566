"""`use-st5 similarity`: compares texts."""

from __future__ import annotations

import contextlib
import json
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from use_st5._imports import require
from use_st5.cli.files import ColumnOption, open_input, open_texts, sole_file
from use_st5.cli.models import (
    DEFAULT_MODEL,
    CountingEncoder,
    ModelChoice,
    ModelOption,
    PromptNameOption,
    PromptOption,
    QuickBackendChoice,
    load_encoder,
)
from use_st5.cli.output import echo, manual, print_table, say
from use_st5.io.lines import decoded_lines
from use_st5.io.progress import progress_lines

if TYPE_CHECKING:
    import numpy as np

# Largest numbers of texts for a matrix in a terminal, for a heat map, and for any matrix.
_TABLE_LIMIT = 10
_HEATMAP_LIMIT = 60
_TEXT_LIMIT = 5000

HELP = manual(
    r"""Compare texts: all against all, or pair by pair.

    The texts are the arguments, or the lines of a file (--file). With --pairs, each line of a file
    has two texts with a tab between them.

    cosine is the cosine of the angle between two vectors, from -1 to 1. angular is
    1 - angle / pi, from 0 to 1 (equation 1 of the Universal Sentence Encoder); it separates very
    similar texts better. dot is the dot product. The default is the one for which the model was
    trained.

    In a terminal the result is a table: the matrix, or for more than ten texts the most similar
    other text of each. In a pipe it is lines with tabs. --json prints every number.""",
    'use-st5 similarity "How old are you?" "What is your age?" "The train is late."',
    "use-st5 similarity --file questions.txt --heatmap questions.png",
    "use-st5 similarity --pairs pairs.tsv --metric angular > scores.tsv",
    "use-st5 similarity --file questions.txt --json | jq .similarity[0]",
)


Metric = Literal["cosine", "angular", "dot"]


def similarity(
    texts: Annotated[
        list[str] | None, typer.Argument(metavar="[TEXT]...", help="Two or more texts.")
    ] = None,
    file: Annotated[
        str | None, typer.Option("--file", "-f", help="A file of texts, one a line; - for stdin.")
    ] = None,
    pairs: Annotated[
        str | None, typer.Option("--pairs", "-p", help="A file of pairs; - for stdin.")
    ] = None,
    metric: Annotated[
        Metric | None,
        typer.Option(help="The similarity of two vectors. Default: the model's own."),
    ] = None,
    heatmap: Annotated[Path | None, typer.Option(help="Draw it: .png, .svg, .pdf.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    model: ModelOption = DEFAULT_MODEL,
    backend: QuickBackendChoice = None,
    prompt: PromptOption = None,
    prompt_name: PromptNameOption = None,
    column: ColumnOption = None,
) -> None:
    """Compares texts."""
    if sum(source is not None for source in (texts or None, file, pairs)) != 1:
        raise typer.BadParameter("expected one of texts, --file and --pairs.")
    if column is not None and file is None:
        raise typer.BadParameter("--column expects --file with a table.")
    chosen = ModelChoice(model, backend, prompt, prompt_name)
    if pairs is not None:
        if heatmap is not None:
            raise typer.BadParameter("--heatmap expects texts or --file: pairs have no matrix.")
        compared = _read_pairs(pairs)
    else:
        compared = texts or []
        if file is not None:
            with open_texts(file, column=column) as lines:
                compared = list(lines)
        most = _TEXT_LIMIT if heatmap is None else _HEATMAP_LIMIT
        if not 2 <= len(compared) <= most:
            raise ValueError(f"expected 2 to {most:,} texts, received {len(compared):,}")
    if heatmap is not None:  # Errors appear before the model is loaded.
        require("matplotlib", "plots")
    with contextlib.nullcontext() if heatmap is None else sole_file(heatmap):
        encoder = CountingEncoder(load_encoder(chosen), chosen)
        metric = metric or encoder.similarity_fn_name
        with progress_lines(lambda: f"encoding {len(compared):,} texts"):
            vectors = encoder.encode(compared)
        encoder.say_truncated()
        answer = {"model": encoder.name, "metric": metric}
        if pairs is None:
            matrix = encoder.similarity(vectors, metric=metric)
            _show_matrix(compared, matrix, answer, heatmap, as_json)
        else:
            _show_pairs(compared, vectors, answer, as_json)


def _read_pairs(file: str) -> list[str]:
    """The two texts of each line, one after the other."""
    texts = []
    with open_input(file) as stream:
        for number, line in decoded_lines(stream, where=file):
            cells = line.split("\t")
            if len(cells) != 2:
                raise ValueError(f"{file}:{number}: expected 1 tab, received {len(cells) - 1}")
            texts += cells
    return texts


def _show_pairs(
    texts: list[str], vectors: np.ndarray, answer: dict[str, Any], as_json: bool
) -> None:
    import numpy as np

    from use_st5.encode.similarity import similarity_by_name

    scores = similarity_by_name(answer["metric"])(vectors[::2], vectors[1::2])
    rows = [*zip(np.asarray(scores).tolist(), texts[::2], texts[1::2], strict=True)]
    if as_json:
        pairs = [{"texts": [a, b], "similarity": score} for score, a, b in rows]
        echo(json.dumps({**answer, "pairs": pairs}, ensure_ascii=False))
    else:
        cells = [(f"{score:.4f}", a, b) for score, a, b in rows]
        print_table([answer["metric"], "first", "second"], cells)


def _show_matrix(
    texts: list[str],
    matrix: np.ndarray,
    answer: dict[str, Any],
    heatmap: Path | None,
    as_json: bool,
) -> None:
    import numpy as np

    metric = answer["metric"]
    if as_json:
        answer |= {"texts": texts, "similarity": matrix.tolist()}
        echo(json.dumps(answer, ensure_ascii=False))
    elif len(texts) <= _TABLE_LIMIT:
        numbers = [str(number) for number in range(1, len(texts) + 1)]
        # 80 characters have space for this.
        digits = 2 if len(texts) > 8 and sys.stdout.isatty() else 3
        rows = [
            (number, text, *(f"{score:.{digits}f}" for score in row))
            for number, text, row in zip(numbers, texts, matrix, strict=True)
        ]
        print_table(["", "text", *numbers], rows, title=f"{metric} similarity")
    else:  # For each text the most similar other text.
        others = matrix.copy()
        np.fill_diagonal(others, -np.inf)
        closest = [
            (f"{others[row, column]:.3f}", texts[row], texts[column])
            for row, column in enumerate(others.argmax(axis=1))
        ]
        print_table([metric, "text", "closest other text"], closest)
    if heatmap is not None:
        from use_st5.plots import similarity_heatmap

        with warnings.catch_warnings():
            # Characters that matplotlib's font lacks are drawn as boxes.
            warnings.filterwarnings("ignore", message="Glyph .* missing")
            similarity_heatmap(texts, matrix, path=heatmap, label=f"{metric} similarity")
        say(f"heat map: {heatmap}")
