from __future__ import annotations

from pathlib import Path

import pytest
from scipy import stats

from tests.evaluation.toys import BagOfWords
from use_st5.data.data_folder import DataFolder, MissingDataError
from use_st5.evaluation.multilingual_sts.tasks import TASKS
from use_st5.evaluation.sts import STSPair, read_stsb
from use_st5.evaluation.sts.readers import STSB_TEST
from use_st5.evaluation.task import TaskContext
from use_st5.vector_store import VectorCache

# Cosines 1, 1/√2, 1/2 and 0, but for the thousandths of the encoder.
INPUTS = ["hola\thola", "hola\thola hello", "a b\tb c", "uno\tone"]
GOLD = ["4.8", "5.0", "2.0", "0.0"]


def context(folder: Path) -> TaskContext:
    return TaskContext(VectorCache(BagOfWords().encode), DataFolder(folder))


def write(folder: Path, gold: list[str]) -> None:
    for kind, where, lines in (("input", "eval.v1.1", INPUTS), ("gs", "gs", gold)):
        path = folder / "sts" / f"STS2017.{where}" / f"STS.{kind}.track4a.es-en.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def test_correlations_over_all_pairs(tmp_path: Path) -> None:
    write(tmp_path, GOLD)
    (task,) = (task for task in TASKS if task.name == "xsts_es-en")
    result = task.run(context(tmp_path))
    # Ranks 4 3 2 1 against 3 4 2 1: 1 - 6 (1 + 1) / (4 · 15).
    assert result.main == "spearman_all"
    assert result.scores["spearman_all"] == pytest.approx(0.8)
    cosines = [1, 2**-0.5, 0.5, 0]
    expected = stats.pearsonr(cosines, [float(score) for score in GOLD]).statistic
    assert result.scores["pearson_all"] == pytest.approx(expected, abs=1e-2)
    assert result.counts == {"pairs": 4}
    assert result.details == {"languages": ["es", "en"]}


def test_missing_gold(tmp_path: Path) -> None:
    write(tmp_path, GOLD)
    (tmp_path / "sts" / "STS2017.gs" / "STS.gs.track4a.es-en.txt").unlink()
    (task,) = (task for task in TASKS if task.name == "xsts_es-en")
    with pytest.raises(MissingDataError, match=r"STS\.gs\.track4a\.es-en\.txt.* found none"):
        task.run(context(tmp_path))


BY_NAME = {task.name: task for task in TASKS}
SIZES = {"jsts": 1457, "korsts": 1379, "sts_zh": 1361}

# Letters that tell a language from the others that it stands beside.
LETTERS = {
    "ar": set(map(chr, range(0x620, 0x64B))),
    "es": set("áéíóúñ¿¡"),
    "tr": set("ışğçöü"),
    "ja": set(map(chr, range(0x3040, 0x3100))),
    "ko": set(map(chr, range(0xAC00, 0xD7A4))),
    "zh": set(map(chr, range(0x4E00, 0xA000))),
    "ru": set(map(chr, range(0x430, 0x450))),
    "de": set("äöüß"),
    "fr": set("éèêçà"),
    "it": set("àèìòù"),
    "pl": set("ąćęłńśźż"),
    "pt": set("ãõçáé"),
}


def read(data_dir: Path, name: str) -> list[STSPair]:
    task, folder = BY_NAME[name], DataFolder(data_dir)
    return task.read(folder)


def share(sentences: list[str], letters: set[str]) -> float:
    """Of the sentences those that hold one of the letters."""
    return sum(not letters.isdisjoint(sentence.lower()) for sentence in sentences) / len(sentences)


@pytest.mark.parametrize("name", list(BY_NAME))
def test_published_files_have_their_pairs_and_each_column_its_language(
    data_dir: Path, name: str
) -> None:
    pairs = read(data_dir, name)
    assert len(pairs) == SIZES.get(name, 250 if name.startswith("xsts") else 1379)
    assert all(0.0 <= pair.score <= 5.0 for pair in pairs)
    assert max(pair.score for pair in pairs) == 5.0
    columns = ([pair.first for pair in pairs], [pair.second for pair in pairs])
    languages = BY_NAME[name].languages
    for own, other, column in zip(languages, languages[::-1], columns, strict=True):
        if own in LETTERS:
            assert share(column, LETTERS[own]) > 0.2
        if own != other and other in LETTERS:
            assert share(column, LETTERS[other]) < 0.1


@pytest.mark.parametrize("name", ["stsb_de", "stsb_zh", "korsts"])
def test_translations_keep_the_scores_and_the_order_of_the_sts_benchmark(
    data_dir: Path, name: str
) -> None:
    original = read_stsb(DataFolder(data_dir).find(STSB_TEST)).subsets.values()
    scores = [pair.score for subset in original for pair in subset]
    assert [pair.score for pair in read(data_dir, name)] == pytest.approx(scores, abs=1e-3)


def test_the_languages_of_a_pair_are_those_of_its_name() -> None:
    for task in TASKS:
        if task.name.startswith("xsts"):
            named = task.name.removeprefix("xsts_").removesuffix("-wmt").split("-")
            assert sorted(task.languages) == sorted(named)
    assert len(BY_NAME) == len(TASKS) == 21
