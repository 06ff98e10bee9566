from __future__ import annotations

import lzma
from pathlib import Path

import numpy as np
import pytest
from sklearn import metrics

from tests.evaluation.toys import BagOfWords
from use_st5.data.data_folder import DataFolder, MissingDataError
from use_st5.encode.vector_store import VectorCache
from use_st5.evaluation.task import TaskContext, TaskResult
from use_st5.evaluation.translations import (
    GROUPS,
    LANGUAGES,
    TASKS,
    TATOEBA,
    BUCCSet,
    _mining_scores,
    best_threshold,
    bucc_task,
    read_bucc,
    read_parallel,
    read_tatoeba,
)


def write(folder: Path, foreign: str, english: str) -> None:
    (folder / "tatoeba.xho-eng.xho").write_text(foreign, encoding="utf-8")
    (folder / "tatoeba.xho-eng.eng").write_text(english, encoding="utf-8")


def test_sentences_line_by_line(tmp_path: Path) -> None:
    write(tmp_path, "Molo.\nUnjani?\u2028Ndi\n", "Hello.\n How are you? \n")
    foreign, english = read_tatoeba(tmp_path, "xho")
    assert foreign == ["Molo.", "Unjani?\u2028Ndi"]
    assert english == ["Hello.", "How are you?"]


@pytest.mark.parametrize(
    ("foreign", "english", "message"),
    [
        ("a\nb\nc\n", "a\nb\n", r"xho-eng\.eng: expected 3 lines, as many as tatoeba.xho-eng.xho"),
        ("a\n \nc\n", "a\nb\nc\n", r"xho-eng\.xho: expected a sentence in each line"),
        ("", "", r"xho-eng\.xho: expected a sentence in each line"),
    ],
)
def test_errors(tmp_path: Path, foreign: str, english: str, message: str) -> None:
    write(tmp_path, foreign, english)
    with pytest.raises(ValueError, match=message):
        read_tatoeba(tmp_path, "xho")


def test_the_published_files(data_dir: Path) -> None:
    folder = DataFolder(data_dir).find(TATOEBA)
    sizes = {code: len(read_tatoeba(folder, code)[0]) for code in LANGUAGES}
    assert sum(sizes.values()) == 88_877
    assert max(sizes.values()) == sizes["deu"] == 1000
    assert min(sizes, key=sizes.__getitem__) == "tzl"
    assert len([*folder.glob("tatoeba.*-eng.eng")]) == len(LANGUAGES)


def test_groups_have_their_sizes_and_lie_in_each_other() -> None:
    assert all(len(group) == len(set(group)) == size for size, group in GROUPS.items())
    assert set(GROUPS[14]) < set(GROUPS[36]) < set(GROUPS[112]) == set(LANGUAGES)


VECTORS = {
    "un": [1.0, 0.0],
    "deux": [2.0, 2.0],
    "trois": [0.0, 0.5],
    "one": [3.0, 0.0],
    "two": [0.1, 1.0],
    "three": [0.2, 1.0],
}


def encode(sentences: list[str]) -> np.ndarray:
    return np.array([VECTORS[sentence] for sentence in sentences])


def accuracies(foreign: list[str], english: list[str]) -> dict[str, float]:
    """The accuracies of a language whose sentences are these."""
    context = TaskContext(VectorCache(encode), DataFolder("."))
    result = TASKS[0].score(context, dict.fromkeys(LANGUAGES, (foreign, english)))
    return result.details["languages"]["deu"]


def test_by_hand() -> None:
    """deux, at 45 degrees, is nearest to three; trois, at 90, to two; un to one.

    In the other direction one finds un, and two and three find trois: two thirds are right. To
    English one third is right.
    """
    assert accuracies(["un", "deux", "trois"], ["one", "two", "three"]) == {
        "pairs": 3,
        "to_english": 1 / 3,
        "from_english": 2 / 3,
    }


def test_of_a_sentence_on_two_lines_the_first_is_found() -> None:
    assert accuracies(["un", "trois", "un"], ["one", "three", "one"]) == {
        "pairs": 3,
        "to_english": 2 / 3,
        "from_english": 2 / 3,
    }


def test_parallel_lines_keep_a_text_of_a_language_once(tmp_path: Path) -> None:
    rows = ["pt\tone\tum", "pt\tone\tum só", "de\tone\teins", "pt\ttwo\tum", "pt\ttwo\t dois "]
    path = tmp_path / "parallel" / "ntrex.tsv.xz"
    path.parent.mkdir()
    path.write_bytes(lzma.compress("\n".join([*rows, "pt\tthree\ttrês\u2028"]).encode()))
    pairs = {"pt": (["um", "dois"], ["one", "two"]), "de": (["eins"], ["one"])}
    assert read_parallel(path, most=2) == pairs
    assert read_parallel(path, most=3)["pt"][0] == ["um", "dois", "três"]
    (task,) = (task for task in TASKS if task.name == "ntrex")
    result = task.run(TaskContext(VectorCache(BagOfWords().encode), DataFolder(tmp_path)))
    assert result.main == "accuracy_2", "the mean over languages, not over pairs"
    ways = result.details["languages"]["pt"]
    assert result.scores["accuracy_2_to_english"] == (ways["to_english"] + 1) / 2
    path.write_bytes(b"no archive")
    with pytest.raises(ValueError, match=r"complete \.xz file"):
        read_parallel(path, most=2)
    path.with_suffix("").write_text("pt\tone\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"ntrex\.tsv:1: expected 3 tab-separated"):
        read_parallel(path.with_suffix(""), most=2)


def test_groups_are_means_over_their_languages(tmp_path: Path) -> None:
    """All sentences are right in the 14 languages, none in the rest of the 36, half in others."""
    folder = tmp_path / "LASER" / "data" / "tatoeba" / "v1"
    folder.mkdir(parents=True)
    for code in LANGUAGES:
        english = ["good evening friends", "how much"]
        if code in GROUPS[14]:
            foreign = english
        elif code in GROUPS[36]:
            foreign = english[::-1]
        else:
            foreign = [english[0], english[0] + " dear"]
        for side, lines in (("eng", english), (code, foreign)):
            path = folder / f"tatoeba.{code}-eng.{side}"
            path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    task = TASKS[0]
    data = DataFolder(tmp_path)
    result = task.run(TaskContext(VectorCache(BagOfWords().encode), data))
    scores = result.scores
    assert scores["accuracy_14"] == scores["accuracy_14_to_english"] == 1.0
    assert scores["accuracy_36"] == scores[result.main] == pytest.approx(14 / 36)
    # To English one of two is right. From English the first is right; the second shares no word
    # with either sentence, and finds one of them by the numbers of absent words.
    for direction in ("to_english", "from_english"):
        others = result.details["languages"]["zsm"][direction]
        assert scores[f"accuracy_112_{direction}"] == pytest.approx((14 + 76 * others) / 112)
    assert result.details["languages"]["zsm"]["to_english"] == 0.5
    assert result.details["languages"]["deu"] == {
        "pairs": 2,
        "to_english": 1.0,
        "from_english": 1.0,
    }
    assert result.counts == {"pairs": 224}
    assert len(data.hashes(task.used_sources(data))) == 224


FILES = {
    "zh": "zh-1\t一\nzh-2\t二 \n",
    "en": "en-1\tone\nen-2\ttwo\nen-3\tone\n",
    "gold": "zh-2\ten-2\n\n",
}


def write_readers(folder: Path, **changed: str) -> None:
    for side, text in {**FILES, **changed}.items():
        (folder / f"zh-en.dev.{side}").write_text(text, encoding="utf-8")


def test_texts_and_gold(tmp_path: Path) -> None:
    write_readers(tmp_path)
    foreign, english, gold = read_bucc(tmp_path, "zh", "dev")
    assert foreign == {"zh-1": "一", "zh-2": "二"}
    assert english == {"en-1": "one", "en-2": "two", "en-3": "one"}
    assert gold == {("zh-2", "en-2")}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"zh": "zh-1\t一\nzh-1\t二\n"},
            r"dev\.gold: expected pairs of ids, and texts with one id",
        ),
        ({"en": "en-1\tone\ten-2\n"}, r"dev\.en:1: expected 2 tab-separated fields"),
        ({"gold": "\nzh-3\ten-2\n"}, r"gold: expected ids of zh-en\.dev\.zh .*'zh-3'"),
        ({"gold": "\n"}, r"dev\.gold: expected pairs of ids"),
    ],
)
def test_errors_readers(tmp_path: Path, changed: dict[str, str], message: str) -> None:
    write_readers(tmp_path, **changed)
    with pytest.raises(ValueError, match=message):
        read_bucc(tmp_path, "zh", "dev")


def test_the_published_sample(data_dir: Path) -> None:
    folder = DataFolder(data_dir).find(bucc_task("zh").sources[0])
    assert [*map(len, read_bucc(folder, "zh", "dev"))] == [8624, 13589, 257]


# The margins with two neighbours are those of tests/search/test_bitext.py: (y, c) 4/3, (x, b) 6/5.
MINED = {
    "x": [1.0, 0, 0, 0],
    "y": [0, 1.0, 0, 0],
    "a": [0.8, 0.6, 0, 0],
    "b": [0.6, 0, 0.8, 0],
    "c": [0, 0.6, 0, 0.8],
}


def mined(sentences: list[str]) -> np.ndarray:
    return np.array([MINED[sentence] for sentence in sentences])


def texts(*gold: tuple[str, str], english: str = "abc") -> BUCCSet:
    numbered = {f"en-{number}": sentence for number, sentence in enumerate(english)}
    return {"zh-0": "x", "zh-1": "y"}, numbered, set(gold)


def test_the_best_threshold_lies_between_two_margins() -> None:
    score = _mining_scores(VectorCache(mined), texts(("zh-1", "en-2")), k=2)
    assert score["threshold"] == pytest.approx((4 / 3 + 6 / 5) / 2)
    assert (score["precision"], score["recall"], score["f1"]) == (1.0, 1.0, 1.0)


def test_a_sentence_with_two_ids_is_mined_once_and_dropped() -> None:
    """(y, c) is mined, but c is en-2 and en-3: only (x, b) is left. Both gold pairs still count."""
    data = texts(("zh-1", "en-2"), ("zh-0", "en-1"), english="abcc")
    score = _mining_scores(VectorCache(mined), data, k=2)
    assert score["threshold"] == pytest.approx(6 / 5)
    assert (score["precision"], score["recall"]) == (1.0, 0.5)


def test_thresholds_by_hand() -> None:
    # F1 after each mined pair, with two gold pairs: 2/3, 2/4, 4/5, 4/6.
    right = np.array([True, False, True, False])
    assert best_threshold(np.array([5.0, 4, 3, 2]), right, 2) == 2.5
    # With four gold pairs: 2/5, 2/6, 4/7, 4/8; the last pair is left out, so that the third ends.
    assert best_threshold(np.array([5.0, 4, 3]), right[:3], 4) == 3.0
    # Equal margins of the first two do not separate them: 2/4 with both, 4/5 with three.
    assert best_threshold(np.array([5.0, 5, 3, 2]), right, 2) == 2.5
    # F1 is 2/2 after the first, but only 2/3 is reachable.
    assert best_threshold(np.array([5.0, 5, 3, 2]), np.array([True, False, False, False]), 1) == 4.0
    assert best_threshold(np.array([5.0, 4]), np.array([False, False]), 3) == 0.0
    assert best_threshold(np.array([]), np.array([], dtype=bool), 3) == 0.0


@pytest.mark.parametrize("seed", range(5))
def test_no_threshold_has_a_larger_f1(seed: int) -> None:
    """Compares with scikit-learn's curve, where gold pairs that are not mined come last."""
    generator = np.random.default_rng(seed)
    margins = np.sort(generator.integers(1, 30, size=60) / 8)[::-1]
    right = generator.random(60) < margins / margins.max()
    unmined = 7
    threshold = best_threshold(margins, right, int(right.sum()) + unmined)
    labels = np.append(right, np.ones(unmined, bool))
    scores = np.append(margins, np.zeros(unmined))
    precision, recall, thresholds = metrics.precision_recall_curve(labels, scores)
    with np.errstate(invalid="ignore"):
        reachable = (2 * precision * recall / (precision + recall))[:-1][thresholds > 0]
    assert metrics.f1_score(labels, scores >= threshold) == pytest.approx(np.nanmax(reachable))


# Translations share both words with each other, and one word with another sentence.
FOREIGN = ["tango uno", "tango dos", "vals tres", "polka"]


ENGLISH = ["uno tango", "dos tango", "tres", "rumba", "foxtrot"]


def write_tasks(folder: Path, part: str, gold: list[tuple[int, int]]) -> None:
    folder.mkdir(exist_ok=True)
    rows = {
        "de": [f"de-{row}\t{text}" for row, text in enumerate(FOREIGN)],
        "en": [f"en-{row}\t{text}" for row, text in enumerate(ENGLISH)],
        "gold": [f"de-{one}\ten-{other}" for one, other in gold],
    }
    for side, lines in rows.items():
        (folder / f"de-en.{part}.{side}").write_text("\n".join(lines) + "\n", encoding="utf-8")


def run(folder: Path) -> TaskResult:
    return bucc_task("de").run(TaskContext(VectorCache(BagOfWords().encode), DataFolder(folder)))


@pytest.mark.parametrize("part", ["dev", "sample", "training"])
def test_without_test_gold_the_scores_are_those_of_the_development_set(
    tmp_path: Path, part: str
) -> None:
    write_tasks(tmp_path / "bucc2018", part, [(0, 0), (1, 1), (2, 2)])
    result = run(tmp_path)
    assert result.main == "f1_dev"
    assert set(result.scores) == {"threshold", "f1_dev", "precision_dev", "recall_dev"}
    assert result.scores["f1_dev"] == 1.0
    assert result.counts == {"foreign_dev": 4, "english_dev": 5, "gold_dev": 3}
    assert result.details == {"development": part, "test": None}


@pytest.mark.parametrize("names", [("dev", "test"), ("sample", "training"), ("training", "test")])
def test_the_threshold_of_development_is_used_on_test(
    tmp_path: Path, names: tuple[str, str]
) -> None:
    development, test = names
    write_tasks(tmp_path / "bucc2018", development, [(0, 0), (1, 1), (2, 2)])
    write_tasks(tmp_path / "bucc2018", test, [(0, 0), (3, 3)])
    result = run(tmp_path)
    assert result.main == "f1"
    # The same three pairs are mined; here one of them is gold, out of two gold pairs.
    assert (result.scores["precision"], result.scores["recall"]) == (1 / 3, 1 / 2)
    assert result.scores["f1"] == pytest.approx(2 / 5)
    assert (result.scores["f1_dev"], result.counts["gold"], result.counts["gold_dev"]) == (1, 2, 3)
    assert result.details == {"development": development, "test": test}


def test_the_official_test_part_has_no_gold(tmp_path: Path) -> None:
    for part in ("sample", "test", "training"):
        write_tasks(tmp_path / "bucc2018", part, [(0, 0)])
    (tmp_path / "bucc2018" / "de-en.test.gold").unlink()
    assert run(tmp_path).details == {"development": "sample", "test": "training"}


def test_the_hashes_are_those_of_the_files_that_are_read(tmp_path: Path) -> None:
    """The folder that comes first has the texts of the official test, but no gold pairs."""
    for folder in ("a [test]", "b [training]"):
        write_tasks(tmp_path / folder, "training", [(0, 0)])
    (tmp_path / "a [test]" / "de-en.training.gold").unlink()
    write_tasks(tmp_path / "b [training]", "test", [(0, 0)])
    (tmp_path / "b [training]" / "de-en.test.gold").unlink()
    data = DataFolder(tmp_path)
    sides = ("de", "en", "gold")
    hashes = data.hashes(bucc_task("de").used_sources(data))
    assert [*hashes] == [f"b [training]/de-en.training.{side}" for side in sides]


def test_files_that_are_missing(tmp_path: Path) -> None:
    write_tasks(tmp_path / "bucc2018", "dev", [(0, 0)])
    (tmp_path / "bucc2018" / "de-en.dev.en").rename(tmp_path / "bucc2018" / "de-en.train.en")
    with pytest.raises(FileNotFoundError, match="one of dev, sample, training"):
        run(tmp_path)
    (tmp_path / "bucc2018" / "de-en.train.en").unlink()
    with pytest.raises(MissingDataError, match=r"BUCC de-en en: expected de-en\.\*\.en"):
        bucc_task("de").used_sources(DataFolder(tmp_path))
