"""The registry of families, and a user's own family from the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import keras
import pytest

from tests.models import toy_family
from tests.toy_encoders import Toy
from use_st5.models import family as module
from use_st5.models.family import (
    families,
    family_named,
    family_of,
    family_with,
    register,
)
from use_st5.tokenizers.tokenizer import Tokenizer


@pytest.mark.end_to_end
@pytest.mark.process
def test_a_family_of_a_user_is_evaluated(
    toy_trigrams: Toy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from typer.testing import CliRunner

    from use_st5.cli.main import app

    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "data" / "stsbenchmark"
    folder.mkdir(parents=True)
    rows = [("a cat", "cats", 4.5), ("a dog", "the sea", 0.5), ("old men", "old man", 4.0)]
    text = "".join(
        f"main-news\tMSRpar\t2012test\t{number:04}\t{score}\t{first}\t{second}\n"
        for number, (first, second, score) in enumerate(rows)
    )
    for split in ("train", "dev", "test"):
        (folder / f"sts-{split}.csv").write_text(text, encoding="utf-8")
    run: Callable = CliRunner().invoke
    arguments = ["--data", "data", "--tasks", "stsb", "--out", "scores.json"]
    result = run(app, ["evaluate", str(toy_trigrams.folder), *arguments])
    assert result.exit_code == 0, result.output
    assert "stsb" in json.loads((tmp_path / "scores.json").read_text())["tasks"]


def test_the_list_of_families() -> None:
    own = {"bert", "modernbert", "mpnet", "static_embedding", "t5", "use_dan", "use_transformer"}
    assert own | {"toy_trigrams"} <= set(families())
    assert all(family.learning_rates[""] > 0 for family in families().values())
    assert family_with("toy_trigrams_small") is family_named("toy_trigrams") is toy_family.FAMILY
    assert isinstance(toy_family.TrigramTokenizer(), Tokenizer)
    with pytest.raises(TypeError, match="known family .*received a Sequential"):
        family_of(keras.Sequential())
    with pytest.raises(ValueError, match="Expected one of the families"):
        family_named("none")

    class Another(toy_family.TrigramFamily):
        name = "t5"

    with pytest.raises(ValueError, match="'t5' is taken"):
        register(Another())


def test_a_family_whose_model_is_a_relative_may_be_registered_late(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_registered", dict(families()))

    class Relative(toy_family.TrigramEncoder):
        pass

    class RelativeFamily(toy_family.TrigramFamily):
        name = "relative"
        model_types = (Relative,)

    encoder = toy_family.TrigramEncoder(toy_family.TrigramConfig())
    relative = Relative(toy_family.TrigramConfig())
    assert family_of(relative) is toy_family.FAMILY
    own = register(RelativeFamily())
    assert family_of(relative) is own
    assert family_of(encoder) is toy_family.FAMILY
