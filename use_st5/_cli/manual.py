"""Help texts: paragraphs that fit any terminal, and examples that stay as they are."""

from __future__ import annotations

import inspect


def manual(text: str, *examples: str) -> str:
    r"""Builds a command's help.

    Args:
        text: paragraphs, parted by empty lines; the first one is the summary. May hold rich's
            markup, so a literal `[` is written `\[`.
        examples: command lines, shown below each other under a heading.

    Returns:
        The text with the line breaks inside paragraphs removed: the terminal wraps them anew.
    """
    paragraphs = [" ".join(part.split()) for part in inspect.cleandoc(text).split("\n\n")]
    # \b tells typer to keep the lines of a paragraph.
    lines = ["\b", "[bold]Examples[/bold]", *(f"  {line}".replace("[", r"\[") for line in examples)]
    return "\n\n".join([*paragraphs, "\n".join(lines)])
