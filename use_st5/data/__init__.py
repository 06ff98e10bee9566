"""Readers for public file formats, and examples prepared for training."""

from use_st5.data.definition_reader import DefinitionReader
from use_st5.data.dialogue_reader import DialogueReader
from use_st5.data.nli_reader import NLI_LABELS, NLIReader
from use_st5.data.pair_reader import PairReader
from use_st5.data.parallel_triplets import ParallelTriplets, parallel_triplets
from use_st5.data.prepared import open_prepared, prepare
from use_st5.data.prepared_column import PreparedColumn
from use_st5.data.read_report import ReadReport
from use_st5.data.sentence_splitter import split_sentences
from use_st5.data.table_reader import TableReader
from use_st5.data.text_reader import TextReader
from use_st5.data.tfds_reader import TFDSReader
from use_st5.data.triplet_reader import TripletReader
from use_st5.data.xnli_reader import read_xnli

__all__ = [
    "NLI_LABELS",
    "DefinitionReader",
    "DialogueReader",
    "NLIReader",
    "PairReader",
    "ParallelTriplets",
    "PreparedColumn",
    "ReadReport",
    "TFDSReader",
    "TableReader",
    "TextReader",
    "TripletReader",
    "open_prepared",
    "parallel_triplets",
    "prepare",
    "read_xnli",
    "split_sentences",
]
