"""The prompts of a sentence-transformers folder: texts before queries and documents."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from use_st5._records import InnerPath, Positive, read_record

SETTINGS = "config_sentence_transformers.json"
_MODULES = "modules.json"
_REMEDY = "Save the model again (sentence-transformers: model.save(folder))."


class Prompts(NamedTuple):
    """Texts that a model puts before queries and documents.

    Attributes:
        named: Name → prompt, such as "query" → "query: ".
        default: The name of the prompt for texts of which nothing is said; None: no prompt.
    """

    named: dict[str, str]
    default: str | None


class _Settings(msgspec.Struct):
    prompts: dict[str, str | None] = {}
    default_prompt_name: str | None = None
    truncate_dim: Positive | None = None


class _Module(msgspec.Struct):
    type: str
    path: InnerPath


def read_prompts(folder: str | os.PathLike[str]) -> Prompts:
    """Reads the prompts of a folder of sentence-transformers; none where it states none.

    Raises:
        ValueError: A file is damaged; the default prompt is none of the prompts; the model leaves
            the tokens of prompts out of its mean (`include_prompt`); or it cuts its vectors
            (`truncate_dim`).
    """
    path = Path(folder, SETTINGS)
    if not path.is_file():
        return Prompts({}, None)
    settings = read_record(path, _Settings, remedy=_REMEDY)
    named = {name: prompt or "" for name, prompt in settings.prompts.items()}
    default = settings.default_prompt_name
    if default is not None and default not in {"query", "document", *named}:
        raise ValueError(
            f"{path}: expected default_prompt_name to be one of {[*named]}, received {default!r}. "
            f"{_REMEDY}"
        )
    if settings.truncate_dim is not None:
        raise ValueError(
            f"{path}: expected no truncate_dim, received {settings.truncate_dim}. Remove it, and "
            f"write encode(texts, truncate_dim={settings.truncate_dim})."
        )
    _check_pooling(path.parent)
    return Prompts(named, default)


def _check_pooling(folder: Path) -> None:
    """Refuses a pooling that leaves out the tokens of the prompt (of INSTRUCTOR models)."""
    for module in read_record(folder / _MODULES, list[_Module], remedy=_REMEDY):
        path = folder / module.path / "config.json"
        if module.type.split(".")[-1] != "Pooling" or not path.is_file():
            continue
        if read_record(path, dict[str, Any], remedy=_REMEDY).get("include_prompt") is False:
            raise ValueError(
                f"{path}: expected include_prompt to be true, received false: use_st5 pools the "
                "tokens of a prompt like all others, which would give other vectors."
            )
