"""Reports: evaluated models side by side and beside the papers' published rows."""

from use_st5.evaluation.report.markdown import markdown_tables
from use_st5.evaluation.report.page import write_report

__all__ = ["markdown_tables", "write_report"]
