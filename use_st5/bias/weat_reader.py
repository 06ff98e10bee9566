"""The files of the sent-bias toolkit, which hold association tests on words and on sentences."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from use_st5.bias.weat_test import WEATTest

# The published tests hold a few thousand.
_LARGEST = 10_000_000


def read_weat(path: str | Path) -> WEATTest:
    """Reads a test in the format of the sent-bias toolkit (May et al.); its name is the file's.

    In spite of its ending, `.jsonl`, a file is one JSON object, over many lines: each of "targ1",
    "targ2", "attr1" and "attr2" → {"category": text, "examples": list of texts}.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The file is not in the format, or `WEATTest` refuses its groups.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path}: expected a file, found none.")
    try:
        if path.stat().st_size > _LARGEST:
            raise ValueError(f"more than {_LARGEST:,} bytes")
        content = json.loads(path.read_text(encoding="utf-8"))
        parts = [content[key] for key in ("targ1", "targ2", "attr1", "attr2")]
        categories = tuple(_text(part["category"]) for part in parts)
        groups = [tuple(_text(one) for one in _list(part["examples"])) for part in parts]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(
            f"{path}: expected one JSON object with targ1, targ2, attr1 and attr2, each with a "
            f"category and examples; received another content ({type(error).__name__}: {error})."
        ) from error
    return WEATTest(path.stem, *groups, categories=categories)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected a text, received {type(value).__name__}")
    return value


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):  # A text is a sequence of texts, too.
        raise TypeError(f"expected a list of examples, received {type(value).__name__}")
    return value
