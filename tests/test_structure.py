"""The structure: BUILD, the direction of imports, the size of each part."""

from __future__ import annotations

import ast
import functools
import importlib
import re
import subprocess
from collections.abc import Iterable
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import use_st5
from tools.import_graph import ROOT, imported_files, python_files
from tools.structure_numbers import import_cycles

LARGEST_FILE = 40 * 2**20

FOUNDATION = "foundation"
# The most lines of each part: what it has now.
LARGEST_PARTS = {
    "beam": 628,
    "bias": 267,
    "cli": 4_484,
    "convert": 1_499,
    "data": 2_176,
    "encode": 1_731,
    "engines": 2_432,
    "evaluation": 3_546,
    "export": 1_596,
    "foundation": 141,
    "hub": 938,
    "integrations": 75,
    "io": 910,
    "layers": 1_159,
    "losses": 1_961,
    "models": 5_094,
    "plots": 185,
    "search": 1_461,
    "serve": 875,
    "sklearn": 112,
    "tokenizers": 2_712,
    "trainable_encoder": 452,
    "training": 7_644,
}


def glob(
    include: Iterable[str], exclude: Iterable[str] = (), *, allow_empty: bool = False
) -> list[str]:
    """Bazel's `glob`: the files that match a pattern of `include` and none of `exclude`."""
    found = set[Path]().union(*map(_files_of, include)).difference(*map(_files_of, exclude))
    names = sorted(file.relative_to(ROOT).as_posix() for file in found if file.is_file())
    assert names or allow_empty, f"BUILD: nothing fits {include}"
    return names


@functools.cache
def _files_of(pattern: str) -> frozenset[Path]:
    """The files of a pattern; kept, because `**` searches the virtual environment, too."""
    # To Bazel a pattern that ends in `**` means files, to Python before 3.13 only folders.
    return frozenset(ROOT.glob(f"{pattern}/*" if pattern.endswith("**") else pattern))


def read_build() -> dict[str, dict]:
    """The Python rules of BUILD by name: their attributes, and their kind under "rule".

    BUILD is Starlark, which is near enough to Python to be run as such.
    """
    found: dict[str, dict] = {}

    def rule(kind: str, name: str, **attributes: object) -> None:
        assert name not in found, f"BUILD names {name} twice"
        found[name] = {"rule": kind, "srcs": [], "deps": [], **attributes}

    def ignored(*_: object, **__: object) -> None:
        """Stands for the rules that say nothing about Python sources."""

    names = dict.fromkeys(("load", "package", "licenses", "exports_files", "filegroup"), ignored)
    for kind in ("py_library", "py_binary", "py_test"):
        names[kind] = lambda kind=kind, **attributes: rule(kind, **attributes)
    exec((ROOT / "BUILD").read_text(encoding="utf-8"), {**names, "glob": glob})
    return found


@pytest.fixture(scope="module")
def targets() -> dict[str, dict]:
    """The Python rules of BUILD."""
    return read_build()


def allowed_imports() -> dict[str, set[str]]:
    """The table of ARCHITECTURE.md: each part, and the parts that it may import."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    table = text.split("| part | may import |", 1)[1].split("\n\n", 1)[0]
    rows = [line.split("|")[1:3] for line in table.splitlines()[2:]]
    return {part.strip(" `"): set(re.findall(r"`(\w+)`", others)) for part, others in rows}


def part_of(file: str) -> str:
    """The part of the package that a source belongs to."""
    first = Path(file).parts[1].removesuffix(".py")
    if first in {"cli", "__main__"}:
        return "cli"
    return FOUNDATION if first.startswith("_") else first


def test_build_holds_every_source_once(targets: dict[str, dict]) -> None:
    libraries = [rule for rule in targets.values() if rule["rule"] == "py_library"]
    sources = [source for rule in libraries for source in rule["srcs"]]
    assert len(sources) == len(set(sources)), "a file stands in two libraries"
    on_disk = python_files("use_st5", "experiments", "benchmarks", "tools", "tests")
    on_disk -= {name for name in on_disk if Path(name).name.startswith("test_")}
    assert set(sources) == on_disk, "PARTS in BUILD lists the parts"


def test_build_has_a_test_for_each_test_file(targets: dict[str, dict]) -> None:
    on_disk = {name for name in python_files("tests") if Path(name).name.startswith("test_")}
    tests = {name: rule for name, rule in targets.items() if rule["rule"] == "py_test"}
    assert {f"{name}.py" for name in tests} == on_disk
    for name, rule in tests.items():
        assert rule["srcs"] == [f"{name}.py", rule["main"]]
        assert rule["args"] == [f"{name}.py"]
        assert (ROOT / rule["main"]).is_file()


def test_build_has_the_rules_of_the_architecture(targets: dict[str, dict]) -> None:
    parts = allowed_imports()
    for part, others in parts.items():
        expected = others | (set() if part == FOUNDATION else {FOUNDATION})
        assert {label.removeprefix(":") for label in targets[part]["deps"]} == expected, part
    assert set(parts) == {part_of(file) for file in python_files("use_st5")}


def test_build_has_no_cycle_and_no_unknown_target(targets: dict[str, dict]) -> None:
    deps = {
        name: {label.removeprefix(":") for label in rule["deps"]} for name, rule in targets.items()
    }
    TopologicalSorter(deps).prepare()  # raises CycleError
    assert set().union(*deps.values()) <= set(deps)


@pytest.mark.parametrize("part", sorted(allowed_imports()))
def test_imports_point_one_way(part: str) -> None:
    allowed = allowed_imports()[part] | {FOUNDATION, part}
    against = [
        f"{source} imports {file}"
        for source in sorted(python_files("use_st5"))
        if part_of(source) == part
        for file in sorted(imported_files(source))
        if file.startswith("use_st5/") and part_of(file) not in allowed
    ]
    assert not against, "the table in ARCHITECTURE.md says what a part may import"


def test_no_files_import_each_other() -> None:
    sources = {file for file in python_files("use_st5") if Path(file).name != "__init__.py"}
    assert import_cycles(sources) == []


def test_each_part_keeps_to_its_size() -> None:
    lines: dict[str, int] = {}
    for file in python_files("use_st5"):
        count = len((ROOT / file).read_text(encoding="utf-8").splitlines())
        lines[part_of(file)] = lines.get(part_of(file), 0) + count
    assert set(lines) == set(LARGEST_PARTS)
    larger = {part: size for part, size in lines.items() if size > LARGEST_PARTS[part]}
    assert not larger, "delete something, or raise the part's size and say why in the commit"


def test_experiments_import_public_names() -> None:
    imports = {
        (source, *module_and_name(node.module, alias.name))
        for source in python_files("experiments")
        for node in ast.walk(ast.parse((ROOT / source).read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("use_st5")
        for alias in node.names
    }
    assert not {each for each in imports if not is_public(each[1], each[2])}


def module_and_name(module: str, name: str) -> tuple[str, str]:
    """Returns the module and the name of an import; if the name is itself a module, it and ''."""
    file = ROOT / f"{module.replace('.', '/')}/{name}.py"
    return (f"{module}.{name}", "") if file.is_file() else (module, name)


def is_public(module: str, name: str) -> bool:
    """Whether a package offers the name."""
    return name in getattr(importlib.import_module(module), "__all__", ())


def test_version_is_the_same_everywhere() -> None:
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    module = (ROOT / "MODULE.bazel").read_text(encoding="utf-8")
    assert f"\nversion: {use_st5.__version__}\n" in citation
    assert f"\n## [{use_st5.__version__}]" in changelog
    assert f'version = "{use_st5.__version__}")\nbazel_dep' in module.replace("\n\n", "\n")


def test_tracked_files_are_small_and_name_no_machine() -> None:
    listing = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listing.returncode:
        pytest.skip("not a git checkout")
    # Written in two pieces, so that this file does not name them either.
    homes = ["/work" + "/main", "/work" + "/data", "/work" + "/venv", "/tmp" + "/bash_jobs"]
    for name in filter(None, listing.stdout.split("\0")):
        path = ROOT / name
        if not path.is_file():
            continue
        assert path.stat().st_size <= LARGEST_FILE, f"{name} is too large for the repository"
        if path.suffix in {".py", ".md", ".toml", ".json", ".ipynb", ".cff", ""}:
            text = path.read_text(encoding="utf-8")
            assert not any(home in text for home in homes), f"{name} names a folder of one machine"


def test_ci_names_tests_that_are_there() -> None:
    named = re.findall(r"tests/[\w/]+(?:\.py)?", (ROOT / ".ci/run").read_text(encoding="utf-8"))
    assert named
    assert not [name for name in named if not (ROOT / name).exists()]
