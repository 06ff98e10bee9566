"""The house itself: BUILD, the direction of imports, sizes of files and functions."""

from __future__ import annotations

import ast
import subprocess
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import use_st5

ROOT = Path(__file__).resolve().parents[1]
LONGEST_FUNCTION = 60
LONGEST_FILE = 320
LARGEST_FILE = 40 * 2**20

# Nothing on the left may import anything on the right (design.md, "The way of a sentence").
FORBIDDEN = {
    "text": {"layers", "models", "losses", "data", "training", "export", "evaluation", "recipes"},
    "layers": {"models", "losses", "data", "training", "export", "evaluation", "recipes"},
    "models": {"losses", "data", "training", "export", "evaluation", "recipes"},
    "losses": {"data", "training", "export", "evaluation", "recipes"},
    "data": {"models", "losses", "export", "evaluation", "recipes"},
    "training": {"models", "export", "evaluation", "recipes"},
    "export": {"losses", "training", "evaluation", "recipes"},
    "encoder": {"losses", "training", "evaluation", "recipes"},
    "vector_store": {"layers", "models", "losses", "training", "export", "encoder", "evaluation"},
    "search": {"models", "losses", "training", "evaluation", "recipes"},
    "bias": {"models", "losses", "training", "export", "encoder", "evaluation", "recipes"},
    "evaluation": {"models", "losses", "training", "recipes"},
}


def python_files(*folders: str) -> set[str]:
    """Lists the Python files on disk below folders of the checkout, relative to it."""
    files = (path.relative_to(ROOT) for name in folders for path in (ROOT / name).rglob("*.py"))
    return {path.as_posix() for path in files if ".ipynb_checkpoints" not in path.parts}


@pytest.fixture(scope="module")
def targets() -> dict[str, dict]:
    """The rules of BUILD by name; each is its attributes and its kind under "rule"."""
    found = {}
    for node in ast.parse((ROOT / "BUILD").read_text(encoding="utf-8")).body:
        if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call):
            continue
        call = node.value
        if ast.unparse(call.func) not in {"py_library", "py_test"}:
            continue
        attributes = {word.arg: ast.literal_eval(word.value) for word in call.keywords}
        name = attributes.pop("name")
        assert name not in found, f"BUILD names {name} twice"
        found[name] = {"rule": ast.unparse(call.func), "deps": [], **attributes}
    return found


def package_imports(source: str) -> set[str]:
    """Returns the files of the package that a file's import statements name at run time."""
    tree = ast.parse((ROOT / source).read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = []
    modules = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            modules |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
    stems = {name.replace(".", "/") for name in modules if name.split(".")[0] == "use_st5"}
    ends = (".py", "/__init__.py")
    return {stem + end for stem in stems for end in ends if (ROOT / (stem + end)).is_file()}


def test_build_libraries_hold_exactly_the_files_on_disk(targets: dict[str, dict]) -> None:
    libraries = [rule for rule in targets.values() if rule["rule"] == "py_library"]
    sources = [source for rule in libraries for source in rule["srcs"]]
    assert len(sources) == len(set(sources)), "a file stands in two libraries"
    on_disk = python_files("use_st5", "benchmarks", "tools") | {"tests/conftest.py"}
    on_disk |= {name for name in python_files("tests") if not Path(name).name.startswith("test_")}
    assert set(sources) == on_disk, "run `make build-file`"


def test_build_tests_are_exactly_the_test_files_on_disk(targets: dict[str, dict]) -> None:
    on_disk = {name for name in python_files("tests") if Path(name).name.startswith("test_")}
    tests = {name: rule for name, rule in targets.items() if rule["rule"] == "py_test"}
    assert {f"{name}.py" for name in tests} == on_disk, "run `make build-file`"
    for name, rule in tests.items():
        assert rule["srcs"] == [f"{name}.py", rule["main"]]
        assert rule["args"] == [f"{name}.py"]
        assert (ROOT / rule["main"]).is_file()


def test_build_dependencies_exist_and_cover_the_imports(targets: dict[str, dict]) -> None:
    homes = {
        source: name
        for name, rule in targets.items()
        if rule["rule"] == "py_library"
        for source in rule["srcs"]
    }
    for name, rule in targets.items():
        deps = {label.removeprefix(":") for label in rule["deps"]}
        assert deps <= set(targets), f"{name} depends on a target that BUILD has not"
        needed = {homes[file] for source in rule["srcs"] for file in package_imports(source)}
        # Every import of the package runs its __init__, which stands in the foundation; what
        # reaches it through another target needs no label of its own.
        missing = needed - deps - {name, "foundation"}
        assert not missing, f"{name} imports {missing}: run `make build-file`"


def test_libraries_depend_on_each_other_in_one_direction(targets: dict[str, dict]) -> None:
    libraries = {
        name: {label.removeprefix(":") for label in rule["deps"]}
        for name, rule in targets.items()
        if rule["rule"] == "py_library" and not rule.get("testonly")
    }
    TopologicalSorter(libraries).prepare()  # raises CycleError
    for name, above in FORBIDDEN.items():
        assert not libraries.get(name, set()) & above, f"{name} knows what is built upon it"
    assert not any("cli" in deps for deps in libraries.values()), "nothing knows the command line"


@pytest.mark.parametrize("source", sorted(python_files("use_st5", "tools", "benchmarks")))
def test_files_and_functions_stay_short(source: str) -> None:
    text = (ROOT / source).read_text(encoding="utf-8")
    assert len(text.splitlines()) <= LONGEST_FILE
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = node.end_lineno - node.lineno + 1
            assert lines <= LONGEST_FUNCTION, f"{node.name} has {lines} lines"


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
