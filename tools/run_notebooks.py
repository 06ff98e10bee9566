"""Runs the notebooks and keeps their outputs: `python -m tools.run_notebooks [NAME…]`.

Each runs from top to bottom in an empty folder, in a kernel of its own. The outputs are stored in
the notebook, so that a reader sees them without running it. TensorFlow's messages on standard error
are not stored.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import nbformat

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted((ROOT / "colabs").glob("*.ipynb"))


def executed(notebook: Path, folder: Path, changes: Mapping[str, str] | None = None) -> Any:
    """Runs a notebook, and returns it with its outputs.

    Args:
        notebook: The notebook.
        folder: Its current folder.
        changes: Text in its cells → the text to run instead.
    """
    from nbclient import NotebookClient

    content = nbformat.read(notebook, as_version=4)
    for old, new in (changes or {}).items():
        for cell in content.cells:
            cell.source = cell.source.replace(old, new)
    client = NotebookClient(
        content,
        timeout=600,
        kernel_name="python3",
        record_timing=False,
        resources={"metadata": {"path": str(folder)}},
    )
    client.execute(env={**os.environ, "PYTHONPATH": str(ROOT)})
    return content


def main(names: list[str]) -> None:
    """Runs and writes the notebooks of these names; without names, all notebooks."""
    for notebook in NOTEBOOKS:
        if not names or notebook.stem in names:
            with tempfile.TemporaryDirectory() as folder:
                content = executed(notebook, Path(folder))
            content.metadata.pop("language_info", None)
            for cell in content.cells:
                outputs = cell.get("outputs", [])
                if outputs:
                    cell.outputs = [each for each in outputs if each.get("name") != "stderr"]
            nbformat.write(content, notebook)
            print(notebook.name)


if __name__ == "__main__":
    main(sys.argv[1:])
