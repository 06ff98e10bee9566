from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from tests.evaluation.toys import letter_context
from use_st5.data.data_folder import DataFolder, DataSource, MissingDataError
from use_st5.encode.vector_store import Encode, VectorCache
from use_st5.evaluation import pairs as glue
from use_st5.evaluation.labelled_texts import (
    LabelledDataset,
    LabelledTexts,
)
from use_st5.evaluation.pairs import (
    TASKS,
    _table,
    glue_dataset,
    pair_task,
    sentglue_task,
)
from use_st5.evaluation.task import TaskContext

DATASET = glue_dataset(
    "Toy",
    _table("label", "text", classes="a b"),
    _table(0, 1, classes="a b"),
    train=("Toy/train.tsv", "elsewhere/train.txt"),
    dev=("Toy/dev.tsv", "elsewhere/dev.txt"),
)


def write_of_dataset(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def test_each_place_is_read_in_its_layout(tmp_path: Path) -> None:
    data = DataFolder(tmp_path)
    with pytest.raises(MissingDataError, match=r"GLUE Toy train: .* from https://gluebenchmark"):
        DATASET.read_part(data, "train")
    write_of_dataset(tmp_path / "x" / "elsewhere" / "train.txt", "a\tone\nb\ttwo\n")
    assert DATASET.read_part(data, "train").columns == (["one", "two"],)
    # GLUE's own layout comes first where both are there.
    write_of_dataset(tmp_path / "glue" / "Toy" / "train.tsv", "text\tlabel\nfive\tb\n")
    train = DATASET.read_part(data, "train")
    assert (train.columns, train.labels.tolist()) == ((["five"],), [1])


# A published header and two rows; the columns and labels that must be read from them.
NLI_HEAD = (
    "index\tpromptID\tpairID\tgenre\tsentence1_binary_parse\tsentence2_binary_parse\t"
    "sentence1_parse\tsentence2_parse\tsentence1\tsentence2\tlabel1\t"
)


NLI_ROW = "0\t1\t1n\tslate\t( a\t( b\t(ROOT\t(ROOT\tThe new\tEveryone\tneutral\t"


STSB_HEAD = "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2\tscore"


PUBLISHED = {
    "CoLA": (
        glue.COLA,
        "dev.tsv",
        "gj04\t1\t\tThe sailors rode.\ngj04\t0\t*\tThe rode.\n",
        (["The sailors rode.", "The rode."],),
        [1, 0],
    ),
    "STS-B": (
        glue.STSB,
        "dev.tsv",
        f"{STSB_HEAD}\n0\tmain-captions\tMSRvid\t2012test\t0000\tnone\tnone\tA hat.\tHats.\t4.7\n",
        (["A hat."], ["Hats."]),
        [4.7],
    ),
    "QQP": (
        glue.QQP,
        "dev.tsv",
        "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n1\t2\t3\tWhy?\tHow?\t0\n4\t5\t6\tA\tB\t1\n",
        (["Why?", "A"], ["How?", "B"]),
        [0, 1],
    ),
    "MNLI": (
        glue.MNLI_MATCHED,
        "dev_matched.tsv",
        f"{NLI_HEAD}label2\tlabel3\tlabel4\tlabel5\tgold_label\n"
        f"{NLI_ROW}entailment\tneutral\tneutral\tneutral\tneutral\n",
        (["The new"], ["Everyone"]),
        [1],
    ),
    "MNLI train": (
        glue.MNLI_MISMATCHED,
        "train.tsv",
        f"{NLI_HEAD}gold_label\n{NLI_ROW}contradiction\n{NLI_ROW}entailment\n",
        (["The new", "The new"], ["Everyone", "Everyone"]),
        [2, 0],
    ),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_layouts(tmp_path: Path, name: str) -> None:
    dataset, file, text, columns, labels = PUBLISHED[name]
    path = tmp_path / name.split()[0] / file
    path.parent.mkdir()
    path.write_text(text, encoding="utf-8")
    part = "train" if file == "train.tsv" else "dev"
    read = dataset.read_part(DataFolder(tmp_path), part)
    assert read.columns == columns
    assert read.labels.tolist() == labels


# Rows, and rows of class 1. The numbers of rows are those of GLUE.
REAL: dict[str, tuple[LabelledDataset, tuple[int, int], tuple[int, int]]] = {
    "CoLA": (glue.COLA, (8551, 6023), (1043, 719)),  # the files of the corpus itself
    "SST-2": (glue.SST2, (67349, 37569), (872, 444)),
    "RTE": (glue.RTE, (2490, 1241), (277, 131)),
}


@pytest.mark.parametrize("name", REAL)
def test_real_counts(data_dir: Path, name: str) -> None:
    dataset, train, dev = REAL[name]
    data = DataFolder(data_dir)
    for counts, texts in zip((train, dev), dataset.read(data).values(), strict=True):
        assert (len(texts), int((texts.labels == 1).sum())) == counts
        assert set(texts.labels.tolist()) == {0, 1}
        assert all(sentence for column in texts.columns for sentence in column)


def numbers(sentences: list[str]) -> np.ndarray:
    """Embeds sentences that are written numbers: the embedding consists of these numbers."""
    return np.array([[float(word) for word in sentence.split()] for sentence in sentences])


def written(vectors: np.ndarray) -> list[str]:
    return [" ".join(str(value) for value in row) for row in vectors]


def single(seed: int, count: int) -> LabelledTexts:
    """Classes 0, 1 and 2 around three corners."""
    generator = np.random.default_rng(seed)
    labels = generator.integers(3, size=count)
    return LabelledTexts((written(4 * np.eye(3)[labels] + generator.random((count, 3))),), labels)


def pairs(seed: int, count: int) -> LabelledTexts:
    """The class is 1 if both embeddings are equal, which only |u − v| and u·v show."""
    generator = np.random.default_rng(seed)
    u = generator.choice([-1.0, 1.0], (count, 3))
    labels = generator.integers(2, size=count)
    v = np.where(labels[:, np.newaxis], u, -u)
    return LabelledTexts((written(u), written(v)), labels)


@pytest.mark.parametrize("make", [single, pairs])
def test_what_embeddings_tell_is_learnt_and_dev_labels_play_no_part(make: object) -> None:
    train, dev = make(0, 400), make(1, 100)
    assert learnt(train, dev, "accuracy") == {"accuracy": 1}
    other = LabelledTexts(dev.columns, (dev.labels + 1) % 2)
    assert learnt(train, other, "accuracy") == {"accuracy": 0}


def learnt(train: LabelledTexts, dev: LabelledTexts, *metrics: str) -> dict[str, float]:
    """The scores of a task with these rows, whose texts are written vectors."""
    context = TaskContext(VectorCache(numbers), DataFolder("."))
    task = sentglue_task("toy", DATASET, metrics, "")
    return task.score(context, {"train": train, "dev": dev}).scores


def graded(seed: int, count: int) -> LabelledTexts:
    """Scores that fall with the distance of the embeddings."""
    generator = np.random.default_rng(seed)
    scores = generator.uniform(0, 5, count)
    u = generator.normal(size=(count, 2))
    v = u + (5 - scores)[:, np.newaxis] * generator.choice([-1.0, 1.0], (count, 2))
    return LabelledTexts((written(u), written(v)), scores)


def test_scores_are_learnt_from_distances() -> None:
    assert learnt(graded(0, 400), graded(1, 200), "pearson")["pearson"] > 0.95


def angles(sentences: list[str]) -> np.ndarray:
    """Embeds sentences that are written angles in degrees."""
    radians = np.radians([float(sentence) for sentence in sentences])
    return np.stack([np.cos(radians), np.sin(radians)], axis=1)


def turned(degrees: list[float], labels: list[int]) -> LabelledTexts:
    """Pairs with these numbers of degrees between their sentences."""
    return LabelledTexts((["0"] * len(labels), [str(each) for each in degrees]), np.array(labels))


def pair_auc(encode: Encode, pairs: LabelledTexts) -> float:
    result = TASK.score(TaskContext(VectorCache(encode), DataFolder(".")), pairs)
    return result.scores["auc"]


def test_by_hand() -> None:
    # Positive pairs are 10 and 50 degrees apart, the others 30, 50 and 80. In six comparisons the
    # positive pair is nearer in 3 (10) + 1 (50 to 80), and equally near in one (50 to 50).
    pairs = turned([10, 30, 50, 50, 80], [1, 0, 1, 0, 0])
    assert pair_auc(angles, pairs) == pytest.approx(4.5 / 6)
    # With class 0 as the positive one, the order is reversed.
    turned_round = dataclasses.replace(pairs, labels=1 - pairs.labels)
    assert pair_auc(angles, turned_round) == pytest.approx(1.5 / 6)


def test_pairs_of_one_class_are_refused() -> None:
    for labels in ([1, 1], [0, 0]):
        with pytest.raises(ValueError, match="Expected positive and negative pairs"):
            pair_auc(angles, turned([1, 2], labels))


TOY = glue_dataset("Toy", _table(1, 0, classes="no yes", most_broken=1))


def write_tasks(folder: Path, name: str, lines: list[str]) -> None:
    (folder / "Toy").mkdir(exist_ok=True)
    (folder / "Toy" / name).write_text("\n".join(lines) + "\n", encoding="utf-8")


def test_classes(tmp_path: Path) -> None:
    rows = [f"{'yx'[n % 2]} {n % 7}\t{('no', 'yes')[n % 2]}" for n in range(200)]
    write_tasks(tmp_path, "train.tsv", [*rows, "broken"])
    write_tasks(tmp_path, "dev.tsv", rows[:10])
    task = sentglue_task("sentglue_toy", TOY, ("matthews", "accuracy"), "u")
    result = task.run(letter_context(tmp_path, seed=7))
    assert result.main == "matthews"
    assert result.scores == {"matthews": 1.0, "accuracy": 1.0}
    assert result.counts == {"train": 200, "dev": 10, "broken_lines": 1}
    assert result == task.run(letter_context(tmp_path, seed=7))


TASK = pair_task(
    "pairs_toy",
    ((DataSource("Toy dev", ("Toy/dev.tsv",), ""), _table(2, 0, 1, classes="entailment other")),),
    title="Toy",
    positive=("entailment", 0),
    split="all but the first pair",
    skipped=1,
)


def test_result(tmp_path: Path) -> None:
    (tmp_path / "Toy").mkdir()
    lines = ["a\tb\tentailment", "a\ta\t0", "a\tb\tother", "b\tb\t1", "c\tc\tentailment"]
    (tmp_path / "Toy" / "dev.tsv").write_text("\n".join(lines), encoding="utf-8")
    embed = VectorCache(lambda texts: np.eye(3)[["abc".index(text) for text in texts]])
    result = TASK.run(TaskContext(embed, DataFolder(tmp_path)))
    # Two positive pairs of cosine 1 against other pairs of cosines 0 and 1: two wins, two ties.
    assert result.scores == {"auc": pytest.approx(3 / 4)}
    assert result.counts == {"pairs": 4, "positive": 2, "broken_lines": 0}


def test_qnli_is_scored_without_the_papers_dev_set(tmp_path: Path) -> None:
    """Trans-Encoder takes the first 1,000 pairs of GLUE's dev split as its own dev set."""
    (task,) = [each for each in TASKS if each.name == "pairs_qnli"]
    rows = [f"{n}\tquestion {n}\tanswer {n}\tentailment" for n in range(1003)]
    (tmp_path / "QNLI").mkdir()
    (tmp_path / "QNLI" / "dev.tsv").write_text(
        "\n".join(["index\tquestion\tsentence\tlabel", *rows]), encoding="utf-8"
    )
    expected = [f"question {n}" for n in (1000, 1001, 1002)]
    assert task.read(DataFolder(tmp_path)).columns[0] == expected


def test_real_mrpc(data_dir: Path) -> None:
    """The counts of the corpus's readme: 1,725 test pairs, 1,147 of them equivalent."""
    task = next(task for task in TASKS if task.name == "pairs_mrpc")
    pairs = task.read(DataFolder(data_dir))
    assert (len(pairs), int(pairs.labels.sum())) == (1725, 1147)
