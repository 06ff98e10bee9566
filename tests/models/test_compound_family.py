from __future__ import annotations

import keras
import pytest

from tests.models.toy_family import TrigramConfig, TrigramEncoder
from use_st5.models.compound_family import described, restored_member
from use_st5.models.cross_encoder.model import CrossEncoderModel
from use_st5.models.ensemble.ensemble import Ensemble
from use_st5.models.family import family_of


def toys() -> list[keras.Model]:
    made = [TrigramEncoder(TrigramConfig(dimension=dimension)) for dimension in (8, 6)]
    for each in made:
        each.build()
    return made


def test_a_member_comes_back_by_family_and_configuration() -> None:
    member = toys()[1]
    again = restored_member(described(member), None)
    assert isinstance(again, TrigramEncoder)
    assert again.config == member.config


def test_members_are_asked_below_their_names_and_one_alone_by_itself() -> None:
    ensemble, judge = Ensemble(toys(), mode="concat"), CrossEncoderModel(toys()[0])
    assert [*family_of(ensemble).lora_layers(ensemble)] == ["member_0/dense", "member_1/dense"]
    assert [*family_of(judge).lora_layers(judge)] == ["dense"]
    below = family_of(toys()[0])
    assert family_of(judge).lora_base(judge) == below.lora_base(judge.encoder)
    assert [*family_of(ensemble).lora_base(ensemble)] == ["member_0", "member_1"]


@pytest.mark.parametrize("config", [{}, {"members": 3}, {"encoder": {}}, {"encoder": 1}])
def test_what_is_no_configuration_is_refused(config: dict[str, object]) -> None:
    for model in (Ensemble(toys(), mode="concat"), CrossEncoderModel(toys()[0])):
        family = family_of(model)
        said = f"Expected the configuration of the family '{family.name}'"
        with pytest.raises(ValueError, match=said):
            family.restore(config)
