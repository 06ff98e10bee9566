"""`use-st5 classify`: predicts the labels of texts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from use_st5.cli.files import STDIN, ColumnOption, open_texts
from use_st5.cli.models import (
    Backend,
    BackendChoice,
    ModelChoice,
    load_encoder,
    say_truncated,
    start_tensorflow,
)
from use_st5.cli.output import echo, manual, print_table, waiting
from use_st5.io.lines import in_chunks
from use_st5.io.progress import progress_lines

if TYPE_CHECKING:
    from use_st5.engines.classifier import SavedClassifier
    from use_st5.training.classifier import Classifier

# Texts that are encoded at once.
_ROWS, _CHARACTERS = 4096, 4_000_000

HELP = manual(
    r"""Predict the label of each text with a classifier that use-st5 train made.

    CLASSIFIER is the file classifier.keras in the folder TO.run of a training on texts with labels.
    Its encoder is in the folder TO next to it, or in --encoder. The texts are the lines of files,
    or of standard input (-, or no file), or a column of tables (--column).

    In a pipe the result is lines with tabs: label, probability, text. --json prints an object for
    each line, with the probability of every label. If a text may have several labels, they are
    those with a probability above 0.5, and the line has the highest.""",
    "use-st5 classify tuned.run/classifier.keras questions.txt",
    "cut -f 3 mail.tsv | use-st5 classify tuned.run/classifier.keras --json | jq .label",
)


def classify(
    classifier: Annotated[
        str, typer.Argument(metavar="CLASSIFIER", help="The .keras file of a classifier.")
    ],
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FILE]...", help="Files of texts, one a line; - for stdin."),
    ] = None,
    encoder: Annotated[
        str | None, typer.Option(help="The folder of its encoder. Default: TO next to TO.run.")
    ] = None,
    batch_size: Annotated[int, typer.Option(min=1, help="Texts in a batch at most.")] = 512,
    backend: BackendChoice = "tensorflow",
    column: ColumnOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, an object a line.")] = False,
) -> None:
    """Names the classes of texts."""
    from use_st5.engines.classifier import chosen

    loaded = _load(classifier, encoder, backend)
    options = {"batch_size": batch_size, "show_progress": False, "on_truncation": "ignore"}
    cells: list[tuple[str, str, str]] = []
    total = cut = 0
    chunks = in_chunks(
        _texts(files or [STDIN], column), rows=_ROWS, characters=_CHARACTERS, length=len
    )
    with progress_lines(lambda: f"texts: {total:,}"):
        for texts in chunks:
            probabilities = loaded.probabilities(texts, **options)
            total, cut = total + len(texts), cut + len(loaded.encoder.truncated(texts))
            for text, row in zip(texts, probabilities, strict=True):
                label = chosen(row, loaded.labels, several=loaded.multi_label)
                if as_json:
                    parts = zip(loaded.labels, row.tolist(), strict=True)
                    by_label = {name: round(part, 6) for name, part in parts}
                    name = "labels" if loaded.multi_label else "label"
                    answer = {name: label, "probabilities": by_label, "text": text}
                    echo(json.dumps(answer, ensure_ascii=False))
                else:
                    shown = label if isinstance(label, str) else ", ".join(label)
                    cells.append((shown, f"{row.max():.4f}", text))
    if not total:
        raise ValueError("expected texts to classify, one a line, received none")
    say_truncated(loaded.encoder, cut, total)
    if not as_json:
        print_table(["label", "probability", "text"], cells)


def _load(classifier: str, encoder: str | None, backend: Backend) -> Classifier | SavedClassifier:
    if backend == "tensorflow":
        start_tensorflow()
        from use_st5.training.classifier import Classifier

        with waiting(f"loading {classifier}"):
            return Classifier.load(classifier, encoder=encoder)
    from use_st5.engines.classifier import SavedClassifier

    # `train` writes the classifiers of TO into the folder TO.run.
    run = Path(classifier).absolute().parent
    if encoder is None and run.suffix != ".run":
        raise ValueError(f"{classifier} is not in a folder TO.run: give --encoder FOLDER.")
    folder = encoder or str(run.with_suffix(""))
    return SavedClassifier(classifier, load_encoder(ModelChoice(folder, backend)))


def _texts(files: Sequence[str], column: str | None) -> Iterator[str]:
    for file in files:
        with open_texts(file, column=column) as texts:
            yield from texts
