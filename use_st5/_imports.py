"""Importing the packages that only some parts of the library need."""

from __future__ import annotations

import importlib
from types import ModuleType


def require(module: str, extra: str) -> ModuleType:
    """Imports an optional dependency, or says which line installs it.

    Args:
        module: the module to import, for example `"tensorflow_text"`.
        extra: the extra of this package that brings it, for example `"text"`.

    Returns:
        The imported module.

    Raises:
        ImportError: it is missing, or it is there and does not load.
    """
    try:
        return importlib.import_module(module)
    # Not ImportError alone: a package of native code that does not fit the installed TensorFlow
    # fails with TensorFlow's own NotFoundError (an undefined symbol).
    except Exception as error:
        raise ImportError(
            f"This needs the module '{module}', which could not be imported "
            f'({type(error).__name__}: {error}). Run: pip install "use_st5[{extra}]"',
            name=module,
        ) from error
