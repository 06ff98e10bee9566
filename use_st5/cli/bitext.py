"""`use-st5 bitext`: finds translations in the lines of two texts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from use_st5.cli.files import ColumnOption, open_texts, sole_file
from use_st5.cli.models import (
    DEFAULT_MODEL,
    BackendChoice,
    BackendOption,
    CountingEncoder,
    ModelChoice,
    ModelOption,
    PromptNameOption,
    PromptOption,
    load_encoder,
)
from use_st5.cli.output import check_table_name, manual, say, waiting, write_table

HELP = manual(
    """Find the lines of two texts that are translations or paraphrases of each other.

    FIRST and SECOND are text files with one sentence a line. They are in one language or two, and
    the model must know these languages. The margin of a pair is its cosine, divided by the mean of
    both sentences' cosines with their nearest neighbours (Artetxe and Schwenk). A margin above 1
    means that the two are nearer to each other than to their neighbours. Each sentence is in one
    pair at most. Pairs with larger margins come first.

    The output, .tsv, .csv or .jsonl, has the columns anchor, positive and margin. `use-st5 train`
    reads it. A good --threshold depends on the model and the texts: check the pairs with margins
    near it. The paper used 1.06.""",
    "use-st5 bitext de.txt en.txt --to pairs.tsv --model path/to/multilingual",
    "use-st5 bitext de.txt en.txt --to pairs.tsv --model path/to/multilingual --threshold 1.1",
)


def bitext(
    first: Annotated[str, typer.Argument(metavar="FIRST", help="A text file.")],
    second: Annotated[str, typer.Argument(metavar="SECOND", help="The other text file.")],
    to: Annotated[Path, typer.Option("--to", help="The file to write.")],
    model: ModelOption = DEFAULT_MODEL,
    backend: BackendChoice = BackendOption.TENSORFLOW,
    prompt: PromptOption = None,
    prompt_name: PromptNameOption = None,
    column: ColumnOption = None,
    threshold: Annotated[float, typer.Option(help="The smallest margin.")] = 1.06,
    neighbours: Annotated[int, typer.Option(min=1, help="Nearest neighbours of the margin.")] = 4,
) -> None:
    """Finds translations among the lines of two texts."""
    chosen = ModelChoice(model, backend, prompt, prompt_name)
    check_table_name(to, option="--to")
    with sole_file(to, inputs=[first, second]):
        sources, targets = _sentences(first, column), _sentences(second, column)
        encoder = CountingEncoder(load_encoder(chosen), chosen)
        if len(encoder.languages) == 1:
            say(
                f"warning: {encoder.name} knows one language, {encoder.languages[0]}. Pairs with a "
                "text in another language are random. For translations, give a multilingual model "
                "with --model."
            )
        from use_st5.search import mine_bitext

        with waiting(f"mining {len(sources):,} and {len(targets):,} sentences"):
            pairs, margins = mine_bitext(
                encoder.encode(sources), encoder.encode(targets), k=neighbours
            )
        encoder.say_truncated()
        rows = [
            (sources[i], targets[j], f"{margin:.4f}")
            for (i, j), margin in zip(pairs.tolist(), margins.tolist(), strict=True)
            if margin >= threshold
        ]
        if not rows:
            largest = f"the largest is {margins[0]:.4f}" if len(margins) else "there is none"
            raise ValueError(
                f"expected margins of at least {threshold}, found none: {largest}. Lower "
                "--threshold."
            )
        write_table(to, ("anchor", "positive", "margin"), rows)
    say(f"{to}: {len(rows):,} pairs of {len(sources):,} and {len(targets):,} different sentences")


def _sentences(file: str, column: str | None) -> list[str]:
    """The lines of a file in their order, without empty and repeated ones."""
    with open_texts(file, column=column) as texts:
        lines = dict.fromkeys(text.strip() for text in texts)
    lines.pop("", None)
    if not lines:
        raise ValueError(f"{file}: expected sentences, one a line, received none")
    return [*lines]
