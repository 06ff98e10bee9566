"""`use-st5 duplicates`: finds the lines of a text that say the same."""

from __future__ import annotations

from typing import Annotated

import typer

from use_st5.cli.files import ColumnOption, open_texts
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
from use_st5.cli.output import manual, print_table, say, waiting

HELP = manual(
    """Find the pairs of lines that are most similar (paraphrase mining).

    Every line of FILE is compared with every other one by cosine. Empty lines are left out. Lines
    that are equal but for case, spaces and the encoding of accents are one text, that of the first
    of them; --equal-lines lists their pairs, too.

    The result has the cosine, the numbers of both lines (from 1) and their texts, the most similar
    pair first, and in a pipe tabs between them. A good --threshold depends on the model and the
    texts: check the pairs with cosines near it.""",
    "use-st5 duplicates questions.txt --top 100",
    "use-st5 duplicates tickets.csv --column text --threshold 0.95 > pairs.tsv",
)


def duplicates(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="A text file, or - for standard input.")
    ],
    threshold: Annotated[float, typer.Option(help="The smallest cosine of a pair.")] = 0.9,
    top: Annotated[int, typer.Option(min=1, help="The largest number of pairs.")] = 10_000,
    equal_lines: Annotated[
        bool, typer.Option("--equal-lines", help="List pairs of equal lines, too.")
    ] = False,
    model: ModelOption = DEFAULT_MODEL,
    backend: BackendChoice = "tensorflow",
    prompt: PromptOption = None,
    prompt_name: PromptNameOption = None,
    column: ColumnOption = None,
) -> None:
    """Finds the lines of a text that say the same."""
    from use_st5.search.duplicates import mine_paraphrases
    from use_st5.search.hard_negatives import text_key

    chosen = ModelChoice(model, backend, prompt, prompt_name)
    texts: dict[str | int, tuple[int, str]] = {}
    with open_texts(file, column=column) as lines:
        for number, line in enumerate(lines, start=1):
            if key := text_key(line):
                texts.setdefault(number if equal_lines else key, (number, line))
    if not texts:
        raise ValueError(f"{file}: expected texts, one a line, received none")
    numbered = [*texts.values()]
    encoder = CountingEncoder(load_encoder(chosen), chosen)
    compared = len(numbered) * (len(numbered) - 1) // 2
    say(f"{len(numbered):,} texts of {number:,} lines: {compared:,} pairs to compare")
    with waiting(f"encoding {len(numbered):,} texts"):
        vectors = encoder.encode([line for _, line in numbered])
    encoder.say_truncated()
    pairs, cosines = mine_paraphrases(
        vectors, threshold=threshold, max_pairs=top, show_progress=True
    )
    if len(pairs) == top:
        say(f"--top {top:,} cut the list at a cosine of {cosines[-1]:.4f}")
    rows = []
    for pair, score in zip(pairs.tolist(), cosines.tolist(), strict=True):
        (first, text), (second, other) = (numbered[row] for row in pair)
        rows.append((f"{score:.4f}", str(first), str(second), text, other))
    print_table(["cosine", "line", "other line", "text", "other text"], rows)
