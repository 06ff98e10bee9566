"""Importing the packages that only some parts of the library need."""

from __future__ import annotations

import contextlib
import importlib
import os
from pathlib import Path
from types import ModuleType

# Whether pip finds use_st5 on the package index. On the day of publication, set this to True, and
# run `python -m tools.install_lines`: it rewrites these lines in documents and notebooks.
PUBLISHED = False


def install_line(extra: str) -> str:
    """Returns the command that installs the packages of an extra of this package.

    Until use_st5 is published, the command names the checkout. If use_st5 was installed from a
    wheel, it names the packages of the extra.
    """
    if PUBLISHED:
        return f'pip install "use_st5[{extra}]"'
    checkout = Path(__file__).resolve().parents[1]
    if (checkout / "setup.py").is_file():
        return f'pip install --editable "{checkout}[{extra}]"'
    import importlib.metadata  # Slow, and few processes need it.

    from packaging.requirements import Requirement

    requirements = []
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        requirements = [Requirement(each) for each in importlib.metadata.requires("use_st5") or []]
    packages = [
        f'"{each.name}{each.specifier}"'
        for each in requirements
        if each.marker and each.marker.evaluate({"extra": extra})
    ]
    return " ".join(["pip install", *packages])


def require(module: str, extra: str) -> ModuleType:
    """Imports an optional dependency, or says which line installs it.

    Args:
        module: the module to import, for example `"tensorflow_text"`.
        extra: the extra of this package that brings it, for example `"text"`.

    Returns:
        The imported module.
    """
    if module.startswith("onnxruntime"):  # Else it writes about this device, and sends it.
        os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    try:
        return importlib.import_module(module)
    # Not ImportError alone: a package of native code that does not fit the installed TensorFlow
    # fails with TensorFlow's own NotFoundError (an undefined symbol).
    except Exception as error:
        reason = f"which could not be imported ({type(error).__name__}: {error})"
        said = f"This needs the module '{module}', {reason}. Run: {install_line(extra)}"
        raise ImportError(said, name=module) from error
