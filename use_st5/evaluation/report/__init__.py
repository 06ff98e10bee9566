"""Reports: evaluated models side by side."""

from use_st5.evaluation.report.page import write_report

__all__ = ["write_report"]
