from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from use_st5.evaluation.data_folder import DataFolder
from use_st5.evaluation.glue import datasets
from use_st5.evaluation.glue.glue_dataset import GlueDataset

# A header as published and two rows; what must be read of them.
NLI_HEAD = (
    "index\tpromptID\tpairID\tgenre\tsentence1_binary_parse\tsentence2_binary_parse\t"
    "sentence1_parse\tsentence2_parse\tsentence1\tsentence2\tlabel1\t"
)
NLI_ROW = "0\t1\t1n\tslate\t( a\t( b\t(ROOT\t(ROOT\tThe new\tEveryone\tneutral\t"
STSB_HEAD = "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2\tscore"
PUBLISHED = {
    "CoLA": (
        datasets.COLA,
        "dev.tsv",
        "gj04\t1\t\tThe sailors rode.\ngj04\t0\t*\tThe rode.\n",
        (["The sailors rode.", "The rode."],),
        [1, 0],
    ),
    "SST-2": (
        datasets.SST2,
        "dev.tsv",
        "sentence\tlabel\nit 's a charming journey . \t1\nbleak \t0\n",
        (["it 's a charming journey .", "bleak"],),
        [1, 0],
    ),
    "MRPC": (
        datasets.MRPC,
        "dev.tsv",
        "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n1\t7\t8\tHe said .\tHe says .\n"
        '0\t9\t10\t" A .\tB . "\n',
        (["He said .", '" A .'], ["He says .", 'B . "']),
        [1, 0],
    ),
    "STS-B": (
        datasets.STSB,
        "dev.tsv",
        f"{STSB_HEAD}\n0\tmain-captions\tMSRvid\t2012test\t0000\tnone\tnone\tA hat.\tHats.\t4.7\n",
        (["A hat."], ["Hats."]),
        [4.7],
    ),
    "QQP": (
        datasets.QQP,
        "dev.tsv",
        "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n1\t2\t3\tWhy?\tHow?\t0\n4\t5\t6\tA\tB\t1\n",
        (["Why?", "A"], ["How?", "B"]),
        [0, 1],
    ),
    "MNLI": (
        datasets.MNLI_MATCHED,
        "dev_matched.tsv",
        f"{NLI_HEAD}label2\tlabel3\tlabel4\tlabel5\tgold_label\n"
        f"{NLI_ROW}entailment\tneutral\tneutral\tneutral\tneutral\n",
        (["The new"], ["Everyone"]),
        [1],
    ),
    "MNLI train": (
        datasets.MNLI_MISMATCHED,
        "train.tsv",
        f"{NLI_HEAD}gold_label\n{NLI_ROW}contradiction\n{NLI_ROW}entailment\n",
        (["The new", "The new"], ["Everyone", "Everyone"]),
        [2, 0],
    ),
    "QNLI": (
        datasets.QNLI,
        "dev.tsv",
        "index\tquestion\tsentence\tlabel\n0\tWhat?\tThat.\tentailment\n1\tWho?\tX.\tnot_entailment\n",
        (["What?", "Who?"], ["That.", "X."]),
        [0, 1],
    ),
    "RTE": (
        datasets.RTE,
        "dev.tsv",
        "index\tsentence1\tsentence2\tlabel\n0\tA.\tB.\tnot_entailment\n1\tC.\tD.\tentailment\n",
        (["A.", "C."], ["B.", "D."]),
        [1, 0],
    ),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_layouts(tmp_path: Path, name: str) -> None:
    dataset, file, text, columns, labels = PUBLISHED[name]
    path = tmp_path / name.split()[0] / file
    path.parent.mkdir()
    path.write_text(text, encoding="utf-8")
    data = DataFolder(tmp_path)
    read = dataset.read_train(data) if file == "train.tsv" else dataset.read_dev(data)
    assert read.columns == columns
    assert read.labels.tolist() == labels


# Rows, and rows of class 1. The numbers of rows are those of GLUE.
REAL: dict[str, tuple[GlueDataset, tuple[int, int], tuple[int, int]]] = {
    "CoLA": (datasets.COLA, (8551, 6023), (1043, 719)),  # the files of the corpus itself
    "SST-2": (datasets.SST2, (67349, 37569), (872, 444)),
    "RTE": (datasets.RTE, (2490, 1241), (277, 131)),
}


@pytest.mark.parametrize("name", REAL)
def test_real_counts(data_dir: Path, name: str) -> None:
    dataset, train, dev = REAL[name]
    data = DataFolder(data_dir)
    for counts, texts in ((train, dataset.read_train(data)), (dev, dataset.read_dev(data))):
        assert (len(texts), int((texts.labels == 1).sum())) == counts
        assert set(texts.labels.tolist()) == {0, 1}
        assert all(sentence for column in texts.columns for sentence in column)


def test_real_stsb_is_glue_s(data_dir: Path) -> None:
    data = DataFolder(data_dir)
    train, dev = datasets.STSB.read_train(data), datasets.STSB.read_dev(data)
    assert (len(train), len(dev)) == (5749, 1500)
    assert train.columns[0][0] == "A plane is taking off."
    assert train.columns[1][0] == "An air plane is taking off."
    assert train.labels[:2].tolist() == [5.0, 3.8]
    for texts in (train, dev):
        assert np.isfinite(texts.labels).all()
        assert (texts.labels.min(), texts.labels.max()) == (0.0, 5.0)
