"""The registry of families, and a user's own family from the command line."""

from __future__ import annotations

import keras
import pytest

from tests.models import toy_family
from use_st5.models import family as module
from use_st5.models.family import (
    families,
    family_named,
    family_of,
    family_with,
    register,
)
from use_st5.tokenizers.tokenizer import Tokenizer


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
