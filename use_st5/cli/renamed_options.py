"""Old names of options: they work for one version, with a warning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from use_st5.cli.output import say


class Renamed(NamedTuple):
    """The new name of an option.

    Attributes:
        option: The new option.
        values: Old value → new value, for values that have new names; others stay the same.
    """

    option: str
    values: Mapping[str, str] = {}


# Command → old option → its new name. Several old options may become one, and "OLD VALUE" stands
# for an option with this value only: {"--freeze encoder": Renamed("--train-only embedding")}.
RENAMED: dict[str, dict[str, Renamed]] = {
    "export": {"--storage": Renamed("--precision")},
    "train": {
        "--dev": Renamed("--validation"),
        "--batch": Renamed("--batch-size"),
        "--micro-batch": Renamed("--micro-batch-size"),
        "--rate": Renamed("--learning-rate"),
        "--lora": Renamed("--lora-rank"),
        "--head": Renamed("--head-init", {"fitted": "linear-probe", "drawn": "random"}),
        "--matryoshka": Renamed("--matryoshka-dimensions"),
        "--max-tokens": Renamed("--max-length"),
        "--patience": Renamed("--early-stopping-patience"),
        "--storage": Renamed("--precision"),
        "--freeze encoder": Renamed("--train-only embedding"),
    },
}


def with_new_names(arguments: Sequence[str]) -> list[str]:
    """The words of a command line, with the new names of old options.

    Each old option gives a warning on standard error. Words after `--` are texts.
    """
    command = next((word for word in arguments if not word.startswith("-")), "")
    renamed = RENAMED.get(command)
    if renamed is None:
        return [*arguments]
    end = arguments.index("--") if "--" in arguments else len(arguments)
    words = list(arguments[:end])
    new_words: list[str] = []
    while words:
        name, equals, value = words.pop(0).partition("=")
        following = value if equals else next(iter(words), "")
        renaming = renamed.get(f"{name} {following}") or renamed.get(name)
        if renaming is None:
            new_words.append(f"{name}{equals}{value}")
            continue
        takes_value = f"{name} {following}" in renamed
        option = renaming.option.split()
        if takes_value or renaming.values:
            if not equals and words:
                words.pop(0)
            option += [] if takes_value else [renaming.values.get(following, following)]
            new_words += option
        else:
            new_words.append(f"{renaming.option}{equals}{value}")
        old = f"{name} {following}" if takes_value else name
        say(f"warning: {old} is now {renaming.option}; the next version removes the old name")
    return [*new_words, *arguments[end:]]
