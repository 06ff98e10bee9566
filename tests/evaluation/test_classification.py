from __future__ import annotations

import dataclasses
import json
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.evaluation.toys import BagOfWords
from use_st5.data.data_folder import DataFolder
from use_st5.encode.vector_store import VectorCache
from use_st5.evaluation import classification
from use_st5.evaluation.classification import (
    TASKS,
    read_binary_sentiment,
    read_entailment,
    read_fine_sentiment,
    read_mrpc,
    read_sentences,
    read_trec,
    transfer_task,
)
from use_st5.evaluation.classifiers import LabelledFeatures, SentEvalClassifier
from use_st5.evaluation.labelled_texts import LabelledDataset, LabelledTexts
from use_st5.evaluation.task import TaskContext

MRPC = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\r\n"


SICK = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n"


def write(path: Path, text: str, encoding: str = "utf-8") -> Path:
    path.write_bytes(text.encode(encoding))
    return path


def content(texts: LabelledTexts) -> tuple[list[object], ...]:
    """Returns the columns, then the classes."""
    return *texts.columns, texts.labels.tolist()


def test_one_sentence_a_line_empty_ones_too(tmp_path: Path) -> None:
    path = write(tmp_path / "rt-polarity.pos", "a  caf\xe9 .\n\nb\n", "latin-1")
    assert content(read_sentences(path, label=1)) == (["a caf\xe9 .", "", "b"], [1, 1, 1])


def test_sst_binary(tmp_path: Path) -> None:
    path = write(tmp_path / "sentiment-dev", "it 's caf\xe9 . \t1\nbleak \t0\n")
    assert content(read_binary_sentiment(path)) == (["it 's caf\xe9 .", "bleak"], [1, 0])


def test_sst_fine(tmp_path: Path) -> None:
    path = write(tmp_path / "sentiment-dev", "4 a\xa0b .\n0 c\n")
    assert content(read_fine_sentiment(path)) == (["a b .", "c"], [4, 0])


def test_trec_has_its_coarse_classes_and_latin_text(tmp_path: Path) -> None:
    path = write(tmp_path / "x.label", "DESC:manner How : a ?\nNUM:dist \xf0 ?\n", "latin-1")
    assert content(read_trec(path)) == (["How : a ?", "\xf0 ?"], [1, 5])


def test_mrpc_has_a_byte_order_mark_and_quotation_marks(tmp_path: Path) -> None:
    path = write(
        tmp_path / "x.txt", "\ufeff" + MRPC + '1\t7\t8\tA " b\tc\r\n0\t9\t7\td\te  " f\r\n'
    )
    assert content(read_mrpc(path)) == (['A " b', "d"], ["c", 'e " f'], [1, 0])


def test_sick_entailment(tmp_path: Path) -> None:
    rows = "1\ta b\tc\t4.5\tNEUTRAL\n2\td\te\t3\tENTAILMENT\n3\tf\tg\t1\tCONTRADICTION\n"
    found = read_entailment(write(tmp_path / "SICK_trial.txt", SICK + rows))
    assert content(found) == (["a b", "d", "f"], ["c", "e", "g"], [1, 2, 0])


@pytest.mark.parametrize(
    ("read", "text", "message"),
    [
        (read_binary_sentiment, "a\t1\nb 0\n", r"x:2: expected a sentence"),
        (read_binary_sentiment, "a\t1\nb\t2\n", r"x:2: expected a sentence and a class of 0, 1"),
        (read_binary_sentiment, "\t1\n", r"x:1: expected a sentence"),
        (read_fine_sentiment, "3\n", r"x:1: expected a sentence"),
        (read_trec, "\nDATE:x a\n", r"x:2: .* class of ABBR, .* received 'DATE"),
        (read_mrpc, MRPC + "1\t7\t8\ta\n", r"x:2: expected 5"),
        (read_entailment, SICK, r"x: expected labelled sentences, found none"),
        (lambda path: read_sentences(path, label=0), "", r"x: expected labelled sentences"),
    ],
)
def test_errors_name_file_and_line(
    tmp_path: Path, read: Callable[[Path], object], text: str, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        read(write(tmp_path / "x", text))


@pytest.mark.parametrize(
    ("dataset", "counts", "classes"),
    [
        (classification.MR, {"train": 10662}, {0: 5331, 1: 5331}),
        (classification.SUBJ, {"train": 10000}, {0: 5000, 1: 5000}),
        (classification.SST2, {"train": 67349, "dev": 872, "test": 1821}, {0: 29780, 1: 37569}),
        (
            classification.SST5,
            {"train": 8544, "dev": 1101, "test": 2210},
            {0: 1092, 1: 2218, 2: 1624, 3: 2322, 4: 1288},
        ),
        (
            classification.TREC,
            {"train": 5452, "test": 500},
            {0: 86, 1: 1162, 2: 1250, 3: 1223, 4: 835, 5: 896},
        ),
        (classification.MRPC, {"train": 4076, "test": 1725}, {0: 1323, 1: 2753}),
        (
            classification.SICK_E,
            {"train": 4500, "dev": 500, "test": 4927},
            {0: 665, 1: 2536, 2: 1299},
        ),
    ],
    ids=lambda value: value.name if isinstance(value, LabelledDataset) else "",
)
def test_real_files_have_the_published_counts(
    data_dir: Path, dataset: LabelledDataset, counts: dict[str, int], classes: dict[int, int]
) -> None:
    found = dataset.read(DataFolder(data_dir))
    assert {part: len(texts) for part, texts in found.items()} == counts
    assert Counter(found["train"].labels.tolist()) == classes
    pairs = {len(texts.columns) for texts in found.values()}
    assert pairs == {2 if dataset in (classification.MRPC, classification.SICK_E) else 1}


WORDS = ("film", "plot", "dull", "bright", "cast", "ending", "slow", "joy")


QUICK = SentEvalClassifier(folds=3, max_epoch=8)


def samples(count: int, *, sentences: int, classes: int, seed: int) -> LabelledTexts:
    """Random words; in 80 % of the rows also the word "class", as often as the class number."""
    draw = random.Random(seed)
    rows, labels = [], []
    for _ in range(count):
        label = draw.randrange(classes)
        texts = [" ".join(draw.choices(WORDS, k=draw.randint(1, 9))) for _ in range(sentences)]
        texts[0] += " class" * (label if draw.random() < 0.8 else 0)
        rows.append(texts)
        labels.append(label)
    return LabelledTexts(tuple([*column] for column in zip(*rows, strict=True)), np.array(labels))


def arranged(found: LabelledTexts) -> LabelledFeatures:
    """The features that SentEval makes: rows sorted and embedded, pairs as (|a − b|, a·b)."""
    rows = sorted(
        zip(*found.columns, found.labels.tolist(), strict=True),
        key=lambda row: ([text.count(" ") for text in row[:-1]], row[-1]),
    )
    *columns, labels = zip(*rows, strict=True)
    vectors = [BagOfWords().encode([*texts]) for texts in columns]
    if len(vectors) == 2:
        vectors = [np.abs(vectors[0] - vectors[1]), vectors[0] * vectors[1]]
    return LabelledFeatures(np.hstack(vectors), np.array(labels))


def test_train_alone_is_validated_by_inner_kfold() -> None:
    train = samples(90, sentences=1, classes=2, seed=0)
    score = classification._score(VectorCache(BagOfWords().encode), {"train": train}, QUICK)
    expected = QUICK.inner_kfold(arranged(train))
    assert (score.details["classifier"], score.counts) == ("senteval", {"train": 90})
    assert score.scores["accuracy"] == expected.test_accuracy > 0.6
    assert score.details["dev_accuracy"] == expected.dev_accuracy
    assert score.details["regularization"] == [*expected.regularization]
    assert len(score.details["regularization"]) == 3


def test_train_and_test_are_validated_by_kfold_and_pairs_have_two_features() -> None:
    train, test = (samples(n, sentences=2, classes=2, seed=n) for n in (90, 50))
    data = {"train": train, "test": test}
    score = classification._score(VectorCache(BagOfWords().encode), data, QUICK)
    gold = arranged(test)
    expected = QUICK.kfold(train=arranged(train), test=gold)
    assert score.scores["accuracy"] == expected.test_accuracy
    assert score.details["regularization"] == [*expected.regularization]
    hits = sum((expected.predictions == 1) & (gold.labels == 1))
    precision, recall = hits / sum(expected.predictions == 1), hits / sum(gold.labels == 1)
    assert score.scores["f1"] == pytest.approx(2 * precision * recall / (precision + recall))


ORIGINAL = [task for task in TASKS if task.group == "senteval"]


MRPC_TASKS = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n"


@pytest.fixture
def context(tmp_path: Path) -> TaskContext:
    """Small MRPC_TASKS files: a pair is a paraphrase if both sentences are the same."""
    folder = tmp_path / "MRPC"
    folder.mkdir()
    for part, rows in (("train", 60), ("test", 24)):
        lines = [
            f"{row % 2}\t0\t0\tword{row % 7} a\tword{row % 7 if row % 2 else (row + 3) % 7} a\n"
            for row in range(rows)
        ]
        (folder / f"msr_paraphrase_{part}.txt").write_text(MRPC_TASKS + "".join(lines))
    return TaskContext(VectorCache(BagOfWords().encode), DataFolder(tmp_path))


def test_the_default_is_the_configuration_comparable_with_the_literature() -> None:
    expected = {
        "classifier": "senteval",
        "hidden_dim": 0,
        "dropout": 0.0,
        "optimizer": "adam",
        "batch_size": 64,
        "tenacity": 5,
        "epoch_size": 4,
        "max_epoch": 200,
        "folds": 10,
    }
    assert len(ORIGINAL) == 9
    for task in ORIGINAL:
        assert expected.items() <= task.options.items()
        assert "SentEval's own classifier" in task.protocol


def test_mrpc_has_accuracy_and_f1(context: TaskContext) -> None:
    result = next(task for task in ORIGINAL if task.name == "mrpc").run(context)
    data = classification.MRPC.read(context.data)
    assert result == classification._score(context.embed, data, SentEvalClassifier())
    assert result.main == "accuracy"
    assert [*result.scores] == ["accuracy", "f1"]
    assert result.counts == {"train": 60, "test": 24}
    assert result.details["classifier"] == "senteval"
    assert result.details["dev_accuracy"] > 0.5
    json.dumps(result.details)


def test_the_seed_is_that_of_the_run(context: TaskContext) -> None:
    seeds = []

    class Noting(SentEvalClassifier):
        def fit(self, *arguments: object, **more: object) -> list:
            seeds.append(self.seed)
            return super().fit(*arguments, **more)

    task = transfer_task(classification.MRPC, Noting(folds=2, max_epoch=4))
    task.run(dataclasses.replace(context, seed=3))
    assert set(seeds) == {3}
    assert "seed" not in task.options
