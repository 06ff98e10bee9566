"""`use-st5 bitext`: translations among the lines of two texts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from use_st5.cli.files import open_input, read_lines, sole_file
from use_st5.cli.models import DEFAULT_MODEL, CountingEncoder, ModelOption, load_encoder
from use_st5.cli.output import check_table_name, manual, say, waiting, write_table

HELP = manual(
    """Find the pairs of lines of two texts that translate, or say, the same.

    FIRST and SECOND are text files, one sentence a line, in two languages that the model knows, or
    in one. A pair's margin is its cosine, divided by the mean of both sentences' cosines with their
    nearest neighbours (Artetxe and Schwenk): above 1 they are nearer to each other than to what is
    around them. It says nothing of a language that the model does not know. Each sentence stands in
    one pair at most, the largest margins first.

    The file that is written, .tsv, .csv or .jsonl, has the columns anchor, positive and margin;
    `use-st5 train` takes it. How large a margin is enough depends on the model and on the texts:
    look at the pairs around the threshold. It was 1.06 in the paper.""",
    "use-st5 bitext de.txt en.txt --to pairs.tsv --model path/to/multilingual",
    "use-st5 bitext de.txt en.txt --to pairs.tsv --model path/to/multilingual --threshold 1.1",
)


def bitext(
    first: Annotated[str, typer.Argument(metavar="FIRST", help="A text file.")],
    second: Annotated[str, typer.Argument(metavar="SECOND", help="The other one.")],
    to: Annotated[Path, typer.Option("--to", help="The file to write.")],
    model: ModelOption = DEFAULT_MODEL,
    threshold: Annotated[float, typer.Option(help="The least margin.")] = 1.06,
    neighbours: Annotated[
        int, typer.Option(min=1, help="How many nearest ones a margin is relative to.")
    ] = 4,
) -> None:
    """Finds translations among the lines of two texts."""
    check_table_name(to, option="--to")
    with sole_file(to):
        texts, others = _sentences(first), _sentences(second)
        encoder = CountingEncoder(load_encoder(model))
        if len(encoder.languages) == 1:
            say(
                f"warning: {encoder.name} knows one language, {encoder.languages[0]}. Pairs with a "
                "text in another language are found by chance. For translations give a "
                "multilingual model with --model."
            )
        from use_st5.search import mine_bitext

        with waiting(f"mining {len(texts):,} and {len(others):,} sentences"):
            pairs, margins = mine_bitext(
                encoder.encode(texts), encoder.encode(others), k=neighbours
            )
        encoder.say_truncated()
        found = [
            (texts[one], others[other], f"{margin:.4f}")
            for (one, other), margin in zip(pairs.tolist(), margins.tolist(), strict=True)
            if margin >= threshold
        ]
        if not found:
            largest = f"the largest is {margins[0]:.4f}" if len(margins) else "there is none"
            raise ValueError(
                f"expected margins of at least {threshold}, found none: {largest}. Lower "
                "--threshold."
            )
        write_table(to, ("anchor", "positive", "margin"), found)
    say(f"{to}: {len(found):,} pairs of {len(texts):,} and {len(others):,} different sentences")


def _sentences(file: str) -> list[str]:
    """The different lines of a file that hold text, in their order."""
    with open_input(file) as stream:
        lines = dict.fromkeys(line.strip() for line in read_lines(stream, source=file))
    lines.pop("", None)
    if not lines:
        raise ValueError(f"{file}: expected sentences, one a line, received none")
    return [*lines]
