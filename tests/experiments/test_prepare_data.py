"""GLUE from TFDS: its real builders, with a few rows in place of a download."""

from __future__ import annotations

import io
import shutil
import subprocess
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments import prepare_data
from experiments.prepare_data import (
    GLUE,
    PREPARATIONS,
    Downloads,
    Preparation,
    main,
    penn_tokens,
    prepare,
    read_glue,
    read_semeval,
    read_senteval,
)
from use_st5.data.data_folder import DataFolder
from use_st5.evaluation import classification, pairs, sts
from use_st5.evaluation.sts import read_semeval_sts


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The files one and two, side by side in: a folder, a zip, a compressed tar."""
    (tmp_path / "plain").mkdir()
    for name in ("one", "two"):
        (tmp_path / "plain" / name).write_text(f"plain {name}", encoding="utf-8")
    with zipfile.ZipFile(tmp_path / "packed.zip", "w") as archive:
        archive.mkdir("inside")
        archive.writestr("inside/one", "zip one")
        archive.writestr("inside/three", "zip three")
        archive.writestr("top", "zip top")
    with tarfile.open(tmp_path / "z.tar.gz", "w:gz") as archive:
        for name in ("one", "four"):
            member = tarfile.TarInfo(f"./deep/er/{name}")
            member.size = 5
            archive.addfile(member, io.BytesIO(b"tar " + name[:1].encode()))
    return tmp_path


def test_names_are_found_together_in_folders_and_archives(folder: Path) -> None:
    downloads = Downloads(folder)
    for names, place, content in (
        (("one", "two"), "plain", b"plain one"),
        (("one", "three"), "packed.zip/inside", b"zip one"),
        (("one", "four"), "z.tar.gz/deep/er", b"tar o"),
    ):
        assert downloads.folder_of(names) == place
        assert downloads.read(place, "one") == content
    assert downloads.folder_of(["top"]) == "packed.zip"
    assert downloads.folder_of(["two", "three"]) is None, "they are in different folders"
    assert downloads.names("packed.zip/inside") == ["one", "three"]


def test_members_cannot_leave_the_memory(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "evil.zip", "w") as archive:
        archive.writestr("../../outside", "evil")
    downloads = Downloads(tmp_path)
    place = downloads.folder_of(["outside"])
    assert downloads.read(place, "outside") == b"evil"
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["evil.zip"]
    assert not (tmp_path.parent.parent / "outside").exists()


def test_errors_name_what_is_damaged(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere: expected a folder of downloads"):
        Downloads(tmp_path / "nowhere")
    for name in ("broken.zip", "broken.tar.gz"):
        path = tmp_path / name
        path.write_bytes(b"no archive at all")
        with pytest.raises(ValueError, match=rf"{name}: expected an archive that can be read"):
            Downloads(tmp_path)
        path.unlink()


def test_an_archive_that_was_cut_short_is_found_out(folder: Path) -> None:
    path = folder / "z.tar.gz"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(ValueError, match=r"z\.tar\.gz: expected an archive .* Download it again"):
        downloads = Downloads(folder)
        downloads.read(downloads.folder_of(["four"]), "four")


def test_a_damaged_member_is_found_when_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("one", "content")
    path.write_bytes(path.read_bytes().replace(b"content", b"CONTENT"))
    downloads = Downloads(tmp_path)
    with pytest.raises(ValueError, match=r"a\.zip: expected an archive that can be read"):
        downloads.read("a.zip", "one")


def test_only_files_come_out_of_a_tar(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "links.tar", "w") as archive:
        for name, kind in (("soft", tarfile.SYMTYPE), ("hard", tarfile.LNKTYPE)):
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, "/etc/passwd"
            archive.addfile(member)
        archive.addfile(tarfile.TarInfo("pipe"))
    downloads = Downloads(tmp_path)
    assert [downloads.folder_of([name]) for name in ("soft", "hard")] == [None, None]


@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_a_member_that_promises_too_much_is_refused(tmp_path: Path, kind: str) -> None:
    """It is refused before a byte of it is unpacked: a few kilobytes may expand to gigabytes."""
    promised = 200_000_000
    path = tmp_path / f"bomb.{kind}"
    if kind == "zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("one", "x")
        little = (1).to_bytes(4, "little")
        head, _, directory = path.read_bytes().partition(b"PK\x01\x02")
        sizes = directory.replace(2 * little, little + promised.to_bytes(4, "little"), 1)
        path.write_bytes(head + b"PK\x01\x02" + sizes)
    else:
        member = tarfile.TarInfo("one")
        member.size = promised
        path.write_bytes(member.tobuf())
        with path.open("ab") as file:  # the rest is a hole
            file.truncate(promised + 10240)
    downloads = Downloads(tmp_path)
    with pytest.raises(ValueError, match=r"bomb\.\w+: .*one: expected at most 100,.* found 200"):
        downloads.read(downloads.folder_of(["one"]), "one")


@pytest.mark.parametrize("name", ["a.zip", "a.tar.gz", "a.tar.bz2", "a.tar.xz"])
def test_any_damage_is_one_error(tmp_path: Path, name: str) -> None:
    """Flips each byte of a small archive in turn: the archive is read, or the error names it."""
    mode = name.removeprefix("a.tar.")
    content = b"content of the member"
    whole = tmp_path / "whole"
    whole.mkdir()
    if name == "a.zip":
        with zipfile.ZipFile(whole / name, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("one", content)
    else:
        with tarfile.open(whole / name, f"w:{mode}") as archive:
            member = tarfile.TarInfo("one")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    good = (whole / name).read_bytes()
    folder = tmp_path / "damaged"
    folder.mkdir()
    for place in range(len(good)):
        (folder / name).write_bytes(good[:place] + bytes([good[place] ^ 0xFF]) + good[place + 1 :])
        try:
            downloads = Downloads(folder)
            found = downloads.folder_of(["one"])
            if found is not None:
                downloads.read(found, "one")
        except ValueError as error:
            assert f"{name}: expected an archive that can be read" in str(error)  # noqa: PT017


SUBSETS_16 = ("answer-answer", "headlines", "plagiarism", "postediting", "question-question")


def year_16(folder: Path, *, without: str = "") -> None:
    """Writes the archive of 2016, whose file names differ from those of the other years."""
    with zipfile.ZipFile(folder / "STS2016-en-test.zip", "w") as archive:
        root = "sts2016-english-with-gs-v1.0"
        archive.writestr(f"{root}/LICENSE.txt", "who may use it")
        archive.writestr(f"{root}/correlation.pl", "a script")
        for number, subset in enumerate(SUBSETS_16):
            if subset != without:
                archive.writestr(f"{root}/STS2016.input.{subset}.txt", f"a {number}\tb\tsource\n")
                archive.writestr(f"{root}/STS2016.gs.{subset}.txt", f"{number}\n")


def test_files_of_2016_get_the_names_of_the_other_years(tmp_path: Path) -> None:
    year_16(tmp_path)
    ((place, files),) = read_semeval(Downloads(tmp_path)).items()
    assert place == "STS16-en-test"
    kinds = [f"STS.{kind}.{subset}.txt" for subset in SUBSETS_16 for kind in ("input", "gs")]
    assert sorted(files) == sorted([*kinds, "LICENSE.txt"])
    assert files["STS.gs.plagiarism.txt"] == b"2\n"


def test_a_year_that_is_not_whole_is_none(tmp_path: Path) -> None:
    year_16(tmp_path, without="plagiarism")
    assert read_semeval(Downloads(tmp_path)) == {}


def test_prepared_sets_are_where_the_tasks_look(tmp_path: Path) -> None:
    year_16(tmp_path)
    written, left = prepare(PREPARATIONS["sts"], tmp_path / "data", source=tmp_path)
    assert (written, left) == ([tmp_path / "data" / "STS16-en-test"], [])
    found = DataFolder(tmp_path / "data").find(sts.STS16)
    sts16 = read_semeval_sts(found)
    assert sts16.subsets.keys() == set(SUBSETS_16)
    assert sts16.subsets["plagiarism"][0].score == 2


def test_real_sets_come_through_as_they_are(data_dir: Path, tmp_path: Path) -> None:
    raw = data_dir / "sts_raw"
    if not raw.is_dir():
        pytest.skip("needs real data: sts_raw")
    sets = read_semeval(Downloads(raw))
    assert {"STS12-en-test", "STS13-en-test", "STS15-en-test", "stsbenchmark"} <= {*sets}
    for place, files in sets.items():
        assert {*prepare_data.SEMEVAL[place]} <= {*files}
        assert any("readme" in name for name in files)
        for name, content in files.items():
            assert content == (raw / place / name).read_bytes()
    inputs = [name for name in sets["STS15-en-test"] if name.startswith("STS.input.")]
    assert len([name for name in inputs if name.endswith(".txt")]) == 5


def prepared(folder: Path) -> dict[str, dict[str, bytes]]:
    return read_senteval(Downloads(folder))


def test_sentences_are_tokenised_line_by_line(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "datasmall_NB_ACL12.zip", "w") as archive:
        for place, names in {
            "rt10662": ("rt-polarity.pos", "rt-polarity.neg"),
            "customerr": ("custrev.pos", "custrev.neg"),
            "mpqa": ("mpqa.pos", "mpqa.neg"),
            "subj": ("subj.subjective", "subj.objective"),
        }.items():
            for name in names:
                text = f"it's {name} .\n\nclich\xe9! \n"
                archive.writestr(f"data/{place}/{name}", text.encode("latin-1"))
    sets = prepared(tmp_path)
    assert sorted(sets) == ["CR", "MPQA", "MR", "SUBJ"]
    assert sorted(sets["CR"]) == ["custrev.neg", "custrev.pos"]
    assert sets["MR"]["rt-polarity.pos"] == b"it 's rt-polarity.pos . \n\nclichM-i ! \n"


def test_questions_lose_quotes_alone(tmp_path: Path) -> None:
    (tmp_path / "train_5500.label").write_bytes(b"DESC:def What 's `` it '' \xf0 ?\n")
    assert prepared(tmp_path) == {}, "half of a set is none"
    (tmp_path / "TREC_10.label").write_bytes(b'NUM:dist "How far" ?\n')
    assert prepared(tmp_path) == {
        "TREC": {
            "train_5500.label": b"DESC:def What s  it  \xf0 ?\n",
            "TREC_10.label": b'NUM:dist "How far" ?\n',
        }
    }


def test_sentiment_gets_sentevals_names(tmp_path: Path) -> None:
    for split in ("train", "dev", "test"):
        (tmp_path / f"stsa.fine.{split}").write_text(f"4 fine {split}", encoding="utf-8")
        (tmp_path / f"sentiment-{split}").write_text(f"binary {split}\t1", encoding="utf-8")
    sets = prepared(tmp_path)
    assert sorted(sets) == ["SST/binary", "SST/fine"]
    assert sets["SST/fine"]["sentiment-dev"] == b"4 fine dev"
    assert sets["SST/binary"]["sentiment-dev"] == b"binary dev\t1"


def test_what_is_prepared_already_comes_through_as_it_is(data_dir: Path) -> None:
    """TREC's preparation only removes quotes, and the prepared TREC has none left."""
    trec = data_dir / "senteval" / "downstream" / "TREC"
    sets = prepared(trec)
    for name, content in sets["TREC"].items():
        assert content == (trec / name).read_bytes()


@pytest.mark.parametrize(
    ("line", "tokens"),
    [
        # The first line of MR as it is published, and as SentEval has it.
        (
            "the rock is destined to be the 21st century's new \" conan \" and that he's going "
            "to make a splash even greater than arnold schwarzenegger , jean-claud van damme or "
            "steven segal . ",
            "the rock is destined to be the 21st century 's new `` conan `` and that he 's going "
            "to make a splash even greater than arnold schwarzenegger , jean-claud van damme or "
            "steven segal . ",
        ),
        ('"Yes," he said...', "`` Yes , '' he said ... "),
        ("Mr. Smith (of J.P. Ltd.)", "Mr. Smith ( of J.P. Ltd . ) "),
        ('He left ("now.")', "He left ( `` now . '' ) "),
        ("He said (so.)", "He said ( so . ) "),
        ("Why?! It costs $1,000--or 5%.", "Why ? ! It costs $ 1 , 000 -- or 5 % . "),
        ("they're we'll I'd won't THEY'LL DON'T", "they 're we 'll I 'd wo n't THEY 'LL DO N'T "),
        ("the dogs' bowls 'quoted'", "the dogs ' bowls 'quoted ' "),
        ("Cannot gonna gimme 'tis", "Can not gon na gim me 't is "),
        ("d'ye want more'n that? wanna", "d' ye want more 'n that ? wan na "),
        ("  a \t b  ", "a \t b "),
        ("", ""),
    ],
)
def test_tokens_worked_out_by_hand(line: str, tokens: str) -> None:
    assert penn_tokens(line.encode()) == tokens.encode()


@pytest.mark.parametrize(
    ("line", "tokens"),
    [
        ("clichés".encode("latin-1"), b"clichM-is "),  # as SentEval's MR has it
        ("clichés".encode(), b"clichM-CM- ) s "),  # the byte A9 becomes "M-)"
        (b"a\x01b\x7fc\x89d\xff\r", b"a^Ab^ ? cM-^IdM-^ ? ^M "),
    ],
)
def test_bytes_beyond_ascii_are_shown_and_then_split(line: bytes, tokens: bytes) -> None:
    assert penn_tokens(line) == tokens


@pytest.mark.skipif(shutil.which("cat") is None, reason="needs cat -v")
def test_every_byte_is_shown_as_cat_does() -> None:
    letters = [bytes([byte]) for byte in range(256) if byte != 10]
    lines = b"\n".join(b"x" + letter + b"x" for letter in letters) + b"\n"
    shown = subprocess.run(["cat", "-v"], input=lines, capture_output=True, check=True).stdout
    if b"M-" not in shown:
        pytest.skip("this cat knows no -v")
    for letter, want in zip(letters, shown.splitlines(), strict=True):
        assert penn_tokens(b"x" + letter + b"x") == penn_tokens(want)


def test_real_sentences_become_sentevals(data_dir: Path) -> None:
    """Compares SNLI's raw sentences (from a set made of them) with those of SentEval's script."""
    raw = data_dir / "nli" / "cad_snli" / "NLI" / "original" / "test.tsv"
    tokenised = data_dir / "senteval" / "downstream" / "SNLI"
    if not raw.is_file() or not tokenised.is_dir():
        pytest.skip("needs real data: nli/cad_snli and SentEval's SNLI")
    known = {
        line
        for name in ("s1.test", "s2.test", "s1.dev", "s2.dev")
        for line in (tokenised / name).read_bytes().split(b"\n")
    }
    letters = {line.translate(None, b" \"'`") for line in known}
    lines = raw.read_bytes().split(b"\n")[1:]
    sentences = {field for line in lines for field in line.split(b"\t")[:2]}
    # The set quotes fields that contain quotes, as CSV does.
    shared = {
        sentence
        for sentence in sentences
        if b'""' not in sentence and sentence.translate(None, b" \"'`") in letters
    }
    assert len(shared) > 500
    assert not {sentence for sentence in shared if penn_tokens(sentence) not in known}


TEXTS = ("A café, “here”.", "two\tparts\nof it")


READ = {"glue/mnli": "MNLI_MATCHED", "glue/sst2": "SST2"}


@pytest.fixture(scope="module")
def tfds_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All eight data sets as TFDS stores them, three rows in each split."""
    tfds = pytest.importorskip("tensorflow_datasets")
    folder = tmp_path_factory.mktemp("tfds")
    for name in GLUE:
        builder = tfds.builder(name, data_dir=folder)
        texts = [
            key
            for key, kind in builder.info.features.items()
            if isinstance(kind, tfds.features.Text)
        ]
        splits = ["train", "validation"]
        if name == "glue/mnli":
            splits = ["train", "validation_matched", "validation_mismatched"]
        builder._split_generators = _splits(splits, texts, builder.info.features["label"])
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
    (written,), _ = prepare(PREPARATIONS[name], tmp_path, source=tfds_folder)
    (place,) = GLUE[name]
    assert written == tmp_path / place
    assert sorted(path.name for path in written.iterdir()) == sorted(GLUE[name][place])
    dataset = getattr(pairs, READ.get(name, name.removeprefix("glue/").upper()))
    data = DataFolder(tmp_path)
    dev = "validation_matched" if name == "glue/mnli" else "validation"
    for split, texts in zip(("train", dev), dataset.read(data).values(), strict=True):
        assert len(texts) == 3
        assert {column[0][: len(split)] for column in texts.columns} == {split}
        assert sorted(texts.columns[0]) == [f"{split} {row} {TEXTS[0]}" for row in range(3)]
        if len(texts.columns) > 1:
            assert sorted(texts.columns[1])[2] == f"{split} 2 two parts of it"
        for text, label in zip(texts.columns[0], texts.labels, strict=True):
            row = int(text.removeprefix(split).split()[0])
            classes = {"glue/mnli": 3}.get(name, 2)
            assert label == (3.8 if name == "glue/stsb" else row % classes)


def test_files_are_laid_out_as_glue_lays_them(tfds_folder: Path) -> None:
    rte = read_glue("glue/rte", tfds_folder)["RTE"]
    assert sorted(rte) == ["dev.tsv", "train.tsv"]
    header, *rows = rte["train.tsv"].decode().splitlines()
    assert header == "index\tsentence1\tsentence2\tlabel"
    assert f"1\ttrain 1 {TEXTS[0]}\ttrain 1 two parts of it\tnot_entailment" in rows
    cola = read_glue("glue/cola", tfds_folder)["CoLA"]["dev.tsv"].decode().splitlines()
    assert f"\t0\t\tvalidation 2 {TEXTS[0]}" in cola
    assert len(cola) == 3
    stsb = read_glue("glue/stsb", tfds_folder)["STS-B"]["dev.tsv"].decode()
    assert stsb.splitlines()[1].endswith("\t3.8")
    mnli = read_glue("glue/mnli", tfds_folder)["MNLI"]
    assert sorted(mnli) == ["dev_matched.tsv", "dev_mismatched.tsv", "train.tsv"]
    assert b"validation_mismatched 0" in mnli["dev_mismatched.tsv"]


def test_an_unprepared_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"glue/rte is not prepared in "):
        read_glue("glue/rte", tmp_path)


def test_a_failed_download_is_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: Any, download: bool, **options: Any) -> None:
        assert download
        raise RuntimeError("HTTPSConnectionPool: Max retries exceeded\nand so on")

    monkeypatch.setattr("use_st5.data.TFDSReader", fail)
    with pytest.raises(ConnectionError) as caught:
        read_glue("glue/cola", None)
    assert str(caught.value) == (
        "glue/cola: TensorFlow Datasets could not download it (RuntimeError: HTTPSConnectionPool: "
        "Max retries exceeded). Prepare it where there is a network, and give the folder with "
        "--from."
    )


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
    with pytest.raises(FileNotFoundError, match="expected something; found no complete set"):
        none = Preparation("x", {"A": ()}, "something", lambda folder: {}, reads_downloads=True)
        prepare(none, tmp_path, source=tmp_path)


@pytest.mark.parametrize("name", PREPARATIONS)
def test_every_file_is_one_that_a_task_reads(name: str) -> None:
    """If a source were renamed, its preparation would write files that no task reads."""
    tasks = [*sts.TASKS, *classification.TASKS, *pairs.TASKS]
    places = {place for task in tasks for source in task.sources for place in source.places}
    for folder, files in PREPARATIONS[name].writes.items():
        for file in files:
            assert any(fnmatchcase(f"{folder}/{file}", place) for place in places), file


def archives_of_sick(folder: Path) -> None:
    """SICK as its publishers pack it: an archive for each file."""
    folder.mkdir()
    for part in ("train", "trial", "test_annotated"):
        with zipfile.ZipFile(folder / f"sick_{part}.zip", "w") as archive:
            archive.writestr(f"SICK_{part}.txt", f"pairs of {part}")


def test_the_command_keeps_what_exists_unless_it_is_told_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    archives_of_sick(tmp_path / "downloads")
    target = tmp_path / "data" / "sick2014" / "SICK_train.txt"
    target.parent.mkdir(parents=True)
    target.write_text("mine", encoding="utf-8")
    command = ["prepare", "sts", "--from", f"{tmp_path}/downloads", "--to", f"{tmp_path}/data"]
    for further, content in (([], "mine"), (["--overwrite"], "pairs of train")):
        monkeypatch.setattr("sys.argv", [*command, *further])
        main()
        assert target.read_text(encoding="utf-8") == content
    output = capsys.readouterr()
    assert output.out.split() == [str(target.parent)]
    assert f"not changed: {target.parent}" in output.err
    monkeypatch.setattr("sys.argv", ["prepare", "sts", "--to", "data"])
    with pytest.raises(SystemExit):
        main()
    assert "expected a folder with the archives of SemEval" in capsys.readouterr().err
