"""The permissively licensed corpora that shipped models learn from, read from one folder.

The folder holds public files under these paths (source, licence):

| path | what |
|---|---|
| `text/100_english_novels/corpus/*.txt` | novels (public domain) |
| `text/wikitext-2/*.txt` | Wikipedia articles, tokenised (CC BY-SA 3.0) |
| `sgd_dialogues.jsonl`, `self_dialogue.jsonl` | dialogues (CC BY-SA 4.0; BSD-3) |
| `nli/ling_in_loop/NLI_data/*/train*.jsonl` | inference pairs on MultiNLI premises |
| `nli/cad_snli/NLI/all_combined/train.tsv` | revised SNLI pairs (Apache-2.0) |
| `nli/conjnli/adversarial_train_15k.tsv` | pairs on Wikipedia sentences |
| `nli/semi_automatic_nli/data/*_wiki/train.jsonl` | pairs on Wikipedia sentences (CC BY-SA 3.0) |
| `medquad_qa.jsonl` | medical questions and answers (CC BY 4.0) |
| `qa/opentriviaqa/categories/*` | trivia questions (CC BY-SA 4.0) |
| `qa/stackexchange_small/*.Posts.xml` | two Stack Exchange sites (CC BY-SA) |
| `oewn_definitions.tsv`, `wordset_definitions.tsv` | dictionaries (CC BY 4.0; CC BY-SA 4.0) |
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from xml.etree import ElementTree

from use_st5.data.definition_reader import DefinitionReader
from use_st5.data.dialogue_reader import DialogueReader
from use_st5.data.nli_reader import NLIReader
from use_st5.data.pair_reader import PairReader
from use_st5.data.sentence_splitter import split_sentences
from use_st5.data.text_reader import TextReader

_NLI = (
    "nli/ling_in_loop/NLI_data/*/train*.jsonl",
    "nli/semi_automatic_nli/data/*_wiki/train.jsonl",
    "nli/cad_snli/NLI/all_combined/train.tsv",
    "nli/conjnli/adversarial_train_15k.tsv",
)
_DIALOGUES = ("sgd_dialogues.jsonl", "self_dialogue.jsonl")
MARKUP = re.compile(r"<[^>]*>")
# WikiText's tokenisation: `@-@` within words, spaces before punctuation.
_WIKITEXT_REWRITES = (
    (re.compile(r" @(.)@ "), r"\1"),
    (re.compile(r" ([,.;:!?)\]'])"), r"\1"),
    (re.compile(r"([(\[]) "), r"\1"),
)


def running_text(data: Path) -> Iterator[dict[str, str]]:
    """Neighbouring sentences of the novels: previous, sentence, next."""
    return iter(TextReader(existing(data, "text/100_english_novels/corpus/*.txt")))


def dialogue_pairs(data: Path) -> Iterator[dict[str, str]]:
    """Inputs and responses of both dialogue corpora."""
    return iter(DialogueReader(existing(data, *_DIALOGUES)))


def inference_pairs(data: Path) -> Iterator[dict[str, object]]:
    """Premise, hypothesis and label of all inference corpora."""
    return (example for path in existing(data, *_NLI) for example in NLIReader(path))


def sentences_by_source(data: Path) -> dict[str, Callable[[], Iterable[str]]]:
    """All sentences, source by source; each entry starts a fresh pass."""
    return {
        "novels": lambda: (example["sentence"] for example in running_text(data)),
        "dialogues": lambda: _texts(dialogue_pairs(data), "input", "response"),
        "inference": lambda: _texts(inference_pairs(data), "premise", "hypothesis"),
        "definitions": lambda: _definitions(data, "definition"),
        "words": lambda: _definitions(data, "word"),
        "examples": lambda: _definitions(data, "example"),
        "medical": lambda: _medical(data),
        "trivia": lambda: _trivia(data),
        "stack_exchange": lambda: _stack_exchange(data),
        "wikitext": lambda: _wikitext(data),
    }


def existing(data: Path, *patterns: str) -> list[Path]:
    """The files that match; every pattern must have one."""
    found: list[Path] = []
    for pattern in patterns:
        matches = sorted(data.glob(pattern))
        if not matches:
            raise FileNotFoundError(
                f"Expected {pattern} in {data}, found nothing of that name. "
                "use_st5/recipes/_permissive_corpora.py lists the corpora and their places."
            )
        found += matches
    return found


def nouns(data: Path) -> set[str]:
    """The nouns of Open English WordNet."""
    path = existing(data, "oewn_definitions.tsv")
    rows = DefinitionReader(path, max_malformed=0.05)
    return {row["word"] for row in rows if row["part_of_speech"] == "n"}


def _texts(examples: Iterable[dict[str, object]], *keys: str) -> Iterator[str]:
    return (str(example[key]) for example in examples for key in keys)


def _definitions(data: Path, key: str) -> Iterator[str]:
    for path in existing(data, "oewn_definitions.tsv", "wordset_definitions.tsv"):
        yield from (row[key] for row in DefinitionReader(path, max_malformed=0.05) if row[key])


def _medical(data: Path) -> Iterator[str]:
    path = existing(data, "medquad_qa.jsonl")
    for pair in PairReader(path, anchor="question", positive="answer", max_malformed=0.05):
        yield pair["anchor"]
        yield from split_sentences(pair["positive"])


def _trivia(data: Path) -> Iterator[str]:
    for path in existing(data, "qa/opentriviaqa/categories/*"):
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("#Q "):
                yield line.removeprefix("#Q ")


def _stack_exchange(data: Path) -> Iterator[str]:
    for path in existing(data, "qa/stackexchange_small/*.Posts.xml"):
        for _, row in ElementTree.iterparse(path):
            for text in (row.get("Title"), row.get("Body")):
                yield from split_sentences(html.unescape(MARKUP.sub(" ", text or "")))
            row.clear()


def _wikitext(data: Path) -> Iterator[str]:
    for text in TextReader(existing(data, "text/wikitext-2/*.txt"), layout="lines").sentences():
        if "<unk>" not in text and not text.startswith("="):
            for pattern, replacement in _WIKITEXT_REWRITES:
                text = pattern.sub(replacement, text)
            yield text
