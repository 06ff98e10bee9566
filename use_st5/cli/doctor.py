"""`use-st5 doctor`: whether this installation works, and what to do if not."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Annotated

import typer

from use_st5._bundled import bundled_folder, bundled_names
from use_st5._model_manifest import ModelManifest
from use_st5.cli.models import DEFAULT_MODEL, load_encoder
from use_st5.cli.output import manual, print_table
from use_st5.cli.packages import Finding, Status, check_packages

_REINSTALL = "reinstall use_st5; in a checkout: git restore saved_models"
_SENTENCES = ["How old are you?", "What is your age?", "The train to Basel is late."]

HELP = manual(
    """Check this installation: versions that must match, models, one embedding.

    Each line is ok, note (works, but mind it), - (optional and not installed) or wrong, with the
    line that helps. The exit code is 1 if something is wrong.

    The versions are read without importing the packages; then TensorFlow is started and a sentence
    embedded, which --no-run leaves out.""",
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
    print_table(
        ["", "what", "found", "what to do"],
        [(each.status.value, each.subject, each.found, each.remedy) for each in findings],
    )
    bad = [each.subject for each in findings if each.status is Status.WRONG]
    if bad:
        raise ValueError(f"{len(bad)} wrong: {', '.join(bad)}; see the column 'what to do'")


def _check_environment() -> Iterator[Finding]:
    backend = os.environ.get("KERAS_BACKEND", "tensorflow")
    if backend != "tensorflow":
        yield Finding(
            Status.NOTE,
            "KERAS_BACKEND",
            f"{backend}: exporting a model needs tensorflow",
            "unset KERAS_BACKEND",
        )
    if os.environ.get("PYTHONDONTWRITEBYTECODE"):
        yield Finding(
            Status.NOTE,
            "PYTHONDONTWRITEBYTECODE",
            "set: each start of TensorFlow may take half a minute",
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
                raise ValueError(f"there is no description in {folder}")
            manifest.check_contents(folder)
        except (OSError, ValueError) as error:
            yield Finding(Status.WRONG, name, str(error), _REINSTALL)
        else:
            yield Finding(Status.OK, name, f"{manifest.size_bytes / 1e6:.1f} MB, every file intact")


def _check_embedding() -> Iterator[Finding]:
    """Loads the default model and embeds with it; whatever fails is the finding."""
    started = time.perf_counter()
    try:
        encoder = load_encoder(DEFAULT_MODEL)
        encoder.encode(_SENTENCES[:1])
        ready = time.perf_counter() - started
        started = time.perf_counter()
        vectors = encoder.encode(_SENTENCES)
        again = time.perf_counter() - started
        like, unlike = float(vectors[0] @ vectors[1]), float(vectors[0] @ vectors[2])
    except Exception as error:
        message = (str(error).splitlines() or [""])[0]
        yield Finding(
            Status.WRONG,
            "embedding",
            f"{type(error).__name__}: {message}",
            "reinstall what is named, or report it with the output of --debug",
        )
        return
    found = f"ready in {ready:.1f} s; three sentences in {1000 * again:.1f} ms"
    if like > unlike:
        yield Finding(Status.OK, "embedding", found)
        return
    surprise = f"unexpected similarities ({like:.2f} for alike sentences, {unlike:.2f} for others)"
    yield Finding(Status.WRONG, "embedding", surprise, _REINSTALL)
