"""The tasks of the group "geometry"."""

from __future__ import annotations

from use_st5.evaluation.geometry.geometry_task import GeometryTask

TASKS = (GeometryTask(),)
