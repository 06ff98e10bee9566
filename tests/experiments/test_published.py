"""The results of the papers in `published.json`: do they say what the papers print?"""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

EXPERIMENTS = Path(__file__).resolve().parents[2] / "experiments"
TEXTS = {
    "Cer et al. (2018)": "universal-sentence-encoder.txt",
    "Liu et al. (2022)": "trans-encoder.txt",
    "Ni et al. (2022)": "sentence-t5.txt",
    "Tsukagoshi et al. (2022)": "sbert-defsent.txt",
    "Yano et al. (2024)": "m-st5.txt",
}
STS = {"sts12", "sts13", "sts14", "sts15", "sts16", "stsb", "sickr"}
TATOEBA = ("14", "36", "hi", "fr", "de", "af", "te", "tl", "ga", "ka", "am", "sw")
TASKS = {
    "sts": STS,
    "senteval": {"mr", "cr", "subj", "mpqa", "sst2", "trec", "mrpc"},
    "sentglue": {
        f"sentglue_{task}"
        for task in ("cola", "sst2", "mrpc", "stsb", "qqp", "mnli_m", "mnli_mm", "qnli", "rte")
    },
    "pairs": {"pairs_qqp", "pairs_qnli", "pairs_mrpc", "sts_average"},
    "stsb_pearson": {"stsb", "stsb_dev"},
    "weat": {f"weat{number}" for number in range(1, 11)},
    "tatoeba": {f"tatoeba_{code}" for code in TATOEBA},
    "bucc": set(),
    "xsts": {f"xsts_{track}" for track in ("ar-ar", "ar-en", "es-es", "es-en", "tr-en")},
    "monolingual_sts": {"stsb", "jsts", "korsts", "sts_zh"},
}


def read(path: Path) -> list[SimpleNamespace]:
    """The tables of a paper; a row without a source is from the text of the paper."""
    content = json.loads(path.read_text(encoding="utf-8"))
    for table in content["tables"]:
        rows = ({"settings": "", "source": "", "confirmed": True} | row for row in table["rows"])
        table["rows"] = [SimpleNamespace(**row) for row in rows]
    citation = content["paper"]["citation"]
    return [SimpleNamespace(citation=citation, **table) for table in content["tables"]]


TABLES = [table for path in sorted(EXPERIMENTS.glob("*/published.json")) for table in read(path)]
ALL_ROWS = [(table, row) for table in TABLES for row in table.rows]


@pytest.fixture(scope="module")
def paper_lines(repository: Path) -> dict[str, list[list[float]]]:
    """The numbers of each line of each paper's text, by citation; without signs."""
    folder = repository.parent / "shared" / "papers"
    if not folder.is_dir():
        pytest.skip("needs real data: the papers' texts in ../shared/papers")
    return {
        citation: [
            [float(number) for number in re.findall(r"\d+\.\d+", line)]
            for line in (folder / name).read_text(encoding="utf-8").splitlines()
        ]
        for citation, name in TEXTS.items()
    }


def test_task_names_are_those_of_the_project() -> None:
    for table, row in ALL_ROWS:
        assert row.scores.keys() <= TASKS[table.benchmark] | {"average"}, (table.table, row.model)


def test_numbers_stand_in_the_papers(paper_lines: dict[str, list[list[float]]]) -> None:
    for table, row in ALL_ROWS:
        if row.source:
            continue  # not read from the paper's text
        numbers = {number for line in paper_lines[table.citation] for number in line}
        missing = [task for task, score in row.scores.items() if abs(score) not in numbers]
        assert not missing, (table.table, row.model, missing)
