"""Mistakes on the command line, and the messages for the user.

`mistakes.txt` has, for each mistake, the command, the exit code and the message. After a
message has changed, write the table again (`python -m tests.golden.write`). Messages that Typer
words are left out, since they change with its version.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from typer.testing import CliRunner

TABLE = Path(__file__).with_name("mistakes.txt")
_PROMPT = "$ use-st5 "


def write_files(folder: Path) -> None:
    """The files that the commands name."""
    texts = {
        "a.txt": "the cat\na dog\n",
        "empty.txt": "",
        "pairs.tsv": "anchor\tpositive\nthe cat\ta cat\n",
        "letters.tsv": "a\tb\n1\t2\n",
        "both.tsv": "sentence1\tsentence2\tscore\tlabel\nx\ty\t1\tn\n",
        "scored.csv": "sentence1,sentence2,score\na,b,high\n",
        "model/saved_model.pb": "no SavedModel",
        "letter/config.json": '{"model_type": "gpt2"}',
        "letter/model.safetensors": "",
        "record.json": "a letter",
        "words.json": '{"targ1": {}}',
    }
    for place, text in texts.items():
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        (folder / place).write_text(text, encoding="utf-8")
    (folder / "latin.txt").write_bytes(b"caf\xe9\n")


def commands() -> list[str]:
    """The command lines of the table, without the name of the program."""
    lines = TABLE.read_text(encoding="utf-8").splitlines()
    return [line.removeprefix(_PROMPT) for line in lines if line.startswith(_PROMPT)]


def told(command: str) -> str:
    """The entry of the table for a command, which is run in the current folder."""
    from use_st5.cli.main import app

    done = CliRunner().invoke(app, shlex.split(command))
    # Progress lines of a slow machine are no part of the message.
    lines = [line for line in done.stderr.splitlines() if not re.search(r", \d+ s$", line)]
    message = "\n".join(lines).replace(str(Path.cwd()), "HERE").replace("\\", "/")
    return f"{_PROMPT}{command}\n{done.exit_code} {message}\n"
