"""Reports: evaluated models side by side."""

from use_st5.evaluation.report.page import markdown_tables, write_report

__all__ = ["markdown_tables", "write_report"]
