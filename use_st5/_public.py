"""The public names of a package, imported when they are first used."""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Callable


def public_names(
    package: str,
) -> tuple[Callable[[str], object], Callable[[], list[str]], list[str]]:
    """Lets a package offer names that it imports only when they are used (PEP 562).

    The names are listed only once, as the imports for type checkers in the package's `__init__`:

        if TYPE_CHECKING:
            from use_st5.losses.contrastive_loss import ContrastiveLoss as ContrastiveLoss

        __getattr__, __dir__, __all__ = public_names(__name__)

    Args:
        package: Its full name; it is being imported.

    Returns:
        Its `__getattr__`, `__dir__` and `__all__`.
    """
    spec = sys.modules[package].__spec__
    source = spec.loader.get_source(package)  # type: ignore[union-attr]
    modules = {
        alias.name: node.module
        for block in ast.parse(source).body
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for node in block.body
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }

    def import_name(name: str) -> object:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(modules[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *modules})

    return import_name, names, sorted(modules)
