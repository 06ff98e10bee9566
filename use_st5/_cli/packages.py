"""Which packages are installed, and whether their versions go together; imports none of them."""

from __future__ import annotations

import importlib.metadata
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from use_st5._cli.finding import Finding, Status

VersionOf = Callable[[str], str | None]

PYTHON_RANGE = ((3, 11), (3, 14))
_TENSORFLOW = ("tensorflow", "tensorflow-cpu", "tensorflow-tpu", "tf-nightly")


@dataclass(frozen=True)
class Package:
    """A package, the versions that fit and the extra of use_st5 that brings it.

    Attributes:
        name: name on the package index.
        lowest: lowest version that fits.
        below: first version that fits no longer; None where all later ones fit.
        extra: extra of use_st5; empty for what use_st5 itself requires.
        minor_of_tensorflow: must have the major and minor version of the installed TensorFlow.
    """

    name: str
    lowest: tuple[int, ...]
    below: tuple[int, ...] | None = None
    extra: str = ""
    minor_of_tensorflow: bool = False


# The same ranges as in setup.py (a test holds them together).
TENSORFLOW = Package("tensorflow", (2, 20), (2, 22))
PACKAGES = (
    Package("keras", (3, 12)),
    Package("numpy", (1, 26)),
    Package("scipy", (1, 13)),
    Package("safetensors", (0, 5)),
    Package("tensorflow-hub", (0, 16, 1), extra="hub"),
    Package("tf-keras", (2, 20), (2, 22), extra="hub", minor_of_tensorflow=True),
    Package("tensorflow-text", (2, 20), (2, 22), extra="text", minor_of_tensorflow=True),
    Package("tensorflow-datasets", (4, 9, 9), extra="data"),
    Package("tf-models-official", (2, 20), (2, 21), extra="tfmodels", minor_of_tensorflow=True),
    Package("sentencepiece", (0, 2), extra="convert"),
    Package("matplotlib", (3, 9), extra="plots"),
    Package("scikit-learn", (1, 5), extra="evaluation"),
    Package("jinja2", (3, 1), extra="evaluation"),
)
# They import pkg_resources without saying so; setuptools 82 removed it.
NEED_PKG_RESOURCES = ("tensorflow-hub", "tf-models-official")
SETUPTOOLS_BELOW = (82,)
# PyTorch's wheels for GPUs bring triton. With TensorFlow 2.20 and 2.21, triton 3.4 to 3.6 load in
# any order; 3.7 and 3.9 end the process if TensorFlow was loaded before (a segmentation fault, an
# LLVM option registered twice), and do not if it is loaded after.
TRITON_CLASHES_FROM = (3, 7)


def installed_version(name: str) -> str | None:
    """The version of an installed package, read from its metadata; None if it is not there."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def check_packages(version_of: VersionOf = installed_version) -> Iterator[Finding]:
    """Yields a finding for Python and for each package.

    Args:
        version_of: gives the installed version of a package, or None.
    """
    yield _check_python(sys.version_info[:3])
    name, version = _find_tensorflow(version_of)
    yield _check(TENSORFLOW, version, tensorflow=None, subject=name)
    for package in PACKAGES:
        yield _check(package, version_of(package.name), tensorflow=version)
    yield from _check_setuptools(version_of)
    yield from _check_triton(version_of)


def _find_tensorflow(version_of: VersionOf) -> tuple[str, str | None]:
    """TensorFlow comes under several names."""
    for name in _TENSORFLOW:
        version = version_of(name)
        if version is not None:
            return name, version
    return "tensorflow", None


def _check_python(version: tuple[int, ...]) -> Finding:
    lowest, below = PYTHON_RANGE
    found = _dotted(version)
    if lowest <= version[:2] < below:
        return Finding(Status.OK, "Python", found)
    return Finding(Status.WRONG, "Python", found, "use Python 3.11, 3.12 or 3.13")


def _check(
    package: Package, version: str | None, *, tensorflow: str | None, subject: str = ""
) -> Finding:
    subject = subject or package.name
    if version is None:
        if package.extra:
            install = f'pip install "use_st5[{package.extra}]"'
            return Finding(
                Status.ABSENT, subject, f"not installed (optional: {_use(package)})", install
            )
        return Finding(Status.WRONG, subject, "not installed", _install(package))
    numbers = parse(version)
    fits = package.lowest <= numbers and (package.below is None or numbers < package.below)
    if not fits:
        return Finding(Status.WRONG, subject, version, _install(package))
    if package.minor_of_tensorflow and tensorflow and parse(tensorflow)[:2] != numbers[:2]:
        minor = parse(tensorflow)[:2]
        if package.below is not None and minor >= package.below:
            matching = f"tensorflow=={_dotted(numbers[:2])}.*"  # the package has none so new
        else:
            matching = f"{package.name}=={_dotted(minor)}.*"
        found = f"{version}, but TensorFlow is {tensorflow}"
        return Finding(Status.WRONG, subject, found, f'pip install "{matching}"')
    return Finding(Status.OK, subject, version)


def _use(package: Package) -> str:
    return {
        "hub": "hub.load and hub.KerasLayer",
        "text": "ST5 and BERT models",
        "data": "TFDS data sets",
        "tfmodels": "Model Garden; brings TensorFlow 2.20",
        "convert": "checkpoints with tokenizer.json alone",
        "plots": "heat maps",
        "evaluation": "evaluate and report",
    }[package.extra]


def _install(package: Package) -> str:
    requirement = f"{package.name}>={_dotted(package.lowest)}"
    if package.below is not None:
        requirement += f",<{_dotted(package.below)}"
    return f'pip install "{requirement}"'


def _dotted(numbers: tuple[int, ...]) -> str:
    return ".".join(map(str, numbers))


def _check_setuptools(version_of: VersionOf) -> Iterator[Finding]:
    users = [name for name in NEED_PKG_RESOURCES if version_of(name) is not None]
    if not users:
        return
    version = version_of("setuptools")
    if version is not None and parse(version) < SETUPTOOLS_BELOW:
        yield Finding(Status.OK, "setuptools", version)
        return
    found = f"{version or 'not installed'}, but {' and '.join(users)} import pkg_resources"
    yield Finding(Status.WRONG, "setuptools", found, 'pip install "setuptools<82"')


def _check_triton(version_of: VersionOf) -> Iterator[Finding]:
    version = version_of("triton")
    if version is None or parse(version) < TRITON_CLASHES_FROM:
        return
    yield Finding(
        Status.NOTE,
        "triton",
        f"{version}, of PyTorch for GPUs: loaded after TensorFlow, it ends the process",
        "where both are used: `import triton` first; or install PyTorch for CPUs, without triton: "
        "pip install torch --index-url https://download.pytorch.org/whl/cpu",
    )


def parse(version: str) -> tuple[int, ...]:
    """The leading numbers of a version: `"2.21.0rc1"` → `(2, 21, 0)`."""
    return tuple(int(number) for number in re.match(r"[\d.]*", version)[0].split(".") if number)
