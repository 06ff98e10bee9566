"""Prints the numbers by which the size of the code is judged, as a Markdown table.

    python -m tools.structure_numbers

Code lines are lines without blank lines, comments and docstrings. A private function is called once
if its name occurs once in the package besides its definition. Defensive lines are those of `raise`
statements, of `if` statements that only raise, of functions named `check…` or `_check…`, and of the
"Raises" sections of docstrings. A record is a dataclass, a NamedTuple, a TypedDict or a Struct.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Callable, Iterable
from pathlib import Path

from tools.import_graph import ROOT, imported_files, python_files

_RECORDS = {"NamedTuple", "TypedDict", "Struct"}
_RAISES = re.compile(r"^( *)Raises:\n(?:(?:\1 +.*)?\n)+", re.MULTILINE)


def code_lines(file: str) -> int:
    """The lines of a file that hold code."""
    text = (ROOT / file).read_text(encoding="utf-8")
    ignored = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in (*ignored, tokenize.ENDMARKER):
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                lines.difference_update(range(first.lineno, first.end_lineno + 1))
    return len(lines)


def called_once(files: Iterable[str]) -> tuple[int, int]:
    """The private functions that are called once, and their lines."""
    texts = {file: (ROOT / file).read_text(encoding="utf-8") for file in files}
    names = re.findall(r"\b_[a-z]\w*", "\n".join(texts.values()))
    counts: dict[str, int] = {}
    for name in names:
        counts[name] = counts.get(name, 0) + 1
    sizes = [
        node.end_lineno - node.lineno + 1
        for text in texts.values()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef) and counts.get(node.name) == 2
    ]
    return len(sizes), sum(sizes)


def defensive_lines(file: str) -> int:
    """The lines of a file that only refuse something, or describe that."""
    text = (ROOT / file).read_text(encoding="utf-8")
    lines: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        is_guard = (
            isinstance(node, ast.If) and not node.orelse and isinstance(node.body[-1], ast.Raise)
        )
        is_check = isinstance(node, ast.FunctionDef) and node.name.lstrip("_").startswith("check")
        if isinstance(node, ast.Raise) or is_guard or is_check:
            lines.update(range(node.lineno, node.end_lineno + 1))
    for section in _RAISES.finditer(text):
        start = text.count("\n", 0, section.start()) + 1
        lines.update(range(start, start + section.group().rstrip().count("\n") + 1))
    return len(lines)


def records(file: str) -> int:
    """The records that a file defines."""
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    return sum(
        any("dataclass" in ast.unparse(each) for each in node.decorator_list)
        or any(ast.unparse(base).split(".")[-1] in _RECORDS for base in node.bases)
        for node in classes
    )


def import_cycles(files: Iterable[str]) -> list[set[str]]:
    """The sets of files that import each other, functions' imports included (Tarjan 1972)."""
    index: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    cycles: list[set[str]] = []

    def visit(file: str) -> None:
        index[file] = lowest[file] = len(index)
        stack.append(file)
        for other in sorted(imported_files(file)):
            if other not in index:
                visit(other)
                lowest[file] = min(lowest[file], lowest[other])
            elif other in stack:
                lowest[file] = min(lowest[file], index[other])
        if lowest[file] == index[file]:
            place = stack.index(file)
            component = {*stack[place:]}
            del stack[place:]
            if len(component) > 1:
                cycles.append(component)

    for file in sorted(files):
        if file not in index:
            visit(file)
    return cycles


def _lines(file: str) -> int:
    return len((ROOT / file).read_text(encoding="utf-8").splitlines())


def _total(count: Callable[[str], int], files: Iterable[str]) -> int:
    return sum(map(count, files))


def main() -> None:
    """Prints the table."""
    package, tests = python_files("use_st5"), python_files("tests")
    sources = {file for file in package if Path(file).name != "__init__.py"}
    lines = _total(_lines, package)
    once, once_lines = called_once(package)
    private = sum(
        any(part.startswith("_") for part in Path(other).with_suffix("").parts[1:])
        for file in python_files("experiments")
        for other in imported_files(file)
        if other.startswith("use_st5/") and Path(other).name != "__init__.py"
    )
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    unreleased = changes.split("## [Unreleased]", 1)[1].split("\n## [", 1)[0]
    rows = [
        ("files / lines / code lines of use_st5/", f"{len(package)} / {lines:,} / "
         f"{_total(code_lines, package):,}"),
        ("private functions called once, share of lines", f"{once}, {once_lines / lines:.1%}"),
        ("defensive lines", f"{_total(defensive_lines, package) / lines:.1%}"),
        ("import cycles", f"{len(import_cycles(sources))}"),
        ("imports of private modules by experiments", f"{private}"),
        ("records", f"{_total(records, package)}"),
        ("tests: files / lines", f"{len(tests)} / {_total(_lines, tests):,}"),
        ("CHANGELOG [Unreleased], words", f"{len(unreleased.split()):,}"),
    ]  # fmt: skip
    print("| number | value |\n|---|---|")
    for name, value in rows:
        print(f"| {name} | {value} |")


if __name__ == "__main__":
    main()
