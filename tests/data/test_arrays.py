from __future__ import annotations

import dataclasses
import functools
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from use_st5.data.arrays import PreparedColumn, open_prepared, prepare


@dataclasses.dataclass(frozen=True)
class ToyVocabulary:
    unigrams: tuple[str, ...] = ("the", "cat", "sat")
    unigram_buckets: int = 1


class ToyTokenizer:
    """Ids by position in the vocabulary, unknown words at its end; notes its batch sizes."""

    def __init__(self, *words: str) -> None:
        self.vocabulary = ToyVocabulary(words) if words else ToyVocabulary()
        self.batches: list[int] = []

    def padded(self, text: list[str], max_tokens: int) -> np.ndarray:
        return self._rows(text, 2 * max_tokens - 1)

    def token_ids(self, text: list[str], max_tokens: int) -> np.ndarray:
        return self._rows(text, max_tokens)

    def _rows(self, text: list[str], length: int) -> np.ndarray:
        self.batches.append(len(text))
        words = [*self.vocabulary.unigrams]
        rows = np.zeros((len(text), length), dtype=np.int64)
        for row, each in zip(rows, text, strict=True):
            ids = [2 + (words.index(w) if w in words else len(words)) for w in each.split()]
            row[: len(ids)] = ids[:length]
        return rows


COLUMNS = {
    "sentence": PreparedColumn("ids", max_tokens=2),
    "next": PreparedColumn("token_ids", max_tokens=2, key="after"),
    "label": PreparedColumn("label"),
    "score": PreparedColumn("score"),
    "teacher": PreparedColumn("vector"),
}
EXAMPLES = [
    {"sentence": "the cat", "after": "sat down now", "label": 2, "teacher": [0.5, -1], "more": 1},
    {"sentence": "", "after": "the", "label": 0, "teacher": [1, 2]},
    {"sentence": "dog", "after": "", "label": 1, "teacher": np.array([3, 4], dtype=np.float16)},
]
for _example, _score in zip(EXAMPLES, [0.5, -1, np.float32(2)], strict=True):
    _example["score"] = _score


@pytest.fixture
def few_at_once(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """`few_at_once(number)` sets how many examples are prepared at once."""
    return functools.partial(monkeypatch.setattr, "use_st5.data.arrays._CHUNK")


def test_arrays_hold_the_examples_in_order(
    tmp_path: Path, few_at_once: Callable[[int], None]
) -> None:
    few_at_once(2)
    arrays = prepare(EXAMPLES, COLUMNS, ToyTokenizer(), tmp_path / "a" / "b")
    assert {name: (array.dtype, array.shape) for name, array in arrays.items()} == {
        "sentence": (np.int32, (3, 2)),
        "next": (np.int32, (3, 2)),
        "label": (np.int32, (3,)),
        "score": (np.float32, (3,)),
        "teacher": (np.float32, (3, 2)),
    }
    assert arrays["sentence"].tolist() == [[2, 3], [0, 0], [5, 0]]
    assert arrays["next"].tolist() == [[4, 5], [2, 0], [0, 0]]
    assert arrays["label"].tolist() == [2, 0, 1]
    assert arrays["score"].tolist() == [0.5, -1, 2]
    assert arrays["teacher"].tolist() == [[0.5, -1], [1, 2], [3, 4]]
    assert not any(array.flags.writeable for array in arrays.values())
    assert {
        name: array.tolist() for name, array in open_prepared(tmp_path / "a" / "b").items()
    } == {name: array.tolist() for name, array in arrays.items()}


@pytest.mark.parametrize("count", [1, 2, 3])
def test_files_do_not_depend_on_how_many_are_prepared_at_once(
    tmp_path: Path, count: int, few_at_once: Callable[[int], None]
) -> None:
    prepare(EXAMPLES, COLUMNS, ToyTokenizer(), tmp_path / "whole")
    few_at_once(count)
    prepare(EXAMPLES, COLUMNS, ToyTokenizer(), tmp_path / "cut")
    files = sorted(path.name for path in (tmp_path / "whole").iterdir())
    assert files == [
        *("label.bin", "next.bin", "prepared.json", "score.bin", "sentence.bin", "teacher.bin")
    ]
    for name in files:
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "cut" / name).read_bytes()


def test_examples_are_a_stream(tmp_path: Path, few_at_once: Callable[[int], None]) -> None:
    few_at_once(64)
    tokenizer = ToyTokenizer()
    taken, ahead = 0, 1 + (os.cpu_count() or 1)

    def examples() -> Iterator[dict[str, Any]]:
        nonlocal taken
        for i in range(1000):
            # At most one chunk for each processor is taken ahead.
            assert sum(tokenizer.batches) >= (taken // 64 - ahead) * 64
            taken += 1
            yield {"sentence": "the " * (i % 3)}

    columns = {"sentence": COLUMNS["sentence"]}
    prepare(examples(), columns, tokenizer, tmp_path / "a")
    assert max(tokenizer.batches) == 64


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_a_broken_off_run_leaves_nothing(
    tmp_path: Path, error: type[BaseException], few_at_once: Callable[[int], None]
) -> None:
    few_at_once(1)

    def examples() -> Iterator[dict[str, Any]]:
        yield from EXAMPLES
        raise error

    with pytest.raises(error):
        prepare(examples(), COLUMNS, ToyTokenizer(), tmp_path / "a")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_there_is_kept_or_reused(tmp_path: Path) -> None:
    prepare(EXAMPLES, COLUMNS, ToyTokenizer(), tmp_path / "a")
    with pytest.raises(FileExistsError, match="pass reuse=True"):
        prepare(EXAMPLES, COLUMNS, ToyTokenizer(), tmp_path / "a")
    arrays = prepare(iter(()), COLUMNS, ToyTokenizer(), tmp_path / "a", reuse=True)
    assert len(arrays["label"]) == 3


def test_another_vocabulary_is_refused(tmp_path: Path) -> None:
    prepare(EXAMPLES, COLUMNS, ToyTokenizer(), tmp_path / "a")
    other = ToyTokenizer("the", "cat", "sat", "mat")
    with pytest.raises(ValueError, match="they differ in vocabulary, sizes, ids"):
        prepare(EXAMPLES, COLUMNS, other, tmp_path / "a", reuse=True)
    # The same number of words, but other words.
    with pytest.raises(ValueError, match="differ in vocabulary"):
        open_prepared(tmp_path / "a", tokenizer=ToyTokenizer("the", "cat", "mat"))


def test_another_tokenization_of_the_same_vocabulary_is_refused(tmp_path: Path) -> None:
    class Lowercasing(ToyTokenizer):
        def _rows(self, text: list[str], length: int) -> np.ndarray:
            return super()._rows([each.lower() for each in text], length)

    prepare(EXAMPLES, COLUMNS, ToyTokenizer(), tmp_path / "a")
    with pytest.raises(ValueError, match=r"they differ in ids\)"):
        open_prepared(tmp_path / "a", tokenizer=Lowercasing())


def test_other_columns_are_refused(tmp_path: Path) -> None:
    prepare(EXAMPLES, COLUMNS, ToyTokenizer(), tmp_path / "a")
    longer = COLUMNS | {"sentence": PreparedColumn("ids", max_tokens=3)}
    with pytest.raises(ValueError, match=r"columns? that made .* \(they differ in sentence\)"):
        prepare(EXAMPLES, longer, ToyTokenizer(), tmp_path / "a", reuse=True)
    named = COLUMNS | {"sentence": PreparedColumn("ids", max_tokens=2, key="sentence")}
    assert open_prepared(tmp_path / "a", columns=named)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sentence": None}, "'sentence', examples 2 to 2: expected text, received NoneType"),
        ({"label": True}, "'label', examples 2 to 2: expected int32 labels, received True"),
        ({"label": 1.0}, "expected int32 labels, received 1.0"),
        ({"label": 2**31}, "'label', examples 2 to 2: .*2147483648"),
        ({"score": True}, "expected finite numbers, received True"),
        ({"score": float("nan")}, "expected finite numbers, received nan"),
        ({"teacher": [1.0]}, r"expected \(2,\), received \(1,\)"),
        ({"teacher": [1.0, float("nan")]}, "vectors of finite numbers"),
        ({"teacher": ["1", "2"]}, "vectors of finite numbers"),
        ({"teacher": 3.0}, "vectors of finite numbers"),
    ],
)
def test_values_of_another_kind(
    tmp_path: Path, change: dict[str, Any], message: str, few_at_once: Callable[[int], None]
) -> None:
    few_at_once(2)
    examples = [*EXAMPLES[:2], EXAMPLES[2] | change]
    with pytest.raises(ValueError, match=message):
        prepare(examples, COLUMNS, ToyTokenizer(), tmp_path / "a")


def test_wrong_arguments(tmp_path: Path) -> None:
    def run(examples: list[Any], columns: dict[str, Any]) -> None:
        prepare(examples, columns, ToyTokenizer(), tmp_path / "a")

    with pytest.raises(ValueError, match=r"the key 'after' .* \['before', 'label'\]"):
        run([{"before": "x", "label": 1}], {"next": COLUMNS["next"]})
    with pytest.raises(ValueError, match="examples: expected at least one, received none"):
        run([], COLUMNS)
    with pytest.raises(ValueError, match=r"expected identifiers.* received \['\.\./x'\]"):
        run(EXAMPLES, {"../x": COLUMNS["label"]})
    with pytest.raises(ValueError, match="received .text. with"):
        PreparedColumn("text")  # type: ignore[arg-type]
    for kind, number in (("ids", None), ("ids", 0), ("label", 3)):
        with pytest.raises(ValueError, match="with max_tokens above 0 for ids"):
            PreparedColumn(kind, max_tokens=number)  # type: ignore[arg-type]


def test_damaged_and_foreign_folders(tmp_path: Path) -> None:
    prepare(EXAMPLES, COLUMNS, ToyTokenizer(), tmp_path / "a")
    with (tmp_path / "a" / "sentence.bin").open("ab") as file:
        file.write(b"\0")
    with pytest.raises(ValueError, match="expected 24 bytes"):
        open_prepared(tmp_path / "a")
    (tmp_path / "a" / "sentence.bin").unlink()
    with pytest.raises(FileNotFoundError):
        open_prepared(tmp_path / "a")
    header = tmp_path / "a" / "prepared.json"
    header.write_text(json.dumps({"format": 9}))
    with pytest.raises(ValueError, match=r"prepared.json: \$.format: expected 1, received 9"):
        open_prepared(tmp_path / "a")
    with pytest.raises(FileNotFoundError, match=r"prepared\.json"):
        open_prepared(tmp_path)


ARRAY = {"dtype": "<i4", "shape": [2, 3]}


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"arrays": {"../x": ARRAY}}, "arrays"),
        ({"arrays": {"x": {**ARRAY, "dtype": "|O"}}}, "dtype"),
        ({"arrays": {"x": {**ARRAY, "shape": [10**30]}}}, "shape"),
        ({"arrays": {"x": {**ARRAY, "shape": [-2, -3]}}}, "shape"),
        ({"tokenizer": 1.5}, "tokenizer"),
    ],
)
def test_a_damaged_header(tmp_path: Path, changes: dict, field: str) -> None:
    whole = {"format": 1, "arrays": {}, "settings": {}, "tokenizer": {}}
    (tmp_path / "prepared.json").write_text(json.dumps(whole | changes))
    with pytest.raises(ValueError, match=rf"{field}.*Prepare the examples again"):
        open_prepared(tmp_path)


def test_the_real_tokenizer_and_training_data(
    tmp_path: Path, few_at_once: Callable[[int], None]
) -> None:
    from use_st5.data.arrays import ArrayData
    from use_st5.tokenizers.ngram_tokenizer import NGramTokenizer
    from use_st5.tokenizers.ngram_vocabulary import NGramVocabulary
    from use_st5.training.tensorflow_step import array_dataset

    vocabulary = NGramVocabulary(("the", "cat", "."), ("the cat",), 2, 0)
    tokenizer = NGramTokenizer(vocabulary)
    columns = {
        "sentence": PreparedColumn("ids", max_tokens=4),
        "next": PreparedColumn("token_ids", max_tokens=4),
    }
    texts = ["The cat.", "", "the the cat cat cat"]
    examples = [{"sentence": a, "next": b} for a in texts for b in texts]
    few_at_once(4)
    arrays = prepare(examples, columns, tokenizer, tmp_path / "a")
    whole = tokenizer.padded([each["sentence"] for each in examples], 4)
    np.testing.assert_array_equal(arrays["sentence"], whole.numpy()[:, :5])
    assert arrays["sentence"][0].tolist() == [2, 5, 3, 4, 0]
    assert arrays["next"][:3].tolist() == [[2, 3, 4, 0], [1, 0, 0, 0], [2, 2, 3, 3]]
    batch = next(iter(array_dataset(ArrayData(arrays), 3, seed=0)))
    assert batch["sentence"].shape == (3, 5)
    # The same vocabulary in a new object, as in another process.
    same = NGramTokenizer(NGramVocabulary(("the", "cat", "."), ("the cat",), 2, 0))
    assert open_prepared(tmp_path / "a", tokenizer=same, columns=columns)
