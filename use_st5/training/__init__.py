"""Training: from files or arrays to an encoder; the loop, its strategies, its checkpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from use_st5._public import public_names

if TYPE_CHECKING:
    from use_st5.data.arrays import ArrayData as ArrayData
    from use_st5.training.arguments import NAMED_SETTINGS as NAMED_SETTINGS
    from use_st5.training.arguments import FileArguments as FileArguments
    from use_st5.training.arguments import TrainingArguments as TrainingArguments
    from use_st5.training.classifier import Classifier as Classifier
    from use_st5.training.distill import ridge as ridge
    from use_st5.training.history import History as History
    from use_st5.training.jax_loop import sharded as sharded
    from use_st5.training.optimizers import Adam as Adam
    from use_st5.training.optimizers import LinearDecay as LinearDecay
    from use_st5.training.optimizers import LinearWarmup as LinearWarmup
    from use_st5.training.optimizers import adam_with_cosine as adam_with_cosine
    from use_st5.training.optimizers import adamw as adamw
    from use_st5.training.strategies import is_chief as is_chief
    from use_st5.training.strategies import shared_strategy as shared_strategy
    from use_st5.training.strategies import strategy_by_name as strategy_by_name
    from use_st5.training.sweeps import Sweep as Sweep
    from use_st5.training.sweeps import Trial as Trial
    from use_st5.training.sweeps import sweep as sweep
    from use_st5.training.task import Task as Task
    from use_st5.training.tasks import TASKS as TASKS
    from use_st5.training.tasks import TaskSpec as TaskSpec
    from use_st5.training.train import Trained as Trained
    from use_st5.training.trainer import Trainer as Trainer
    from use_st5.training.trans_encoder import DistilledModel as DistilledModel
    from use_st5.training.trans_encoder import PairIds as PairIds
    from use_st5.training.trans_encoder import Student as Student
    from use_st5.training.trans_encoder import TransEncoder as TransEncoder
    from use_st5.training.trans_encoder import train_trans_encoder as train_trans_encoder
    from use_st5.training.validation import Metric as Metric
    from use_st5.training.validation import ValidationSet as ValidationSet

__getattr__, __dir__, __all__ = public_names(__name__)
