from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from tests.search.damages import answer, write_index
from use_st5.encode.similarity import cosine, unit_rows
from use_st5.search.exact import exact_search
from use_st5.search.vector_index import VectorIndex

TEXTS = [f"text {number}, naïve" for number in range(300)] + ["", "two\nlines", "\ud800"]


@dataclass
class Hashed:
    """An encoder whose vectors depend only on the text; their length must not matter."""

    name: str = "hashed"
    identity: str = "0" * 64
    dimension: int = 20

    def encode(self, texts: list[str]) -> np.ndarray:
        seeds = [[*text.encode("utf-8", "surrogatepass"), int(self.identity[0])] for text in texts]
        rows = [np.random.default_rng(seed).standard_normal(self.dimension) for seed in seeds]
        return 3 * np.array(rows, np.float32)


class Split(Hashed):
    """The same for texts whose words are windows."""

    def encode(self, texts: list[str], *, prompt: str = "") -> np.ndarray:
        return super().encode([prompt + text for text in texts])

    def document_windows(self, texts: list[str]) -> tuple[list[str], np.ndarray]:
        pieces = [text.split(" ") for text in texts]
        return sum(pieces, []), np.repeat(np.arange(len(texts)), [*map(len, pieces)])


def build(folder: Path, **options: object) -> VectorIndex:
    encoder = Hashed()
    vectors = encoder.encode(TEXTS)
    return VectorIndex.build(folder, vectors, encoder=encoder, texts=TEXTS, **options)


@pytest.mark.parametrize("kind", ["exact", "hnsw"])
def test_it_finds_the_texts_with_the_largest_cosines(kind: str, tmp_path: Path) -> None:
    if kind == "hnsw":
        pytest.importorskip("faiss", reason="the extra `search` is not installed")
    build(tmp_path / "index", kind=kind)
    index, encoder = VectorIndex(tmp_path / "index"), Hashed()
    assert (len(index), index.kind, index.model, index.dimension) == (303, kind, "hashed", 20)
    queries = [*TEXTS[::60], "another"]
    scores, rows = index.search(encoder, queries, k=5, breadth=303)  # every row is scored
    vectors = encoder.encode(TEXTS).astype(float)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    asked = encoder.encode(queries).astype(float)
    asked /= np.linalg.norm(asked, axis=1, keepdims=True)
    wanted_scores, wanted = exact_search(asked, unit, k=5)
    np.testing.assert_array_equal(rows, wanted)
    np.testing.assert_allclose(scores, wanted_scores, atol=1e-6)
    assert [index.text(row) for row in rows[:-1, 0]] == queries[:-1]
    assert [index.text(row) for row in (300, 301, 302)] == TEXTS[300:]


def test_another_model_is_refused(tmp_path: Path) -> None:
    index = build(tmp_path / "index")
    other = Hashed("other", "1" * 64)
    with pytest.raises(ValueError, match="its model, hashed with the hash 0{12}, .* other with 1"):
        index.search(other, ["a"])
    with pytest.raises(ValueError, match="received hashed with 0{12}-int8"):
        index.search(Hashed(identity="0" * 64 + "-int8"), ["a"])
    with pytest.raises(ValueError, match=r"expected finite \[queries, 20\] as hashed gives"):
        index.search_vectors(np.ones((1, 21)))


def test_one_text_is_one_query(tmp_path: Path) -> None:
    index = build(tmp_path / "index")
    one, several = index.search(Hashed(), "some text"), index.search(Hashed(), ["some text"])
    for result, expected in zip(one, several, strict=True):
        np.testing.assert_array_equal(result, expected)


def test_vectors_of_other_texts_or_of_another_model_are_refused(tmp_path: Path) -> None:
    encoder = Hashed()
    vectors = encoder.encode(TEXTS)
    other = Hashed(identity="1" * 64).encode(TEXTS)
    for wrong in (vectors[::-1], other, vectors[:, :10], vectors[:-1]):
        with pytest.raises(ValueError, match="expected the vectors of hashed for these texts"):
            VectorIndex.build(tmp_path / "index", wrong, encoder=encoder, texts=TEXTS)
    vectors[150, 3] = np.nan
    with pytest.raises(ValueError, match="vectors: expected finite numbers"):
        VectorIndex.build(tmp_path / "index", vectors, encoder=encoder)
    assert list(tmp_path.iterdir()) == []


def test_an_older_index_is_replaced_and_nothing_else(tmp_path: Path) -> None:
    build(tmp_path / "index")
    assert build(tmp_path / "index").kind == "exact"
    (tmp_path / "index" / "notes.txt").write_text("mine")
    with pytest.raises(FileExistsError, match="to contain only an index of use_st5"):
        build(tmp_path / "index")
    (tmp_path / "file").write_text("mine")
    with pytest.raises(FileExistsError, match="only an index of use_st5"):
        build(tmp_path / "file")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("vectors.npy", b"x", r"expected float32 \[303, 20\], found "),
        ("starts.npy", None, r"expected int64 \[304\], found .*No such file"),
        ("index.json", {"kind": "best"}, r"\$\.kind: invalid enum value 'best'"),
        ("index.json", {"rows": 302}, r"expected float32 \[302, 20\], found float32 \[303, 20\]"),
        ("index.json", b"{", "expected JSON"),
    ],
)
def test_a_damaged_index_is_refused(
    name: str, content: bytes | dict | None, message: str, tmp_path: Path
) -> None:
    build(tmp_path / "index")
    path = tmp_path / "index" / name
    if content is None:
        path.unlink()
    elif isinstance(content, dict):
        path.write_text(json.dumps({**json.loads(path.read_text()), **content}))
    else:
        path.write_bytes(content)
    with pytest.raises(ValueError, match=message) as error:
        VectorIndex(tmp_path / "index")
    assert "Make the index again with `use-st5 index" in str(error.value)


def test_errors_of_arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="hnsw or binary, received int8"):
        build(tmp_path / "index", kind="int8")
    with pytest.raises(ValueError, match=r"vectors: expected \[rows, dim\], received \[0, 20\]"):
        VectorIndex.build(tmp_path / "index", np.ones((0, 20)), encoder=Hashed())
    with pytest.raises(FileNotFoundError, match=r"found no index\.json"):
        VectorIndex(tmp_path)
    index = VectorIndex.build(tmp_path / "index", np.ones((3, 20)), encoder=Hashed())
    assert not index.has_texts
    with pytest.raises(ValueError, match="expected an index with texts"):
        index.text(0)
    with pytest.raises(ValueError, match="Expected k and breadth from 1, received 0"):
        index.search_vectors(np.ones((1, 20)), k=0)
    with pytest.raises(ValueError, match="queries: expected finite"):
        index.search_vectors(np.full((1, 20), np.inf))
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(ImportError, match=r"\[search\]"):
        build(tmp_path / "graph", kind="hnsw")
    assert not (tmp_path / "graph").exists()


def test_a_zero_vector_is_near_to_nothing(tmp_path: Path) -> None:
    vectors = np.array([[0.0, 0.0], [1.0, 1.0]], np.float32)

    class Zero:
        name, identity = "zero", "0"

        def encode(self, texts: list[str]) -> np.ndarray:
            return vectors[[len(text) for text in texts]]

    index = VectorIndex.build(tmp_path / "index", vectors, encoder=Zero(), texts=["", "a"])
    scores, rows = index.search(Zero(), ["a", ""], k=2)
    assert rows.tolist() == [[1, 0], [0, 1]]
    np.testing.assert_allclose(scores, [[1, 0], [0, 0]], atol=1e-6)
    np.testing.assert_allclose(cosine(vectors[:1], vectors[1:]), [0.0])


@pytest.mark.end_to_end
@pytest.mark.process
def test_a_million_vectors_need_the_memory_of_blocks(
    fresh_python: Callable[..., str], tmp_path: Path
) -> None:
    """The process may have 220 MB of its own beyond its start; the vectors alone are 256 MB."""
    code = f"""
import resource, sys
import numpy as np
from use_st5.search import VectorIndex
index = VectorIndex({str(tmp_path / "index")!r})
data = [line for line in open("/proc/self/status") if line.startswith("VmData")][0].split()[1]
limit = 1024 * int(data) + 220 * 2**20
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
scores, rows = index.search_vectors(np.eye(64)[:20], k=10)
print(len(index), rows[:, 0].tolist() == list(range(20)), "tensorflow" in sys.modules)
"""
    if not sys.platform.startswith("linux"):
        pytest.skip("the limit is Linux's")
    vectors = np.lib.format.open_memmap(tmp_path / "v.npy", "w+", np.float32, (1_000_000, 64))
    generator = np.random.default_rng(0)
    for start in range(0, len(vectors), 100_000):
        vectors[start : start + 100_000] = generator.random((100_000, 64), np.float32)
    vectors[:64] = 9 * np.eye(64)
    VectorIndex.build(tmp_path / "index", vectors, encoder=Hashed(dimension=64))
    assert fresh_python("-c", code).split() == ["1000000", "True", "False"]


class Prompted(Hashed):
    """The same encoder with a prompt for queries and one for documents."""

    def encode_query(self, texts: list[str]) -> np.ndarray:
        return self.encode([f"query: {text}" for text in texts])

    def encode_document(self, texts: list[str]) -> np.ndarray:
        return self.encode([f"passage: {text}" for text in texts])


def test_queries_and_documents_get_their_prompts(tmp_path: Path) -> None:
    encoder = Prompted()
    documents = encoder.encode_document(TEXTS)
    index = VectorIndex.build(tmp_path / "index", documents, encoder=encoder, texts=TEXTS)
    found, rows = index.search(encoder, ["a"], k=3)
    expected, places = index.search_vectors(encoder.encode(["query: a"]), k=3)
    np.testing.assert_array_equal(rows, places)
    np.testing.assert_array_equal(found, expected)
    plain = encoder.encode(TEXTS)  # As in versions without prompts.
    assert len(VectorIndex.build(tmp_path / "index", plain, encoder=encoder, texts=TEXTS)) == 303
    queries = encoder.encode_query(TEXTS)
    with pytest.raises(ValueError, match="and with the same prompt"):
        VectorIndex.build(tmp_path / "index", queries, encoder=encoder, texts=TEXTS)


@pytest.mark.parametrize("kind", ["exact", "hnsw", "binary"])
def test_every_damaged_byte_is_found_by_verify(kind: str, tmp_path: Path) -> None:
    """Changes many bytes of each file in turn: reading names the file, or only `verify` does."""
    if kind == "hnsw":
        pytest.importorskip("faiss", reason="the extra `search` is not installed")
    folder = tmp_path / "index"
    write_index(folder, kind)
    whole = answer(folder)
    for path in sorted(folder.iterdir()):
        content = path.read_bytes()
        for place in range(0, len(content), 17):
            changed = bytearray(content)
            changed[place] ^= 1 << place % 8
            path.write_bytes(changed)
            try:
                VectorIndex(folder).verify()
            except ValueError as error:
                assert str(folder) in str(error), f"{path.name}: byte {place}: {error}"
                known = "Make the index again with `use-st5 index", "Update use_st5"
                assert any(each in str(error) for each in known), error
            else:  # A name or a number of the record that no check can know, or a blank.
                assert path.name == "index.json", f"{path.name}: byte {place}"
        path.write_bytes(content)
    assert answer(folder) == whole


def test_a_graph_is_compared_when_the_index_opens(tmp_path: Path) -> None:
    """FAISS trusts the lengths in its file: one changed byte could cost 12 GiB."""
    pytest.importorskip("faiss", reason="the extra `search` is not installed")
    write_index(tmp_path / "index", "hnsw")
    path = tmp_path / "index" / "graph.faiss"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(
        ValueError, match=r"graph.faiss: expected the bytes .* Make the index again"
    ):
        VectorIndex(tmp_path / "index")


def test_a_graph_finds_most_of_what_an_exact_search_finds(tmp_path: Path) -> None:
    """The rows lie around 40 centres, as texts of 40 topics would."""
    pytest.importorskip("faiss", reason="the extra `search` is not installed")
    generator = np.random.default_rng(0)
    centres = generator.standard_normal((40, 32))
    rows = centres[generator.integers(40, size=2000)] + 0.5 * generator.standard_normal((2000, 32))
    vectors = unit_rows(rows).astype(np.float32)
    index = VectorIndex.build(tmp_path / "index", vectors, encoder=Hashed(), kind="hnsw")
    near = index.search_vectors(vectors[:50], k=10)[1]
    exact = exact_search(vectors[:50], vectors, k=10)[1]
    assert np.mean([len({*a} & {*b}) for a, b in zip(near, exact, strict=True)]) > 9.5


def test_codes_compare_the_bits_of_the_numbers_alone(tmp_path: Path) -> None:
    """70 numbers fill two words of 64 bits; the bits after them never count."""
    vectors = np.random.default_rng(0).standard_normal((500, 70)).astype(np.float32)
    index = VectorIndex.build(tmp_path / "i", vectors, encoder=Hashed(dimension=70), kind="binary")
    queries = np.random.default_rng(1).standard_normal((5, 70)).astype(np.float32)
    scores, rows = index.search_vectors(queries, k=10)
    differing = ((queries[:, None] > 0) != (vectors > 0)).sum(axis=2)
    candidates = np.argsort(differing, axis=1, kind="stable")[:, :40]
    cosines = cosine(np.repeat(queries, 500, axis=0), np.tile(vectors, (5, 1))).reshape(5, 500)
    for query in range(5):
        near = sorted(candidates[query], key=lambda row: -cosines[query, row])[:10]
        assert rows[query].tolist() == near
        np.testing.assert_allclose(scores[query], cosines[query, near], atol=1e-6)
    exact = VectorIndex.build(tmp_path / "e", vectors, encoder=Hashed(dimension=70))
    every = index.search_vectors(queries, k=10, breadth=50)
    np.testing.assert_array_equal(every[1], exact.search_vectors(queries, k=10)[1])
    assert index.search_vectors(queries, k=600)[1].shape == (5, 500)


def test_words_and_vectors_are_joined_by_their_ranks(tmp_path: Path) -> None:
    pytest.importorskip("bm25s", reason="the extra `search` is not installed")
    texts = ["red fox", "lazy dog", "the red red barn", "", "red fox"]
    encoder = Hashed()
    index = VectorIndex.build(
        tmp_path / "index", encoder.encode(texts), encoder=encoder, texts=texts,
        fields={"even": [True, False, True, False, True]},
    )  # fmt: skip
    for where, kept in ((None, [*range(5)]), ("even == True", [0, 2, 4])):
        near = index.search(encoder, ["fox"], where=where)[1][0].tolist()
        assert sorted(near) == kept
        joined = {row: 1 / (61 + near.index(row)) for row in kept}
        for rank, row in enumerate([0, 4]):  # Equal texts: the lower row first.
            joined[row] += 1 / (61 + rank)
        best = sorted(joined, key=lambda row: (-joined[row], row))[:3]
        scores, rows = index.search(encoder, ["fox"], k=3, where=where, hybrid=True)
        assert rows.tolist() == [best]
        np.testing.assert_allclose(scores, [[joined[row] for row in best]], rtol=1e-6)
    index.remove(rows=[0])
    assert index.search(encoder, ["fox"], k=9, hybrid=True)[1].shape == (1, 4)
    assert index.text(index.search(encoder, ["fox"], k=1, hybrid=True)[1][0, 0]) == "red fox"


@pytest.mark.parametrize("kind", ["exact", "hnsw", "binary"])
def test_a_text_is_found_by_its_best_window(kind: str, tmp_path: Path) -> None:
    if kind == "hnsw":
        pytest.importorskip("faiss", reason="the extra `search` is not installed")
    # The second text has more windows that are nearest to "z" than the search wants rows.
    texts = ["a b z", "z " * 40 + "c", "d", "z e", *map(str, range(10))]
    windows, owners = Split().document_windows(texts)
    options = {"texts": texts, "windows": owners, "encoder": Split(), "kind": kind}
    vectors = Split().encode(windows)
    index = VectorIndex.build(tmp_path / "index", vectors, **options)
    assert (len(index), index.text(3), index.has_windows) == (14, "z e", True)
    scores, rows = index.search(Split(), ["z", "c"], k=3, breadth=60)
    assert rows[0].tolist() == [0, 1, 3]  # Equal scores: the lower row first.
    np.testing.assert_allclose(scores[0], 1, atol=1e-6)
    assert rows[1, 0] == 1
    every = index.search(Split(), ["z"], k=99, breadth=60)[1]
    assert sorted(every[0].tolist()) == [*range(14)]
    for wrong in (owners + 1, owners[::-1], owners[1:], owners - 1):
        with pytest.raises(ValueError, match="windows: expected the rows of 57 vectors"):
            VectorIndex.build(tmp_path / "index", vectors, **{**options, "windows": wrong})
    with pytest.raises(ValueError, match="the vectors of hashed for these texts"):
        VectorIndex.build(tmp_path / "index", vectors[::-1], **options)
    with pytest.raises(ValueError, match="expected windows if, and only if"):
        index.add(["f"], encoder=Split(), vectors=vectors[:1])
    index.remove(rows=[0, 2])
    index.add(["f", "g z"], encoder=Split())
    assert index.search(Split(), ["z"], k=3, breadth=60)[1].tolist() == [[0, 1, 13]]
    if kind == "exact":
        pytest.importorskip("bm25s", reason="the extra `search` is not installed")
        assert index.search(Split(), ["c"], k=2, hybrid=True)[1][0, 0] == 0
    path = tmp_path / "index" / "windows.npy"
    path.write_bytes(path.read_bytes()[:-1] + b"1")
    with pytest.raises(ValueError, match="expected the bytes that were written"):
        VectorIndex(tmp_path / "index")


def test_an_index_without_the_number_of_windows_opens(tmp_path: Path) -> None:
    build(tmp_path / "index")
    path = tmp_path / "index" / "index.json"
    record = json.loads(path.read_text())
    assert record.pop("windows", 0) is None
    path.write_text(json.dumps(record))
    assert VectorIndex(tmp_path / "index").search(Hashed(), [TEXTS[7]], k=1)[1] == 7
