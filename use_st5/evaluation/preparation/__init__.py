"""Brings published data sets into the folders that the evaluation tasks look for."""
