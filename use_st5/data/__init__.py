"""Readers for public file formats, published sets for evaluation, and examples for training."""

from __future__ import annotations

from typing import TYPE_CHECKING

from use_st5._public import public_names

if TYPE_CHECKING:
    from use_st5.data.arrays import PreparedColumn as PreparedColumn
    from use_st5.data.arrays import open_prepared as open_prepared
    from use_st5.data.arrays import prepare as prepare
    from use_st5.data.data_folder import DataFolder as DataFolder
    from use_st5.data.data_folder import DataSource as DataSource
    from use_st5.data.data_folder import MissingDataError as MissingDataError
    from use_st5.data.tables import MalformedRowError as MalformedRowError
    from use_st5.data.tables import Reader as Reader
    from use_st5.data.tables import ReadReport as ReadReport
    from use_st5.data.tables import SkippedRowError as SkippedRowError
    from use_st5.data.tables import TableReader as TableReader
    from use_st5.data.tables import records as records
    from use_st5.data.text_hashes import normalized as normalized
    from use_st5.data.text_reader import TextReader as TextReader
    from use_st5.data.text_reader import split_sentences as split_sentences
    from use_st5.data.tfds_reader import TFDSReader as TFDSReader

__getattr__, __dir__, __all__ = public_names(__name__)
