"""The tables of results in the papers, each row with its source.

Each paper's folder has its tables in `published.json`. A paper's `notes` name the tables that are
left out; a table's `notes` give the protocol and the contradictions within the paper. The tables by
benchmark:

| benchmark | metric | papers and tables |
|---|---|---|
| sts | spearman_all | Ni 1, 3, 5; Tsukagoshi 3, 5; Liu 1, 4, 6, 7, 13, 14 |
| senteval | accuracy | Cer 2; Ni 1, 2, 5; Tsukagoshi 4, 6 |
| sentglue | mixed | Ni 6 |
| pairs | auc | Liu 2, 3, 5, 9, 11, 12, 14 |
| stsb_pearson | pearson | Cer 2 |
| weat | effect_size, p_value | Cer 4 |
| tatoeba | accuracy | Yano 1, 2, 5 |
| bucc | f1 | Yano 1, 5 |
| xsts | spearman | Yano 1, 4, 5 |
| monolingual_sts | spearman | Yano 3 |

Cer is the Universal Sentence Encoder, Liu Trans-Encoder, Ni Sentence-T5, Tsukagoshi SBERT and
DefSent, Yano multilingual Sentence-T5.
"""

from __future__ import annotations

import functools
from pathlib import Path

import msgspec
from msgspec import structs

# In the order of the papers' publication.
_FOLDERS = ("use", "trans_encoder", "sentence_t5", "sbert_defsent", "multilingual_st5")


class PublishedPaper(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The paper with the results; `citation` is for captions, such as "Ni et al. (2022)"."""

    citation: str
    title: str
    authors: str
    year: int
    venue: str
    url: str
    notes: str


class PublishedRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The scores of one model in a paper.

    Attributes:
        model: Its name in the paper.
        scores: Task → score, in the unit of the table; "average" is the paper's own average.
        settings: The settings of the training, if they are not in the name.
        source: The source of the scores, if it is not the text of the paper.
        confirmed: False if only a recollection of the paper supports the scores.
    """

    model: str
    scores: dict[str, float]
    settings: str = ""
    source: str = ""
    confirmed: bool = True


class PublishedTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The rows of one table that share a benchmark and a metric.

    Attributes:
        table: Its number in the paper, for example "Table 2".
        title: A description of its content.
        benchmark: The group of tasks, for example "sts".
        metric: The statistic and its aggregation, for example "spearman_all".
        unit: "x100" or "1": the factor of the scores.
        notes: The protocol, and doubts about it.
        rows: One or more rows.
        paper: The paper of the table.
    """

    table: str
    title: str
    benchmark: str
    metric: str
    unit: str
    notes: str
    rows: tuple[PublishedRow, ...]
    paper: PublishedPaper | None = None


class _File(msgspec.Struct, forbid_unknown_fields=True):
    paper: PublishedPaper
    tables: list[PublishedTable]


def published_tables(
    benchmark: str | None = None, *, unconfirmed: bool = False
) -> tuple[PublishedTable, ...]:
    """The tables of the papers, in the order of publication.

    Args:
        benchmark: Only the tables of this benchmark; None: all.
        unconfirmed: Whether to include rows that only a recollection of the paper supports.
    """
    tables = []
    for table in _all_tables():
        rows = tuple(row for row in table.rows if row.confirmed or unconfirmed)
        if rows and benchmark in (None, table.benchmark):
            tables.append(structs.replace(table, rows=rows))
    return tuple(tables)


@functools.cache
def _all_tables() -> tuple[PublishedTable, ...]:
    files = [Path(__file__).with_name(folder) / "published.json" for folder in _FOLDERS]
    contents = [msgspec.json.decode(file.read_bytes(), type=_File) for file in files]
    return tuple(
        structs.replace(table, paper=each.paper) for each in contents for table in each.tables
    )
