"""Beam's own text-embedding transform for TF Hub takes our models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("apache_beam", reason="the extra `beam` is not installed")
pytest.importorskip("tensorflow_hub", reason="the extra `hub` is not installed")
pytest.importorskip("tensorflow_text", reason="the extra `text` is not installed")

import apache_beam as beam
from apache_beam.ml.transforms.base import MLTransform
from apache_beam.ml.transforms.embeddings.tensorflow_hub import TensorflowHubTextEmbeddings

import use_st5
from use_st5.hub.model_names import bundled_folder

# The warning comes from jsonpickle, which Beam uses.
pytestmark = pytest.mark.filterwarnings("ignore:keys will default:DeprecationWarning")

TEXTS = ["How old are you?", "What is your age?", "The train is late."]


def test_its_vectors_are_ours(toy_use_dan: Any, toy_bert: Any, tmp_path: Path) -> None:
    folders = [
        bundled_folder("use_dan_en"),
        *(toy.folders["int8"] for toy in (toy_use_dan, toy_bert)),
    ]
    for number, folder in enumerate(folders):
        embedding = TensorflowHubTextEmbeddings(columns=["text"], hub_url=str(folder))
        artifacts = str(tmp_path / f"artifacts_{number}")
        with beam.Pipeline() as pipeline:
            rows = pipeline | beam.Create([{"id": text, "text": text} for text in TEXTS])
            made = rows | MLTransform(write_artifact_location=artifacts).with_transform(embedding)
            _ = made | beam.Map(_kept, str(tmp_path / f"{number}.jsonl"))
        lines = (tmp_path / f"{number}.jsonl").read_text().splitlines()
        found = dict(map(json.loads, lines))
        vectors = np.array([found[text] for text in TEXTS])
        np.testing.assert_allclose(vectors, use_st5.load(folder).encode(TEXTS), atol=1e-6)


def _kept(row: Any, path: str) -> None:
    with Path(path).open("a") as file:
        file.write(json.dumps([row["id"], np.asarray(row["text"]).tolist()]) + "\n")
