"""Encoding texts with a finished model."""
