"""Experiments: one file each, whose head says what it costs and which scores to expect."""
