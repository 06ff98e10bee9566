"""`use-st5 doctor`: checks the installation and shows what to do."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

import typer
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from use_st5._imports import install_line
from use_st5.cli.models import DEFAULT_MODEL, load_encoder
from use_st5.cli.output import manual, print_table
from use_st5.hub.bundled import bundled_folder, bundled_names
from use_st5.hub.model_manifest import ModelManifest

VersionOf = Callable[[str], str | None]

_TENSORFLOW = ("tensorflow", "tensorflow-cpu", "tensorflow-tpu", "tf-nightly")
# They must have the major and minor version of the installed TensorFlow.
_MINOR_OF_TENSORFLOW = ("tf-keras", "tensorflow-text", "tf-models-official")
# The extras of use_st5 for its users; if several have the same package, the first one is named.
USES = {
    "hub": "hub.load and hub.KerasLayer",
    "hub-models": "models by name, hf://ORG/NAME",
    "kerashub": "Gemma, Qwen and others of KerasHub",
    "text": "T5 and Sentence-T5 models",
    "data": "TFDS data sets",
    "tfmodels": "Model Garden; brings TensorFlow 2.20",
    "jax": "training under JAX",
    "onnx": "models for ONNX Runtime",
    "litert": "models for LiteRT",
    "plots": "heat maps",
    "evaluation": "evaluate",
    "search": "indexes of --kind hnsw",
    "serve": "serve",
    "beam": "embed --runner",
    "transfer": "the experiment transfer_tables",
}
# They import pkg_resources without declaring it; setuptools 82 removed it.
_NEED_PKG_RESOURCES = ("tensorflow-hub", "tf-models-official")
_WITH_PKG_RESOURCES = SpecifierSet("<82")
# PyTorch's wheels for GPUs bring triton. With TensorFlow 2.20 and 2.21, triton 3.4 to 3.6 load in
# any order; 3.7 and 3.9 end the process if TensorFlow was loaded before (a segmentation fault, an
# LLVM option registered twice), and do not if it is loaded after.
_TRITON_CLASHES = SpecifierSet(">=3.7")


class Status(StrEnum):
    """The status of a finding; only `WRONG` makes the command fail."""

    OK = "ok"
    ABSENT = "-"
    NOTE = "note"
    WRONG = "wrong"


_STYLES = {
    Status.OK: "green",
    Status.ABSENT: "dim",
    Status.NOTE: "yellow",
    Status.WRONG: "bold red",
}


@dataclass(frozen=True)
class Finding:
    """The result of one check, and what to do about it.

    Attributes:
        status: the status of the finding.
        subject: what was checked, such as a package.
        found: what was found, such as a version.
        remedy: the command line or the step that helps; empty if nothing needs to be done.
    """

    status: Status
    subject: str
    found: str
    remedy: str = ""


def installed_version(name: str) -> str | None:
    """The version of an installed package, read from its metadata; None if it is not there."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def own_requirements() -> list[str] | None:
    """The requirements of the installed use_st5, as in setup.py; None if it is not installed."""
    try:
        return importlib.metadata.requires("use_st5")
    except importlib.metadata.PackageNotFoundError:
        return None


def check_packages(
    version_of: VersionOf = installed_version, required: Iterable[str] | None = None
) -> Iterator[Finding]:
    """Yields a finding for Python and for each package that use_st5 requires or may use.

    Args:
        version_of: gives the installed version of a package, or None.
        required: the requirements, those of extras with their markers; None: those of the
            installed use_st5.
    """
    yield Finding(Status.OK, "Python", platform.python_version())  # pip refuses all others
    required = own_requirements() if required is None else required
    if required is None:
        problem = "not installed as a package, so the required versions are unknown"
        yield Finding(Status.NOTE, "use_st5", problem, "in the checkout: pip install --editable .")
    name, version = _find_tensorflow(version_of)
    for requirement, extra in _of_this_platform(required or ()):
        if requirement.name == "tensorflow":
            yield _check(requirement, extra, version, tensorflow=None, subject=name)
        elif requirement.name != "setuptools":
            yield _check(requirement, extra, version_of(requirement.name), tensorflow=version)
    yield from _check_setuptools(version_of)
    yield from _check_triton(version_of)


def _of_this_platform(required: Iterable[str]) -> Iterator[tuple[Requirement, str]]:
    """Yields each package once, with the extra that requires it, or "" if it is always needed."""
    requirements = [Requirement(text) for text in required]
    seen = set()
    for extra in ("", *USES):
        for requirement in requirements:
            if requirement.name not in seen and (
                requirement.marker.evaluate({"extra": extra}) if requirement.marker else not extra
            ):
                seen.add(requirement.name)
                yield requirement, extra


def _find_tensorflow(version_of: VersionOf) -> tuple[str, str | None]:
    """The name and version of the installed TensorFlow, which has several package names."""
    for name in _TENSORFLOW:
        version = version_of(name)
        if version is not None:
            return name, version
    return "tensorflow", None


def _check(
    requirement: Requirement,
    extra: str,
    version: str | None,
    *,
    tensorflow: str | None,
    subject: str = "",
) -> Finding:
    subject = subject or requirement.name
    if version is None and extra:
        state = f"not installed (optional: {USES[extra]})"
        return Finding(Status.ABSENT, subject, state, install_line(extra))
    if version is None or not requirement.specifier.contains(version, prereleases=True):
        return Finding(Status.WRONG, subject, version or "not installed", _install(requirement))
    if subject in _MINOR_OF_TENSORFLOW and tensorflow and _minor(tensorflow) != _minor(version):
        matching = f"{subject}=={_minor(tensorflow)}.*"
        if not requirement.specifier.contains(_minor(tensorflow)):  # no version is as new
            matching = f"tensorflow=={_minor(version)}.*"
        state = f"{version}, but TensorFlow is {tensorflow}"
        return Finding(Status.WRONG, subject, state, f'pip install "{matching}"')
    return Finding(Status.OK, subject, version)


def _minor(version: str) -> str:
    """Major and minor version: `"2.21.0rc1"` → `"2.21"`."""
    parsed = Version(version)
    return f"{parsed.major}.{parsed.minor}"


def _install(requirement: Requirement) -> str:
    bounds = ",".join(sorted(map(str, requirement.specifier), reverse=True))  # the lower one first
    return f'pip install "{requirement.name}{bounds}"'


def _check_setuptools(version_of: VersionOf) -> Iterator[Finding]:
    users = [name for name in _NEED_PKG_RESOURCES if version_of(name) is not None]
    if not users:
        return
    version = version_of("setuptools")
    if version is not None and _WITH_PKG_RESOURCES.contains(version):
        yield Finding(Status.OK, "setuptools", version)
        return
    problem = f"{version or 'not installed'}, but {' and '.join(users)} import pkg_resources"
    remedy = f'pip install "setuptools{_WITH_PKG_RESOURCES}"'
    yield Finding(Status.WRONG, "setuptools", problem, remedy)


def _check_triton(version_of: VersionOf) -> Iterator[Finding]:
    version = version_of("triton")
    if version is None or not _TRITON_CLASHES.contains(version):
        return
    yield Finding(
        Status.NOTE,
        "triton",
        f"{version}, of PyTorch for GPUs: the process crashes if it is loaded after TensorFlow",
        "if you use both: `import triton` first; or install PyTorch for CPUs, without triton: "
        "pip install torch --index-url https://download.pytorch.org/whl/cpu",
    )


_REINSTALL = "reinstall use_st5; in a checkout: git restore saved_models"
_SENTENCES = ["How old are you?", "What is your age?", "The train to Basel is late."]

HELP = manual(
    """Check this installation: package versions, bundled models, one embedding.

    Each line is ok, note (works, with a remark), - (optional and not installed) or wrong. The line
    below it, in a pipe the last column, has the command that helps. The exit code is 1 if something
    is wrong.

    The command reads the versions without importing the packages. Then it starts TensorFlow and
    embeds a sentence. --no-run leaves this out.""",
    "use-st5 doctor",
    "use-st5 doctor --no-run",
)


def doctor(
    run: Annotated[
        bool, typer.Option("--run/--no-run", help="Start TensorFlow and embed a sentence.")
    ] = True,
) -> None:
    """Checks this installation."""
    findings = [*check_packages(), *_check_environment(), *_check_models()]
    wrong = any(finding.status is Status.WRONG for finding in findings)
    if run and not wrong:
        findings += _check_embedding()
    _print(findings)
    bad = [each.subject for each in findings if each.status is Status.WRONG]
    if bad:
        raise ValueError(f"{len(bad)} wrong: {', '.join(bad)}; see the line below each")


def _print(findings: Sequence[Finding]) -> None:
    """Prints the findings; in a terminal, the remedy is on its own line below the finding."""
    if not sys.stdout.isatty():
        print_table(
            ["", "what", "found", "what to do"],
            [
                (finding.status.value, finding.subject, finding.found, finding.remedy)
                for finding in findings
            ],
        )
        return
    from rich.console import Console
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    console = Console()
    for finding in findings:
        line = Table.grid(padding=(0, 2, 0, 0))
        line.add_column(width=4)
        line.add_column(width=max(len(one.subject) for one in findings))
        line.add_column(overflow="fold")
        status = Text(finding.status.value, style=_STYLES[finding.status])
        line.add_row(status, Text(finding.subject), Text(finding.found))
        console.print(line)
        if finding.remedy:
            console.print(Padding(Text(finding.remedy, style="bold"), (0, 0, 0, 6)))


def _check_environment() -> Iterator[Finding]:
    backend = os.environ.get("KERAS_BACKEND") or "tensorflow"
    if backend != "tensorflow":
        yield Finding(
            Status.NOTE,
            "KERAS_BACKEND",
            f"{backend}: the export of a model needs tensorflow",
            "unset KERAS_BACKEND",
        )
    if os.environ.get("PYTHONDONTWRITEBYTECODE"):
        yield Finding(
            Status.NOTE,
            "PYTHONDONTWRITEBYTECODE",
            "set: TensorFlow may take half a minute to start",
            "unset PYTHONDONTWRITEBYTECODE",
        )


def _check_models() -> Iterator[Finding]:
    names = bundled_names()
    if DEFAULT_MODEL not in names:
        yield Finding(Status.WRONG, DEFAULT_MODEL, "the bundled model is missing", _REINSTALL)
    for name in names:
        folder = bundled_folder(name)
        try:
            manifest = ModelManifest.read(folder)
            if manifest is None:
                raise ValueError(f"{folder}: expected a use_st5.json, found none")
            manifest.check_contents(folder)
        except (OSError, ValueError) as error:
            yield Finding(Status.WRONG, name, str(error), _REINSTALL)
        else:
            yield Finding(Status.OK, name, f"{manifest.size_bytes / 1e6:.1f} MB, every file intact")


def _check_embedding() -> Iterator[Finding]:
    """Loads the default model and embeds with it; an error is a finding."""
    started = time.perf_counter()
    try:
        encoder = load_encoder(DEFAULT_MODEL)
        encoder.encode(_SENTENCES[:1])
        startup = time.perf_counter() - started
        started = time.perf_counter()
        vectors = encoder.encode(_SENTENCES)
        duration = time.perf_counter() - started
        like, unlike = float(vectors[0] @ vectors[1]), float(vectors[0] @ vectors[2])
    except Exception as error:
        message = (str(error).splitlines() or [""])[0]
        yield Finding(
            Status.WRONG,
            "embedding",
            f"{type(error).__name__}: {message}",
            "reinstall the package of the error, or report it with the output of --debug",
        )
        return
    timings = f"ready in {startup:.1f} s; three sentences in {1000 * duration:.1f} ms"
    if like > unlike:
        yield Finding(Status.OK, "embedding", timings)
        return
    surprise = f"expected a higher similarity for the first pair, found {like:.2f} and {unlike:.2f}"
    yield Finding(Status.WRONG, "embedding", surprise, _REINSTALL)
