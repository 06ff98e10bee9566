"""The data of `sentence_t5`: answered questions, then premises with hypotheses of both kinds."""

from __future__ import annotations

import html
import random
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import numpy as np

from use_st5._files import atomic_path
from use_st5.data.pair_reader import PairReader
from use_st5.recipes._permissive_corpora import MARKUP, existing, inference_pairs
from use_st5.recipes._teacher_sentences import held_out_sentences, normalized

if TYPE_CHECKING:  # It needs TensorFlow, and what is prepared does not.
    from use_st5.text.sentencepiece_vectorizer import SentencePieceVectorizer

# As T5 cuts texts: the end-of-sentence token is counted, and kept.
MAX_TOKENS = 24
_ENTAILMENT, _CONTRADICTION = 0, 2
# Right answers of trivia that say nothing by themselves.
_EMPTY_ANSWERS = frozenset({"true", "false", "yes", "no", "all of these", "none of these"})

Texts = tuple[str, ...]
Arrays = dict[str, np.ndarray]


def prepare_stage(
    data: Path, stage: str, vectorizer: SentencePieceVectorizer, prepared: Path
) -> None:
    """Writes the arrays of a stage as `STAGE/DATA_SET/COLUMN.npy`, unless they are there."""
    if (prepared / stage).exists():
        return
    with atomic_path(prepared / stage) as temporary:
        for name, arrays in stage_arrays(data, stage, vectorizer).items():
            (temporary / name).mkdir(parents=True)
            for column, ids in arrays.items():
                np.save(temporary / name / f"{column}.npy", ids)


def open_stage(prepared: Path, stage: str) -> dict[str, Arrays]:
    """What `prepare_stage` wrote, mapped into memory; as `stage_arrays`.

    Raises:
        FileNotFoundError: It was not written.
    """
    folders = {name: prepared / stage / name for name in _SOURCES[stage]}
    for folder in folders.values():
        if not folder.is_dir():
            raise FileNotFoundError(
                f"Expected prepared ids, {folder}. Where TensorFlow is, run the same command with "
                "--part prepare, and bring the output folder here."
            )
    return {
        name: {path.stem: np.load(path, mmap_mode="r") for path in sorted(folder.iterdir())}
        for name, folder in folders.items()
    }


def stage_arrays(data: Path, stage: str, vectorizer: SentencePieceVectorizer) -> dict[str, Arrays]:
    """The data sets of a stage as ids, without any sentence of an STS set.

    Args:
        data: Folder of the corpora.
        stage: "qa" or "nli".
        vectorizer: Gives the ids.

    Returns:
        Data set → "anchor", "positive" and, where there are any, "negative": int32
        `[examples, MAX_TOKENS]`.
    """
    held_out = held_out_sentences(data)
    return {
        name: _arrays(not_held_out(read(data), held_out), vectorizer)
        for name, read in _SOURCES[stage].items()
    }


def nli_triplets(data: Path) -> Iterator[Texts]:
    """Premise, entailed and contradicting hypothesis, as in Gao et al. 2021, section 4.

    The k-th entailed hypothesis of a premise is paired with the k-th contradicting one; what is
    left over on either side makes no triplet.
    """
    hypotheses: dict[str, tuple[list[str], list[str], list[str]]] = {}
    for pair in inference_pairs(data):
        by_label = hypotheses.setdefault(str(pair["premise"]), ([], [], []))
        by_label[int(str(pair["label"]))].append(str(pair["hypothesis"]))
    for premise, by_label in hypotheses.items():
        entailed, contradicting = (
            dict.fromkeys(by_label[label]) for label in (_ENTAILMENT, _CONTRADICTION)
        )
        for positive, negative in zip(entailed, contradicting, strict=False):
            yield premise, positive, negative


def medical_answers(data: Path) -> Iterator[Texts]:
    """Medical questions and their answers."""
    path = existing(data, "medquad_qa.jsonl")
    for pair in PairReader(path, anchor="question", positive="answer", max_malformed=0.05):
        yield pair["anchor"], pair["positive"]


def trivia_answers(data: Path) -> Iterator[Texts]:
    """Trivia questions, the right answer, and one of the wrong ones."""
    draw = random.Random(0)
    for path in existing(data, "qa/opentriviaqa/categories/*"):
        for entry in path.read_text(encoding="utf-8", errors="replace").split("#Q ")[1:]:
            question, _, rest = entry.partition("\n^ ")
            right, *lines = rest.strip().split("\n")
            options = [line[2:].strip() for line in lines if line[1:2] == " "]
            wrong = [each for each in options if each and each != right.strip()]
            if wrong and right.strip().lower() not in _EMPTY_ANSWERS:
                yield " ".join(question.split()), right.strip(), draw.choice(wrong)


def stack_exchange_answers(data: Path) -> Iterator[Texts]:
    """Titles of questions and the answers to them."""
    for path in existing(data, "qa/stackexchange_small/*.Posts.xml"):
        titles: dict[str, str] = {}
        for _, row in ElementTree.iterparse(path):
            answer = html.unescape(MARKUP.sub(" ", row.get("Body") or ""))
            if title := row.get("Title"):
                titles[row.get("Id", "")] = title
            elif (parent := row.get("ParentId")) in titles and answer.strip():
                yield titles[parent], " ".join(answer.split())
            row.clear()


# Stage → data set → its examples; the order is that of the tasks.
_SOURCES: dict[str, dict[str, Callable[[Path], Iterator[Texts]]]] = {
    "qa": {
        "medical": medical_answers,
        "trivia": trivia_answers,
        "stack_exchange": stack_exchange_answers,
    },
    "nli": {"nli": nli_triplets},
}


def not_held_out(examples: Iterable[Texts], held_out: Collection[str]) -> list[Texts]:
    """The examples without a sentence that `held_out_sentences` gives."""
    return [each for each in examples if not any(normalized(text) in held_out for text in each)]


def _arrays(examples: list[Texts], vectorizer: SentencePieceVectorizer) -> Arrays:
    columns = zip(*examples, strict=True)
    names = ("anchor", "positive", "negative")
    # The same width in every data set, so that one step serves.
    return {
        name: vectorizer.token_ids(list(texts), MAX_TOKENS).numpy()
        for name, texts in zip(names, columns, strict=False)
    }
