"""Run by tests in a fresh process: writes the programs that XLA gets for training steps.

usage: compiled_programs.py NAMES.json PROGRAMS.json; the names are keys of `ENCODERS` or `LOSSES`.
XLA keeps tens of megabytes of each program as long as its process lives.
"""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from experiments.sentence_t5.span_corruption_loss import SpanCorruptionLoss
from tests.toy_encoders import USE_TRANSFORMER
from tests.training import toy
from use_st5 import losses
from use_st5.data.arrays import ArrayData
from use_st5.losses.task_loss import TaskLoss, VectorLoss
from use_st5.models.bert.model import BertConfig, ProjectionConfig, SentenceBert
from use_st5.models.cross_encoder.model import CrossEncoderModel
from use_st5.models.modernbert.model import ModernBertConfig, SentenceModernBert
from use_st5.models.mpnet.model import MPNetConfig, SentenceMPNet
from use_st5.models.static_embedding.model import StaticEmbedding
from use_st5.models.t5.model import T5, T5Config
from use_st5.models.t5.sentence_t5 import SentenceT5
from use_st5.models.use_dan.model import USEDAN, USEDANConfig
from use_st5.models.use_transformer.model import USETransformer, USETransformerConfig
from use_st5.training.optimizers import Adam
from use_st5.training.task import Task
from use_st5.training.tensorflow_step import TensorFlowLoop

SIZE = toy.VOCABULARY
BERT = BertConfig(SIZE, 1, 8, 16, 2, separator_id=3, dropout=0.1, attention_dropout=0.1)
T5_CONFIG = T5Config(SIZE, 1, 8, 16, 2, 4, "gated_gelu", dropout=0.1)
DAN = USEDANConfig(SIZE, 8, (12, 16), term_dropout=0.3, dropout=0.3)

ENCODERS: dict[str, Callable[[], keras.Model]] = {
    "use_dan": lambda: USEDAN(DAN),
    "use_transformer": lambda: USETransformer(
        USETransformerConfig(num_embeddings=SIZE, **USE_TRANSFORMER)
    ),
    "t5": lambda: SentenceT5(T5_CONFIG, projection_dim=6),
    "t5 first": lambda: SentenceT5(T5_CONFIG, pooling="first", projection_dim=6),
    "t5 decoder": lambda: SentenceT5(T5_CONFIG, pooling="decoder", projection_dim=6),
    "bert": lambda: SentenceBert(BERT, dense=ProjectionConfig(16), normalize=True),
    "modernbert": lambda: SentenceModernBert(
        ModernBertConfig(SIZE, 2, 8, 16, 2, local_window=2, dropout=0.1)
    ),
    "mpnet": lambda: SentenceMPNet(MPNetConfig(SIZE, 1, 8, 16, 2, relative_buckets=8)),
    "static_embedding": lambda: StaticEmbedding(SIZE, 16),
    "bert cls": lambda: SentenceBert(BERT, pooling="cls"),
    "bert max": lambda: SentenceBert(BERT, pooling="max"),
}

PAIR = ("anchor", "positive", "negative")
LOSSES: dict[str, tuple[Callable[[], TaskLoss], dict[str, str]]] = {
    **{
        f"batch_triplet {each}": (
            lambda each=each: losses.BatchTripletLoss(mining=each, distance="euclidean"),
            {"text": "sentence"},
        )
        for each in ("hard", "semi_hard", "all")
    },
    "classification": (losses.ClassificationLoss, {}),
    "contrastive": (
        lambda: losses.ContrastiveLoss(hard_negatives=True, bidirectional=True, margin=0.1),
        dict(zip(PAIR, ("premise", "hypothesis", "sentence"), strict=True)),
    ),
    "definition": (losses.DefinitionLoss, {"definition": "sentence", "word": "label"}),
    "gist": (
        lambda: losses.GISTEmbedLoss(guide_dim=toy.TEACHER, margin=0.1),
        {
            **{"anchor": "premise", "positive": "hypothesis"},
            **{"guide_anchor": "teacher", "guide_positive": "teacher"},
        },
    ),
    "input_response": (losses.InputResponseLoss, {}),
    "label": (lambda: losses.LabelLoss(num_classes=3, dropout=0.1), {"text": "sentence"}),
    "matryoshka": (
        lambda: losses.MatryoshkaLoss(losses.ContrastiveLoss(), dimensions=(8, 4)),
        {"anchor": "premise", "positive": "hypothesis"},
    ),
    "multi_label": (
        lambda: losses.MultiLabelLoss(num_classes=toy.TEACHER),
        {"text": "sentence", "labels": "teacher"},
    ),
    **{
        f"pair_logit {each}": (
            lambda each=each: losses.PairLogitLoss(objective=each),
            {"pair": "sentence"},
        )
        for each in ("bce", "mse")
    },
    **{
        f"scored_pair {each}": (
            lambda each=each: losses.ScoredPairLoss(objective=each),
            {"first": "premise", "second": "hypothesis"},
        )
        for each in ("mse", "cosent", "angle")
    },
    "simcse": (losses.SimCSELoss, {}),
    "simcse masked": (lambda: losses.SimCSELoss(masked_span=2, mask_id=3), {}),
    "skip_thought": (lambda: losses.SkipThoughtLoss(vocabulary_size=SIZE, hidden_dim=8), {}),
    "span_corruption": (SpanCorruptionLoss, {"inputs": "sentence", "targets": "next"}),
    "teacher": (
        lambda: losses.TeacherLoss(
            teacher_dim=toy.TEACHER, similarity_weight=1.0, ranking_weight=0.1
        ),
        {},
    ),
    "tsdae": (lambda: losses.TSDAELoss(vocabulary_size=SIZE, hidden_dim=8), {}),
    "triplet": (
        losses.TripletLoss,
        dict(zip(PAIR, ("premise", "hypothesis", "sentence"), strict=True)),
    ),
}


def main(names: str, programs: str) -> None:
    """Writes the program and the TensorFlow operations of each name, or its error."""
    found: dict[str, dict[str, Any]] = {}
    for name in json.loads(Path(names).read_text(encoding="utf-8")):
        try:
            hlo, ops = program_of_family(name) if name in ENCODERS else program_of_loss(name)
            found[name] = {"hlo": hlo, "ops": sorted(ops)}
        except Exception:
            found[name] = {"error": traceback.format_exc()}
    Path(programs).write_text(json.dumps(found), encoding="utf-8")


def program_of_family(name: str) -> tuple[str, set[str]]:
    """A contrastive step of an encoder, under the policy of TPUs."""
    loss, columns = LOSSES["contrastive"]
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        return program(ENCODERS[name](), loss(), columns)
    finally:
        keras.config.set_dtype_policy(before)


def program_of_loss(name: str) -> tuple[str, set[str]]:
    """A step of a loss that adds up the gradients of two micro-batches."""
    make, columns = LOSSES[name]
    loss = make()
    return program(encoder_for(loss), loss, columns, gradient_accumulation_steps=2)


def encoder_for(loss: TaskLoss) -> keras.Model:
    if isinstance(loss, SpanCorruptionLoss):
        return T5(T5_CONFIG)
    if isinstance(loss, losses.PairLogitLoss):
        return CrossEncoderModel(SentenceBert(BERT, pooling="cls"))
    return (
        toy.NamingToy() if isinstance(loss, losses.DefinitionLoss) else toy.ToyEncoder(dropout=0.1)
    )


def program(
    encoder: keras.Model,
    loss: TaskLoss,
    columns: dict[str, str],
    gradient_accumulation_steps: int = 1,
) -> tuple[str, set[str]]:
    """Returns the HLO of a step of 16 examples, and the TensorFlow operations it is made from.

    Texts are encoded in two pieces if the loss allows it; gradients are clipped.
    """
    arrays = toy.arrays()
    arrays["score"] = np.linspace(0, 1, toy.ROWS).astype(np.float32)
    if not encoder.built:
        encoder.build()
    names = [feature.name for feature in loss.features]
    data = ArrayData({name: arrays[columns.get(name, name)] for name in names})
    part = 16 // gradient_accumulation_steps
    trainer = toy.loop(
        TensorFlowLoop,
        encoder,
        [Task("only", loss, data, batch_size=16)],
        Adam(1e-2, global_clipnorm=1.0),
        jit_compile=True,
        gradient_accumulation_steps=gradient_accumulation_steps,
        micro_batch_size=part // 2 if isinstance(loss, VectorLoss) else None,
    )
    step = trainer._train_steps["only"]._replica_step
    batch = {name: tf.constant(array) for name, array in data.batch(0, 16, 0).items()}
    graph = step.get_concrete_function(batch).graph
    text = step.experimental_get_compiler_ir(batch)(stage="hlo")
    assert step.experimental_get_tracing_count() == 1
    return text, {op.type for op in _all_operations(graph)}


def _all_operations(graph: Any) -> Iterator[Any]:
    yield from graph.get_operations()
    for function in graph.as_graph_def().library.function:
        yield from (_Node(node.op) for node in function.node_def)


class _Node:
    def __init__(self, op: str) -> None:
        self.type = op


if __name__ == "__main__":
    main(*sys.argv[1:])
