"""`use-st5 mine`: hard negatives for a file of pairs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from use_st5.cli.files import sole_file
from use_st5.cli.models import DEFAULT_MODEL, CountingEncoder, ModelOption, load_encoder
from use_st5.cli.output import check_table_name, manual, say, waiting, write_table

_COLUMNS = ("anchor", "positive", "negative")

HELP = manual(
    """Find hard negatives for a file of pairs, and write a file of triplets.

    FILE has the columns anchor and positive (or question and answer, query and positive …), as
    `use-st5 train` reads them. For each pair the texts are found that the model takes for nearest
    to the anchor, among all positives of the file, without those that the file gives this anchor
    and without those so near that they may well be right: nearer than 95 % of the positive's own
    cosine (NV-Retriever). The file that is written, .tsv, .csv or .jsonl, has a row for each pair
    and negative; `use-st5 train` takes it in place of the pairs.""",
    "use-st5 mine pairs.tsv --to triplets.tsv",
    "use-st5 mine faq.csv --model tuned --negatives 3 --to triplets.jsonl",
)


def mine(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The pairs.")],
    to: Annotated[Path, typer.Option("--to", help="The file to write.")],
    model: ModelOption = DEFAULT_MODEL,
    negatives: Annotated[int, typer.Option(min=1, help="The most that a pair gets.")] = 1,
    rank_from: Annotated[int, typer.Option(min=1, help="The first place that counts, from 1.")] = 1,
    rank_to: Annotated[int, typer.Option(min=1, help="The last place that counts.")] = 50,
    margin: Annotated[
        float, typer.Option(help="How far below the positive's cosine a negative is, as a share.")
    ] = 0.05,
    column: Annotated[
        list[str] | None, typer.Option(metavar="KEY=NAME", help="A column's name in the file.")
    ] = None,
) -> None:
    """Finds hard negatives for a file of pairs."""
    from use_st5.cli.train import named_words
    from use_st5.search.hard_negatives import mine_hard_negatives
    from use_st5.training.sources import open_source

    check_table_name(to, option="--to")
    with sole_file(to):
        source = open_source(file, task="pairs", columns=named_words("--column", column))
        pairs = [(row["anchor"], row["positive"]) for row in source]
        encoder = CountingEncoder(load_encoder(model))
        with waiting(f"mining {len(pairs):,} pairs"):
            found = mine_hard_negatives(
                encoder.encode,
                pairs,
                per_pair=negatives,
                rank_from=rank_from,
                rank_to=rank_to,
                relative_margin=margin,
            )
        encoder.say_truncated()
        if not found:
            raise ValueError(
                f"{file}: expected texts that may be negatives, found none within the ranks and "
                "the margin. Widen --rank-to, or lower --margin."
            )
        write_table(to, _COLUMNS, found)
    with_one = len({triplet[:2] for triplet in found})
    say(
        f"{to}: {len(found):,} triplets; of {len(set(pairs)):,} pairs "
        f"{len(set(pairs)) - with_one:,} have no negative that is far enough"
    )
