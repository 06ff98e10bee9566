"""`use-st5 reproduce`: finding recipes and handing them their options."""

from __future__ import annotations

import importlib
import inspect
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from use_st5 import recipes

RECIPES = Path(recipes.__file__).parent
FULL = '''"""Counts to three.

More about it.
"""
import json

def run(data, output, *, seed=0, steps=None, teacher=None, resume=True):
    """Trains."""
    if steps == 99:
        raise KeyboardInterrupt
    output.mkdir(parents=True, exist_ok=True)
    got = [str(data), seed, steps, str(teacher), resume]
    (output / "got.json").write_text(json.dumps(got))
    return {"dev": 0.5, "test": 0.25}
'''
PARTED = '''"""Runs in parts."""
from typing import Literal

def run(data, output, *, seed=0, preset: Literal["mini", "large"] = "mini", part=None):
    """Trains."""
    return {f"{data} {preset} {part}": 1.0}
'''
SMALL = '''"""Has few settings."""
def run(data, output, *, seed=0):
    """Trains."""
    return {"seed": float(seed)}
'''
OWN = '''"""Has settings of its own."""
from __future__ import annotations
from collections.abc import Sequence
from pathlib import Path

def run(
    data: Path, output: Path, *, seed: int = 0, resume: bool = True, repeats: int = 10,
    rate: float = 0.5, tasks: Sequence[str] = (), given_vectors: Path | None = None,
    factors: dict[str, float] = {},
) -> dict[str, float]:
    """Trains."""
    assert given_vectors is None or isinstance(given_vectors, Path)
    scores = {"seed": seed, "repeats": repeats, "rate": rate}
    return scores | {str(given_vectors): 0, **{task: 1 for task in tasks}}
'''


VARIED = '''"""Has variants."""
from __future__ import annotations
from collections.abc import Sequence
from typing import Literal

class Value:
    def __init__(self, rate, expected=()):
        self.rate, self.expected = rate, dict(expected)

    def run(
        self, data, output, *, seed: int = 0, tasks: Sequence[str] | None = None,
        strategy: Literal["mirrored", "tpu"] | None = None,
    ):
        """Trains."""
        return {f"{tasks} {strategy}": self.rate}

RECIPE = Value(0.5, [("None None", 0.75)])
VARIANTS = {"published": Value(0.25)}
'''


@pytest.fixture(autouse=True)
def stub_recipes(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    folder = tmp_path_factory.mktemp("recipes")
    (folder / "stub_full.py").write_text(FULL)
    (folder / "stub_parted.py").write_text(PARTED)
    (folder / "stub_small.py").write_text(SMALL)
    (folder / "stub_own.py").write_text(OWN)
    (folder / "stub_varied.py").write_text(VARIED)
    (folder / "_stub_private.py").write_text('"""No recipe."""')
    monkeypatch.setattr(recipes, "__path__", [*recipes.__path__, str(folder)])
    monkeypatch.delenv("USE_ST5_DATA", raising=False)
    yield
    for name in ("stub_full", "stub_small", "stub_own", "stub_parted", "stub_varied"):
        sys.modules.pop(f"use_st5.recipes.{name}", None)


def test_list_shows_first_lines_without_importing(use: Callable) -> None:
    result = use("reproduce", "--list")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert "stub_full\tCounts to three." in lines
    assert "stub_small\tHas few settings." in lines
    assert "private" not in result.stdout
    assert "use_st5.recipes.stub_full" not in sys.modules


@pytest.mark.parametrize("file", sorted(RECIPES.glob("[!_]*.py")), ids=lambda file: file.stem)
def test_recipes_of_the_package_can_be_run_from_here(file: Path) -> None:
    module = importlib.import_module(f"use_st5.recipes.{file.stem}")
    recipes_of_it = [vars(module).get("RECIPE", module), *vars(module).get("VARIANTS", {}).values()]
    for recipe in recipes_of_it:
        parameters = inspect.signature(recipe.run).parameters.values()
        keywords = {each.name for each in parameters if each.kind is each.KEYWORD_ONLY}
        assert [each.name for each in parameters if each.name not in keywords] == ["data", "output"]
        # Teachers and steps are not every recipe's affair; the command refuses what there is not.
        assert keywords >= {"seed", "resume"}
    assert len(module.__doc__.splitlines()[0]) <= 100


def test_a_variant_is_another_value(use: Callable) -> None:
    options = ("--tasks", "a,b", "--strategy", "mirrored")
    whole = use("reproduce", "stub_varied", "--data", ".", *options)
    assert whole.stdout.splitlines()[1] == "('a', 'b') mirrored\t0.5000"
    published = use("reproduce", "stub_varied", "--data", ".", "--variant", "published")
    assert published.stdout.splitlines()[1] == "None None\t0.2500"


def test_the_expected_scores_stand_beside_those_of_the_whole_recipe(use: Callable) -> None:
    whole = use("reproduce", "stub_varied", "--data", ".").stdout.splitlines()
    assert whole == ["score\tvalue\texpected", "None None\t0.5000\t0.7500"]
    other = use("reproduce", "stub_varied", "--data", ".", "--tasks", "a").stdout.splitlines()
    assert other[0] == "score\tvalue", "of other tasks nothing is expected"


def test_corpora_are_listed_with_place_and_licence(use: Callable) -> None:
    lines = use("reproduce", "--corpora").stdout.splitlines()
    rows = {line.split("\t")[0]: line.split("\t")[1:] for line in lines}
    assert rows["medquad"][1:] == ["medquad_qa.jsonl", "CC BY 4.0"]


def test_options_reach_the_recipe_and_scores_are_printed(use: Callable, tmp_path: Path) -> None:
    result = use(
        *("reproduce", "stub_full", "--data", ".", "--out", "runs/one", "--steps", "7"),
        *("--seed", "3", "--teacher", "teacher", "--no-resume"),
    )
    assert result.exit_code == 0, result.stderr
    assert result.stdout.splitlines() == ["score\tvalue", "dev\t0.5000", "test\t0.2500"]
    got = json.loads((tmp_path / "runs/one/got.json").read_text())
    assert got == [".", 3, 7, "teacher", False]


def test_defaults_and_the_data_variable(
    use: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("USE_ST5_DATA", str(tmp_path))
    assert use("reproduce", "stub_full").exit_code == 0
    got = json.loads((tmp_path / "runs/stub_full/got.json").read_text())
    assert got == [str(tmp_path), 0, None, "None", True]
    assert use("reproduce", "stub_small", "--seed", "5").stdout.splitlines()[1] == "seed\t5.0000"


def test_settings_of_a_recipes_own(use: Callable) -> None:
    result = use(
        *("reproduce", "stub_own", "--repeats", "3", "--data", ".", "--rate=0.25", "--seed", "2"),
        *("--tasks", "a,b", "--given-vectors", "some/file"),
    )
    assert result.exit_code == 0, result.stderr
    scores = dict(line.split("\t") for line in result.stdout.splitlines()[1:])
    assert scores == {
        **{"seed": "2.0000", "repeats": "3.0000", "rate": "0.2500"},
        **{"some/file": "0.0000", "a": "1.0000", "b": "1.0000"},
    }


def test_a_part_and_a_preset_reach_the_recipe_and_training_needs_no_data(
    use: Callable,
) -> None:
    arguments = ("reproduce", "stub_parted", "--part", "train", "--preset", "large")
    assert use(*arguments).stdout.splitlines()[1] == ". large train\t1.0000"
    whole = use("reproduce", "stub_parted", "--data", ".")
    assert whole.stdout.splitlines()[1] == ". mini None\t1.0000"


def test_interruption_says_how_to_continue(use: Callable) -> None:
    result = use("reproduce", "stub_full", "--data", ".", "--steps", "99")
    assert result.exit_code == 130
    assert "the same command continues" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ((), 2, "--list"),
        (
            ("nothing", "--data", "."),
            2,
            "stub_full, stub_own, stub_parted, stub_small, stub_varied",
        ),
        (("stub_full",), 2, "USE_ST5_DATA"),
        (("stub_full", "--data", "absent"), 1, "found no absent"),
        (("stub_small", "--data", ".", "--steps", "5"), 2, "no such setting"),
        (("stub_small", "--part", "train"), 2, "no such setting"),
        (("stub_parted", "--part", "prepare"), 2, "USE_ST5_DATA"),
        (("stub_parted", "--data", ".", "--preset", "big"), 2, "received 'big', not mini, large."),
        (("stub_varied", "--data", ".", "--variant", "mine"), 2, "it has: published."),
        (("stub_own", "--data", ".", "--variant", "mine"), 2, "it has: none."),
        (("stub_own", "--data", ".", "--strategy", "tpu"), 2, "no such setting"),
        (("stub_full", "--data", ".", "--steps", "0"), 2, "--steps"),
        (("stub_full", "--data", ".", "--rate", "1"), 2, "stub_full has no --rate"),
        (("stub_own", "--data", ".", "--rat", "1"), 2, "--repeats, --rate, --tasks"),
        (("stub_own", "--data", ".", "--sed", "1"), 2, "see use-st5 reproduce --help"),
        (("stub_own", "--data", ".", "more"), 2, "stub_own has no more"),
        (("stub_own", "--data", ".", "--factors", "2"), 2, "stub_own has no --factors"),
        (("stub_own", "--data", ".", "--rate"), 2, "give a value"),
        (("stub_own", "--data", ".", "--repeats", "few"), 2, "received 'few'"),
    ],
)
def test_errors_are_one_line(
    use: Callable, arguments: tuple[str, ...], code: int, message: str
) -> None:
    result = use("reproduce", *arguments)
    assert result.exit_code == code
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
