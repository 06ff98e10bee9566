"""The loss of a file, with its usual settings and those of the papers."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.toy_encoders import Toy
from tests.training.words import Words
from use_st5.losses.contrastive_loss import ContrastiveLoss
from use_st5.losses.definition_loss import DefinitionLoss
from use_st5.losses.simcse_loss import SimCSELoss
from use_st5.losses.task_loss import TaskLoss
from use_st5.trainable_encoder import TrainableEncoder
from use_st5.training.arguments import make_arguments
from use_st5.training.dataset_stats import dataset_stats
from use_st5.training.file_tasks import (
    check_dimensions,
    check_loss_arguments,
    file_task,
    teacher_task,
)
from use_st5.training.sources import Source, open_source
from use_st5.training.tasks import TASKS


@pytest.mark.parametrize(
    ("columns", "settings", "kind", "temperature"),
    [
        # Ours for pairs; Ni et al. 2021, section 4.1 (τ = 0.01); Gao et al. 2021, section 3.
        ("anchor positive", {}, ContrastiveLoss, 0.05),
        ("anchor positive", {"loss": {"temperature": 0.02}}, ContrastiveLoss, 0.02),
        ("anchor positive", {"name": "sentence_t5"}, ContrastiveLoss, 0.01),
        ("text", {}, SimCSELoss, 0.05),
        ("text", {"name": "simcse"}, SimCSELoss, 0.05),
    ],
)
def test_the_temperature(
    columns: str,
    settings: dict[str, Any],
    kind: type,
    temperature: float,
    table: Callable[..., Source],
) -> None:
    width = len(columns.split())
    rows = [tuple(f"word {n} {column}" for column in range(width)) for n in range(4)]
    found = dataset_stats(table("mine", columns, rows), Words())
    loss = found.source.kind.make_loss(found, None, make_arguments(**settings).loss)
    assert type(loss) is kind
    assert loss.temperature == temperature


def test_the_ids_are_those_of_the_texts_with_their_prompts(
    toy_use_dan: Toy, tmp_path: Path
) -> None:
    encoder = TrainableEncoder.load(toy_use_dan.folders["float32"])
    rows = [("the cat", "sat on the mat", "a dog"), ("a dog", "ran", "the cat")]
    lines = ["anchor\tpositive\tnegative", *map("\t".join, rows)]
    (tmp_path / "faq.tsv").write_text("\n".join(lines) + "\n")
    prompts = {"anchor": "the dog sat: ", "positive": "a mat ran: "}
    source = open_source(tmp_path / "faq.tsv", prompts=prompts)
    found = dataset_stats(source, encoder.tokenizer)
    texts = [
        [prompts.get(key, "") + row[place] for row in rows]
        for place, key in enumerate(("anchor", "positive", "negative"))
    ]
    counts = [encoder.tokenizer.token_counts(each) for each in texts]
    np.testing.assert_array_equal(np.sort(found.lengths), np.sort(np.concatenate(counts)))
    task = file_task(found, [], encoder, make_arguments(), name="faq", weight=None)
    arrays = task.prepared(encoder, tmp_path / "prepared").arrays
    expected = dict(zip(("anchor", "positive", "negative"), texts, strict=True))
    for name, each in expected.items():
        ids = np.asarray(encoder.tokenizer.padded(each, int(found.lengths.max())))
        width = max(ids.shape[1], arrays[name].shape[1])
        np.testing.assert_array_equal(_to_width(arrays[name], width), _to_width(ids, width))
    assert any("prompts: anchor 'the dog sat: '" in line for line in found.lines(99))
    assert any(line.endswith("; none before negative") for line in found.lines(99))


def test_a_teacher_reads_the_texts_and_the_start_the_texts_with_prompts(
    toy_use_dan: Toy, tmp_path: Path
) -> None:
    folder = toy_use_dan.folders["float32"]
    encoder, teacher = TrainableEncoder.load(folder), TrainableEncoder.load(folder)
    (tmp_path / "t.tsv").write_text("text\nthe cat\na dog\n")
    source = open_source(tmp_path / "t.tsv", prompts="sat ran: ")
    stats = [dataset_stats(source, encoder.tokenizer)]
    prompted = ["sat ran: the cat", "sat ran: a dog"]
    for each, texts in ((teacher, ["the cat", "a dog"]), (encoder, prompted)):
        options = {"name": "teacher", "weight": 1.0}
        task = teacher_task(each, encoder, stats, [], make_arguments(), **options)
        rows = [*task.rows()]
        assert [row["sentence"] for row in rows] == prompted
        vectors = np.stack([row["teacher"] for row in rows])
        np.testing.assert_allclose(vectors, encoder.encode(texts), atol=1e-6)


def test_the_vectors_of_a_teacher_are_learned_in_each_dimension(
    toy_use_dan: Toy, tmp_path: Path
) -> None:
    encoder = TrainableEncoder.load(toy_use_dan.folders["float32"])
    (tmp_path / "t.tsv").write_text("text\nthe cat\na dog\n")
    stats = [dataset_stats(open_source(tmp_path / "t.tsv"), encoder.tokenizer)]
    arguments = make_arguments(matryoshka_dimensions=(4, 16))
    options = {"name": "teacher", "weight": 1.0}
    task = teacher_task(encoder, encoder, stats, [], arguments, **options)
    assert task.make_loss().dimensions == (4, 16)
    check_dimensions([task], encoder, arguments)
    words = dataclasses.replace(task, make_loss=DefinitionLoss)
    check_dimensions([task, words], encoder, arguments)
    with pytest.raises(ValueError, match="needs only vectors, received DefinitionLoss"):
        check_dimensions([words], encoder, arguments)


def test_an_argument_of_a_loss_of_ones_own_may_have_any_type() -> None:
    def loss(*, shape: Any = (), unknown: Unknown = None) -> TaskLoss:  # type: ignore # noqa: F821
        raise NotImplementedError

    for own in (loss, lambda *, shape=(): loss(shape=shape)):
        spec = dataclasses.replace(TASKS["pairs"], loss=own)
        check_loss_arguments([spec], make_arguments(loss={"shape": "x"}))


def _to_width(ids: np.ndarray, width: int) -> np.ndarray:
    return np.pad(ids, [(0, 0), (0, width - ids.shape[1])])
