"""`use-st5 mine` and `use-st5 bitext`: find hard negatives, and translations in two texts."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer

from use_st5.cli.files import ColumnOption, open_texts, sole_file
from use_st5.cli.models import (
    DEFAULT_MODEL,
    BackendChoice,
    CountingEncoder,
    ModelChoice,
    ModelOption,
    PromptNameOption,
    PromptOption,
    load_encoder,
    start_tensorflow,
)
from use_st5.cli.output import check_table_name, manual, say, waiting, write_table

HELP = manual(
    """Find hard negatives for a file of pairs, and write a file of triplets.

    FILE has the columns anchor and positive (or question and answer, query and positive …), as
    for `use-st5 train`. A hard negative is a text that is similar to the anchor, but not its
    answer: one of the nearest positives of other rows, or of the lines of --corpus. A text whose
    cosine is not below 95 % of the positive's is not used, because it may also be an answer
    (NV-Retriever).

    --guide names a better model, an encoder or a cross-encoder, that decides this instead: the
    margins and --max-score and --min-score are then those of its scores. The candidates are still
    the texts that MODEL confuses with the answer.

    The output, .tsv, .csv or .jsonl, has a row for each pair and negative. Give it to
    `use-st5 train` instead of the pairs. Standard error says how many negatives are missing, which
    rules left out how many texts, and what the scores are.""",
    "use-st5 mine pairs.tsv --to triplets.tsv",
    "use-st5 mine faq.csv --model tuned --negatives 3 --to triplets.jsonl",
    "use-st5 mine faq.csv --guide path/to/cross_encoder --to triplets.tsv",
)


def mine(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The pairs.")],
    to: Annotated[Path, typer.Option("--to", help="The file to write.")],
    model: ModelOption = DEFAULT_MODEL,
    backend: BackendChoice = "tensorflow",
    prompt: PromptOption = None,
    prompt_name: PromptNameOption = None,
    corpus: Annotated[
        str | None, typer.Option(metavar="FILE", help="Texts to choose from, one a line.")
    ] = None,
    negatives: Annotated[int, typer.Option(min=1, help="Negatives of a pair at most.")] = 1,
    rank_from: Annotated[int, typer.Option(min=1, help="First rank of a negative.")] = 1,
    rank_to: Annotated[int, typer.Option(min=1, help="Last rank.")] = 50,
    margin: Annotated[
        float,
        typer.Option(help="0.05: a negative's score is below 95 % of the positive's."),
    ] = 0.05,
    absolute_margin: Annotated[
        float, typer.Option(help="How far a negative's score is below the positive's at least.")
    ] = 0.0,
    max_score: Annotated[float, typer.Option(help="The largest score of a negative.")] = math.inf,
    min_score: Annotated[float, typer.Option(help="The smallest.")] = -math.inf,
    guide: Annotated[
        str | None, typer.Option(metavar="MODEL", help="A model whose scores decide.")
    ] = None,
    column: Annotated[
        list[str] | None, typer.Option(metavar="KEY=NAME", help="A column's name in the file.")
    ] = None,
) -> None:
    """Finds hard negatives for a file of pairs."""
    start_tensorflow()  # The reader of training files needs it.
    from use_st5.cli.train import named_words
    from use_st5.search.hard_negatives import mine_hard_negatives
    from use_st5.training.model_loading import open_teacher
    from use_st5.training.rows import read_file

    chosen = ModelChoice(model, backend, prompt, prompt_name)
    check_table_name(to)
    with sole_file(to, inputs=[file, *([corpus] if corpus else [])]):
        rows = read_file(file, task="pairs", columns=named_words("--column", column))
        pairs = [(row["anchor"], row["positive"]) for row in rows]
        texts = _sentences(corpus, None) if corpus else None
        encoder = CountingEncoder(load_encoder(chosen), chosen)
        with waiting(f"mining {len(pairs):,} pairs"):
            triplets = mine_hard_negatives(
                encoder.encode,
                pairs,
                corpus=texts,
                per_pair=negatives,
                rank_from=rank_from,
                rank_to=rank_to,
                margin=absolute_margin,
                relative_margin=margin,
                max_score=max_score,
                min_score=min_score,
                guide=open_teacher(guide) if guide else None,
                log=say,
            )
        encoder.say_truncated()
        if not triplets:
            raise ValueError(f"{file}: found no negatives. Lower --margin or raise --rank-to.")
        write_table(to, ("anchor", "positive", "negative"), triplets)
    say(f"{to}: {len(triplets):,} triplets")


BITEXT_HELP = manual(
    """Find the lines of two texts that are translations or paraphrases of each other.

    FIRST and SECOND are text files with one sentence per line, in one language or two that the
    model knows. The margin of a pair is its cosine, divided by the mean cosine of both sentences
    with their nearest neighbours (Artetxe and Schwenk). A margin above 1 means that the two are
    nearer to each other than to their neighbours. A sentence is in at most one pair. Pairs with the
    largest margins come first.

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
    backend: BackendChoice = "tensorflow",
    prompt: PromptOption = None,
    prompt_name: PromptNameOption = None,
    column: ColumnOption = None,
    threshold: Annotated[float, typer.Option(help="The smallest margin.")] = 1.06,
) -> None:
    """Finds translations among the lines of two texts."""
    chosen = ModelChoice(model, backend, prompt, prompt_name)
    check_table_name(to)
    with sole_file(to, inputs=[first, second]):
        sources, targets = _sentences(first, column), _sentences(second, column)
        encoder = CountingEncoder(load_encoder(chosen), chosen)
        manifest = getattr(encoder, "manifest", None)
        languages = manifest.metadata.get("languages", []) if manifest else []
        if isinstance(languages, list) and len(languages) == 1:
            knows = f"{encoder.name} knows one language, {languages[0]}"
            say(f"warning: {knows}. Pairs with a text in another language are random.")
        from use_st5.search import mine_bitext

        with waiting(f"mining {len(sources):,} and {len(targets):,} sentences"):
            pairs, margins = mine_bitext(encoder.encode(sources), encoder.encode(targets))
        encoder.say_truncated()
        rows = [
            (sources[i], targets[j], f"{margin:.4f}")
            for (i, j), margin in zip(pairs.tolist(), margins.tolist(), strict=True)
            if margin >= threshold
        ]
        if not rows:
            largest = f"the largest is {margins[0]:.4f}" if len(margins) else "there is none"
            raise ValueError(f"expected margins of {threshold}: {largest}. Lower --threshold.")
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
