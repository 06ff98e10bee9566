from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from scipy import stats

from tests.evaluation.toys import BagOfWords
from use_st5.data.data_folder import DataFolder
from use_st5.encode.vector_store import VectorCache
from use_st5.evaluation.multilingual_sts import (
    TASKS,
    read_cnsd,
    read_jsts,
    read_korsts,
    read_sts2017,
    read_stsb_multi_mt,
)
from use_st5.evaluation.sts import STSB_TEST, STSPair, read_stsb
from use_st5.evaluation.task import TaskContext

Read = Callable[[Path], list[STSPair]]


JSTS = '{"sentence_pair_id": "0", "sentence1": "犬", "sentence2": "猫", "label": 0}\n'


KORSTS = "genre\tfilename\tyear\tid\tscore\tsentence1\tsentence2\n"


def write(folder: Path, text: str) -> Path:
    path = folder / "set.txt"
    path.write_bytes(text.encode())
    return path


def sts2017(folder: Path, inputs: str, gold: str, **options: int) -> list[STSPair]:
    (folder / "gs.txt").write_text(gold, encoding="utf-8")
    return read_sts2017(write(folder, inputs), folder / "gs.txt", **options)


def test_sts2017_pairs_line_by_line(tmp_path: Path) -> None:
    pairs = sts2017(tmp_path, 'a "b\tc \n d\u2028e\tf\n', "1.4\n5\n")
    assert pairs == [STSPair('a "b', "c", 1.4), STSPair("d\u2028e", "f", 5.0)]


def test_sts2017_may_be_scored_in_part(tmp_path: Path) -> None:
    assert sts2017(tmp_path, "a\tb\nc\td\n", "1\n", scored=1) == [STSPair("a", "b", 1.0)]


@pytest.mark.parametrize(
    ("inputs", "gold", "options", "message"),
    [
        ("a\tb\nc\td\n", "1\n", {}, r"gs\.txt: expected 2 lines, as many as set\.txt has"),
        ("a\tb\nc\td\n", "1\n\n", {}, r"gs\.txt:2: expected a score .*, received ''"),
        ("a\tb\nc\n", "1\n2\n", {}, r"set\.txt:2: expected two sentences, received \['c'\]"),
    ],
)
def test_sts2017_errors(
    tmp_path: Path, inputs: str, gold: str, options: dict, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        sts2017(tmp_path, inputs, gold, **options)


def test_jsts(tmp_path: Path) -> None:
    path = write(tmp_path, JSTS + JSTS.replace('"0"', '"1"').replace(": 0}", ": 4.2}"))
    assert read_jsts(path) == [STSPair("犬", "猫", 0.0), STSPair("犬", "猫", 4.2)]


def test_korsts_has_no_quoting(tmp_path: Path) -> None:
    row = 'main-news\tMSRpar\t2012test\t0001\t5.000\t"가, 나\t다 "라"\n'
    assert read_korsts(write(tmp_path, KORSTS + row)) == [STSPair('"가, 나', '다 "라"', 5.0)]


def test_cnsd(tmp_path: Path) -> None:
    rows = "2012test-0024||一个|女孩||女孩。||2\n2012test-0024||甲||乙||5\n"
    assert read_cnsd(write(tmp_path, rows)) == [
        STSPair("一个|女孩", "女孩。", 2.0),
        STSPair("甲", "乙", 5.0),
    ]


def test_stsb_multi_mt_is_quoted(tmp_path: Path) -> None:
    rows = '"Er sagt: ""Ja"", oder?",Nein.,2.5\r\nEin Tab\tund\u2028mehr,"zwei\nZeilen",0\r\n'
    assert read_stsb_multi_mt(write(tmp_path, rows)) == [
        STSPair('Er sagt: "Ja", oder?', "Nein.", 2.5),
        STSPair("Ein Tab\tund\u2028mehr", "zwei\nZeilen", 0.0),
    ]


@pytest.mark.parametrize(
    ("read", "text", "message"),
    [
        (read_jsts, JSTS + "{\n", r"set\.txt:2: expected an object with sentence1"),
        (read_jsts, "[" * 100_000, r"set\.txt:1: expected an object"),
        (read_jsts, JSTS.replace("label", "score"), r"set\.txt:1: expected an object .*label"),
        (read_jsts, JSTS.replace(": 0}", ": null}"), r"set\.txt:1: expected a score .*, .*'None'"),
        (read_jsts, JSTS.replace("犬", ""), r"set\.txt:1: expected two sentences"),
        (read_jsts, "\n", r"set\.txt: expected pairs of sentences, found none"),
        (read_korsts, KORSTS + "a\tb\tc\td\tx\te\tf\n", r"set\.txt:2: expected a score"),
        (read_cnsd, "a||b||c||1\na||b||1\n", r"set\.txt:2: expected two sentences"),
        (read_cnsd, "a\n", r"set\.txt:1: expected a score .*, received 'a'"),
        (read_stsb_multi_mt, "a,b,1\na,b,c,1\n", r"set\.txt:2: expected 3 comma-separated fields"),
        (read_stsb_multi_mt, 'a,"b"c,1\n', r"set\.txt:1: expected 3 .* invalid csv"),
    ],
)
def test_errors_name_the_line(tmp_path: Path, read: Read, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read(write(tmp_path, text))


# Cosines 1, 1/√2, 1/2 and 0, apart from the thousandths of the encoder.
INPUTS = ["hola\thola", "hola\thola hello", "a b\tb c", "uno\tone"]


GOLD = ["4.8", "5.0", "2.0", "0.0"]


def context(folder: Path) -> TaskContext:
    return TaskContext(VectorCache(BagOfWords().encode), DataFolder(folder))


def write_tasks(folder: Path, gold: list[str]) -> None:
    for kind, where, lines in (("input", "eval.v1.1", INPUTS), ("gs", "gs", gold)):
        path = folder / "sts" / f"STS2017.{where}" / f"STS.{kind}.track4a.es-en.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def test_correlations_over_all_pairs(tmp_path: Path) -> None:
    write_tasks(tmp_path, GOLD)
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


BY_NAME = {task.name: task for task in TASKS}


SIZES = {"jsts": 1457, "korsts": 1379, "sts_zh": 1361}


def read(data_dir: Path, name: str) -> list[STSPair]:
    task, folder = BY_NAME[name], DataFolder(data_dir)
    return task.read(folder)


@pytest.mark.parametrize("name", list(BY_NAME))
def test_published_files_have_their_pairs(data_dir: Path, name: str) -> None:
    pairs = read(data_dir, name)
    others = 250 if name.startswith("xsts") else 1500 if name.endswith("_dev") else 1379
    assert len(pairs) == SIZES.get(name, others)
    assert all(0.0 <= pair.score <= 5.0 for pair in pairs)
    assert max(pair.score for pair in pairs) == 5.0


@pytest.mark.parametrize("name", ["stsb_de", "stsb_zh", "korsts"])
def test_translations_keep_the_scores_and_the_order_of_the_sts_benchmark(
    data_dir: Path, name: str
) -> None:
    original = read_stsb(DataFolder(data_dir).find(STSB_TEST)).subsets.values()
    scores = [pair.score for subset in original for pair in subset]
    assert [pair.score for pair in read(data_dir, name)] == pytest.approx(scores, abs=1e-3)
