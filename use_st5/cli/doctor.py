"""`use-st5 doctor`: checks the installation and shows what to do."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Annotated

import typer
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from use_st5._imports import install_line
from use_st5.cli.models import DEFAULT_MODEL, load_encoder
from use_st5.cli.output import echo, manual, print_table
from use_st5.hub.model_manifest import ModelManifest
from use_st5.hub.model_names import bundled_folder, bundled_names

VersionOf = Callable[[str], str | None]
# Status, what was checked, what was found, and the command or step that helps. The status is "ok",
# "note", "-" (optional and not installed), or "wrong", which makes the command fail.
Finding = tuple[str, str, str, str]

# The packages that TensorFlow has; the packages of the same minor version.
_TENSORFLOW = ("tensorflow", "tensorflow-cpu", "tensorflow-tpu", "tf-nightly")
_MINOR_OF_TENSORFLOW = ("tf-keras", "tensorflow-text", "tf-models-official")
# The extras for developers and for other libraries, which are not looked at.
_NOT_FOR_USERS = ("all", "dev", "docs", "peers", "integrations")
# The name of the extra in a requirement of an installed package.
_EXTRA = re.compile(r"""extra == ["']([\w-]+)["']""")
# They import pkg_resources without declaring it; setuptools 82 removed it.
_NEED_PKG_RESOURCES = ("tensorflow-hub", "tf-models-official")
# PyTorch's wheels for GPUs bring triton. With TensorFlow 2.20 and 2.21, triton 3.4 to 3.6 load in
# any order; 3.7 and 3.9 end the process if TensorFlow was loaded before (a segmentation fault, an
# LLVM option registered twice), and do not if it is loaded after.
_TRITON_CLASHES = SpecifierSet(">=3.7")
_TRITON_REMEDY = (
    "if you use both: `import triton` first; or install PyTorch for CPUs, without triton: "
    "pip install torch --index-url https://download.pytorch.org/whl/cpu"
)
_REINSTALL = "reinstall use_st5; in a checkout: git restore saved_models"
_SENTENCES = ["How old are you?", "What is your age?", "The train to Basel is late."]

HELP = manual(
    """Check this installation: package versions, bundled models, one embedding.

    Each line is ok, note (works, with a remark), - (optional and not installed) or wrong. The line
    below it, in a pipe the last column, has the command that helps. The exit code is 1 if something
    is wrong.

    The command reads the versions without importing the packages. Then it starts TensorFlow and
    embeds a sentence, unless --no-run is given.""",
    "use-st5 doctor",
    "use-st5 doctor --no-run",
)


def doctor(
    run: Annotated[
        bool, typer.Option("--run/--no-run", help="Start TensorFlow and embed a sentence.")
    ] = True,
) -> None:
    """Checks this installation."""
    findings = [*package_findings(), *_model_findings()]
    if (backend := os.environ.get("KERAS_BACKEND") or "tensorflow") != "tensorflow":
        state = f"{backend}: the export of a model needs tensorflow"
        findings.append(("note", "KERAS_BACKEND", state, "unset KERAS_BACKEND"))
    if run and not any(status == "wrong" for status, *_ in findings):
        findings.append(_embedding_finding())
    if sys.stdout.isatty():
        width = max(len(subject) for _, subject, *_ in findings)
        for status, subject, state, remedy in findings:
            below = f"\n      {remedy}" if remedy else ""
            echo(f"{status:5} {subject:{width}}  {state}{below}")
    else:
        print_table(["", "what", "found", "what to do"], findings)
    if bad := [subject for status, subject, *_ in findings if status == "wrong"]:
        raise ValueError(f"{len(bad)} wrong: {', '.join(bad)}; see what helps above")


def installed_version(name: str) -> str | None:
    """The version of an installed package, read from its metadata; None if it is not there."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def package_findings(
    version_of: VersionOf = installed_version, required: Iterable[str] | None = None
) -> Iterator[Finding]:
    """Yields a finding for Python and for each package that use_st5 requires or may use.

    `required` are requirements with markers; None: those of the installed use_st5.
    """
    yield "ok", "Python", platform.python_version(), ""  # pip refuses all others
    if required is None and version_of("use_st5") is None:
        problem = "not installed as a package, so the required versions are unknown"
        yield "note", "use_st5", problem, "in the checkout: pip install --editable ."
        required = ()
    if required is None:
        required = importlib.metadata.requires("use_st5") or ()
    name = next(filter(version_of, _TENSORFLOW), "tensorflow")
    tensorflow = version_of(name)
    for requirement, extra in _on_this_platform(required):
        if requirement.name == "tensorflow":
            yield _finding(requirement, extra, tensorflow, subject=name)
        elif requirement.name != "setuptools":
            yield _finding(requirement, extra, version_of(requirement.name), tensorflow)
    if users := [*filter(version_of, _NEED_PKG_RESOURCES)]:
        version = version_of("setuptools") or "not installed"
        if version != "not installed" and Version(version) < Version("82"):
            yield "ok", "setuptools", version, ""
        else:
            problem = f"{version}, but {' and '.join(users)} import pkg_resources"
            yield "wrong", "setuptools", problem, 'pip install "setuptools<82"'
    triton = version_of("triton")
    if triton and triton in _TRITON_CLASHES:
        problem = f"{triton}, of PyTorch for GPUs: the process crashes if it is loaded after"
        yield "note", "triton", f"{problem} TensorFlow", _TRITON_REMEDY


def _on_this_platform(required: Iterable[str]) -> Iterator[tuple[Requirement, str]]:
    """Yields each package once, with the extra that requires it, or "" if it is always needed."""
    seen = set()
    extras = [(_EXTRA.search(text), Requirement(text)) for text in required]
    for match, requirement in sorted(extras, key=lambda pair: pair[0] is not None):
        extra = match[1] if match else ""
        if requirement.name in seen or extra in _NOT_FOR_USERS:
            continue
        if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
            seen.add(requirement.name)
            yield requirement, extra


def _finding(
    requirement: Requirement,
    extra: str,
    version: str | None,
    tensorflow: str | None = None,
    *,
    subject: str = "",
) -> Finding:
    subject, bounds = subject or requirement.name, requirement.specifier
    if version is None and extra:
        return "-", subject, f"not installed (optional, extra {extra})", install_line(extra)
    if version is None or not bounds.contains(version, prereleases=True):
        lower_first = ",".join(sorted(map(str, bounds), reverse=True))
        remedy = f'pip install "{requirement.name}{lower_first}"'
        return "wrong", subject, version or "not installed", remedy
    if subject in _MINOR_OF_TENSORFLOW and tensorflow:
        # Major and minor version: "2.21.0rc1" → "2.21"
        wanted, own = ("{}.{}".format(*Version(text).release) for text in (tensorflow, version))
        if wanted != own:
            matching = f"{subject}=={wanted}.*"
            if not bounds.contains(wanted):  # no version is as new
                matching = f"tensorflow=={own}.*"
            state = f"{version}, but TensorFlow is {tensorflow}"
            return "wrong", subject, state, f'pip install "{matching}"'
    return "ok", subject, version, ""


def _model_findings() -> Iterator[Finding]:
    for name in bundled_names() or [DEFAULT_MODEL]:
        try:
            manifest = ModelManifest.read(bundled_folder(name))
            if manifest is None:
                raise ValueError("expected a use_st5.json, found none")
            manifest.check_contents(bundled_folder(name))
        except (OSError, ValueError) as error:
            yield "wrong", name, str(error), _REINSTALL
        else:
            yield "ok", name, f"{manifest.size_bytes / 1e6:.1f} MB, every file intact", ""


def _embedding_finding() -> Finding:
    """Loads the default model and embeds with it; an error is a finding."""
    started = time.perf_counter()
    try:
        vectors = load_encoder(DEFAULT_MODEL).encode(_SENTENCES)
    except Exception as error:
        state = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
        remedy = "reinstall the package of the error, or report it with the output of --debug"
        return "wrong", "embedding", state, remedy
    like, unlike = float(vectors[0] @ vectors[1]), float(vectors[0] @ vectors[2])
    if like > unlike:
        return "ok", "embedding", f"ready in {time.perf_counter() - started:.1f} s", ""
    surprise = f"expected a higher similarity for the first pair, found {like:.2f} and {unlike:.2f}"
    return "wrong", "embedding", surprise, _REINSTALL
