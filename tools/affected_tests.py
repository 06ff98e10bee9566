"""Chooses the tests that a change may break, the nearest to the change first.

A test is near if its file, or its folder's conftest.py, imports a changed file or names a changed
document; it is further away if a file that it imports does. Standard input has the ids of the tests
to choose from, as a JSON list; standard output gets the chosen ids, one in each line:

    python -m tools.affected_tests [BASE] < .pytest_cache/v/use_st5/left_out

BASE is the commit before the change. By default it is the newest that is six hours older than the
last: what one session of work committed.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Collection, Iterable
from pathlib import Path

from tools.import_graph import ROOT, named_files

_SESSION = 6 * 3600  # seconds


def changed_files(base: str | None = None) -> set[str]:
    """The files that differ between a commit and the last one."""
    if base is None:
        start = int(_git("show", "-s", "--format=%ct", "HEAD")) - _SESSION
        base = _git("rev-list", "-1", f"--before={start}", "HEAD") or _git(
            "rev-list", "--max-parents=0", "HEAD"
        )
    return set(_git("diff", "--name-only", base, "HEAD").splitlines())


def distance(test: str, changed: Collection[str]) -> int | None:
    """The number of imports between a test file and the nearest changed file; None if no path."""
    fixtures = Path(test).with_name("conftest.py").as_posix()
    level = {test, *([fixtures] if (ROOT / fixtures).is_file() else [])}
    others = {Path(file).name for file in changed if not file.endswith(".py")}
    seen: set[str] = set()
    steps = 0
    while level:
        if level & set(changed) or (steps == 0 and _names(level, others)):
            return steps
        seen |= level
        level = set().union(*map(named_files, level)) - seen
        steps += 1
    return None


def affected(tests: Iterable[str], changed: Collection[str]) -> list[str]:
    """The tests that depend on changed files, the nearest first; a file's tests stay together."""
    tests = sorted(tests)
    files = {test.split("::")[0] for test in tests}
    steps = {file: distance(file, changed) for file in sorted(files) if (ROOT / file).is_file()}
    near = {file: count for file, count in steps.items() if count is not None}
    chosen = [test for test in tests if test.split("::")[0] in near]
    return sorted(chosen, key=lambda test: (near[test.split("::")[0]], test))


def _names(files: Iterable[str], names: Collection[str]) -> bool:
    """Whether one of the files names one of the other files."""
    texts = [(ROOT / file).read_text(encoding="utf-8") for file in files] if names else []
    return any(name in text for text in texts for name in names)


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


if __name__ == "__main__":
    for chosen in affected(json.load(sys.stdin), changed_files(*sys.argv[1:])):
        print(chosen)
