"""`use-st5 cache`: lists and clears the cache of downloaded models."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import typer

from use_st5.cli.output import manual, print_table, say
from use_st5.hub.cache import LIMIT, cache_folder, entries, limit, remove_entry, remove_leftovers
from use_st5.hub.model_names import forget, recorded

HELP = manual(
    f"""List or clear the cache of models that were downloaded by name.

    The cache has converted copies of checkpoints, unpacked archives, graphs for ONNX Runtime, and
    copies of remote files (gs:// and others). If they are together larger than {LIMIT} (in GB;
    default 20), the entries that were not used for the longest time are removed. Copies of remote
    files do not count for this limit. They stay until they are cleared.

    --clear removes all entries, or those with the given names. The next use of a model downloads
    its newest version. The caches of huggingface_hub and kagglehub are not changed
    (`hf cache ls`).""",
    "use-st5 cache",
    "use-st5 cache --clear hf://sentence-transformers/all-MiniLM-L6-v2",
    "use-st5 cache --clear",
)


def cache(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]…", help="Names, as in the list.")
    ] = None,
    clear: Annotated[bool, typer.Option("--clear", help="Remove instead of listing.")] = False,
) -> None:
    """Lists or clears the cache."""
    name_filter = set(names or [])
    matches = [each for each in entries() if not name_filter or name_filter & _names(each.origin)]
    recorded_names = [each.name for each in recorded()]
    present_names = {
        name
        for each in [*recorded_names, *(entry.origin for entry in matches)]
        for name in _names(each)
    }
    if missing := sorted(name_filter - present_names):
        raise FileNotFoundError(f"expected names in the cache, found none of {missing}")
    if clear:
        for entry in matches:
            remove_entry(entry.folder)
        for name in recorded_names:
            if not name_filter or name_filter & _names(name):
                forget(name)
        if not name_filter:
            remove_leftovers()
        say(f"removed {_size(sum(entry.size for entry in matches))}, {len(matches)} entries")
        return
    rows = [
        (each.origin, each.kind, _size(each.size), f"{datetime.fromtimestamp(each.used):%F %H:%M}")
        for each in matches
    ]
    print_table(["name", "kind", "size", "last used"], rows)
    total = sum(entry.size for entry in matches)
    say(f"{_size(total)} in {cache_folder('').resolve()}; limit {_size(limit())}")


def _names(origin: str) -> set[str]:
    return {origin, origin.partition("@")[0]}


def _size(number: int) -> str:
    return f"{number / 1e6:,.1f} MB"
