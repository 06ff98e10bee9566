"""Compares models on many languages, from what `use-st5 evaluate --tasks multilingual` wrote.

    python -m benchmarks.languages results/*_languages.json --out docs/images/languages.svg

Prints two tables in Markdown, of the means and by language, and draws the second.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from use_st5._imports import require
from use_st5.evaluation import EvaluationRecord

# Languages of USE multilingual v3, then others of NTREX: code → code in Tatoeba.
USE = {"ar": "ara", "de": "deu", "es": "spa", "fr": "fra", "it": "ita", "ja": "jpn", "ko": "kor"}
USE |= {"nl": "nld", "pl": "pol", "pt": "por", "ru": "rus", "th": "tha", "tr": "tur", "zh": "cmn"}
OTHERS = {"bg": "bul", "cs": "ces", "da": "dan", "el": "ell", "fa": "pes", "fi": "fin", "he": "heb"}
OTHERS |= {
    "hi": "hin",
    "hu": "hun",
    "id": "ind",
    "ro": "ron",
    "sv": "swe",
    "uk": "ukr",
    "vi": "vie",
}
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
    "XNLI, 14 languages, taught in English": ["xnli"],
    "MKQA, 9 languages (1,000 pairs each)": ["mkqa"],
    "NTREX, 29 languages (1,000 pairs each)": ["ntrex"],
}

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
        means = [statistics.mean(main(record, task) for task in tasks) for record in records]
        yield _row(title, means)


def _row(title: str, scores: Sequence[float]) -> str:
    return f"| {title} | " + " | ".join(f"{100 * score:.1f}" for score in scores) + " |"


def language_table(models: Mapping[str, Scores]) -> Iterator[str]:
    """A row for each language; a cell has the scores of the models in their order."""
    yield f"| {' / '.join(models)} | " + " | ".join(COLUMNS) + " |"
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
            cells.append(" / ".join(f"{statistics.mean(some):.1f}" for some in values if some))
        yield f"| {title} | " + " | ".join(cells) + " |"


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
    parser.add_argument("--out", type=Path, help="the SVG file")
    arguments = parser.parse_args()
    every = [EvaluationRecord.read(path) for path in arguments.records]
    named = {record.model["name"]: by_language(record) for record in every}
    print(*means_table(every), "", *language_table(named), sep="\n")
    if arguments.out:
        draw(named, arguments.out)
