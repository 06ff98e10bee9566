"""Readers for public file formats, and examples prepared for training."""
