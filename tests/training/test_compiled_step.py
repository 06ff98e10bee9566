"""What XLA is given of a training step, for every family and every loss.

No TPU is at hand. XLA's front is the same for all devices: the program that is listed here, before
any device's own passes, is what its compiler for TPUs would get. That it has a kernel for every
operation of TensorFlow's is shown by its being made; what else a TPU refuses is looked for.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from experiments.sentence_t5.span_corruption_loss import SpanCorruptionLoss
from tests.toy_encoders import USE_TRANSFORMER
from tests.training import toy
from use_st5 import losses
from use_st5.losses.task_loss import TaskLoss
from use_st5.losses.vector_loss import VectorLoss
from use_st5.models.bert.model import BertConfig, ProjectionConfig, SentenceBert
from use_st5.models.cross_encoder.model import CrossEncoderModel
from use_st5.models.family import families
from use_st5.models.modernbert.model import ModernBertConfig, SentenceModernBert
from use_st5.models.mpnet.model import MPNetConfig, SentenceMPNet
from use_st5.models.static_embedding.model import StaticEmbedding
from use_st5.models.t5.model import T5, T5Config
from use_st5.models.t5.sentence_t5 import SentenceT5
from use_st5.models.use_dan.model import USEDAN, USEDANConfig
from use_st5.models.use_transformer.model import USETransformer, USETransformerConfig
from use_st5.training.array_data import ArrayData
from use_st5.training.task import Task
from use_st5.training.tensorflow_loop import TensorFlowLoop

# A TPU calls back to no host, computes no 64-bit floats, and knows every size beforehand.
REFUSED_OPS = {
    "custom-call",
    "infeed",
    "outfeed",
    "send",
    "recv",
    "set-dimension-size",
    "call-host",
}
REFUSED_TYPES = re.compile(r"\b(f64|c128|token)\[|\[<=")
HOST_OPS = re.compile(r"PyFunc|^Print|StringFormat|Assert$|Summary|^Unique|^Where$|HashTable")
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
    "classification": (losses.ClassificationLoss, {}),
    "contrastive": (
        lambda: losses.ContrastiveLoss(hard_negatives=True, bidirectional=True, margin=0.1),
        dict(zip(PAIR, ("premise", "hypothesis", "sentence"), strict=True)),
    ),
    "definition": (losses.DefinitionLoss, {"definition": "sentence", "word": "label"}),
    "input_response": (losses.InputResponseLoss, {}),
    "label": (lambda: losses.LabelLoss(num_classes=3, dropout=0.1), {"text": "sentence"}),
    "matryoshka": (
        lambda: losses.MatryoshkaLoss(losses.ContrastiveLoss(), dimensions=(8, 4)),
        {"anchor": "premise", "positive": "hypothesis"},
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
        for each in ("mse", "cosent")
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
}


@pytest.fixture
def mixed_bfloat16() -> Iterator[None]:
    """The policy of TPUs for what the test makes."""
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy("mixed_bfloat16")
    yield
    keras.config.set_dtype_policy(before)


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
    """The HLO of one step of 16 examples, and the operations of TensorFlow's that it was made of.

    Texts are encoded in two pieces where the loss allows it; gradients are clipped.
    """
    arrays = toy.arrays()
    arrays["score"] = np.linspace(0, 1, toy.ROWS).astype(np.float32)
    if not encoder.built:
        encoder.build()
    names = [feature.name for feature in loss.features]
    data = ArrayData({name: arrays[columns.get(name, name)] for name in names})
    trainer = TensorFlowLoop(
        encoder,
        [Task("only", loss, data, batch_size=16)],
        keras.optimizers.Adam(1e-2, global_clipnorm=1.0),
        jit_compile=True,
        gradient_accumulation_steps=gradient_accumulation_steps,
        gradient_cache=2 if isinstance(loss, VectorLoss) else 1,
        progress=False,
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


def operations(text: str) -> set[str]:
    """The names of the HLO operations of a program."""
    return set(re.findall(r"^\s+(?:ROOT )?%?[\w.-]+ = .*? ([a-z][a-z0-9-]*)\(", text, re.MULTILINE))


def assert_fit_for_a_tpu(text: str, ops: set[str]) -> None:
    found = operations(text)
    assert {"dot", "add", "parameter"} <= found
    assert found & REFUSED_OPS == set(), text
    assert REFUSED_TYPES.findall(text) == []
    assert [op for op in ops if HOST_OPS.search(op)] == []


@pytest.mark.usefixtures("mixed_bfloat16")
@pytest.mark.parametrize(
    "name",
    [
        # Poolings beside the usual one. Of each program XLA keeps tens of megabytes.
        pytest.param(name, marks=[pytest.mark.end_to_end] * (" " in name))
        for name in ENCODERS
    ],
)
def test_the_step_of_every_family_holds_nothing_that_a_tpu_refuses(name: str) -> None:
    loss, columns = LOSSES["contrastive"]
    text, ops = program(ENCODERS[name](), loss(), columns)
    assert_fit_for_a_tpu(text, ops)
    assert "bf16[" in text


@pytest.mark.parametrize("name", LOSSES)
def test_the_step_of_every_loss_holds_nothing_that_a_tpu_refuses(name: str) -> None:
    make, columns = LOSSES[name]
    loss = make()
    assert_fit_for_a_tpu(*program(encoder_for(loss), loss, columns, gradient_accumulation_steps=2))


def test_every_family_and_every_loss_is_here() -> None:
    tried = {type(make()) for make, _ in LOSSES.values()}
    public = {getattr(losses, name) for name in losses.__all__ if name.endswith("Loss")}
    assert public - {TaskLoss, VectorLoss} == tried - {SpanCorruptionLoss}  # of an experiment
    # A cross-encoder is tried with the losses of pairs. The graph of a SavedModel of another origin
    # is not ours to compile, nor are the networks of KerasHub, an extra.
    others = {"cross_encoder", "kerashub", "saved_model"}
    # Other tests of this process may have registered families of their own.
    ours = {n for n, each in families().items() if type(each).__module__.startswith("use_st5.")}
    assert {name.split()[0] for name in ENCODERS} | others >= ours


def test_what_a_tpu_refuses_is_found() -> None:
    @tf.function(jit_compile=True)
    def doubtful(x: tf.Tensor) -> tf.Tensor:
        chosen = tf.boolean_mask(x, x > 0)
        return tf.reduce_sum(tf.cast(chosen, tf.float64))

    text = doubtful.experimental_get_compiler_ir(tf.zeros([4]))(stage="hlo")
    assert REFUSED_TYPES.search(text)
    with pytest.raises(AssertionError):
        assert_fit_for_a_tpu(text, set())


COMPILED = """
import keras
from tests.toy_encoders import USE_TRANSFORMER
from tests.training import toy
from use_st5.training.array_data import ArrayData
from use_st5.training.task import Task
from use_st5.training.tensorflow_loop import TensorFlowLoop
names = ("premise", "hypothesis", "label")
data = ArrayData({name: toy.arrays()[name] for name in names}, buckets=(2, 4, 5))
tasks = [Task("nli", toy.losses()["nli"], data, batch_size=4), *toy.tasks(only=("teacher",))]
TensorFlowLoop(toy.ToyEncoder(), tasks, keras.optimizers.Adam(), progress=False).run(60)
print({data.batch(step, 4, 0)["premise"].shape[1] for step in range(16)})
"""


@pytest.mark.end_to_end
@pytest.mark.process
def test_a_task_is_compiled_once_for_each_width(repository: Path, tmp_path: Path) -> None:
    """Three widths of one task and one of the other: four programs for 60 steps in six calls."""
    flags = f"--xla_dump_to={tmp_path} --xla_dump_hlo_as_text --xla_dump_hlo_module_re=.*step.*"
    done = subprocess.run(
        [sys.executable, "-c", COMPILED],
        env={**os.environ, "PYTHONPATH": str(repository), "XLA_FLAGS": flags},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.strip() == "{2, 4, 5}"
    assert len([*tmp_path.glob("*before_optimizations.txt")]) == 4
