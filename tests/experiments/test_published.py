"""The published tables: do they say what the papers print, and agree with each other?"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from statistics import fmean

import pytest

from experiments import published
from experiments.published import (
    PublishedRow,
    PublishedTable,
    published_tables,
)

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
# Averages that are not the mean of their cells in the papers themselves; the notes say so.
OWN_AVERAGES = {
    ("Ni et al. (2022)", "Table 3", "SBERT-NLI"): 74.89,
    ("Liu et al. (2022)", "Table 1", "SimCSE-large ensemble"): 80.66,
    ("Liu et al. (2022)", "Table 9", "Mirror-RoBERTa-base-drophead"): 77.00,
    ("Liu et al. (2022)", "Table 9", "Mirror-RoBERTa-base-drophead + TENC (cross)"): 82.27,
    ("Yano et al. (2024)", "Table 3", "m-ST5"): 77.3,
}


def all_rows() -> Iterator[tuple[PublishedTable, PublishedRow]]:
    """Each row with its table, unconfirmed ones too."""
    for table in published_tables(unconfirmed=True):
        for row in table.rows:
            yield table, row


def find(citation: str, number: str, benchmark: str, model: str, settings: str = "") -> dict:
    """The scores of the one row with this model whose settings contain these words."""
    found = [
        row.scores
        for table, row in all_rows()
        if (table.paper.citation, table.table, table.benchmark) == (citation, number, benchmark)
        and row.model == model
        and settings in row.settings
    ]
    assert len(found) == 1, f"{len(found)} rows of {model} in {number}"
    return dict(found[0])


def decimals(scores: dict[str, float]) -> int:
    """The number of decimals with which the scores of a row are printed, at most two."""
    return 1 if all(round(score, 1) == score for score in scores.values()) else 2


def line_of(cells: Iterable[float], lines: list[list[float]], first: int = 0) -> int | None:
    """The first line, from `first` on, with these numbers in a row; signs are ignored."""
    wanted = [abs(cell) for cell in cells]
    for number in range(first, len(lines)):
        line = lines[number]
        for start in range(len(line) - len(wanted) + 1):
            if line[start : start + len(wanted)] == wanted:
                return number
    return None


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


def test_five_papers_and_no_file_is_forgotten() -> None:
    files = [*Path(published.__file__).parent.glob("*/published.json")]
    assert len(files) == len(TEXTS)
    assert {table.paper.citation for table in published_tables()} == set(TEXTS)


def test_task_names_are_those_of_the_project() -> None:
    for table, row in all_rows():
        assert row.scores.keys() <= TASKS[table.benchmark] | {"average"}, (table.table, row.model)


def test_averages_are_the_means_of_the_cells() -> None:
    """To one unit of the last digit: cells and average are rounded, half a unit each."""
    own = dict(OWN_AVERAGES)
    checked = 0
    for table, row in all_rows():
        scores = dict(row.scores)
        average = scores.pop("average", None)
        full = row.model.startswith(("InferSent", "T5 "))
        if average is None or not scores or (table.benchmark == "sentglue" and not full):
            continue  # how SentGLUE's Score is computed is known only for those two kinds of rows
        if own.get(key := (table.paper.citation, table.table, row.model)) == average:
            assert str(average) in table.notes
            del own[key]
            continue
        unit = 10.0 ** -decimals(dict(row.scores))
        assert abs(fmean(scores.values()) - average) <= unit + 1e-9, (table.table, row.model)
        checked += 1
    assert not own, "expected each deviation of the papers to be used"
    assert checked >= 200


def test_averages_catch_a_wrong_cell() -> None:
    scores = find("Ni et al. (2022)", "Table 3", "sts", "ST5-EncDec first", "NLI")
    wrong = {**scores, "sts14": scores["sts14"] + 0.9}  # two digits swapped
    assert abs(fmean(wrong[task] for task in STS) - wrong["average"]) > 0.01


def test_same_row_in_two_tables_has_the_same_scores() -> None:
    printed = defaultdict(set)
    for table, row in all_rows():
        columns = frozenset(row.scores) if len(row.scores) > 1 else frozenset(["average"])
        for task, score in row.scores.items():
            kind = columns if task == "average" and table.benchmark == "pairs" else task
            paper = table.paper.citation
            printed[paper, table.metric, row.model, row.settings, kind].add(score)
    different = {key: scores for key, scores in printed.items() if len(scores) > 1}
    # Liu et al.: 77.08 in Tables 9 and 11, 77.04 in Table 14; its notes say so.
    assert set(map(frozenset, different.values())) == {frozenset({77.08, 77.04})}, different


def test_numbers_stand_in_the_papers(paper_lines: dict[str, list[list[float]]]) -> None:
    for table, row in all_rows():
        if row.source:
            continue  # not read from the paper's text
        numbers = {number for line in paper_lines[table.paper.citation] for number in line}
        missing = [task for task, score in row.scores.items() if abs(score) not in numbers]
        assert not missing, (table.table, row.model, missing)


def test_rows_stand_in_the_papers_line_by_line(paper_lines: dict[str, list[list[float]]]) -> None:
    """Catches an error that the test above cannot: swapped cells or rows."""
    torn = Counter()
    for table in published_tables():
        lines = paper_lines[table.paper.citation]
        line = 0
        for row in (row for row in table.rows if not row.source):
            found = line_of(row.scores.values(), lines, line)
            if found is None:
                torn[table.paper.citation, table.table, table.benchmark] += 1
            else:
                line = found
    # The extraction of the text tore these rows apart; the next test checks them.
    expected = {
        ("Ni et al. (2022)", "Table 5", "sts"): 10,
        ("Liu et al. (2022)", "Table 4", "sts"): 3,
        ("Liu et al. (2022)", "Table 5", "pairs"): 3,
    }
    assert torn == expected


def test_torn_rows_stand_in_the_papers_piece_by_piece(
    paper_lines: dict[str, list[list[float]]],
) -> None:
    (sts,) = (table for table in published_tables("sts") if table.title == "STS, larger sizes")
    rows = [row for row in sts.rows if not row.source]
    for task in rows[0].scores:  # a cell of the text holds a whole column
        column = [row.scores[task] for row in rows]
        assert line_of(column, paper_lines["Ni et al. (2022)"]) is not None, task
    lines = paper_lines["Liu et al. (2022)"]
    for number, model, last in (
        ("Table 4", "Mirror-RoBERTa-base", "sickr"),
        ("Table 5", "Contrastive-Tension-BERT-base", "pairs_mrpc"),
    ):
        benchmark = "sts" if last == "sickr" else "pairs"
        endings = ("", " + TENC (bi)", " + TENC (cross)")
        rows = [find("Liu et al. (2022)", number, benchmark, model + end) for end in endings]
        assert line_of([row[last] for row in rows], lines) is not None
        for row in rows:
            assert line_of(list(row.values())[:-2], lines) is not None, row


def test_sentence_t5_agrees_with_its_own_summary_and_the_released_scores() -> None:
    ni = "Ni et al. (2022)"
    for benchmark, decoder, encoder in (("senteval", 90.46, 91.63), ("sts", 84.94, 84.96)):
        summary = find(ni, "Table 1", benchmark, "ST5-EncDec (11B params)")["average"]
        assert summary == decoder
        assert summary == find(ni, "Table 5", benchmark, "ST5-EncDec first (11B)")["average"]
        summary = find(ni, "Table 1", benchmark, "ST5-Enc (11B params)")["average"]
        large = find(ni, "Table 5", benchmark, "ST5-Enc mean (11B)", "CommunityQA")["average"]
        assert summary == encoder
        assert round(summary, 1) == round(large, 1)
    # google-research/t5x_retrieval, README, ST5-Base.
    base = find(ni, "Table 2", "senteval", "ST5-Enc mean", "CommunityQA")
    released = [85.8, 92.1, 94.6, 90.9, 91.8, 96.4, 75.2, 89.5]
    assert list(base.values()) == pytest.approx(released, abs=0.0501)
    base = find(ni, "Table 3", "sts", "ST5-Enc mean", "CommunityQA")
    released = [78.1, 85.8, 82.2, 87.5, 84.0, 86.0, 79.8, 83.3]
    assert list(base.values()) == pytest.approx(released, abs=0.0501)


def test_trans_encoder_agrees_across_tables_and_with_its_readme() -> None:
    liu = "Liu et al. (2022)"
    for size, pair in (("base", (80.47, 81.15)), ("large", (82.93, 82.93))):
        for kind, average in zip(("bi", "cross"), pair, strict=True):
            model = f"SimCSE-RoBERTa-{size} + TENC-mutual ({kind})"
            assert find(liu, "Table 1", "sts", model)["average"] == average
    for name in ("BERT-base", "RoBERTa-base", "BERT-large", "RoBERTa-large"):
        for ending in ("", " + TENC (bi)", " + TENC (cross)"):
            model = f"SimCSE-{name}{ending}"
            settings = "all STS" if ending else ""
            alone = find(liu, "Table 7", "sts", model, settings)["sickr"]
            assert alone == find(liu, "Table 1", "sts", model)["sickr"]
    for base in ("SimCSE-RoBERTa-base", "Mirror-RoBERTa-base-drophead"):
        for ending in ("", " + TENC (bi)", " + TENC (cross)"):
            mean = find(liu, "Table 9", "pairs", base + ending)["sts_average"]
            table = "Table 1" if base.startswith("SimCSE") else "Table 4"
            assert mean == find(liu, table, "sts", base + ending)["average"]


def test_multilingual_sentence_t5_agrees_across_tables() -> None:
    yano = "Yano et al. (2024)"
    for data in ("XNLI", "English NLI"):
        first = find(yano, "Table 1", "xsts", "m-ST5", f"query and value, {data}")
        assert first == find(yano, "Table 4", "xsts", "m-ST5 (mT5-xxl, 5.7B)", data)
        ranked = f"rank 8 on query and value, {data}"
        mean = find(yano, "Table 5", "xsts", "m-ST5", ranked)["average"]
        assert round(fmean(first.values()), 1) == mean
        for benchmark in ("tatoeba", "bucc"):
            first = find(yano, "Table 1", benchmark, "m-ST5", f"query and value, {data}")
            assert first == find(yano, "Table 5", benchmark, "m-ST5", ranked)


def test_use_rows_agree_with_the_listed_best_figures() -> None:
    """The cells that facts of the field confirm; the others are unconfirmed and not asserted."""
    rows = {}
    for table in published_tables():
        if table.paper.citation == "Cer et al. (2018)":
            for row in table.rows:
                assert row.source
                rows.setdefault(row.model, {}).update(row.scores)
    assert rows["USE_T+DAN (w2v w.e.)"] == {"subj": 93.90, "mpqa": 88.14}
    assert rows["USE_T+CNN (w2v w.e.)"] == {"cr": 87.45, "trec": 98.07}
    assert rows["USE_T+CNN (lrn w.e.)"] == {"mr": 81.59, "sst2": 87.21}
    assert rows["USE_T"]["stsb"] == 0.782


def test_unconfirmed_rows_come_only_when_asked_for() -> None:
    assert all(row.confirmed for table in published_tables() for row in table.rows)
    assert {table.metric for table in published_tables("weat")} == {"effect_size"}
    asked = published_tables("weat", unconfirmed=True)
    assert {table.metric for table in asked} == {"effect_size", "p_value"}
    doubtful = [row for table in asked for row in table.rows if not row.confirmed]
    assert {row.model for row in doubtful} == {"USE_D"}


def test_tables_of_one_benchmark() -> None:
    tables = published_tables("bucc")
    assert [table.table for table in tables] == ["Table 1", "Table 5"]
    assert all(table.unit == "x100" and table.metric == "f1" for table in tables)
    assert sum(len(table.rows) for table in published_tables()) == len(
        [row for name in TASKS for table in published_tables(name) for row in table.rows]
    )


def test_scores_are_within_their_units() -> None:
    for table, row in all_rows():
        largest = {"x100": 100, "1": 2}[table.unit]  # no effect size can be larger than 2
        assert row.scores, (table.table, row.model)
        assert all(math.isfinite(each) and abs(each) <= largest for each in row.scores.values())


def test_no_row_stands_twice_in_a_table() -> None:
    for table in published_tables(unconfirmed=True):
        names = [(row.model, row.settings, row.source) for row in table.rows]
        assert len(names) == len(set(names)), table.table
