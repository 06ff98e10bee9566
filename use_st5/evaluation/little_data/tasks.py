"""The tasks on learning from little data."""

from __future__ import annotations

from use_st5.evaluation.little_data.little_data_task import LittleDataTask

TASKS = (LittleDataTask(),)
