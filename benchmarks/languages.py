"""Compares models on many languages, from what `use-st5 evaluate --tasks multilingual` wrote.

    python -m benchmarks.languages results/NAME.json … --page docs/evaluation.md --out PLOT.svg

Writes two tables, of the means and by language, between two comments of a Markdown page, or prints
them, and draws the second. The means of English need `--tasks sts` too.
"""

from __future__ import annotations

import argparse
import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from use_st5._imports import require
from use_st5.evaluation import EvaluationRecord

# Languages of USE multilingual v3, then others of NTREX: code → code in Tatoeba.
USE = {"ar": "ara", "de": "deu", "es": "spa", "fr": "fra", "it": "ita", "ja": "jpn", "ko": "kor"}
USE |= {"nl": "nld", "pl": "pol", "pt": "por", "ru": "rus", "th": "tha", "tr": "tur", "zh": "cmn"}
OTHERS = {"bg": "bul", "cs": "ces", "da": "dan", "el": "ell", "fa": "pes", "fi": "fin", "he": "heb"}
OTHERS |= {"hi": "hin", "hu": "hun", "id": "ind", "ro": "ron", "sv": "swe", "uk": "ukr"}
OTHERS |= {"vi": "vie"}
CODES = USE | OTHERS
COLUMNS = ("Tatoeba", "NTREX", "MKQA", "STS-B", "XNLI")
TEN = [code for code in USE if code not in ("ar", "ko", "th", "tr")]
# Title → names of tasks, of whose main scores it is the mean.
MEANS: dict[str, list[str]] = {
    "STS 2017 across languages (ar, es, tr with en)": ["xsts_ar-en", "xsts_es-en", "xsts_tr-en"],
    "STS 2017 in a language (ar, es)": ["xsts_ar-ar", "xsts_es-es"],
    "STS 2017 English": ["xsts_en-en"],
    "STS-B, 10 languages": [f"stsb_{code}" for code in TEN],
    "STS-B English": ["stsb_en"],
    "JSTS": ["jsts"],
    "KorSTS": ["korsts"],
    "BUCC zh-en sample (best F1)": ["bucc_zh-en"],
    "STS English, five sets (12, 13, 15, B, SICK-R)": ["sts12", "sts13", "sts15", "stsb", "sickr"],
    "XNLI, 14 languages, taught in English": ["xnli"],
    "MKQA, 9 languages (1,000 pairs each)": ["mkqa"],
    "NTREX, 29 languages (1,000 pairs each)": ["ntrex"],
}

_TABLES = re.compile(
    "(?<=<!-- tables of benchmarks/languages.py -->\n).*?(?=<!-- end -->)", re.DOTALL
)

Scores = dict[str, dict[str, float]]


def by_language(record: EvaluationRecord) -> Scores:
    """Column → code of a language → score x 100; of both directions the mean."""
    tables: Scores = {}
    for column in ("Tatoeba", "NTREX", "MKQA", "XNLI"):
        languages = record.tasks[column.lower()]["details"]["languages"]
        for code, tatoeba in CODES.items():
            if row := languages.get(tatoeba if column == "Tatoeba" else code):
                values = [value for name, value in row.items() if name != "pairs"]
                tables.setdefault(column, {})[code] = 100 * statistics.mean(values)
    names = {code: "korsts" if code == "ko" else f"stsb_{code}" for code in CODES}
    tables["STS-B"] = {
        code: 100 * main(record, name) for code, name in names.items() if name in record.tasks
    }
    return tables


def main(record: EvaluationRecord, task: str) -> float:
    """The main score of a task."""
    entry = record.tasks[task]
    return float(entry["scores"][entry["main"]])


def means_table(records: Sequence[EvaluationRecord]) -> Iterator[str]:
    """The means of the measures, a column for each model."""
    yield "| x 100 | " + " | ".join(record.model["name"] for record in records) + " |"
    yield "|---" + "|--:" * len(records) + "|"
    for size in (14, 36, 112):
        scores = [record.tasks["tatoeba"]["scores"][f"accuracy_{size}"] for record in records]
        yield _row(f"Tatoeba, {size} languages, both directions", scores)
    for title, tasks in MEANS.items():
        yield _row(title, [_mean(record, tasks) for record in records])


def _mean(record: EvaluationRecord, tasks: Sequence[str]) -> float | None:
    if not {*tasks} <= record.tasks.keys():
        return None
    return statistics.mean(main(record, task) for task in tasks)


def _row(title: str, scores: Sequence[float | None]) -> str:
    cells = ("" if score is None else _number(100 * score) for score in scores)
    return f"| {title} | " + " | ".join(cells) + " |"


def language_table(models: Mapping[str, Scores]) -> Iterator[str]:
    """A row for each language; a cell has the scores of the models in their order."""
    yield "| " + " | ".join(("language", *COLUMNS)) + " |"
    yield "|---" + "|--:" * len(COLUMNS) + "|"
    groups = {code: [code] for code in CODES}
    groups |= {"mean of USE's languages": [*USE], "mean of the others": [*OTHERS]}
    for title, codes in groups.items():
        cells = []
        for column in COLUMNS:
            values = [
                [scores[column][code] for code in codes if code in scores[column]]
                for scores in models.values()
            ]
            cells.append(" / ".join(_number(statistics.mean(some)) for some in values if some))
        yield f"| {title} | " + " | ".join(cells) + " |"


def _number(score: float) -> str:
    return f"{score:.1f}".replace("-", "−")


def tables(records: Sequence[EvaluationRecord]) -> str:
    """Both tables, with what the cells of the second are."""
    models = {record.model["name"]: by_language(record) for record in records}
    what = (
        f"By language, in a cell: {' / '.join(models)}. STS-B: Spearman (KorSTS for Korean);\n"
        "Tatoeba, NTREX, MKQA: accuracy, the mean of both directions; XNLI: accuracy, chance 33.3."
    )
    return "\n".join(["", *means_table(records), "", what, "", *language_table(models), "", ""])


def draw(models: Mapping[str, Scores], path: Path) -> None:
    """Draws a panel for each column, with a marker for each model and language."""
    require("matplotlib", "plots").use("svg")
    pyplot = require("matplotlib.pyplot", "plots")
    pyplot.rcParams["svg.hashsalt"] = "languages"
    figure, panels = pyplot.subplots(
        len(COLUMNS), 1, figsize=(9, 9), sharex=True, layout="constrained"
    )
    for column, axes in zip(COLUMNS, panels, strict=True):
        for (name, scores), marker in zip(models.items(), "os^DvP", strict=False):
            places = [[*CODES].index(code) for code in scores[column]]
            values = [*scores[column].values()]
            axes.plot(places, values, marker, label=name, markersize=4, alpha=0.8)
        axes.axvline(len(USE) - 0.5, color="gray", linewidth=0.8)
        axes.set(ylabel=column)
        axes.grid(axis="y", alpha=0.3)
    panels[-1].set_xticks(range(len(CODES)), [*CODES])
    panels[-1].set_xlabel("left of the line: the languages of USE multilingual")
    panels[0].legend(loc="lower left", fontsize="small")
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("records", type=Path, nargs="+")
    parser.add_argument("--page", type=Path, help="a page with the comments; its tables change")
    parser.add_argument("--out", type=Path, help="the SVG file")
    arguments = parser.parse_args()
    every = [EvaluationRecord.read(path) for path in arguments.records]
    if arguments.page:
        page, count = _TABLES.subn(lambda _: tables(every), arguments.page.read_text("utf-8"))
        if count != 1:
            raise SystemExit(f"{arguments.page}: expected the two comments of the tables once.")
        arguments.page.write_text(page, "utf-8")
    else:
        print(tables(every))
    if arguments.out:
        draw({record.model["name"]: by_language(record) for record in every}, arguments.out)
