"""The folder of corpora."""

from tests.corpora_folder import corpora  # noqa: F401
