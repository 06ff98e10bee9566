"""README, ARCHITECTURE, CONTRIBUTING and docs/: every block of code is run or parsed.

A block is marked by its language: `python` blocks of a page run in order, in one folder of small
stand-ins for a user's files; of `sh` blocks each line is a command of this checkout and is parsed;
`text` is output, and `mermaid` a picture.
"""

from __future__ import annotations

import gzip
import importlib
import json
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from experiments.command import main, parse

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted(
    [ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")]
    + [*(ROOT / "docs").rglob("*.md"), *(ROOT / "experiments").rglob("*.md")]
)
CARDS = sorted((ROOT / "saved_models").glob("*/README.md"))
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)#\s]+)(?:#([\w-]+))?\)")


def name_of(page: Path) -> str:
    """A page's path in the checkout."""
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path, language: str) -> list[str]:
    """The blocks of one language on a page."""
    return [
        code for kind, code in _BLOCK.findall(page.read_text(encoding="utf-8")) if kind == language
    ]


def commands() -> Iterator[tuple[str, str]]:
    """Every command of every page and of the cards."""
    for page in (*PAGES, *CARDS):
        for block in blocks(page, "sh"):
            for line in block.replace("\\\n", " ").splitlines():
                if line := line.partition(" #")[0].strip():
                    yield name_of(page), line


@pytest.fixture
def user_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a user who has the files that the pages name, but shorter ones."""
    (tmp_path / "saved_models").symlink_to(ROOT / "saved_models")
    sentences = ["A man plays a guitar.", "Two dogs run in the park.", "The train is late again."]
    (tmp_path / "sentences.txt").write_text("\n".join(sentences * 50) + "\n")
    rows = [
        {"sentence1": first, "sentence2": second, "gold_label": label}
        for first in sentences
        for second, label in zip(sentences, ("entailment", "neutral", "contradiction"), strict=True)
    ]
    (tmp_path / "snli_1.0_train.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in rows * 60)
    )
    pairs = "".join(f"{first}\t{number} {first}\n" for number in range(60) for first in sentences)
    (tmp_path / "pairs.tsv").write_text(pairs)
    (tmp_path / "faq.tsv").write_text("question\tanswer\n" + pairs)
    labelled = (f"{n} {text},{n % 3}\n" for n, text in enumerate(sentences * 20))
    (tmp_path / "reviews.csv").write_text("text,label\n" + "".join(labelled))
    numbers = " ".join(["0.1"] * 100)
    words = "".join(f"{word} {numbers}\n" for word in ("a", "man", "train", "the"))
    (tmp_path / "glove.6B.100d.txt").write_text(words)
    (tmp_path / "mc4.model").touch()
    (tmp_path / "sentences.txt.gz").write_bytes(gzip.compress(b"A man plays a guitar.\n"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


# Blocks of these pages take a gigabyte or more: they train or serve bundled models. The memory is
# free again when their process ends.
LARGE = ("README.md", "docs/on_a_tpu.md", "docs/serving.md", "docs/training.md")
_RUN = """
import runpy, sys, tomllib, warnings
from pathlib import Path
from _pytest.config import parse_warning_filter

settings = tomllib.loads(Path(sys.argv[1]).read_text("utf-8"))["tool"]["pytest"]["ini_options"]
for each in settings["filterwarnings"]:  # Warnings are errors here, too.
    warnings.filterwarnings(*parse_warning_filter(each, escape=False))
try:
    runpy.run_path("page.py", run_name="__main__")
except ImportError as error:  # Also that of a missing extra.
    print("could not import", repr(error.name))
"""


@pytest.mark.process
@pytest.mark.parametrize(
    "page",
    [
        # The other pages train models or start servers.
        pytest.param(page, marks=[pytest.mark.end_to_end] * (page != "README.md"))
        for page in LARGE
    ],
)
def test_large_python_blocks_run(
    page: str, user_folder: Path, fresh_python: Callable[..., str]
) -> None:
    (user_folder / "page.py").write_text("\n".join(blocks(ROOT / page, "python")), "utf-8")
    output = fresh_python("-c", _RUN, ROOT / "pyproject.toml", timeout=900)
    found = re.search(r"could not import '([\w.]+)'", output)
    if found:
        pytest.importorskip(found[1], reason=found[0])
        pytest.fail(f"{page}: {found[0]}")


@pytest.mark.parametrize(
    "page",
    [
        # The experiments' pages train.
        pytest.param(page, marks=[pytest.mark.end_to_end] * name_of(page).startswith("experiments"))
        for page in PAGES
        if blocks(page, "python") and name_of(page) not in LARGE
    ],
    ids=name_of,
)
def test_python_blocks_run(page: Path, user_folder: Path) -> None:
    names: dict[str, object] = {"__name__": "__main__"}
    for number, block in enumerate(blocks(page, "python"), start=1):
        try:
            exec(compile(block, f"{name_of(page)}, block {number}", "exec"), names)
        except ImportError as error:
            # The module comes with an extra, which the page names next to the block.
            name = str(getattr(error.__cause__ or error, "name", None))
            pytest.importorskip(name, reason=f"could not import '{name}'")
            raise


@pytest.mark.parametrize("page", (*PAGES, *CARDS), ids=name_of)
def test_every_block_says_what_it_is(page: Path) -> None:
    kinds = {kind for kind, _ in _BLOCK.findall(page.read_text(encoding="utf-8"))}
    assert kinds <= {"python", "sh", "text", "mermaid"}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    for target, anchor in _LINK.findall(_BLOCK.sub("", page.read_text(encoding="utf-8"))):
        if "://" in target:
            continue
        path = page.parent / target
        assert path.exists(), f"{name_of(page)} links to {target}"
        if anchor:
            assert anchor in anchors(path), f"{target} has no heading #{anchor}"


def anchors(page: Path) -> set[str]:
    """The names of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", text).strip().lower().replace(" ", "-") for text in headings}


@pytest.mark.parametrize(("page", "line"), sorted(set(commands())))
def test_commands_are_understood(page: str, line: str, user_folder: Path, repository: Path) -> None:
    if "mteb:" in line:
        pytest.importorskip("mteb", reason="the extra `integrations` is not installed")
    for part in re.split(r" \| | > ", line):
        words = shlex.split(part)
        while "=" in words[0]:  # settings of the environment
            words.pop(0)
        check_command(words, repository)
        if "|" not in line:
            break


def test_every_command_has_its_page() -> None:
    import typer

    from use_st5.cli.main import app

    shown = {line.split()[1] for page, line in commands() if page.startswith("docs/commands/")}
    found = typer.main.get_command(app).commands
    assert {name for name, command in found.items() if not command.hidden} <= shown


def test_every_group_of_tasks_stands_in_the_table() -> None:
    from use_st5.evaluation.task import groups

    page = (ROOT / "docs" / "evaluation.md").read_text(encoding="utf-8")
    table = page.split("| group | what it computes |", 1)[1].split("\n\n", 1)[0]
    assert set(groups()) == set(re.findall(r"`(\w+)`", re.sub(r"(?m)\|[^|]*\|$", "", table)))


def check_command(words: list[str], repository: Path) -> None:
    """Fails if a program, or one of this checkout's commands, would not understand its words."""
    program, *rest = words
    if program == "use-st5":
        check_use_st5(rest)
    elif program == "make":
        makefile = (repository / "Makefile").read_text(encoding="utf-8")
        targets = [word for word in rest if "=" not in word]
        assert all(f"\n{target}:" in makefile for target in targets)
    elif words[:2] == ["pip", "install"]:
        extras = re.findall(r"(?:use_st5|\.)\[([\w,]+)\]", " ".join(rest))
        known = (repository / "setup.py").read_text(encoding="utf-8")
        assert all(f'"{extra}"' in known for found in extras for extra in found.split(","))
    elif program == "python":
        path = Path(*rest[1].split(".")).with_suffix(".py") if rest[0] == "-m" else Path(rest[0])
        assert (repository / path).is_file(), f"there is no {path}"
        if path.parts[0] == "experiments" and len(path.parts) == 3 and "--help" not in rest:
            check_experiment(rest[1], rest[2:])
    else:
        assert program in {"cat", "cd", "git", "jq", "pre-commit", "source", "zcat", "echo"}, (
            program
        )


def check_use_st5(words: list[str]) -> None:
    """Parses a command as `use-st5` would."""
    import typer

    from use_st5.cli.main import app
    from use_st5.evaluation.task import select_tasks

    command = typer.main.get_command(app)
    name, *rest = words
    found = command.get_command(None, name)
    assert found is not None, f"use-st5 has no command {name}"
    context = found.make_context(name, list(rest))
    if name == "evaluate" and context.params["tasks"] not in (None, "all"):
        select_tasks(context.params["tasks"])


def check_experiment(name: str, words: list[str]) -> None:
    """Parses the words as the script would."""
    script = vars(importlib.import_module(name))
    if script.get("main") is main:
        experiment = script.get("EXPERIMENT") or script["run"]
        parse(experiment, script.get("VARIANTS", {}), words)
