"""`use-st5 index` and `search`: in an index and in a text file, as a table and as JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from use_st5.cli import embed
from use_st5.search import VectorIndex

TEXTS = ["alpha", "beta", "", "gamma, née", "delta"]


@pytest.fixture(autouse=True)
def texts(tmp_path: Path) -> None:
    (tmp_path / "texts.txt").write_text("".join(f"{text}\n" for text in TEXTS), encoding="utf-8")


@pytest.mark.parametrize("where", ["texts.txt", "texts.index"])
def test_the_nearest_texts_with_their_lines(where: str, use: Callable, fake: Any) -> None:
    assert use("index", "texts.txt", "--to", "texts.index", "-m", "fake").exit_code == 0
    vectors, asked = fake.encode(TEXTS), fake.encode(["beta"])[0]
    order = np.argsort(-(vectors @ asked), kind="stable")[:3]
    result = use("search", where, "beta", "-m", "fake", "--top-k", "3")
    assert result.exit_code == 0, result.stderr
    lines = [line.split("\t") for line in result.stdout.splitlines()]
    assert lines[0] == ["score", "line", "text"]
    assert [(line[1], line[2]) for line in lines[1:]] == [(str(i + 1), TEXTS[i]) for i in order]
    assert lines[1] == ["1.0000", "2", "beta"]


@pytest.mark.parametrize("where", ["texts.txt", "texts.index"])
def test_dot_products(
    where: str, use: Callable, fake: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model that was trained for cosines, whose vectors have several lengths."""
    encode = fake.encode
    lengths = dict(zip(TEXTS, (1, 2, 3, 4, 5), strict=True))

    def scaled(texts: Any, **options: Any) -> np.ndarray:
        return encode(texts, **options) * np.array([[lengths[text]] for text in texts])

    monkeypatch.setattr(fake, "encode", scaled)
    metric = ("--metric", "dot")
    assert use("index", "texts.txt", "--to", "texts.index", "-m", "fake", *metric).exit_code == 0
    options = (where, "beta", "-m", "fake", "--json")
    found = json.loads(use("search", *options, *metric * (where == "texts.txt")).stdout)
    products = scaled(TEXTS) @ scaled(["beta"])[0]
    hits = found["queries"][0]["found"]
    assert [hit["line"] - 1 for hit in hits] == np.argsort(-products).tolist()
    np.testing.assert_allclose([hit["score"] for hit in hits], -np.sort(-products), rtol=1e-5)
    refused = [
        ("search", "texts.index", "a"),
        ("index", "texts.txt", "--to", "texts.index", "--add"),
    ]
    for command in refused:
        assert use(*command, *metric).exit_code == 2


@pytest.mark.parametrize("where", ["texts.txt", "texts.index"])
def test_several_queries_of_a_file(where: str, use: Callable, fake: Any) -> None:
    use("index", "texts.txt", "--to", "texts.index", "-m", "fake")
    options = ("-m", "fake", "-k", "1")
    table = use("search", where, "--file", "-", *options, input="gamma, née\nalpha\n").stdout
    rows = [line.split("\t") for line in table.splitlines()]
    assert rows[0] == ["query", "score", "line", "text"]
    assert [row[::3] for row in rows[1:]] == [["gamma, née"] * 2, ["alpha"] * 2]
    found = json.loads(use("search", where, "alpha", "-m", "fake", "--json").stdout)
    assert (found["model"], found["texts"]) == ("fake", 5)
    assert found["queries"][0]["query"] == "alpha"
    hits = found["queries"][0]["found"]
    assert len(hits) == 5
    assert (hits[0]["line"], hits[0]["text"]) == (1, "alpha")
    assert hits[0]["score"] == pytest.approx(1.0)


def test_a_bundled_model_is_found_by_the_name_in_the_index(
    use: Callable, fake: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    use("index", "texts.txt", "--to", "texts.index", "-m", "fake")
    result = use("search", "texts.index", "beta")
    assert (result.exit_code, result.stderr.count("\n")) == (1, 1)
    assert "expected --model with the folder of fake" in result.stderr
    monkeypatch.setattr("use_st5.cli.search.bundled_names", lambda: ["fake"])
    assert use("search", "texts.index", "beta").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("texts.index",), 2, "expected either queries after WHERE or --file"),
        (("texts.txt", "a", "--breadth", "2"), 2, "--breadth expects an index"),
        (("texts.index", "a", "--breadth", "2"), 2, "of --kind hnsw"),
        (("absent.txt", "a"), 1, "found none"),
        (("empty.txt", "a"), 1, "expected texts, one a line, received none"),
        (("texts.txt", "--file", "empty.txt"), 1, "empty.txt: expected texts"),
        ((".", "a"), 1, "found no index.json"),
    ],
)
def test_errors_are_one_line(
    arguments: tuple[str, ...], code: int, message: str, use: Callable, fake: Any, tmp_path: Path
) -> None:
    use("index", "texts.txt", "--to", "texts.index", "-m", "fake")
    (tmp_path / "empty.txt").touch()
    result = use("search", *arguments)
    assert (result.exit_code, result.stderr.count("\n")) == (code, 1)
    assert message in result.stderr


def test_another_model_than_the_index_names_is_refused(use: Callable, fake: Any) -> None:
    use("index", "texts.txt", "--to", "texts.index", "-m", "fake")
    fake.identity = "1"
    result = use("search", "texts.index", "beta", "-m", "fake")
    assert (result.exit_code, result.stderr.count("\n")) == (1, 1)
    assert "expected its model, fake" in result.stderr


def test_queries_and_documents_have_their_own_prompts(use: Callable, fake: Any) -> None:
    fake.prompts = {"query": "q: ", "passage": "p: ", "mine": "m: "}
    fake.encoded.clear()
    assert use("index", "texts.txt", "--to", "texts.index", "-m", "fake").exit_code == 0
    assert {*fake.encoded} == {f"p: {text}" for text in TEXTS}
    for where, documents in (("texts.index", []), ("texts.txt", [f"p: {each}" for each in TEXTS])):
        fake.encoded.clear()
        assert use("search", where, "beta", "-m", "fake").exit_code == 0
        assert fake.encoded == [*documents, "q: beta"]
        fake.encoded.clear()
        assert use("search", where, "beta", "-m", "fake", "--prompt-name", "mine").exit_code == 0
        assert fake.encoded == [*documents, "m: beta"]


def test_an_index_of_another_prompt(use: Callable, fake: Any, tmp_path: Path) -> None:
    fake.prompts = {"query": "q: ", "document": "d: "}
    index = ("index", "texts.txt", "--to", "texts.index", "-m", "fake")
    use("embed", "texts.txt", "-o", "mine.npy", "--prompt", "mine: ")
    refused = use(*index, "--vectors", "mine.npy")
    assert "in the same order and with the same prompt" in refused.stderr
    assert use(*index, "--vectors", "mine.npy", "--prompt", "mine: ").exit_code == 0
    np.testing.assert_allclose(
        np.load(tmp_path / "texts.index" / "vectors.npy"),
        np.load(tmp_path / "mine.npy"),
        atol=1e-6,
    )


@pytest.mark.parametrize("source", ["texts.txt", "-"])
def test_an_index_has_the_texts_and_names_the_model(
    source: str, use: Callable, fake: Any, tmp_path: Path
) -> None:
    given = (tmp_path / "texts.txt").read_bytes() if source == "-" else None
    result = use("index", source, "--to", "texts.index", input=given)
    assert result.exit_code == 0, result.stderr
    said = "texts.index: 5 texts, vectors of 8 by fake (exact)\n"
    assert result.stderr.endswith(said)
    index = VectorIndex(tmp_path / "texts.index")
    assert (index.model, index.model_hash, index.kind) == ("fake", "0", "exact")
    assert [index.text(row) for row in range(5)] == TEXTS
    assert index.search(fake, TEXTS, k=1)[1].ravel().tolist() == [*range(5)]
    assert {path.name for path in tmp_path.iterdir()} == {"texts.txt", "texts.index"}


def test_an_interrupted_call_goes_on(
    use: Callable, fake: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embed, "_CHUNK_ROWS", 2)
    fake.fails_after = 2
    first = use("index", "texts.txt", "--to", "texts.index")
    assert first.exit_code == 130
    assert "2 of 5 rows" in first.stderr
    assert not (tmp_path / "texts.index").exists()
    fake.fails_after, fake.encoded = None, []
    second = use("index", "texts.txt", "--to", "texts.index")
    assert second.exit_code == 0, second.stderr
    assert fake.encoded[:3] == TEXTS[2:]  # then the texts that are compared with their vectors
    assert len(VectorIndex(tmp_path / "texts.index")) == 5
    assert {path.name for path in tmp_path.iterdir()} == {"texts.txt", "texts.index"}


def test_a_file_of_the_user_beside_the_index_is_neither_read_nor_replaced(
    use: Callable, fake: Any, tmp_path: Path
) -> None:
    (tmp_path / "idx.vectors.npy").write_text("years")
    for more in ((), ("--overwrite",)):
        result = use("index", "texts.txt", "--to", "idx", *more)
        assert result.exit_code == 0, result.stderr
        assert len(VectorIndex(tmp_path / "idx")) == 5
        assert (tmp_path / "idx.vectors.npy").read_text() == "years"
    assert not (tmp_path / "idx.vectors.npy.partial").exists()


def test_an_index_that_cannot_be_built_keeps_its_vectors(
    use: Callable, fake: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build = VectorIndex.build
    monkeypatch.setattr(VectorIndex, "build", lambda *a, **k: (_ for _ in ()).throw(OSError("no")))
    assert use("index", "texts.txt", "--to", "idx").exit_code == 1
    monkeypatch.setattr(VectorIndex, "build", build)
    fake.encoded = []
    assert use("index", "texts.txt", "--to", "idx").exit_code == 0
    assert fake.encoded == TEXTS, "each text once, to hold it against its vector"
    assert not (tmp_path / "idx.vectors.npy.partial").exists()


def test_vectors_of_embed_spare_the_embedding(use: Callable, fake: Any, tmp_path: Path) -> None:
    assert use("embed", "texts.txt", "-o", "v.npy").exit_code == 0
    fake.encoded = []
    made = use("index", "texts.txt", "--vectors", "v.npy", "--to", "texts.index")
    assert made.exit_code == 0, made.stderr
    assert fake.encoded == TEXTS  # all five are compared with their vectors
    assert (tmp_path / "v.npy").exists()
    np.save(tmp_path / "v.npy", np.load(tmp_path / "v.npy")[::-1])
    again = use("index", "texts.txt", "--vectors", "v.npy", "--to", "texts.index", "--overwrite")
    assert (again.exit_code, again.stderr.count("\n")) == (1, 1)
    assert "expected the vectors of fake for these texts" in again.stderr
    assert len(VectorIndex(tmp_path / "texts.index")) == 5


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("absent.txt", "--to", "i"), 1, "found none"),
        (("texts.txt", "--to", "no/i"), 1, "expected a folder to write to"),
        (("texts.txt", "--to", ".", "--overwrite"), 1, "another folder than the current one"),
        (("texts.txt", "--to", "texts.txt"), 1, "to contain only an index of use_st5"),
        (("texts.txt", "--to", "old"), 1, "old exists; give --overwrite"),
        (("texts.txt", "--to", "i", "--kind", "hnsw"), 1, "[search]"),
        (("texts.txt", "--to", "i", "--vectors", "none.npy"), 1, "No such file"),
        (("texts.txt", "--to", "i", "--vectors", "texts.txt"), 1, "expected a .npy file"),
    ],
)
def test_errors_of_index_are_one_line(
    arguments: tuple[str, ...],
    code: int,
    message: str,
    use: Callable,
    fake: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "faiss", None)
    VectorIndex.build(tmp_path / "old", fake.encode(TEXTS), encoder=fake)
    result = use("index", *arguments)
    assert (result.exit_code, result.stderr.count("\n")) == (code, 1), result.stderr
    assert message in result.stderr
    assert not (tmp_path / "i").exists()


LAWS = """id,domain,text,year
007,law,alpha,1990
7,art,beta,2001
8,,"gamma, née",
9,law,delta,2001
"""


@pytest.fixture
def laws(use: Callable, fake: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An index of the table above."""
    monkeypatch.setattr("use_st5.cli.search.bundled_names", lambda: ["fake"])
    (tmp_path / "laws.csv").write_text(LAWS, encoding="utf-8")
    result = use("index", "laws.csv", "--column", "Text", "--to", "laws.index")
    assert result.exit_code == 0, result.stderr
    return tmp_path / "laws.index"


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl", "parquet"])
def test_the_other_columns_of_a_table_are_fields(
    suffix: str, use: Callable, fake: Any, tmp_path: Path
) -> None:
    rows = [
        {"id": "007", "text": "alpha", "year": 1990, "price": 0.5},
        {"id": "8", "text": "beta", "year": None, "price": -1.0},
        {"id": "9", "text": "", "year": 2001, "price": 0.25},
    ]
    table, path = pa.Table.from_pylist(rows), tmp_path / f"t.{suffix}"
    if suffix == "parquet":
        parquet.write_table(table, path)
    elif suffix == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        cut = "," if suffix == "csv" else "\t"
        lines = [cut.join("" if v is None else str(v) for v in row.values()) for row in rows]
        path.write_text("\n".join([cut.join(rows[0]), *lines]) + "\n")
    result = use("index", path.name, "--column", "text", "--to", "i", "-m", "fake")
    assert result.exit_code == 0, result.stderr
    index = VectorIndex(tmp_path / "i")
    assert [*index.texts()] == ["alpha", "beta", ""]
    assert index.fields is not None
    assert index.fields.to_pydict() == table.drop_columns("text").to_pydict()


def test_values_of_several_types_and_of_later_rows_are_kept(
    use: Callable, fake: Any, tmp_path: Path
) -> None:
    rows = [{"text": str(row), "a": [row]} for row in range(300)]
    rows[7]["a"], rows[299]["b"] = "é", True  # type: ignore[assignment]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert use("index", "t.jsonl", "--column", "text", "--to", "i", "-m", "fake").exit_code == 0
    index = VectorIndex(tmp_path / "i")
    assert index.field_values(7) == {"a": "é", "b": None}
    assert index.field_values(299) == {"a": "[299]", "b": True}


def test_only_rows_of_an_expression_are_found(laws: Path, use: Callable) -> None:
    result = use("search", "laws.index", "beta", "--where", 'domain == "law"', "--fields", "year")
    assert result.exit_code == 0, result.stderr
    head, *lines = [line.split("\t") for line in result.stdout.splitlines()]
    assert head == ["score", "line", "id", "year", "text"]
    assert sorted(line[1:] for line in lines) == [
        ["1", "007", "1990", "alpha"],
        ["4", "9", "2001", "delta"],
    ]
    found = json.loads(use("search", "laws.index", "beta", "-k", "1", "--json").stdout)
    (hit,) = found["queries"][0]["found"]
    assert (hit["line"], hit["text"]) == (2, "beta")
    assert hit["fields"] == {"id": "7", "domain": "art", "year": 2001}
    in_file = use("search", "laws.csv", "beta", "-k", "1", "--json", "--column", "text")
    (same,) = json.loads(in_file.stdout)["queries"][0]["found"]
    assert same == {**hit, "score": pytest.approx(hit["score"])}
    none = use("search", "laws.index", "beta", "--where", "year > 3000")
    assert none.stdout.split() == ["score", "line", "text"]


def test_rows_are_added_replaced_and_removed(laws: Path, use: Callable, tmp_path: Path) -> None:
    (tmp_path / "more.csv").write_text("id,text,domain,year\n8,new,art,1\n10,ten,law,2\n")
    add = ("index", "more.csv", "--column", "text", "--to", "laws.index")
    refused = use(*add, "--add")
    assert (refused.exit_code, refused.stderr.count("\n")) == (1, 2)
    assert "the index has '8'" in refused.stderr
    assert [*VectorIndex(laws).texts()] == ["alpha", "beta", "gamma, née", "delta"]
    assert use(*add, "--update").stderr.endswith(
        "laws.index: 5 texts, vectors of 8 by fake (exact)\n"
    )
    assert [*VectorIndex(laws).texts()] == ["alpha", "beta", "delta", "new", "ten"]
    removed = use("index", "--to", "laws.index", "--remove", 'id in ["7", "10"] or year is None')
    assert removed.stderr == "laws.index: 2 texts removed, 3 left\n"
    assert [*VectorIndex(laws).texts()] == ["alpha", "delta", "new"]
    assert {path.name for path in tmp_path.iterdir()} >= {"laws.index", "laws.csv", "more.csv"}
    assert not list(tmp_path.glob("*.partial"))


def test_a_long_text_is_found_by_its_last_window(
    laws: Path, use: Callable, fake: Any, tmp_path: Path
) -> None:
    fake.max_length, fake.prompts = 6, {"query": "", "document": "d:"}
    index = ("index", "laws.csv", "--column", "Text", "--to", "long.index")
    result = use(*index, "--windows")
    assert result.exit_code == 0, result.stderr
    assert result.stderr.endswith("long.index: 4 texts, vectors of 8 by fake (exact)\n")
    assert "was not read" not in result.stderr
    assert not list(tmp_path.glob("*.partial"))
    for query, line in (("d:a", 1), ("d:ée", 3), ("d:delt", 4)):
        found = use("search", "long.index", query, "-k", "1", "--json").stdout
        (hit,) = json.loads(found)["queries"][0]["found"]
        assert (hit["line"], hit["score"]) == (line, pytest.approx(1, abs=1e-6))
    (tmp_path / "more.csv").write_text("id,Text,domain,year\n8,new text,art,1\n")
    update = ("index", "more.csv", "--column", "Text", "--to", "long.index", "--update")
    assert use(*update).exit_code == 0
    built = VectorIndex(tmp_path / "long.index")
    assert [*built.texts()] == ["alpha", "beta", "delta", "new text"]
    assert len(built._vectors) == 2 + 1 + 2 + 2
    found = use("search", "long.index", "d:text", "-k", "9", "--json", "--where", "year < 1995")
    hits = json.loads(found.stdout)["queries"][0]["found"]
    assert [hit["text"] for hit in hits] == ["new text", "alpha"]
    use("embed", "laws.csv", "--column", "Text", "-o", "v.npy")
    refused = use(*index, "--windows", "--overwrite", "--vectors", "v.npy")
    assert (refused.exit_code, "without --windows" in refused.stderr) == (2, True)
    assert use(*update, "--windows").exit_code == 2


def test_a_search_by_words_too(laws: Path, use: Callable) -> None:
    pytest.importorskip("bm25s", reason="the extra `search` is not installed")
    lines = use("search", "laws.index", "beta", "--hybrid").stdout.splitlines()
    assert len(lines) == 5


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("search", "laws.csv", "a", "--where", "year == 1"), 2, "--where expects an index"),
        (("search", "laws.index", "a", "--where", "yer == 1"), 1, "expected one of ['id'"),
        (("search", "laws.index", "a", "--fields", "yer"), 2, "received 'yer'"),
        (("index", "--to", "laws.index"), 2, "expected INPUT or --remove"),
        (("index", "a", "--to", "laws.index", "--add", "--overwrite"), 2, "--overwrite"),
        (("index", "--to", "absent", "--remove", "year == 1"), 1, "found no index.json"),
        (("index", "texts.txt", "--to", "absent", "--add"), 1, "found no index.json"),
    ],
)
def test_errors_of_fields_are_one_line(
    arguments: tuple[str, ...], code: int, message: str, laws: Path, use: Callable
) -> None:
    result = use(*arguments)
    assert (result.exit_code, result.stderr.count("\n")) == (code, 1), result.stderr
    assert message in result.stderr
