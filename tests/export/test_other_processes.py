"""A forked child raises an error that says what to do; it would hang otherwise."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

import pytest

from use_st5.export import loading

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")


def test_a_child_of_a_process_that_had_loaded_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "_started_in", None)
    loading.refuse_after_fork()
    loading.refuse_after_fork()
    monkeypatch.setattr(loading, "_started_in", os.getppid())
    with pytest.raises(RuntimeError, match=r'multiprocessing.get_context\("spawn"\)'):
        loading.refuse_after_fork()


@pytest.mark.end_to_end
@pytest.mark.process
@pytest.mark.skipif(sys.platform != "linux", reason="macOS does not fork after threads started")
def test_a_real_fork(fresh_python: Callable[..., str]) -> None:
    code = """
import multiprocessing
import pickle
import tensorflow as tf
import use_st5
from use_st5.layers.saved_model_layer import SavedModelLayer
from use_st5.sklearn import SentenceVectors

encoder = use_st5.load("use_dan_en")
encoder.encode("a")
layer = SavedModelLayer("use_dan_en")
text = tf.constant(["a"])
layer(text)

def attempt(name):
    attempts = {
        "encode": lambda: encoder.encode("a"),
        "truncated": lambda: encoder.truncated("a"),
        "load another": lambda: use_st5.load("use_transformer_en"),
        "layer": lambda: layer(text),
        "new layer": lambda: SavedModelLayer("use_dan_en"),
        "unpickle": lambda: pickle.loads(pickle.dumps(encoder)).encode("a"),
    }
    try:
        attempts[name]()
    except RuntimeError as error:
        return "spawn" in str(error)

names = ["encode", "truncated", "load another", "layer", "new layer", "unpickle"]
with multiprocessing.get_context("fork").Pool(1) as pool:
    for name in names:
        print(name, pool.apply_async(attempt, (name,)).get(timeout=60))
    for function in (encoder.encode, SentenceVectors(encoder).transform):
        try:
            pool.map_async(function, [["a"]]).get(timeout=60)
        except RuntimeError as error:
            print("map", "spawn" in str(error))
encoder.encode("a")
"""
    said = fresh_python("-W", "ignore", "-c", code, timeout=300).splitlines()
    assert len(said) == 8
    assert all(line.endswith("True") for line in said), said
