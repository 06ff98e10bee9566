"""docs/from_sentence_transformers.md: each pair of blocks, run beside sentence-transformers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.models.test_cross_encoder_checkpoints import add_head, head_of
from tests.tiny_bert import VOCABULARY, write_sentence_bert, write_tiny_bert

pytest.importorskip("tensorflow_text", reason="the extra `text` is not installed")
pytest.importorskip("sentence_transformers", reason="the extra `peers` is not installed")

PAGE = Path(__file__).parents[1] / "docs" / "from_sentence_transformers.md"
BLOCK = re.compile(
    r"^```text\n# (sentence-transformers|use_st5)(, training)?\n(.*?)^```$", re.M | re.S
)
TEXTS = [f"a {one} is a kind of {two}" for one in VOCABULARY[5:9] for two in VOCABULARY[9:13]]


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The page's models by name: small ones with random weights and no dropout."""
    encoder = write_sentence_bert(tmp_path / "encoder")
    (encoder / "sentence_bert_config.json").write_text('{"max_seq_length": 64}')
    prompts = {"query": "a person: ", "document": "music: "}
    (encoder / "config_sentence_transformers.json").write_text(json.dumps({"prompts": prompts}))
    cross = write_tiny_bert(tmp_path / "cross", head=False)
    add_head(cross, head_of(1), architectures=["BertForSequenceClassification"], num_labels=1)
    for folder in (encoder, cross):
        path = folder / "config.json"
        none = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
        path.write_text(json.dumps(json.loads(path.read_text()) | none))
    monkeypatch.chdir(tmp_path)
    return {
        "sentence-transformers/all-MiniLM-L6-v2": str(encoder),
        "cross-encoder/stsb-TinyBERT-L4": str(cross),
    }


def numbers(value: Any) -> Iterator[float]:
    """The numbers of a result: scores and places, in order, without texts."""
    if isinstance(value, Mapping):
        value = [value["corpus_id"], value["score"]]
    if isinstance(value, (str, bytes)):
        return
    if np.ndim(value) == 0 and not isinstance(value, (list, tuple)):
        yield float(value)
        return
    for part in value:
        yield from numbers(part)


def run(block: str, names: dict[str, Any], folders: Mapping[str, str]) -> None:
    for name, folder in folders.items():
        block = block.replace(f'"hf://{name}"', repr(folder)).replace(f'"{name}"', repr(folder))
    exec(compile(block, PAGE.name, "exec"), names)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")  # theirs
@pytest.mark.parametrize("training", ["", ", training"])
def test_each_pair_of_blocks(training: str, folders: dict[str, str]) -> None:
    if training:
        pytest.importorskip("accelerate", reason="the trainer of sentence-transformers needs it")
        pytest.importorskip("datasets", reason="the extra `integrations` is not installed")
    blocks = [each for each in BLOCK.findall(PAGE.read_text("utf-8")) if each[1] == training]
    assert len(blocks) == (2 if training else 12)
    given = {"texts": TEXTS, "queries": TEXTS[:3], "documents": TEXTS[2:]}
    theirs, ours = dict(given), dict(given)
    if training:
        exec("from sentence_transformers import SentenceTransformer", theirs)
    for (_, _, first), (_, _, second) in zip(blocks[::2], blocks[1::2], strict=True):
        run(first, theirs, folders)
        run(second, ours, folders)
    skipped = {*given, "model", "cross_encoder", "CrossEncoder", "rows", "args", "loss"}
    skipped |= {
        "corpus",
        "asked_texts",
        "relevant",
        "groups",
        "__builtins__",
        "__warningregistry__",
    }
    both = (theirs.keys() & ours.keys()) - skipped
    assert both >= ({"trained"} if training else {"vectors", "hits", "ids", "ranked", "ndcg"})
    for name in sorted(both):
        found, expected = ([*numbers(each[name])] for each in (ours, theirs))
        atol = 2e-3 if training else 1e-5
        np.testing.assert_allclose(found, expected, atol=atol, err_msg=name)
    if not training:
        groups = [[sorted(map(int, group)) for group in each["groups"]] for each in (ours, theirs)]
        assert groups[0] == groups[1]
        assert len(groups[0]) > 0
