"""Experiments: one file is one experiment, with its settings and expected scores."""
