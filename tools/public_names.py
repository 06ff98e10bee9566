"""Writes docs/public_names.md: what each package offers, with the first line of its docstring.

`python -m tools.public_names`; `tests/test_public_names.py` holds the page and the code together.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from pathlib import Path
from types import ModuleType

import use_st5

PAGE = Path(__file__).resolve().parents[1] / "docs" / "public_names.md"

HEADER = """# Public names

Import these names from their package, for example `from use_st5.losses import ContrastiveLoss`.
Everything else is private and can change with any version. `python -m tools.public_names` writes
this page.
"""


def packages() -> list[ModuleType]:
    """The packages that offer names lazily, the root first."""
    found = [use_st5]
    for module in pkgutil.walk_packages(use_st5.__path__, "use_st5."):
        if module.ispkg:
            package = importlib.import_module(module.name)
            if hasattr(package, "__getattr__"):
                found.append(package)
    return found


def first_line(value: object) -> str:
    """The first line of a docstring, of the kind of value where it can have none of its own."""
    if not (inspect.isclass(value) or inspect.isroutine(value)):
        return f"A {type(value).__name__}."
    return (inspect.getdoc(value) or "").partition("\n")[0]


def page() -> str:
    """The whole page."""
    parts = [HEADER]
    for package in packages():
        parts.append(f"\n## `{package.__name__}`\n\n{first_line_of_module(package)}\n")
        parts.append("| name | what it is |\n|---|---|")
        for name in package.__all__:
            text = first_line(getattr(package, name)).replace("|", "\\|")
            parts.append(f"| `{name}` | {text} |")
    return "\n".join(parts) + "\n"


def first_line_of_module(package: ModuleType) -> str:
    """The first line of a package's docstring."""
    return (package.__doc__ or "").partition("\n")[0]


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
