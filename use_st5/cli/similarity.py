"""`use-st5 similarity`: compares texts."""

from __future__ import annotations

import contextlib
import json
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from use_st5._imports import require
from use_st5.cli.files import ColumnOption, open_input, open_texts, sole_file
from use_st5.cli.models import (
    DEFAULT_MODEL,
    BackendChoice,
    CountingEncoder,
    ModelChoice,
    ModelOption,
    PromptNameOption,
    PromptOption,
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
    backend: BackendChoice = "tensorflow",
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
        _pair_by_pair(_read_pairs(pairs), metric, chosen, as_json)
        return
    if file is not None:
        with open_texts(file, column=column) as lines:
            texts = list(lines)
    texts = texts or []
    most = _TEXT_LIMIT if heatmap is None else _HEATMAP_LIMIT
    if not 2 <= len(texts) <= most:
        raise ValueError(f"expected 2 to {most:,} texts, received {len(texts):,}")
    if heatmap is not None:  # Errors appear before the model is loaded.
        require("matplotlib", "plots")
        from use_st5.plots import check_picture

        check_picture(heatmap)
    with contextlib.nullcontext() if heatmap is None else sole_file(heatmap):
        _all_against_all(texts, metric, chosen, heatmap, as_json)


def _read_pairs(file: str) -> list[tuple[str, str]]:
    pairs = []
    with open_input(file) as stream:
        for number, line in decoded_lines(stream, where=file):
            cells = line.split("\t")
            if len(cells) != 2:
                raise ValueError(f"{file}:{number}: expected 1 tab, received {len(cells) - 1}")
            pairs.append((cells[0], cells[1]))
    return pairs


def _pair_by_pair(
    pairs: Sequence[tuple[str, str]], metric: Metric | None, model: ModelChoice, as_json: bool
) -> None:
    encoder = CountingEncoder(load_encoder(model), model)
    metric = metric or encoder.similarity_fn_name
    import numpy as np

    from use_st5.encode.similarity import similarity_by_name

    vectors = _encoded([text for pair in pairs for text in pair], encoder)
    scores = np.asarray(similarity_by_name(metric)(vectors[::2], vectors[1::2])).tolist()
    if as_json:
        rows = [
            {"texts": list(texts), "similarity": score}
            for texts, score in zip(pairs, scores, strict=True)
        ]
        answer = {"model": encoder.name, "metric": metric, "pairs": rows}
        echo(json.dumps(answer, ensure_ascii=False))
        return
    print_table(
        [metric, "first", "second"],
        [(f"{score:.4f}", *texts) for texts, score in zip(pairs, scores, strict=True)],
    )


def _all_against_all(
    texts: list[str],
    metric: Metric | None,
    model: ModelChoice,
    heatmap: Path | None,
    as_json: bool,
) -> None:
    encoder = CountingEncoder(load_encoder(model), model)
    metric = metric or encoder.similarity_fn_name
    matrix = encoder.similarity(_encoded(texts, encoder), metric=metric)
    if as_json:
        answer = {"model": encoder.name, "metric": metric, "texts": texts}
        echo(json.dumps({**answer, "similarity": matrix.tolist()}, ensure_ascii=False))
    elif len(texts) <= _TABLE_LIMIT:
        numbers = [str(number) for number in range(1, len(texts) + 1)]
        # 80 characters have space for this.
        digits = 2 if len(texts) > 8 and sys.stdout.isatty() else 3
        rows = [
            (number, text, *(f"{score:.{digits}f}" for score in row))
            for number, text, row in zip(numbers, texts, matrix, strict=True)
        ]
        print_table(["", "text", *numbers], rows, title=f"{metric} similarity")
    else:
        _print_closest(texts, matrix, metric)
    if heatmap is not None:
        from use_st5.plots import similarity_heatmap

        with warnings.catch_warnings():
            # Characters that matplotlib's font lacks are drawn as boxes.
            warnings.filterwarnings("ignore", message="Glyph .* missing")
            similarity_heatmap(texts, matrix, path=heatmap, label=f"{metric} similarity")
        say(f"heat map: {heatmap}")


def _encoded(texts: list[str], encoder: CountingEncoder) -> np.ndarray:
    with progress_lines(lambda: f"encoding {len(texts):,} texts"):
        vectors = encoder.encode(texts)
    encoder.say_truncated()
    return vectors


def _print_closest(texts: list[str], matrix: np.ndarray, metric: str) -> None:
    """Prints for each text the most similar other text."""
    import numpy as np

    others = matrix.copy()
    np.fill_diagonal(others, -np.inf)
    rows = [
        (f"{others[row, column]:.3f}", texts[row], texts[column])
        for row, column in enumerate(others.argmax(axis=1))
    ]
    print_table([metric, "text", "closest other text"], rows)
