"""Semantic textual similarity in and across other languages: readers, and tasks (`tasks.py`)."""
