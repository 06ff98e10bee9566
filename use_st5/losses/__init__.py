"""Losses. Each lists the columns that it reads from a batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from use_st5._public import public_names

if TYPE_CHECKING:
    from use_st5.losses.classification_loss import ClassificationLoss as ClassificationLoss
    from use_st5.losses.contrastive_loss import ContrastiveLoss as ContrastiveLoss
    from use_st5.losses.definition_loss import DefinitionLoss as DefinitionLoss
    from use_st5.losses.gist_loss import GISTEmbedLoss as GISTEmbedLoss
    from use_st5.losses.input_response_loss import InputResponseLoss as InputResponseLoss
    from use_st5.losses.label_loss import LabelLoss as LabelLoss
    from use_st5.losses.label_loss import MultiLabelLoss as MultiLabelLoss
    from use_st5.losses.matryoshka_loss import MatryoshkaLoss as MatryoshkaLoss
    from use_st5.losses.scored_pair_loss import PairLogitLoss as PairLogitLoss
    from use_st5.losses.scored_pair_loss import ScoredPairLoss as ScoredPairLoss
    from use_st5.losses.simcse_loss import SimCSELoss as SimCSELoss
    from use_st5.losses.skip_thought_loss import SkipThoughtLoss as SkipThoughtLoss
    from use_st5.losses.task_loss import Feature as Feature
    from use_st5.losses.task_loss import Gather as Gather
    from use_st5.losses.task_loss import TaskLoss as TaskLoss
    from use_st5.losses.task_loss import VectorLoss as VectorLoss
    from use_st5.losses.teacher_loss import TeacherLoss as TeacherLoss
    from use_st5.losses.triplet_loss import BatchTripletLoss as BatchTripletLoss
    from use_st5.losses.triplet_loss import TripletLoss as TripletLoss
    from use_st5.losses.tsdae_loss import TSDAELoss as TSDAELoss

__getattr__, __dir__, __all__ = public_names(__name__)
