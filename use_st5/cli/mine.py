"""`use-st5 mine`: finds hard negatives for a file of pairs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from use_st5.cli.files import sole_file
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
    start_tensorflow,
)
from use_st5.cli.output import check_table_name, manual, say, waiting, write_table

_COLUMNS = ("anchor", "positive", "negative")

HELP = manual(
    """Find hard negatives for a file of pairs, and write a file of triplets.

    FILE has the columns anchor and positive (or question and answer, query and positive …), as
    for `use-st5 train`. A hard negative is a text that is near to the anchor, but not its answer.
    For each pair, the negatives are the nearest positives of other rows. A text is not used if its
    cosine is above 95 % of the positive's cosine, because it may also be an answer (NV-Retriever).

    The output, .tsv, .csv or .jsonl, has a row for each pair and negative. Give it to
    `use-st5 train` instead of the pairs.""",
    "use-st5 mine pairs.tsv --to triplets.tsv",
    "use-st5 mine faq.csv --model tuned --negatives 3 --to triplets.jsonl",
)


def mine(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The pairs.")],
    to: Annotated[Path, typer.Option("--to", help="The file to write.")],
    model: ModelOption = DEFAULT_MODEL,
    backend: BackendChoice = BackendOption.TENSORFLOW,
    prompt: PromptOption = None,
    prompt_name: PromptNameOption = None,
    negatives: Annotated[int, typer.Option(min=1, help="Negatives of a pair at most.")] = 1,
    rank_from: Annotated[int, typer.Option(min=1, help="The first rank to use, from 1.")] = 1,
    rank_to: Annotated[int, typer.Option(min=1, help="The last rank to use.")] = 50,
    margin: Annotated[
        float,
        typer.Option(help="0.05: a negative's cosine is at most 95 % of the positive's."),
    ] = 0.05,
    column: Annotated[
        list[str] | None, typer.Option(metavar="KEY=NAME", help="A column's name in the file.")
    ] = None,
) -> None:
    """Finds hard negatives for a file of pairs."""
    start_tensorflow()  # The reader of training files needs it.
    from use_st5.cli.train import named_words
    from use_st5.search.hard_negatives import mine_hard_negatives
    from use_st5.training.sources import open_source

    chosen = ModelChoice(model, backend, prompt, prompt_name)
    check_table_name(to, option="--to")
    with sole_file(to, inputs=[file]):
        source = open_source(file, task="pairs", columns=named_words("--column", column))
        pairs = [(row["anchor"], row["positive"]) for row in source]
        encoder = CountingEncoder(load_encoder(chosen), chosen)
        with waiting(f"mining {len(pairs):,} pairs"):
            triplets = mine_hard_negatives(
                encoder.encode,
                pairs,
                per_pair=negatives,
                rank_from=rank_from,
                rank_to=rank_to,
                relative_margin=margin,
            )
        encoder.say_truncated()
        if not triplets:
            raise ValueError(
                f"{file}: expected hard negatives, found none within the ranks and the margin. "
                "Raise --rank-to, or lower --margin."
            )
        write_table(to, _COLUMNS, triplets)
    with_one = len({triplet[:2] for triplet in triplets})
    say(
        f"{to}: {len(triplets):,} triplets; of {len(set(pairs)):,} pairs "
        f"{len(set(pairs)) - with_one:,} have no negative"
    )
