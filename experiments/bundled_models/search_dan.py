"""The second part of the training of `use_dan_en`, in which it learns to find passages.

It goes on from the model of `experiments.bundled_models.use_dan_en`, which has no pieces and learnt
from sentences alone: known words and bi-grams keep their rows of the table. The row of a new word
or piece is a linear function of a teacher's vector of it, fitted on the known words.

For passages and queries it learns from all-MiniLM-L6-v2; for sentences from that and from
`use_transformer_en`, whose vectors tell sentiment and roles better. A batch holds pairs of a query
and its passage, passages that a search would confuse with them, other passages; and sentences, some
with an alteration by rules. The model learns each text's vector, and the cosines of all texts of a
teacher in the batch, also of its shortened vectors. Scored pairs of STS-B's training split, except
those whose sentences are in other STS sets, sharpen the cosines of sentences.

    python -m experiments.bundled_models.search_dan texts FOLDER --data DATA
    use-st5 embed FOLDER/texts.txt --model MINILM --backend onnx-int8 -o FOLDER/texts.npy
    use-st5 embed FOLDER/sentences.txt --model use_transformer_en --backend onnx-int8 \
        -o FOLDER/sentences.npy
    python -m experiments.bundled_models.search_dan words FOLDER --data DATA
    use-st5 embed FOLDER/words.txt --model MINILM --backend onnx-int8 -o FOLDER/words.npy
    python -m experiments.bundled_models.search_dan train FOLDER --data DATA --start MODEL
    python -m experiments.bundled_models.search_dan export FOLDER OUT

On 29 November 2026 (seed 1, 3,000 steps in ten minutes on one core) nDCG@10 on the five larger sets
of `eval_dev` (`use-st5 evaluate OUT --tasks retrieval`) was 60.3, at the start 54.2; STS-B dev 86.4
and 84.1; SICK trial 74.8 and 76.0; the tasks of `training_splits` but STS-B 78.1 and 78.1 on
average.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from experiments.bundled_models.dan_student import Batch, Rows, Settings, Student, shuffled
from experiments.bundled_models.search_text import hard_negatives, read_pairs, search_texts
from experiments.bundled_models.teacher import Teacher, unit_rows
from experiments.bundled_models.teacher_tasks import unseen_scored_pairs
from experiments.bundled_models.teacher_text import TEXT, TextWithVectors
from experiments.bundled_models.word_vocabulary import read_wordpieces
from experiments.bundled_models.word_weights import FIRST_TERM_ID
from experiments.held_out import held_out_sentences
from use_st5.engines import NGramIds
from use_st5.tokenizers import NGramVocabulary

NAME = "use_dan_en"
# At most 20,000 sentences of a source, a quarter of the alterations: 366,000 texts.
SENTENCES = dataclasses.replace(
    TEXT,
    sources={
        name: dataclasses.replace(sample, limit=min(sample.limit or 20_000, 20_000))
        for name, sample in TEXT.sources.items()
    },
    spans=6_000,
    related={length: count // 4 for length, count in TEXT.related.items()},
)
PIECES = "vocab/bert-base-uncased/vocab.txt"


def sentences_of(folder: Path, data: Path) -> TextWithVectors:
    """The sentences of before: made once and kept in the folder."""
    held_out = partial(held_out_sentences, data)
    return TextWithVectors(SENTENCES, data, folder, Teacher(folder), held_out)


def write_texts(folder: Path, data: Path, *, most: int) -> None:
    """Writes the texts that the teacher reads, one a line: at most `most` of search, sentences."""
    folder.mkdir(parents=True, exist_ok=True)
    sentences = dict.fromkeys(map(_one_line, sentences_of(folder, data).numbers))
    texts = dict.fromkeys([*search_texts(data)[:most], *sentences])
    for name, lines in (("texts", texts), ("sentences", sentences)):
        (folder / f"{name}.txt").write_text("\n".join([*lines, ""]), encoding="utf-8")


def _one_line(text: str) -> str:
    return " ".join(text.split())


def write_words(folder: Path, data: Path, start: str, *, count: int) -> None:
    """Counts the words of the texts, and writes the vocabulary and its words, one a line."""
    import use_st5
    from use_st5.tokenizers import build_vocabulary  # It needs TensorFlow.

    words, pieces = read_wordpieces(data / PIECES)
    vocabulary = build_vocabulary(
        read_texts(folder),
        show_progress=True,
        num_unigrams=count - len(pieces),
        num_bigrams=0,
        always=words,
        unigram_buckets=200,
    )
    old: Any = use_st5.TrainableEncoder.load(start).tokenizer.vocabulary
    unigrams = (*vocabulary.unigrams, *pieces)
    vocabulary = dataclasses.replace(vocabulary, unigrams=unigrams, bigrams=old.bigrams)
    vocabulary.save(folder / "vocabulary.txt")
    spelled = (term.removeprefix("##") or term for term in vocabulary.unigrams)
    (folder / "words.txt").write_text("\n".join([*spelled, ""]), encoding="utf-8")


def read_texts(folder: Path, name: str = "texts") -> list[str]:
    """The texts of `write_texts`, or the sentences."""
    return (folder / f"{name}.txt").read_text(encoding="utf-8").split("\n")[:-1]


def started(folder: Path, start: str) -> list[np.ndarray]:
    """The weights of the model `start` with the rows of the new vocabulary."""
    import use_st5

    vocabulary = NGramVocabulary.load(folder / "vocabulary.txt")
    encoder = use_st5.TrainableEncoder.load(start)
    old: Any = encoder.tokenizer.vocabulary
    table, *kernels = map(np.asarray, encoder.model.get_weights())
    known = dict(zip((*old.unigrams, *old.bigrams), table[FIRST_TERM_ID:], strict=False))
    vectors = np.load(folder / "words.npy").astype(np.float32)
    inputs = np.hstack([vectors, np.ones((len(vectors), 1), np.float32)])
    is_known = [word in known for word in vocabulary.unigrams]
    targets = np.stack([known[word] for word in vocabulary.unigrams if word in known])
    fit = np.linalg.lstsq(inputs[is_known], targets, rcond=1e-3)[0]
    for word, row in zip(vocabulary.unigrams, inputs @ fit, strict=True):
        known.setdefault(word, row)
    rows = [known[term] for term in (*vocabulary.unigrams, *vocabulary.bigrams)]
    buckets = table[old.unigram_bucket_id :][: vocabulary.unigram_buckets]
    return [np.vstack([table[:FIRST_TERM_ID], *rows, buckets]), *kernels]


class SearchBatches:
    """The batches of a training.

    Args:
        folder: That of `write_texts`, with `texts.npy`.
        data: The folder of the corpora.
        second: The second teacher's vectors of the sentences, `[sentences, width]`.
        settings: The training.

    Attributes:
        texts: All texts, in the order of their numbers.
        widths: Of the vectors that both teachers give.
    """

    def __init__(self, folder: Path, data: Path, second: np.ndarray, settings: Settings) -> None:
        texts, sentences = read_texts(folder), read_texts(folder, "sentences")
        self._settings, self._second = settings, second
        self._first = np.load(folder / "texts.npy", mmap_mode="r")
        numbers = {text: number for number, text in enumerate(texts)}
        named = ((query, passage) for _, query, passage in read_pairs(data))
        pairs = numbered(named, numbers)
        if not (folder / "negatives.npy").exists():
            np.save(folder / "negatives.npy", hard_negatives(self._first, pairs))
        self._pairs = np.hstack([pairs, np.load(folder / "negatives.npy")[:, None]])
        self._altered = numbered(
            ((_one_line(a), _one_line(b)) for a, b in altered_pairs(folder, data)),
            {text: number for number, text in enumerate(sentences)},
        )
        self._in_texts = np.array([numbers[text] for text in sentences])
        scored = (each.values() for each in unseen_scored_pairs(data))
        firsts, seconds, scores = zip(*scored, strict=True)
        self._scores = np.array(scores, np.float32)
        self._of_search = len(texts)
        self.texts = [*texts, *firsts, *seconds]
        self.widths = (self._first.shape[1], self._first.shape[1] + second.shape[1])

    def __iter__(self) -> Iterator[Batch]:
        """Yields batches without an end."""
        settings, rng = self._settings, np.random.default_rng(self._settings.seed)
        of_pairs = shuffled(rng, len(self._pairs), settings.pairs)
        of_passages = shuffled(rng, self._of_search, settings.passages)
        of_altered = shuffled(rng, len(self._altered), settings.altered)
        of_sentences = shuffled(rng, len(self._in_texts), settings.sentences)
        of_scored = shuffled(rng, len(self._scores), settings.scored)
        while True:
            search = np.concatenate([self._pairs[next(of_pairs)].ravel(), next(of_passages)])
            chosen = np.concatenate([self._altered[next(of_altered)].ravel(), next(of_sentences)])
            in_texts, pair = self._in_texts[chosen], next(of_scored)
            both = [unit_rows(self._first[in_texts]), unit_rows(self._second[chosen])]
            parts = [(search, unit_rows(self._first[search]))]
            parts += [(chosen, np.hstack(both) / 2**0.5)]
            first = self._of_search + pair
            read = np.concatenate([search, in_texts, first, len(self._scores) + first])
            yield Batch(read, parts, self._scores[pair])


def train(folder: Path, data: Path, start: str, settings: Settings) -> None:
    """Trains the model, and writes its weights to `weights.npz`."""
    second = np.load(folder / "sentences.npy", mmap_mode="r")
    batches = SearchBatches(folder, data, second, settings)
    vocabulary = NGramVocabulary.load(folder / "vocabulary.txt")
    rows = Rows(*NGramIds(vocabulary).flat(batches.texts))
    student = Student(*started(folder, start), teacher_widths=batches.widths, settings=settings)
    for number, batch in enumerate(itertools.islice(batches, settings.steps), start=1):
        loss = student.step(number, *rows.take(batch.texts), batch.parts, batch.scores)
        if number % 500 == 0:
            print(f"step {number:,} of {settings.steps:,}: loss {loss:.4f}", flush=True)
    weights = [student.table, *(kernel.detach() for kernel in student.kernels)]
    np.savez(folder / "weights.npz", *[each.numpy() for each in weights])


def altered_pairs(folder: Path, data: Path) -> list[tuple[str, str]]:
    """Sentences, and an alteration of each."""
    return [pair for pairs in sentences_of(folder, data).pairs.values() for pair in pairs]


def numbered(pairs: Iterable[tuple[str, str]], numbers: Mapping[str, int]) -> np.ndarray:
    """The numbers of both texts of each pair, int64 `[pairs, 2]`, if both have one."""
    found = [[numbers[a], numbers[b]] for a, b in pairs if a in numbers and b in numbers]
    return np.array(found, np.int64)


def export(folder: Path, target: Path) -> None:
    """Writes the trained model as a SavedModel in int8."""
    import use_st5
    from use_st5.models import USEDAN
    from use_st5.tokenizers import NGramTokenizer

    vocabulary = NGramVocabulary.load(folder / "vocabulary.txt")
    model = USEDAN.from_preset(NAME, num_embeddings=vocabulary.size)
    model.build()
    with np.load(folder / "weights.npz") as weights:
        model.set_weights([weights[name] for name in weights.files])
    encoder = use_st5.TrainableEncoder(
        model,
        NGramTokenizer(vocabulary),
        name=NAME,
        metadata={"languages": ["en"], "license": "Apache-2.0", "seed": Settings.seed},
    )
    encoder.export(target, precision="int8")


def main() -> None:
    """Reads the command."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(required=True, dest="command")
    parsers = {name: commands.add_parser(name) for name in ("texts", "words", "train", "export")}
    for name, command in parsers.items():
        command.add_argument("folder", type=Path, metavar="FOLDER")
        if name != "export":
            command.add_argument("--data", type=Path, required=True)
    parsers["texts"].add_argument("--most", type=int, default=440_000, help="texts of search")
    for name in ("words", "train"):
        parsers[name].add_argument("--start", required=True, help="the model to go on from")
    parsers["words"].add_argument("--count", type=int, default=65_000, help="words and pieces")
    for field in dataclasses.fields(Settings):
        if field.name != "short":
            flag = f"--{field.name.replace('_', '-')}"
            parsers["train"].add_argument(flag, type=type(field.default), default=field.default)
    parsers["export"].add_argument("target", type=Path, metavar="OUT")
    options = vars(parser.parse_args())
    command, folder = options.pop("command"), options.pop("folder")
    if command == "texts":
        write_texts(folder, options["data"], most=options["most"])
    elif command == "words":
        write_words(folder, options["data"], options["start"], count=options["count"])
    elif command == "train":
        train(folder, options.pop("data"), options.pop("start"), Settings(**options))
    else:
        export(folder, options["target"])


if __name__ == "__main__":
    main()
