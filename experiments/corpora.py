"""The corpora of the experiments: each with its licence, its place and a reader.

`CORPORA` lists them by name, and `python -m experiments.corpora` prints them. No corpus comes with
use_st5: the data folder holds the public files, as published, under the paths that each corpus
names.
"""

from __future__ import annotations

import html
import itertools
import json
import random
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from experiments.multilingual_st5.language_triplets import ParallelTriplets, parallel_triplets
from experiments.nli_reader import nli_pairs, read_nli
from experiments.paper_corpora import MULTINLI, OXFORD, SNLI
from experiments.published_corpus import Corpus, Example
from use_st5.data import TableReader, TextReader

# A dump, a crawl or a table made by volunteers may have malformed rows.
_MALFORMED = 0.05
_MARKUP = re.compile(r"<[^>]*>")
# WikiText's tokenisation: `@-@` within words, spaces before punctuation.
_WIKITEXT_REWRITES = (
    (re.compile(r" @(.)@ "), r"\1"),
    (re.compile(r" ([,.;:!?)\]'])"), r"\1"),
    (re.compile(r"([(\[]) "), r"\1"),
)
# Right answers of trivia questions that mean nothing without the question.
_EMPTY_ANSWERS = frozenset({"true", "false", "yes", "no", "all of these", "none of these"})
_ENTAILMENT, _CONTRADICTION = 0, 2
_NO_LICENCE = "no licence file; premises of MultiNLI"


def _dialogues(files: list[Path]) -> Iterator[Example]:
    """Each turn with the next one, of rows `{"turns": [str, …]}`, unless one of them is blank.

    This is the conversational input-response task of the USE paper (section 3.1), after Henderson
    et al. 2017.
    """
    for dialogue in json_rows(files):
        turns = [turn.strip() for turn in dialogue["turns"]]
        for before, turn in itertools.pairwise(turns):
            if before and turn:
                yield {"input": before, "response": turn}


def json_rows(files: Iterable[Path]) -> Iterator[Any]:
    """The rows of jsonl files."""
    for path in files:
        with path.open(encoding="utf-8") as lines:
            yield from map(json.loads, lines)


def _definitions(files: list[Path]) -> Iterable[Example]:
    """Lines of word, part of speech, definition and perhaps an example."""
    return TableReader(
        files,
        {"word": 0, "part_of_speech": 1, "definition": 2, "example": 3},
        optional=("part_of_speech", "example"),
        file_format="tsv",
        max_malformed=_MALFORMED,
    )


def _medical_answers(files: list[Path]) -> Iterable[Example]:
    columns = {"anchor": "question", "positive": "answer"}
    return TableReader(files, columns, max_malformed=_MALFORMED)


def _read_trivia(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def trivia_questions(data: Path) -> Iterator[str]:
    """All trivia questions, including those whose answers mean nothing alone."""
    for path in TRIVIA.files(data):
        for line in _read_trivia(path).splitlines():
            if line.startswith("#Q "):
                yield line.removeprefix("#Q ")


def _trivia_answers(files: list[Path]) -> Iterator[Example]:
    """Questions, the right answer, and one of the wrong ones."""
    draw = random.Random(0)
    entries = (entry for path in files for entry in _read_trivia(path).split("#Q ")[1:])
    for entry in entries:
        question, _, rest = entry.partition("\n^ ")
        right, *lines = rest.strip().split("\n")
        options = [line[2:].strip() for line in lines if line[1:2] == " "]
        wrong = [each for each in options if each and each != right.strip()]
        if wrong and right.strip().lower() not in _EMPTY_ANSWERS:
            yield {
                "anchor": " ".join(question.split()),
                "positive": right.strip(),
                "negative": draw.choice(wrong),
            }


def stack_exchange_posts(files: list[Path]) -> Iterator[tuple[str, ElementTree.Element]]:
    """Posts of Stack Exchange's dumps, each with its site; post ids are unique only in a site."""
    for path in files:
        for _, row in ElementTree.iterparse(path):
            yield path.name, row
            row.clear()


def plain_text(markup: str | None) -> str:
    """HTML without its tags, and with its entities decoded; an empty text for None."""
    return html.unescape(_MARKUP.sub(" ", markup or ""))


def _stack_exchange_answers(files: list[Path]) -> Iterator[Example]:
    """Titles of questions and the answers to them."""
    titles: dict[tuple[str, str | None], str] = {}
    for site, row in stack_exchange_posts(files):
        answer = plain_text(row.get("Body"))
        if title := row.get("Title"):
            titles[site, row.get("Id", "")] = title
        elif (parent := (site, row.get("ParentId"))) in titles and answer.strip():
            yield {"anchor": titles[parent], "positive": " ".join(answer.split())}


def _wikitext(files: list[Path]) -> Iterator[Example]:
    for text in TextReader(files, layout="lines").sentences():
        if "<unk>" not in text and not text.startswith("="):
            for pattern, replacement in _WIKITEXT_REWRITES:
                text = pattern.sub(replacement, text)
            yield {"sentence": text}


def _simcse(files: list[Path]) -> Iterable[Example]:
    columns = {"anchor": "sent0", "positive": "sent1", "negative": "hard_neg"}
    return TableReader(files[0], columns)


def xnli_mt(files: list[Path]) -> ParallelTriplets:
    """XNLI-MT's triplets, by the languages in the files' names."""
    return parallel_triplets({file.name.split(".")[2]: [*nli_pairs(file)] for file in files})


NOVELS = Corpus(
    "100_english_novels",
    "running text of 100 novels: previous, sentence, next",
    "text/100_english_novels/corpus/*.txt",
    "public domain",
    TextReader,
)
WIKITEXT = Corpus(
    "wikitext_2",
    "Wikipedia articles, tokenised: sentence",
    "text/wikitext-2/*.txt",
    "CC BY-SA 3.0",
    _wikitext,
)
SGD = Corpus(
    "sgd_dialogues",
    "dialogues with an assistant: input, response",
    "sgd_dialogues.jsonl",
    "CC BY-SA 4.0",
    _dialogues,
)
SELF_DIALOGUE = Corpus(
    "self_dialogue",
    "open dialogues: input, response",
    "self_dialogue.jsonl",
    "BSD-3-Clause",
    _dialogues,
)
LING_IN_LOOP = Corpus(
    "ling_in_loop",
    "inference pairs on MultiNLI premises (LitL): premise, hypothesis, label",
    "nli/ling_in_loop/NLI_data/*/train*.jsonl",
    _NO_LICENCE,
    read_nli,
)
SEMI_AUTOMATIC_NLI = Corpus(
    "semi_automatic_nli",
    "inference pairs on Wikipedia sentences: premise, hypothesis, label",
    "nli/semi_automatic_nli/data/*_wiki/train.jsonl",
    "CC BY-SA 3.0",
    read_nli,
)
CAD_SNLI = Corpus(
    "cad_snli",
    "revised SNLI pairs: premise, hypothesis, label",
    "nli/cad_snli/NLI/all_combined/train.tsv",
    "Apache-2.0",
    read_nli,
)
CONJNLI = Corpus(
    "conjnli",
    "inference pairs on Wikipedia sentences: premise, hypothesis, label",
    "nli/conjnli/adversarial_train_15k.tsv",
    "MIT",
    read_nli,
)
MEDQUAD = Corpus(
    "medquad",
    "medical questions and answers: anchor, positive",
    "medquad_qa.jsonl",
    "CC BY 4.0",
    _medical_answers,
)
TRIVIA = Corpus(
    "opentriviaqa",
    "trivia questions with a right and a wrong answer: anchor, positive, negative",
    "qa/opentriviaqa/categories/*",
    "CC BY-SA 4.0",
    _trivia_answers,
)
STACK_EXCHANGE = Corpus(
    "stack_exchange",
    "questions and answers of two Stack Exchange sites: anchor, positive",
    "qa/stackexchange_small/*.Posts.xml",
    "CC BY-SA",
    _stack_exchange_answers,
)
WORDNET = Corpus(
    "oewn",
    "Open English WordNet: word, part_of_speech, definition",
    "oewn_definitions.tsv",
    "CC BY 4.0",
    _definitions,
)
WORDSET = Corpus(
    "wordset",
    "a dictionary: word, part_of_speech, definition, example",
    "wordset_definitions.tsv",
    "CC BY-SA 4.0",
    _definitions,
)
SIMCSE_NLI = Corpus(
    "simcse_nli",
    "SimCSE's triplets of SNLI and MultiNLI: anchor, positive, negative",
    "**/nli_for_simcse.csv",
    "that of SNLI and MultiNLI",
    _simcse,
)
XNLI_MT = Corpus(
    "xnli_mt",
    "MultiNLI in 15 languages, row for row: anchor, positive, negative of three languages",
    "**/multinli.train.*.tsv",
    "CC BY-NC 4.0",
    lambda files: xnli_mt(files).examples(),
)

CORPORA = {
    corpus.name: corpus
    for corpus in (
        *(NOVELS, WIKITEXT, SGD, SELF_DIALOGUE, LING_IN_LOOP, SEMI_AUTOMATIC_NLI, CAD_SNLI),
        *(CONJNLI, MEDQUAD, TRIVIA, STACK_EXCHANGE, WORDNET, WORDSET, SIMCSE_NLI, XNLI_MT),
        *(SNLI, MULTINLI, OXFORD),
    )
}


def dialogue_pairs(data: Path) -> Iterator[Example]:
    """Inputs and responses of both dialogue corpora."""
    return itertools.chain(SGD.examples(data), SELF_DIALOGUE.examples(data))


def definitions(data: Path) -> Iterator[Example]:
    """Words and their definitions of both dictionaries."""
    return itertools.chain(WORDNET.examples(data), WORDSET.examples(data))


def inference_pairs(data: Path) -> Iterator[Example]:
    """Premise, hypothesis and label of all English inference corpora."""
    corpora = (LING_IN_LOOP, SEMI_AUTOMATIC_NLI, CAD_SNLI, CONJNLI)
    return itertools.chain(*[corpus.examples(data) for corpus in corpora])


def inference_triplets(data: Path) -> Iterator[Example]:
    """Premise, entailed and contradicting hypothesis, as in Gao et al. 2021, section 4.

    The k-th entailed hypothesis of a premise is paired with the k-th contradicting one. Hypotheses
    without a partner are left out.
    """
    hypotheses: dict[str, tuple[list[str], list[str], list[str]]] = {}
    for pair in inference_pairs(data):
        by_label = hypotheses.setdefault(pair["premise"], ([], [], []))
        by_label[pair["label"]].append(pair["hypothesis"])
    for premise, by_label in hypotheses.items():
        entailed, contradicting = (
            dict.fromkeys(by_label[label]) for label in (_ENTAILMENT, _CONTRADICTION)
        )
        for positive, negative in zip(entailed, contradicting, strict=False):
            yield {"anchor": premise, "positive": positive, "negative": negative}


if __name__ == "__main__":
    for each in CORPORA.values():
        print(each.name, each.what, each.place, each.licence, sep="\t")
