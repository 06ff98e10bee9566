from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.evaluation.toys import letter_context
from use_st5.data.data_folder import DataFolder, MissingDataError
from use_st5.encode.vector_store import Encode, VectorCache
from use_st5.evaluation.labelled_texts import LabelledTexts
from use_st5.evaluation.probing import TASKS, probing_task, read_probing
from use_st5.evaluation.senteval_classifier import SentEvalClassifier
from use_st5.evaluation.task import TaskContext, TaskResult

GOOD = (
    "tr\tPRES\tShe sings .\nva\tPAST\tHe sang .\ntr\tPAST\tThey ran .\nte\tPRES\tWe run .\r\n"
    "te\tPAST\tmain verb\tI saw\u2028it .\n"
)


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "past_present.txt"
    path.write_bytes(text.encode())
    return path


def test_parts_and_classes(tmp_path: Path) -> None:
    data = read_probing(write(tmp_path, GOOD))
    assert {part: texts.columns for part, texts in data.items()} == {
        "train": (["She sings .", "They ran ."],),
        "dev": (["He sang ."],),
        "test": (["We run .", "I saw\u2028it ."],),
    }
    # PAST is 0, PRES is 1.
    labels = {part: texts.labels.tolist() for part, texts in data.items()}
    assert labels == {"train": [1, 0], "dev": [0], "test": [1, 0]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (GOOD + "te\tPAST\n", r"present\.txt:6: expected at least 3 .* received 2: 'te\\tPAST'"),
        (GOOD + "dev\tPAST\tHe ran .\n", r"txt:6: expected tr, va or te first, received 'dev'"),
        (GOOD + "te\tFUT\tHe will .\n", r"txt:6: expected a class of the training part .* 'FUT'"),
        ("tr\tA\ta\ntr\tB\tb\nte\tA\tc\n", r"txt: expected lines of tr, va and te, .*\['va'\]"),
        ("", r"found none of \['tr', 'va', 'te'\]"),
        ("tr\tA\ta\nva\tA\tb\nte\tA\tc\n", r"two classes or more to train on, found \['A'\]"),
    ],
)
def test_errors_name_file_and_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_probing(write(tmp_path, text))


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"none\.txt: expected a file"):
        read_probing(tmp_path / "none.txt")


SIZES = {"train": 400, "dev": 100, "test": 200}


def encode(sentences: list[str]) -> np.ndarray:
    """Counts of the letters a to d, repeated 16 times."""
    return np.array([[sentence.count(x) for x in "abcd" * 16] for sentence in sentences])


def toy(seed: int, rule: str) -> dict[str, LabelledTexts]:
    """Sentences of the letters a to d whose class is the most frequent letter, or random."""
    generator = np.random.default_rng(seed)
    data = {}
    for part, count in SIZES.items():
        numbers = generator.integers(4, size=count)
        words = generator.choice([*"abcd"], (count, 6))
        sentences = ["".join(row) + 5 * "abcd"[n] for row, n in zip(words, numbers, strict=True)]
        labels = numbers if rule == "letter" else generator.integers(4, size=count)
        data[part] = LabelledTexts((sentences,), labels)
    return data


def score(encode: Encode, data: dict[str, LabelledTexts]) -> TaskResult:
    return TASKS[0].score(TaskContext(VectorCache(encode), DataFolder(".")), data)


def test_what_embeddings_show_is_found() -> None:
    assert score(encode, toy(0, "letter")).scores["accuracy"] > 0.99


def test_what_they_do_not_show_stays_near_chance() -> None:
    assert abs(score(encode, toy(0, "random")).scores["accuracy"] - 0.25) < 0.1


def test_each_sentence_is_embedded_once() -> None:
    asked = []

    def asking(sentences: list[str]) -> np.ndarray:
        asked.extend(sentences)
        return encode(sentences)

    data = toy(1, "letter")
    score(asking, data)
    distinct = {sentence for texts in data.values() for sentence in texts.columns[0]}
    assert sorted(asked) == sorted(distinct)


TASK = probing_task("probing_toy", "Toy", "toy.txt")


def write_tasks(folder: Path, name: str) -> None:
    (folder / "probing").mkdir()
    lines = [
        f"{part}\t{'NO' if n % 2 else 'YES'}\t{'xy'[n % 2]} {n % 9}"
        for part, count in (("tr", 200), ("va", 50), ("te", 40))
        for n in range(count)
    ]
    (folder / "probing" / name).write_text("\n".join(lines), encoding="utf-8")


def test_result(tmp_path: Path) -> None:
    write_tasks(tmp_path, "toy.txt")
    result = TASK.run(letter_context(tmp_path, seed=7))
    assert result.main == "accuracy"
    assert result.scores == {"accuracy": 1.0, "dev_accuracy": 1.0}
    assert result.counts == {"classes": 2, "train": 200, "dev": 50, "test": 40}
    assert result.details["classifier"] == SentEvalClassifier(seed=7).options()
    assert result.details["l2"] in (1e-5, 1e-4, 1e-3, 1e-2)
    json.dumps(result.details)


def test_missing_data_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(MissingDataError, match="expected probing/toy.txt .*SentEval"):
        TASK.run(letter_context(tmp_path, seed=7))


FILES = {
    "probing_length": "sentence_length.txt",
    "probing_word_content": "word_content.txt",
    "probing_depth": "tree_depth.txt",
    "probing_top_constituents": "top_constituents.txt",
    "probing_bigram_shift": "bigram_shift.txt",
    "probing_tense": "past_present.txt",
    "probing_subject_number": "subj_number.txt",
    "probing_object_number": "obj_number.txt",
    "probing_odd_man_out": "odd_man_out.txt",
    "probing_coordination_inversion": "coordination_inversion.txt",
}


def test_files_are_those_of_senteval() -> None:
    assert {task.name: task.sources[0].places[1] for task in TASKS} == FILES
    assert {task.group for task in TASKS} == {"probing"}


def test_options_are_those_of_older_records() -> None:
    expected = {"mlp_grid": False, "classifier": "senteval", "hidden_dim": 0, "dropout": 0.0}
    assert all(expected.items() <= task.options.items() for task in TASKS)
