from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from use_st5.data.data_folder import DataSource
from use_st5.evaluation.glue import tasks as glue_tasks
from use_st5.evaluation.preparation.preparation import PREPARATIONS, Preparation, prepare
from use_st5.evaluation.senteval import tasks as senteval_tasks
from use_st5.evaluation.sts import tasks as sts_tasks


def two_sets(asked: list[Path | None]) -> Preparation:
    def read(folder: Path | None) -> dict[str, dict[str, bytes]]:
        asked.append(folder)
        return {"A": {"1": b"new"}, "deep/B": {"1": b"one", "2": b"two"}}

    writes = {"A": ("1",), "deep/B": ("1", "2"), "C": ("1",)}
    return Preparation("two", writes, "something", read, reads_downloads=True)


def contents(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_sets_are_written_and_what_exists_stays(tmp_path: Path) -> None:
    preparation = two_sets([])
    (tmp_path / "A").mkdir()
    (tmp_path / "A" / "1").write_bytes(b"old")
    (tmp_path / "deep" / "B").mkdir(parents=True)
    (tmp_path / "deep" / "B" / "mine").write_bytes(b"mine")
    written, left = prepare(preparation, tmp_path, source=tmp_path)
    assert (written, left) == ([tmp_path / "deep" / "B"], [tmp_path / "A"])
    both = {"deep/B/1": b"one", "deep/B/2": b"two", "deep/B/mine": b"mine"}
    assert contents(tmp_path) == {"A/1": b"old", **both}
    written, left = prepare(preparation, tmp_path, source=tmp_path, overwrite=True)
    assert (written, left) == ([tmp_path / "A", tmp_path / "deep" / "B"], [])
    assert contents(tmp_path) == {"A/1": b"new", **both}


def test_nothing_is_done_where_everything_exists(tmp_path: Path) -> None:
    asked: list[Path | None] = []
    for place in ("A", "deep/B", "C"):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "1").touch()
    written, left = prepare(two_sets(asked), tmp_path)
    assert (written, len(left), asked) == ([], 3, [])


def test_a_set_that_fails_leaves_nothing_half(tmp_path: Path) -> None:
    def read(folder: Path | None) -> dict[str, dict[str, bytes]]:
        return {"A": {"1": b"one", "bad/name": b"cannot be written"}}

    with pytest.raises(FileNotFoundError):
        prepare(Preparation("x", {"A": ("1",)}, "", read, reads_downloads=True), tmp_path)
    assert contents(tmp_path) == {}
    with pytest.raises(FileNotFoundError, match="expected something; found none of them whole"):
        none = Preparation("x", {"A": ()}, "something", lambda folder: {}, reads_downloads=True)
        prepare(none, tmp_path, source=tmp_path)


@pytest.mark.parametrize("name", PREPARATIONS)
def test_every_file_is_one_that_a_task_reads(name: str) -> None:
    """A renamed source would leave its preparation writing what nobody looks for."""
    tasks = [*sts_tasks.TASKS, *senteval_tasks.TASKS, *glue_tasks.TASKS]
    places = {
        place
        for task in tasks
        for source in task.sources + task.optional_sources
        for place in source.places
    }
    for folder, files in PREPARATIONS[name].writes.items():
        for file in files:
            assert any(fnmatchcase(f"{folder}/{file}", place) for place in places), file


def test_sources_know_their_preparation() -> None:
    def preparations_of(*places: str) -> list[str]:
        source = DataSource("any", places, "anywhere")
        return [name for name, each in PREPARATIONS.items() if each.gives(source)]

    assert preparations_of("STS12/STS*.txt", "STS12-en-test/STS*.txt") == ["sts"]
    assert preparations_of("MRPC/train.tsv") == ["glue/mrpc"]
    assert preparations_of("MRPC/msr_paraphrase_train.txt") == [], "SentEval's, in GLUE's folder"
    assert preparations_of("SST-2/dev.tsv", "SST/binary/sentiment-dev") == ["senteval", "glue/sst2"]
