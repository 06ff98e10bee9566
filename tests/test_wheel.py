"""The wheel: built, installed into an empty folder and used from another one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import use_st5

pytestmark = pytest.mark.process
CARRIED = ("setup.py", "pyproject.toml", "MANIFEST.in", "README.md", "LICENSE", "use_st5")


def pip(*arguments: str | Path) -> None:
    """Runs pip without network; a failure shows what it wrote."""
    command = [sys.executable, "-m", "pip", *map(os.fspath, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Path:
    """A wheel of this checkout with two stand-ins for trained models."""
    source = tmp_path_factory.mktemp("source")
    for name in CARRIED:
        path = repository / name
        if path.is_dir():
            skipped = shutil.ignore_patterns("__pycache__")
            shutil.copytree(path, source / name, ignore=skipped)
        else:
            shutil.copy(path, source / name)
    for name in ("first", "second"):
        for file in ("saved_model.pb", "use_st5.json", "variables/variables.index"):
            path = source / "saved_models" / name / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{name} {file}", encoding="utf-8")
    built = tmp_path_factory.mktemp("built")
    pip("wheel", "--no-build-isolation", "--no-deps", "--wheel-dir", built, source)
    return next(built.glob("*.whl"))


def test_wheel_is_pure_and_holds_models_but_no_tests(wheel: Path) -> None:
    assert wheel.name == f"use_st5-{use_st5.__version__}-py3-none-any.whl"
    names = zipfile.ZipFile(wheel).namelist()
    assert "use_st5/saved_models/first/variables/variables.index" in names
    assert any(name.endswith("LICENSE") for name in names)
    roots = {name.split("/")[0] for name in names}
    assert roots == {"use_st5", f"use_st5-{use_st5.__version__}.dist-info"}


def test_wheel_holds_every_file_of_the_package(wheel: Path, repository: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    files = {
        path.relative_to(repository).as_posix()
        for path in (repository / "use_st5").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert files <= names


def test_metadata_names_dependencies_and_extras(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    folder = f"use_st5-{use_st5.__version__}.dist-info"
    metadata = archive.read(f"{folder}/METADATA").decode()
    extras = [line.split(": ")[1] for line in metadata.splitlines() if "Provides-Extra" in line]
    expected = (
        "all beam data dev docs documents evaluation hub hub-models integrations jax kerashub "
        "litert onnx peers plots search serve sweep text tfmodels transfer"
    )
    assert sorted(extras) == expected.split()
    text = next(
        line
        for line in metadata.splitlines()
        if line.startswith("Requires-Dist: tensorfl") and "text" in line
    )
    assert "Windows" in text
    assert "use-st5 = use_st5.__main__:main" in archive.read(f"{folder}/entry_points.txt").decode()


def test_installed_wheel_finds_its_models_from_another_folder(wheel: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    pip("install", "--no-deps", "--no-index", "--target", site, wheel)
    code = (
        "import use_st5; from use_st5.hub.model_names import *; "
        "print(use_st5.__file__, *bundled_names(), bundled_folder('first'), sep='\\n')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(site)},
        check=True,
    )
    file, *names, folder = done.stdout.splitlines()
    assert Path(file).is_relative_to(site)
    assert names == ["first", "second"]
    assert Path(folder) == (site / "use_st5" / "saved_models" / "first").resolve()
