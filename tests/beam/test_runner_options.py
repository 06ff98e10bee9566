"""Options of runners: Beam reads those on our page, and unknown options are refused."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

pytest.importorskip("apache_beam", reason="the extra `beam` is not installed")

from apache_beam.options.pipeline_options_validator import PipelineOptionsValidator

from use_st5.beam.corpus import embed_corpus, parsed_options

PAGE = Path(__file__).resolve().parents[2] / "docs" / "beam.md"


def documented() -> dict[str, tuple[str, list[str]]]:
    """The page's commands with options of a runner: command → runner, options."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    found = {}
    for line in "\n".join(blocks).replace("\\\n", " ").splitlines():
        words = shlex.split(line.partition(" #")[0])
        if "--runner" in words:
            end = words.index("--") if "--" in words else len(words)
            found[line] = (words[words.index("--runner") + 1], words[end + 1 :])
    return found


COMMANDS = documented()


@pytest.mark.parametrize("command", COMMANDS)
def test_beam_reads_the_options_of_our_page(command: str) -> None:
    runner, words = COMMANDS[command]
    options = parsed_options(runner, words)
    # Dataflow's own class needs Google's packages; the validator only needs its name.
    assert PipelineOptionsValidator(options, type(runner, (), {})()).validate() == []
    known = options.get_all_options(drop_default=True)
    names = {word[2:].partition("=")[0] for word in words if word.startswith("--")}
    assert names <= {*known} | {"no_use_public_ips"}


def test_our_page_has_a_command_for_each_runner() -> None:
    runners = {runner for runner, _ in COMMANDS.values()}
    assert runners == {"DirectRunner", "DataflowRunner", "FlinkRunner", "SparkRunner"}


def test_what_beam_does_not_know_is_refused() -> None:
    with pytest.raises(ValueError, match="that Beam knows, received temp_loction"):
        parsed_options("DirectRunner", ["--temp_loction", "gs://b"])


def test_a_runner_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="Unexpected pipeline runner: NoRunner"):
        embed_corpus("*.txt", tmp_path, runner="NoRunner")
