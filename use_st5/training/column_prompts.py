"""Prompts by column: texts that training puts before the texts of the files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from use_st5.training.sources import Source
    from use_st5.training.tasks import TaskSpec

Prompts = str | Mapping[str, str]


def prompts_by_key(given: Prompts, kind: TaskSpec, columns: Mapping[str, str]) -> dict[str, str]:
    """The prompts of a row's texts, by key; `given` has keys or the file's own column names."""
    keys = [key for key in kind.texts if key in columns]
    if isinstance(given, str):
        prompts = dict.fromkeys(keys, given)
    else:
        prompts = {key: given.get(key, given.get(columns[key], "")) for key in keys}
    return {key: prompt for key, prompt in prompts.items() if prompt}


def check_prompts(given: Prompts, sources: Sequence[Source]) -> None:
    """Refuses prompts for columns that no training file has."""
    names = dict.fromkeys(
        name
        for source in sources
        for key in source.kind.texts
        if key in source.columns
        for name in (key, source.columns[key])
    )
    if not isinstance(given, str) and (unknown := [name for name in given if name not in names]):
        raise ValueError(
            f"prompts: expected columns of the training files that hold texts, {', '.join(names)}; "
            f"received {', '.join(unknown)}."
        )


def with_prompts(row: Mapping[str, Any], prompts: Mapping[str, str]) -> dict[str, Any]:
    """Puts prompts before the texts of a row, which need not have all keys of the prompts."""
    return {**row, **{key: text + row[key] for key, text in prompts.items() if key in row}}


def exported_prompts(sources: Sequence[Source]) -> tuple[dict[str, str], str | None]:
    """The prompts that the trained model keeps, by name, and the name of its default prompt.

    If all texts have the same prompt, it is the prompt of queries and documents, and the default.
    Otherwise the prompt of the query text has the name "query", that of its answer the name
    "document", and that of another text the name of its key.

    Args:
        sources: The training files. If two have different prompts of one name, the first counts.
    """
    texts = [
        (source.kind, key, source.prompts.get(key, ""))
        for source in sources
        for key in source.kind.texts
        if key in source.columns
    ]
    distinct_prompts = {prompt for _, _, prompt in texts}
    if distinct_prompts == {""}:
        return {}, None
    if len(distinct_prompts) == 1:
        return dict.fromkeys(("query", "document"), distinct_prompts.pop()), "query"
    named_prompts: dict[str, str] = {}
    for kind, key, prompt in texts:
        named_prompts.setdefault(_exported_name(kind, key), prompt)
    return {name: text for name, text in named_prompts.items() if text or name in _ROLES}, None


_ROLES = ("query", "document")


def _exported_name(kind: TaskSpec, key: str) -> str:
    query_key = kind.metric.query if kind.metric else None
    keys = [each for each in kind.needed if each in kind.texts]
    if query_key is None or len(keys) < 2:
        return key
    return dict(zip(keys, _ROLES, strict=False)).get(key, key) if query_key == keys[0] else key
