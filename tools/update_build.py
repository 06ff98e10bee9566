"""Writes BUILD from the files on disk: one library per part of the package, one test per test file.

Run it as `make build-file`. `tests/test_house.py` reads the result on its own and holds that its
sources are exactly the files on disk and that its dependencies cover the imports.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "use_st5"
FOUNDATION = "foundation"

HEADER = '''"""Targets for Bazel, written by `make build-file`.

Third-party packages are those of the interpreter.
"""

load("@rules_python//python:defs.bzl", "py_library", "py_test")

package(default_visibility = ["//visibility:public"])

licenses(["notice"])

exports_files(["LICENSE"])

filegroup(
    name = "saved_models",
    srcs = glob(["saved_models/**"], allow_empty = True),
)

filegroup(
    name = "colabs",
    srcs = glob(["colabs/*.ipynb"], allow_empty = True),
)
'''


def library_of(source: Path) -> str:
    """Returns the target that holds a source, given relative to the root.

    A sub-package is one target, and so is each module beside them; the modules that everything may
    import (`__init__`, `_files` and the like) are one together.
    """
    parts = source.with_suffix("").parts
    if parts[0] == "tests":
        return "/".join([*parts[:-1], "support"])
    if parts[0] != PACKAGE:
        return parts[0]
    name = parts[1]
    is_module = len(parts) == 2
    if name == "__main__":
        return "cli"
    if is_module and name.startswith("_"):
        return FOUNDATION
    return name.lstrip("_")


def imported(source: Path) -> Iterator[str]:
    """Gives the modules of the package that a source imports, inside functions too.

    What is imported for type checkers alone is left out: nothing needs it to run.
    """
    nodes = [ast.parse(source.read_text(encoding="utf-8"))]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            nodes.extend(node.orelse)
            continue
        nodes.extend(ast.iter_child_nodes(node))
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Attribute):
            yield ast.unparse(node)  # `use_st5.load` imports what it names


def mentioned(source: Path) -> list[str]:
    """Lists the modules that a test names anywhere: it may start a process that imports them."""
    return re.findall(rf"\b{PACKAGE}(?:\.\w+)+", source.read_text(encoding="utf-8"))


def lazy_homes() -> dict[str, str]:
    """Returns the table by which the package imports its public names at their first use."""
    tree = ast.parse((ROOT / PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_HOMES":
            return ast.literal_eval(node.value)
    raise ValueError(f"{PACKAGE}/__init__.py assigns no _HOMES")


HOMES = lazy_homes()


def resolve(module: str) -> Path | None:
    """Returns the source of `package.module` or `package.module.name`, None for a foreign one."""
    first, _, name = module.partition(".")
    if first == PACKAGE and name in HOMES:
        module = HOMES[name]
    parts = module.split(".")
    if parts[0] not in {PACKAGE, "benchmarks", "tools"}:
        return None
    for end in range(len(parts), 0, -1):
        path = ROOT.joinpath(*parts[:end])
        for candidate in (path.with_suffix(".py"), path / "__init__.py"):
            if candidate.is_file():
                return candidate.relative_to(ROOT)
    return None


def dependencies(name: str, sources: list[Path]) -> list[str]:
    """Returns the labels of the libraries that a target's sources import, sorted."""
    found = {FOUNDATION} if sources[0].parts[0] == PACKAGE else set()
    for source in sources:
        modules = [*imported(ROOT / source)]
        if source.parts[0] == "tests":
            modules += mentioned(ROOT / source)
        found.update(library_of(home) for home in map(resolve, modules) if home)
    return [f":{other}" for other in sorted(found - {name})]


def sources_in(*folders: str) -> list[Path]:
    """Lists the Python files below folders of the root, relative to it, sorted."""
    files = (path.relative_to(ROOT) for folder in folders for path in (ROOT / folder).rglob("*.py"))
    return sorted(path for path in files if not any(part.startswith(".") for part in path.parts))


def target(rule: str, name: str, **attributes: list[str] | str | int) -> str:
    """Formats one target as Buildifier would."""
    lines = [f"{rule}(", f'    name = "{name}",']
    for key, value in attributes.items():
        if isinstance(value, list) and len(value) > 1:
            lines += [f"    {key} = [", *(f'        "{item}",' for item in value), "    ],"]
        elif value:
            shown = f'["{value[0]}"]' if isinstance(value, list) else value
            lines.append(f"    {key} = {shown},")
    return "\n".join([*lines, ")\n"])


def libraries() -> Iterator[str]:
    """Gives the library targets in the order of their names."""
    groups: dict[str, list[Path]] = {}
    for source in sources_in(PACKAGE, "benchmarks", "tools"):
        groups.setdefault(library_of(source), []).append(source)
    for name, sources in sorted(groups.items()):
        yield target(
            "py_library",
            name,
            srcs=[source.as_posix() for source in sources],
            data=[":saved_models"] if name == FOUNDATION else [],
            deps=dependencies(name, sources),
        )


def tests() -> Iterator[str]:
    """Gives what the tests of each folder share, and one test target per file; pytest runs each."""
    shared: dict[str, list[Path]] = {}
    for path in sources_in("tests"):
        if not path.name.startswith("test_"):
            shared.setdefault(library_of(path), []).append(path)
    for name, sources in sorted(shared.items()):
        yield target(
            "py_library",
            name,
            testonly="True",
            srcs=[path.as_posix() for path in sources],
            deps=dependencies(name, sources),
        )
    for path in sources_in("tests"):
        if not path.name.startswith("test_"):
            continue
        around = {f"{folder.as_posix()}/support" for folder in path.parents}
        support = {f":{name}" for name in around & set(shared)}
        yield target(
            "py_test",
            path.with_suffix("").as_posix(),
            srcs=[path.as_posix(), "tools/run_pytest.py"],
            main='"tools/run_pytest.py"',
            args=[path.as_posix()],
            data=[":colabs", "pyproject.toml"],
            deps=sorted(support | set(dependencies("", [path]))),
        )


def build_text() -> str:
    """Returns the whole of BUILD."""
    return "\n".join([HEADER, *libraries(), *tests()])


if __name__ == "__main__":
    (ROOT / "BUILD").write_text(build_text(), encoding="utf-8")
