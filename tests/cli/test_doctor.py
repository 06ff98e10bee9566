"""`use-st5 doctor`: the problems that it finds, and the command that helps."""

from __future__ import annotations

import functools
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import setuptools
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from use_st5._imports import install_line
from use_st5.cli import doctor as doctor_module
from use_st5.cli.doctor import Finding

# Two similar vectors and a different one; in NONSENSE the wrong two are similar.
SOUND = np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]])
NONSENSE = SOUND[[0, 2, 1]]
GOOD = {
    "tensorflow": "2.21.0",
    "keras": "3.15.1",
    "numpy": "2.4.6",
    "scipy": "1.17.1",
    "pyarrow": "26.0.1",
    "safetensors": "0.8.0",
    "msgspec": "0.19.0",
    "tomli-w": "1.2.0",
    "filelock": "4.0.0",
    "packaging": "25.0",
    "typer": "0.20.0",
    "rich": "14.0",
    "tensorflow-hub": "0.16.1",
    "tf-keras": "2.21.0",
    "setuptools": "81.0.0",
    "tensorflow-text": "2.21.1",
}


@functools.cache
def setup_arguments() -> dict[str, Any]:
    """The arguments that setup.py passes to setuptools."""
    given: dict[str, Any] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(setuptools, "setup", lambda **arguments: given.update(arguments))
        runpy.run_path(str(Path(__file__).parents[2] / "setup.py"))
    return given


def requirements() -> list[str]:
    """The requirements, as in the metadata of an installation."""
    setup = setup_arguments()
    found = [*setup["install_requires"]]
    for extra, texts in setup["extras_require"].items():
        for each in map(Requirement, texts):
            marker = f"({each.marker}) and " if each.marker else ""
            found.append(f'{each.name}{each.specifier}; {marker}extra == "{extra}"')
    return found


def findings(changes: dict[str, str | None]) -> dict[str, Finding]:
    installed = {**GOOD, **changes}
    found = doctor_module.package_findings(installed.get, requirements())
    return {subject: (status, subject, *rest) for status, subject, *rest in found}


def wrong(changes: dict[str, str | None]) -> dict[str, str]:
    """The remedies for the problems, by subject."""
    rows = findings(changes).values()
    return {subject: remedy for status, subject, _, remedy in rows if status == "wrong"}


def test_a_good_environment_has_nothing_wrong() -> None:
    found = findings({})
    assert wrong({}) == {}
    assert found["tensorflow-text"][0] == "ok"
    assert found["matplotlib"][0] == "-"
    assert found["matplotlib"][3] == install_line("plots")
    assert found["scikit-learn"][3] == install_line("evaluation")


@pytest.mark.parametrize(
    ("changes", "subject", "remedy"),
    [
        ({"tensorflow": None}, "tensorflow", 'pip install "tensorflow>=2.20,<2.22"'),
        ({"keras": "2.15.0"}, "keras", 'pip install "keras>=3.12"'),
        ({"tensorflow-text": "2.20.1"}, "tensorflow-text", 'pip install "tensorflow-text==2.21.*"'),
        ({"tf-keras": "2.20.1"}, "tf-keras", 'pip install "tf-keras==2.21.*"'),
        ({"setuptools": "82.0"}, "setuptools", 'pip install "setuptools<82"'),
        (
            {"tf-models-official": "2.20.0"},
            "tf-models-official",
            'pip install "tensorflow==2.20.*"',  # no version for 2.21 exists
        ),
    ],
)
def test_what_is_wrong_comes_with_the_line_that_helps(
    changes: dict[str, str | None], subject: str, remedy: str
) -> None:
    assert wrong(changes) == {subject: remedy}


def test_tensorflow_has_several_names_and_setuptools_matters_with_hub_alone() -> None:
    assert wrong({"tensorflow": None, "tensorflow-cpu": "2.21.0"}) == {}
    assert wrong({"tensorflow-hub": None, "setuptools": "90"}) == {}
    assert "tensorflow" in wrong({"tensorflow": "2.22.0"})


def test_a_triton_that_ends_a_process_with_tensorflow_is_noted() -> None:
    for version in (None, "3.4.0", "3.6.0"):
        assert "triton" not in findings({"triton": version})
    for version in ("3.7.0", "4.0.0"):
        status, _, state, remedy = findings({"triton": version})["triton"]
        assert (status, version in state, "import triton" in remedy) == ("note", True, True)


@pytest.mark.parametrize(
    ("name", "fits", "others"),
    [
        ("tensorflow", "2.20.0", ["2.21.0"]),
        ("tensorflow-text", "2.20.1", ["2.21.1"]),
        ("tf-keras", "2.20.1", ["2.21.0"]),
        ("protobuf", "6.33.1", ["5.29.0", "7.36.0"]),
        ("numpy", "2.4.0", ["1.26.4", "2.5.0"]),
        ("pyarrow", "25.0.0", ["26.0.1"]),
        ("absl-py", "1.4.0", ["2.3.1"]),
    ],
)
def test_all_extras_together_leave_pip_nothing_to_try(
    name: str, fits: str, others: list[str]
) -> None:
    """TensorFlow Models needs TensorFlow 2.20, Beam needs an older protobuf, NumPy and Arrow."""
    stated = map(Requirement, setup_arguments()["extras_require"]["all"])
    taken = SpecifierSet(",".join(str(each.specifier) for each in stated if each.name == name))
    assert fits in taken
    assert not [other for other in others if other in taken]


def test_every_requirement_is_looked_at() -> None:
    """All in setup.py, except the extras for developers and for other libraries."""
    setup = setup_arguments()
    extras = setup["extras_require"].keys() - {*doctor_module._NOT_FOR_USERS}
    texts = [*setup["install_requires"]]
    texts += [text for extra in extras for text in setup["extras_require"][extra]]
    names = {Requirement(text).name for text in texts if Requirement(text).marker is None}
    assert names - findings({}).keys() == set()
    assert {"jax", "gensim", "keras-tuner", "msgspec", "filelock"} <= findings({}).keys()


def test_a_checkout_that_is_not_installed_is_noted() -> None:
    rows = [*doctor_module.package_findings(GOOD.get)]
    assert [subject for status, subject, *_ in rows if status == "note"] == ["use_st5"]
    assert not any(status == "wrong" for status, *_ in rows)


def test_a_whole_installation_passes(
    use: Callable, fake: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = [("ok", "everything", "1.0", "")]
    monkeypatch.setattr(doctor_module, "package_findings", lambda: good)
    monkeypatch.setattr(doctor_module, "_model_findings", list)
    monkeypatch.setattr(fake, "encode", lambda texts: SOUND[: len(texts)])
    result = use("doctor")
    assert result.exit_code == 0, result.stderr
    assert "ok\teverything\t1.0" in result.stdout
    assert "ok\tembedding\tready in" in result.stdout
    assert "embedding" not in use("doctor", "--no-run").stdout


@pytest.mark.parametrize("fault", ["nonsense", "exception"])
def test_a_model_that_fails_is_wrong(
    use: Callable, fake: Any, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    monkeypatch.setattr(doctor_module, "package_findings", list)
    monkeypatch.setattr(doctor_module, "_model_findings", list)

    def encode(texts: list[str]) -> np.ndarray:
        if fault == "exception":
            raise RuntimeError("no such op\nsecond line")
        return NONSENSE[: len(texts)]

    monkeypatch.setattr(fake, "encode", encode)
    result = use("doctor")
    assert result.exit_code == 1
    expected = (
        "RuntimeError: no such op" if fault == "exception" else "expected a higher similarity"
    )
    assert expected in result.stdout
    assert result.stderr.startswith("error: 1 wrong: embedding")


def test_a_damaged_bundled_model_is_wrong(
    use: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "use_dan_en"
    folder.mkdir()
    monkeypatch.setattr(doctor_module, "bundled_names", lambda: ("use_dan_en",))
    monkeypatch.setattr(doctor_module, "bundled_folder", lambda name: folder)
    result = use("doctor")
    assert result.exit_code == 1
    assert "expected a use_st5.json, found none" in result.stdout


def test_another_backend_of_keras_is_noted(use: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    assert "note\tKERAS_BACKEND\tjax" in use("doctor", "--no-run").stdout
