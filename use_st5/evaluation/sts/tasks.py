"""The tasks of the group "sts"."""

from __future__ import annotations

from use_st5.evaluation.sts import sources
from use_st5.evaluation.sts.sts_dice_task import STSDiceTask
from use_st5.evaluation.sts.sts_sources_task import STSSourcesTask
from use_st5.evaluation.sts.sts_task import STSTask

TASKS = (
    STSTask("sts12", sources.STS12),
    STSTask("sts13", sources.STS13),
    STSTask("sts14", sources.STS14),
    STSTask("sts15", sources.STS15),
    STSTask("sts16", sources.STS16),
    STSTask("stsb_dev", sources.STSB_DEV),
    STSTask("stsb", sources.STSB_TEST),
    STSTask("sickr", sources.SICK_TEST),
    STSSourcesTask(),
    STSDiceTask(),
)
