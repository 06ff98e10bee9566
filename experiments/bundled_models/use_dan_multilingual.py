"""USE-DAN over pieces of words of 29 languages: the bundled `use_dan_multilingual`.

It learns the vectors of all-MiniLM-L6-v2: for English text the teacher's own, for a translation
those of its English side (Reimers and Gurevych 2020, arXiv 2004.09813). The English text is that of
`search_dan`, whose folder is ENGLISH below.

The table starts as the linear least squares fit of the teacher's vectors. Then the table and the
dense layers learn each text's vector, and the cosines of all texts in the batch, also of shortened
vectors. Scored pairs of STS-B's training split and their translations, except those whose English
sentences are in STS sets, sharpen the cosines.

    python -m experiments.bundled_models.use_dan_multilingual texts FOLDER --data DATA
    python -m experiments.bundled_models.use_dan_multilingual pieces FOLDER --data DATA
    use-st5 embed FOLDER/english.txt --model MINILM --backend onnx-int8 -o FOLDER/english.npy
    python -m experiments.bundled_models.use_dan_multilingual train FOLDER --data DATA \
        --english ENGLISH
    python -m experiments.bundled_models.use_dan_multilingual export FOLDER OUT --data DATA
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import itertools
import lzma
import random
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from experiments.bundled_models.dan_student import (
    MOST_IDS,
    Batch,
    Rows,
    Settings,
    Student,
    shuffled,
)
from experiments.bundled_models.search_dan import numbered, read_texts
from experiments.bundled_models.search_text import read_pairs, read_passages
from experiments.bundled_models.teacher import unit_rows
from experiments.bundled_models.teacher_tasks import unseen_scored_pairs
from use_st5.training import ridge

NAME = "use_dan_multilingual"
# GPL and AGPL; sets that choose the training; STS-B, of which only some pairs may be read.
LEFT_OUT = {"spd", "crawl", "scratch", "stellarium", "mkqa", "ntrex", "stsb"}
PIECES, WIDTH, HIDDEN = 64_000, 384, (384, 384, 512, 512)
UNKNOWN_ID = 3
# Characters of a language for the vocabulary; a Chinese one says as much as three Latin ones.
CHARACTERS = defaultdict(
    lambda: 1_600_000,
    {"en": 2_500_000, "th": 1_200_000, **dict.fromkeys(("zh", "zh-Hant", "ja", "ko"), 700_000)},
)
PASSAGES, VERSES = 6_000_000, 5_000
# A language is drawn with the power TEMPERATURE of its share, the Bible's old words more rarely.
TEMPERATURE, BIBLE = 0.5, 0.25
SETTINGS = Settings(
    steps=6_000,
    pairs=32,
    passages=80,
    sentences=0,
    altered=0,
    scored=32,
    table_rate=3e-3,
    score=0.2,
)
TRANSLATIONS = 480  # in a batch, with their English sides
FITTED = 800_000  # draws of translations; of other English texts there are as many
PENALTY = 0.05  # pulls rows of rare pieces towards 0


@dataclasses.dataclass(frozen=True)
class Translation:
    """A text of another language and its English side."""

    source: str
    language: str
    english: str
    text: str


def read_translations(data: Path) -> Iterator[Translation]:
    """The translations of `parallel` that are trained on."""
    for path in sorted((data / "parallel").glob("*.tsv.xz")):
        if (source := path.name.removesuffix(".tsv.xz")) not in LEFT_OUT:
            with lzma.open(path, "rt", encoding="utf-8") as lines:
                for line in lines:
                    language, english, text = line.rstrip("\n").split("\t")
                    yield Translation(source, language, " ".join(english.split()), text)


def write_texts(folder: Path, data: Path) -> None:
    """Writes the English sides, which the teacher reads, one a line."""
    folder.mkdir(parents=True, exist_ok=True)
    english = [*dict.fromkeys(each.english for each in read_translations(data))]
    random.Random(1).shuffle(english)
    (folder / "english.txt").write_text("\n".join([*english, ""]), encoding="utf-8")


def write_pieces(folder: Path, data: Path) -> None:
    """Trains the vocabulary on as many characters of each language as `CHARACTERS` says."""
    import sentencepiece

    texts: dict[str, dict[str, None]] = defaultdict(dict)
    verses: Counter[str] = Counter()
    for each in read_translations(data):
        verses[each.language] += each.source == "bible"
        if each.source != "bible" or verses[each.language] <= VERSES:
            texts[each.language].setdefault(each.text)
            texts["en"].setdefault(each.english)
    draw = random.Random(1)
    chosen = [
        text
        for language, of_language in texts.items()
        for text in _beginning(draw, [*of_language], CHARACTERS[language])
    ]
    chosen += _beginning(draw, [text for _, text in read_passages(data)], PASSAGES)
    draw.shuffle(chosen)
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(chosen),
        model_prefix=str(folder / "pieces"),
        vocab_size=PIECES,
        model_type="unigram",
        character_coverage=0.9997,
        normalization_rule_name="nmt_nfkc_cf",
        max_sentence_length=8_192,
        pad_id=0,
        bos_id=1,
        eos_id=2,
        unk_id=UNKNOWN_ID,
        pad_piece="<pad>",
    )


def _beginning(draw: random.Random, texts: list[str], characters: int) -> Iterator[str]:
    draw.shuffle(texts)
    for text in texts:
        yield text
        if (characters := characters - len(text)) <= 0:
            return


def piece_rows(folder: Path, texts: list[str]) -> Rows:
    """The ids of texts; an empty one has the id of an unknown piece."""
    import sentencepiece

    pieces: Any = sentencepiece.SentencePieceProcessor(model_file=str(folder / "pieces.model"))
    found: list[np.ndarray] = []
    for start in range(0, len(texts), 10_000):
        encoded = pieces.encode(texts[start : start + 10_000])
        found += [np.array(ids[:MOST_IDS] or [UNKNOWN_ID], np.int32) for ids in encoded]
    return Rows(np.concatenate(found), np.cumsum([0, *map(len, found)]))


def translated_scored_pairs(data: Path) -> list[tuple[str, str, float]]:
    """Scored pairs in 11 languages: those whose English sentences are in no other STS set."""
    known = {(each["first"], each["second"]) for each in unseen_scored_pairs(data)}
    folder = data / "stsb_multi_mt" / "data"

    def read(path: Path) -> list[list[str]]:
        with path.open(encoding="utf-8", newline="") as lines:
            return [*csv.reader(lines)]

    chosen = [(a, b) in known for a, b, _ in read(folder / "stsb-en-train.csv")]
    return [
        (first, second, float(score) / 5)
        for path in sorted(folder.glob("stsb-*-train.csv"))
        for (first, second, score), is_chosen in zip(read(path), chosen, strict=True)
        if is_chosen
    ]


def shares(translations: list[Translation]) -> np.ndarray:
    """The probability of each translation to be drawn, `[translations]`."""
    _, numbers, counts = np.unique(
        [each.language for each in translations], return_inverse=True, return_counts=True
    )
    weights = (counts ** (TEMPERATURE - 1))[numbers]
    weights[[each.source == "bible" for each in translations]] *= BIBLE
    return weights / weights.sum()


class MultilingualBatches:
    """The texts of a training, and its batches.

    Args:
        folder: That of `write_texts`, with `english.npy`.
        data: The folder of the corpora.
        english: The folder of `search_dan`.
        settings: The training.

    Attributes:
        texts: English sides, English texts, translations, scored pairs; a text's number is its
            place.
        first: The number of the first translation.
        side_of: The number of each translation's English side.
        teacher: The teacher's vectors of the English sides and texts.
    """

    def __init__(self, folder: Path, data: Path, english: Path, settings: Settings) -> None:
        self._settings = settings
        sides, texts = read_texts(folder, "english"), read_texts(english)
        self.teacher = TeacherVectors(folder / "english.npy", english / "texts.npy")
        numbers = {text: number for number, text in enumerate(texts, start=len(sides))}
        named = ((query, passage) for _, query, passage in read_pairs(data))
        pairs = numbered(named, numbers)
        negatives = len(sides) + np.load(english / "negatives.npy")[:, None]
        self._pairs = np.hstack([pairs, negatives])
        translations = [*read_translations(data)]
        side_numbers = {side: number for number, side in enumerate(sides)}
        self.side_of = np.array([side_numbers[each.english] for each in translations])
        self._totals = np.cumsum(shares(translations))
        firsts, seconds, scores = zip(*translated_scored_pairs(data), strict=True)
        self._scores = np.array(scores, np.float32)
        self._sides, self.first = len(sides), len(sides) + len(texts)
        self.texts = [*sides, *texts, *(each.text for each in translations), *firsts, *seconds]

    def drawn(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """The numbers of some translations among the translations, `[count]`."""
        return np.searchsorted(self._totals[:-1], rng.random(count))

    def draws(self, rng: np.random.Generator, *, translations: int, sides: int) -> Iterator[Batch]:
        """Yields batches without an end: so many translations, and the sides of the first ones."""
        settings = self._settings
        of_pairs = shuffled(rng, len(self._pairs), settings.pairs)
        of_texts = shuffled(rng, self.first - self._sides, settings.passages)
        of_scored = shuffled(rng, len(self._scores), settings.scored)
        while True:
            chosen = self.drawn(rng, translations)
            of_chosen = self.side_of[chosen]
            own = [of_chosen[:sides], self._pairs[next(of_pairs)].ravel()]
            own.append(self._sides + next(of_texts))
            part = np.concatenate([*own, self.first + chosen])
            vectors = self.teacher[np.concatenate([*own, of_chosen])]
            pair = next(of_scored)
            scored = self.first + len(self.side_of) + pair
            read = np.concatenate([part, scored, len(self._scores) + scored])
            yield Batch(read, [(part, vectors)], self._scores[pair])


def train(folder: Path, data: Path, english: Path, settings: Settings) -> None:
    """Trains the model, and writes its weights to `weights.npz`."""
    batches = MultilingualBatches(folder, data, english, settings)
    rows = piece_rows(folder, batches.texts)
    rng = np.random.default_rng(settings.seed)
    first, teacher = batches.first, batches.teacher
    some = np.unique(batches.drawn(rng, FITTED))
    others = rng.choice(first, min(first, FITTED), replace=False)
    vectors = np.concatenate([teacher[batches.side_of[some]], teacher[others]])
    read = np.concatenate([first + some, others])
    table = fitted_table(rows, read, vectors - vectors.mean(axis=0), size=PIECES)
    print("The table is fitted.", flush=True)
    student = Student(table, *_kernels(rng), teacher_widths=(WIDTH,), settings=settings)
    draws = batches.draws(rng, translations=TRANSLATIONS, sides=TRANSLATIONS)
    for number, batch in enumerate(itertools.islice(draws, settings.steps), start=1):
        loss = student.step(number, *rows.take(batch.texts), batch.parts, batch.scores)
        if number % 500 == 0:
            print(f"step {number:,} of {settings.steps:,}: loss {loss:.4f}", flush=True)
    weights = [student.table, *(kernel.detach() for kernel in student.kernels)]
    np.savez(folder / "weights.npz", *[each.numpy() for each in weights])


def fitted_table(rows: Rows, texts: np.ndarray, vectors: np.ndarray, *, size: int) -> np.ndarray:
    """The table whose mean rows come nearest to vectors of texts, float32 `[size, width]`.

    Args:
        rows: The ids.
        texts: The numbers of the texts, `[texts]`.
        vectors: Their centred vectors, float32 `[texts, width]`.
        size: Rows of the table.
    """
    from scipy.sparse import csr_array

    ids, starts = rows.take(texts)
    counts = np.diff([*starts, len(ids)])
    weights = np.repeat(1 / counts, counts).astype(np.float32)
    means = csr_array((weights, ids, [*starts, len(ids)]), (len(texts), size))
    return ridge(means, vectors, np.zeros((size, vectors.shape[1]), np.float32), PENALTY)


class TeacherVectors:
    """Unit vectors by the number of a text, over several files."""

    def __init__(self, *paths: Path) -> None:
        self._arrays = [np.load(path, mmap_mode="r") for path in paths]

    def __getitem__(self, numbers: np.ndarray) -> np.ndarray:
        vectors = np.empty((len(numbers), WIDTH), np.float32)
        start = 0
        for array in self._arrays:
            here = (start <= numbers) & (numbers < start + len(array))
            vectors[here] = array[numbers[here] - start]
            start += len(array)
        return unit_rows(vectors)


def _kernels(rng: np.random.Generator) -> list[np.ndarray]:
    """Layers that hardly change the mean at first."""

    def kernel(inputs: int, outputs: int, share: float) -> np.ndarray:
        return share * (2 / (inputs + outputs)) ** 0.5 * rng.standard_normal((inputs, outputs))

    added = 0.05 * rng.standard_normal((WIDTH, HIDDEN[-1] - WIDTH))
    widths = zip((WIDTH, *HIDDEN), HIDDEN, (1.0, 0.1, 1.0, 0.1), strict=False)
    kernels = [*(kernel(*each) for each in widths), np.hstack([np.eye(WIDTH), added])]
    return [each.astype(np.float32) for each in kernels]


def export(folder: Path, data: Path, target: Path) -> None:
    """Writes the trained model as a SavedModel in int8."""
    import use_st5
    from use_st5.models import StaticEmbedding
    from use_st5.tokenizers import FramedSentencePieceTokenizer

    model = StaticEmbedding(PIECES, WIDTH, normalize=True, hidden_dims=HIDDEN)
    model.build()
    with np.load(folder / "weights.npz") as weights:
        model.set_weights([weights[name] for name in weights.files])
    languages = ["en", *sorted({each.language for each in read_translations(data)})]
    encoder = use_st5.TrainableEncoder(
        model,
        FramedSentencePieceTokenizer((folder / "pieces.model").read_bytes()),
        name=NAME,
        metadata={"languages": languages, "license": "Apache-2.0", "seed": SETTINGS.seed},
    )
    encoder.export(target, precision="int8")


def main() -> None:
    """Reads the command."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(required=True, dest="command")
    parsers = {name: commands.add_parser(name) for name in ("texts", "pieces", "train", "export")}
    for command in parsers.values():
        command.add_argument("folder", type=Path, metavar="FOLDER")
        command.add_argument("--data", type=Path, required=True)
    parsers["train"].add_argument("--english", type=Path, required=True, help="of search_dan")
    parsers["train"].add_argument("--steps", type=int, default=SETTINGS.steps)
    parsers["train"].add_argument("--seed", type=int, default=SETTINGS.seed)
    parsers["export"].add_argument("target", type=Path, metavar="OUT")
    options = vars(parser.parse_args())
    command, folder, data = (options.pop(name) for name in ("command", "folder", "data"))
    if command == "texts":
        write_texts(folder, data)
    elif command == "pieces":
        write_pieces(folder, data)
    elif command == "train":
        english = options.pop("english")
        train(folder, data, english, dataclasses.replace(SETTINGS, **options))
    else:
        export(folder, data, options["target"])


if __name__ == "__main__":
    main()
