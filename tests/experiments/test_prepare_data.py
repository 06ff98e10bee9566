"""Published sets are written where the evaluation tasks look for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments.prepare_data import (
    GLUE,
    PREPARATIONS,
    main,
    penn_tokens,
    prepare,
    read_semeval,
    read_senteval,
)
from use_st5.data.data_folder import DataFolder
from use_st5.evaluation import classification, pairs, sts
from use_st5.evaluation.sts import read_semeval_sts

SUBSETS_16 = ("answer-answer", "headlines", "plagiarism", "postediting", "question-question")


def year_16(folder: Path, *, without: str = "") -> None:
    """Writes the year 2016, whose file names differ from those of the other years."""
    root = folder / "sts2016-english-with-gs-v1.0"
    root.mkdir(parents=True)
    (root / "LICENSE.txt").write_text("who may use it")
    (root / "correlation.pl").write_text("a script")
    for number, subset in enumerate(SUBSETS_16):
        if subset != without:
            (root / f"STS2016.input.{subset}.txt").write_text(f"a {number}\tb\tsource\n")
            (root / f"STS2016.gs.{subset}.txt").write_text(f"{number}\n")


def test_files_of_2016_get_the_names_of_the_other_years(tmp_path: Path) -> None:
    year_16(tmp_path / "half", without="plagiarism")
    assert read_semeval(tmp_path / "half") == {}, "a year that is not whole"
    year_16(tmp_path / "whole")
    written, left = prepare("sts", tmp_path / "data", source=tmp_path / "whole")
    assert (written, left) == ([tmp_path / "data" / "STS16-en-test"], [])
    kinds = [f"STS.{kind}.{subset}.txt" for subset in SUBSETS_16 for kind in ("input", "gs")]
    names = sorted(path.name for path in written[0].iterdir())
    assert names == sorted([*kinds, "LICENSE.txt"])
    sts16 = read_semeval_sts(DataFolder(tmp_path / "data").find(sts.STS16))
    assert sts16.subsets["plagiarism"][0].score == 2


def test_sentevals_sets_get_its_names_and_tokens(tmp_path: Path) -> None:
    (tmp_path / "customerr").mkdir()
    for name in ("custrev.pos", "custrev.neg"):
        (tmp_path / "customerr" / name).write_bytes(b"it's clich\xe9 .\n\n")
    (tmp_path / "train_5500.label").write_bytes(b"DESC:def What 's `` it '' \xf0 ?\n")
    for split in ("train", "dev", "test"):
        (tmp_path / f"stsa.fine.{split}").write_text(f"4 fine {split}", encoding="utf-8")
    sets = read_senteval(tmp_path)
    assert sorted(sets) == ["CR", "SST/fine"], "half of TREC is none"
    assert sets["CR"]["custrev.pos"] == b"it 's clichM-i . \n\n"
    assert sets["SST/fine"]["sentiment-dev"] == b"4 fine dev"
    (tmp_path / "TREC_10.label").write_bytes(b'NUM:dist "How far" ?\n')
    questions = read_senteval(tmp_path)["TREC"]
    assert questions["train_5500.label"] == b"DESC:def What s  it  \xf0 ?\n"
    assert questions["TREC_10.label"] == b'NUM:dist "How far" ?\n'


@pytest.mark.parametrize(
    ("line", "tokens"),
    [
        # The first line of MR as it is published, and as SentEval has it.
        (
            "the rock is destined to be the 21st century's new \" conan \" and that he's going "
            "to make a splash",
            "the rock is destined to be the 21st century 's new `` conan `` and that he 's going "
            "to make a splash ",
        ),
        ('"Yes," he said...', "`` Yes , '' he said ... "),
        ("Mr. Smith (of J.P. Ltd.)", "Mr. Smith ( of J.P. Ltd . ) "),
        ("Why?! It costs $1,000--or 5%.", "Why ? ! It costs $ 1 , 000 -- or 5 % . "),
        ("they're we'll I'd won't THEY'LL DON'T", "they 're we 'll I 'd wo n't THEY 'LL DO N'T "),
        ("Cannot gonna gimme 'tis", "Can not gon na gim me 't is "),
        ("clichés", "clichM-CM- ) s "),  # the byte A9 becomes "M-)"
        ("", ""),
    ],
)
def test_tokens_worked_out_by_hand(line: str, tokens: str) -> None:
    assert penn_tokens(line.encode()) == tokens.encode()


def test_real_sentences_become_sentevals(data_dir: Path) -> None:
    """Compares SNLI's raw sentences (from a set made of them) with those of SentEval's script."""
    raw = data_dir / "nli" / "cad_snli" / "NLI" / "original" / "test.tsv"
    tokenised = data_dir / "senteval" / "downstream" / "SNLI"
    if not raw.is_file() or not tokenised.is_dir():
        pytest.skip("needs real data: nli/cad_snli and SentEval's SNLI")
    names = ("s1.test", "s2.test", "s1.dev", "s2.dev")
    known = {line for name in names for line in (tokenised / name).read_bytes().split(b"\n")}
    letters = {line.translate(None, b" \"'`") for line in known}
    lines = raw.read_bytes().split(b"\n")[1:]
    sentences = {field for line in lines for field in line.split(b"\t")[:2]}
    # The set quotes fields that contain quotes, as CSV does.
    unquoted = {sentence for sentence in sentences if b'""' not in sentence}
    shared = {each for each in unquoted if each.translate(None, b" \"'`") in letters}
    assert len(shared) > 500
    assert not {sentence for sentence in shared if penn_tokens(sentence) not in known}


TEXTS = ("A café, “here”.", "two\tparts\nof it")
READ = {"glue/mnli": "MNLI_MATCHED", "glue/sst2": "SST2"}


@pytest.fixture(scope="module")
def tfds_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All eight data sets as TFDS stores them, by its real builders, three rows in each split."""
    tfds = pytest.importorskip("tensorflow_datasets")
    folder = tmp_path_factory.mktemp("tfds")
    for name in GLUE:
        builder = tfds.builder(name, data_dir=folder)
        features = builder.info.features
        texts = [key for key in features if isinstance(features[key], tfds.features.Text)]
        splits = ["train", "validation"]
        if name == "glue/mnli":
            splits = ["train", "validation_matched", "validation_mismatched"]
        builder._split_generators = _splits(splits, texts, features["label"])
        builder.download_and_prepare()
    return folder


def _splits(splits: list[str], texts: list[str], label: Any) -> Callable[..., dict]:
    def rows(split: str) -> Iterator[tuple[int, dict[str, Any]]]:
        for row in range(3):
            pair = {key: f"{split} {row} {text}" for key, text in zip(texts, TEXTS, strict=False)}
            graded = label.dtype == np.float32
            yield row, {**pair, "label": 3.8 if graded else row % label.num_classes, "idx": row}

    return lambda *arguments: {split: rows(split) for split in splits}


@pytest.mark.parametrize("name", GLUE)
def test_the_readers_take_what_is_written(name: str, tfds_folder: Path, tmp_path: Path) -> None:
    (written,), _ = prepare(name, tmp_path, source=tfds_folder)
    (place,) = GLUE[name]
    assert written == tmp_path / place
    assert sorted(path.name for path in written.iterdir()) == sorted(GLUE[name][place])
    dataset = getattr(pairs, READ.get(name, name.removeprefix("glue/").upper()))
    for texts in dataset.read(DataFolder(tmp_path)).values():
        assert len(texts) == 3
        assert all(text.endswith(TEXTS[0]) for text in texts.columns[0])
        if len(texts.columns) > 1:
            assert sorted(texts.columns[1])[2].endswith(" 2 two parts of it")
        for text, label in zip(texts.columns[0], texts.labels, strict=True):
            classes = {"glue/mnli": 3}.get(name, 2)
            assert label == (3.8 if name == "glue/stsb" else int(text.split()[1]) % classes)


@pytest.mark.parametrize("name", PREPARATIONS)
def test_every_file_is_one_that_a_task_reads(name: str) -> None:
    """If a source were renamed, its preparation would write files that no task reads."""
    tasks = [*sts.TASKS, *classification.TASKS, *pairs.TASKS]
    places = {place for task in tasks for source in task.sources for place in source.places}
    for folder, files in PREPARATIONS[name][0].items():
        for file in files:
            assert any(fnmatchcase(f"{folder}/{file}", place) for place in places), file


def test_the_command_keeps_what_exists_unless_it_is_told_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for part in ("train", "trial", "test_annotated"):  # an archive of its own for each file
        folder = tmp_path / "downloads" / f"sick_{part}"
        folder.mkdir(parents=True)
        (folder / f"SICK_{part}.txt").write_text(f"pairs of {part}")
    target = tmp_path / "data" / "sick2014" / "SICK_train.txt"
    target.parent.mkdir(parents=True)
    target.write_text("mine", encoding="utf-8")
    (target.parent / "notes.txt").write_text("mine too")
    command = ["prepare", "sts", "--from", f"{tmp_path}/downloads", "--to", f"{tmp_path}/data"]
    for further, content in (([], "mine"), (["--overwrite"], "pairs of train")):
        monkeypatch.setattr("sys.argv", [*command, *further])
        main()
        assert target.read_text(encoding="utf-8") == content
    assert (target.parent / "notes.txt").read_text() == "mine too"
    output = capsys.readouterr()
    assert output.out.split() == [str(target.parent)]
    assert f"not changed: {target.parent}" in output.err
    monkeypatch.setattr("sys.argv", ["prepare", "sts", "--to", "data"])
    with pytest.raises(SystemExit):
        main()
    assert "expected a folder with the unpacked archives" in capsys.readouterr().err
