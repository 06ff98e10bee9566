"""Requests are computed together, in order, within the bounds of batch and queue."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError

import numpy as np
import pytest

from use_st5.serve.batching import Batcher, ClosedError, QueueFullError, estimated_tokens


class Model:
    """A model that returns the lengths of texts; the first batch waits until `go` is set."""

    def __init__(self) -> None:
        self.go, self.started = threading.Event(), threading.Event()
        self.batches: list[list[str]] = []

    def __call__(self, texts: list[str]) -> np.ndarray:
        self.batches.append(texts)
        self.started.set()
        assert self.go.wait(10)
        if "bad" in texts:
            raise ValueError("bad text")
        return np.array([[len(text)] for text in texts], np.float32)


@pytest.fixture
def model() -> Model:
    """A model that computes nothing before its event is set."""
    return Model()


@pytest.fixture
def batcher(model: Model) -> Iterator[Batcher]:
    """A batcher whose batches have 10 tokens and whose queue has 6 texts."""
    made = Batcher(model, batch_tokens=10, queue_size=6)
    yield made
    model.go.set()
    made.close()


def test_waiting_requests_are_one_batch_and_keep_their_rows(model: Model, batcher: Batcher) -> None:
    first = batcher.submit(["a"])
    assert model.started.wait(10)
    later = [batcher.submit(["bb", "ccc"]), batcher.submit(["dddd"])]
    assert batcher.waiting == 3
    model.go.set()
    assert first.result(10).tolist() == [[1]]
    assert [each.result(10).tolist() for each in later] == [[[2], [3]], [[4]]]
    assert model.batches == [["a"], ["bb", "ccc", "dddd"]]


def test_a_batch_has_no_more_tokens_than_it_may(model: Model, batcher: Batcher) -> None:
    futures = [batcher.submit(["x"])]
    assert model.started.wait(10)
    # 7 tokens each: two do not fit into a batch of 10, and a text of 26 is a batch by itself.
    futures += [batcher.submit(["y" * 24]), batcher.submit(["z" * 24]), batcher.submit(["w" * 100])]
    model.go.set()
    assert [len(each.result(10)) for each in futures] == [1, 1, 1, 1]
    assert [len(batch) for batch in model.batches] == [1, 1, 1, 1]


def test_a_large_request_gives_others_their_turn(model: Model, batcher: Batcher) -> None:
    """Its parts have up to 10 tokens; what waits meanwhile is computed after the first part."""
    blocked = batcher.submit(["x"])
    assert model.started.wait(10)
    large = batcher.submit(["a" * 20, "b" * 12, "c" * 24, "d"])  # 6, 4, 7 and 1 tokens
    small = batcher.submit(["small"])
    assert batcher.waiting == 5
    model.go.set()
    assert [blocked.result(10).tolist(), small.result(10).tolist()] == [[[1]], [[5]]]
    assert large.result(10).tolist() == [[20], [12], [24], [1]]
    parts = [["a" * 20, "b" * 12], ["small", "c" * 24], ["d"]]
    assert [text for batch in model.batches[1:] for text in batch] == sum(parts, [])
    assert batcher.waiting == 0


@pytest.mark.parametrize("end", ["cancel", "error"])
def test_the_rest_of_a_large_request_is_not_computed(
    model: Model, batcher: Batcher, end: str
) -> None:
    first = ["bad" if end == "error" else "a" * 40]
    large = batcher.submit([*first, "b" * 40, "c" * 40])
    assert model.started.wait(10)
    assert batcher.waiting == 2
    if end == "cancel":
        assert large.cancel()
        assert batcher.waiting == 0
    model.go.set()
    with pytest.raises((CancelledError, ValueError)):
        large.result(10)
    assert batcher.submit(["next"]).result(10).tolist() == [[4]]
    assert batcher.waiting == 0
    assert model.batches == [first, ["next"]]


def test_a_full_queue_refuses(model: Model, batcher: Batcher) -> None:
    batcher.submit(["computed"])
    assert model.started.wait(10)
    batcher.submit(list("abcde"))
    with pytest.raises(QueueFullError, match="5 texts are waiting and 2 more do not fit"):
        batcher.submit(["f", "g"])
    assert batcher.submit(["f"]) is not None


def test_a_cancelled_request_is_not_computed(model: Model, batcher: Batcher) -> None:
    batcher.submit(["a"])
    assert model.started.wait(10)
    gone, kept = batcher.submit([*"gone"]), batcher.submit(["kept"])
    assert gone.cancel()
    assert batcher.waiting == 1
    again = batcher.submit([*"again"])  # It needs the places of the cancelled request.
    model.go.set()
    assert kept.result(10).tolist() == [[4]]
    assert len(again.result(10)) == 5
    with pytest.raises(CancelledError):
        gone.result(1)
    assert model.batches[1] == ["kept", *"again"]


def test_closing_computes_what_waits_and_refuses_the_rest(model: Model) -> None:
    batcher = Batcher(model)
    futures = [batcher.submit(["a"]), batcher.submit(["bb"])]
    model.go.set()
    batcher.close()
    assert [each.result(0).tolist() for each in futures] == [[[1]], [[2]]]
    with pytest.raises(ClosedError):
        batcher.submit(["c"])


def test_four_bytes_count_as_a_token() -> None:
    assert estimated_tokens("") == 1
    assert estimated_tokens("a" * 8) == 3
    assert estimated_tokens("é" * 4) == 3
    assert estimated_tokens(("a" * 8, "b" * 4)) == 5
