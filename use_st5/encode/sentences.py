"""Checking, cleaning and batching of the sentences that users give."""

from __future__ import annotations

import collections
import operator
import re
import reprlib
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from use_st5.hub.model_names import bundled_names

OnEmpty = Literal["encode", "zero", "raise"]

# Frequent words of English. In English texts of any domain they are 30 % of the words, in headlines
# 13 %; in other languages below 15 %, because some are words there, too ("die", "in").
_ENGLISH_WORDS = {
    *("a", "about", "all", "also", "an", "and", "are", "as", "at", "be", "but", "by", "can"),
    *("could", "do", "for", "from", "had", "has", "have", "he", "her", "his", "how", "if", "in"),
    *("is", "it", "its", "more", "my", "no", "not", "of", "on", "one", "or", "our", "she", "so"),
    *("than", "that", "the", "their", "them", "then", "there", "these", "they", "this", "to"),
    *("was", "we", "were", "what", "when", "which", "who", "will", "with", "would", "you", "your"),
}
_FEW_ENGLISH_WORDS = 0.2
# Scripts by the first word of their letters' names in Unicode → languages that are written in them.
_SCRIPTS = {
    "LATIN": "af cs da de en es et eu fi fr hr hu id is it lt lv ms nb nl no pl pt ro sk sl sq sv "
    "sw tl tr vi",
    "CYRILLIC": "be bg kk mk ru sr uk",
    "ARABIC": "ar fa ur",
    "DEVANAGARI": "hi mr ne",
    "CJK": "zh yue",
    "CJK HIRAGANA KATAKANA": "ja",
    "HANGUL CJK": "ko",
    "GREEK": "el",
    "HEBREW": "he yi",
    "THAI": "th",
    "BENGALI": "bn",
    "TAMIL": "ta",
    "GEORGIAN": "ka",
    "ARMENIAN": "hy",
}
_MANY_FOREIGN_LETTERS = 0.2
_MULTILINGUAL = "use_dan_multilingual"
# The share of letters outside of ASCII that English does not reach: a list of names or of headlines
# in English has few of the words above, but no such letters. Dutch and Indonesian have none either.
_MANY_OTHER_LETTERS = 0.005
# The least number of texts that are judged, how many of them are read, and their first characters.
MANY_TEXTS, _READ, _BEGINNING = 50, 100, 500
_WORD = re.compile(r"[^\W\d_]+")

# Somewhat more than a sentence of average length has.
_CHARACTERS_PER_SENTENCE = 200


def one_or_many(sentences: Any) -> tuple[list[str], bool]:
    """Returns the user's strings as a list, and whether the user gave a single string.

    Args:
        sentences: One string, as `str`, `bytes`, a scalar tensor or an array without axes; or a
            list, an array of NumPy or Arrow, a pandas column, a generator, a string tensor, a
            `tf.data.Dataset` of strings … `bytes` are read as UTF-8. Invalid bytes and lone
            surrogates become U+FFFD.
    """
    shape = [*getattr(sentences, "shape", [0])]
    if len(shape) > 1:
        received = f"received {type(sentences).__name__} {shape}"
        raise TypeError(f"Expected one axis of strings, {received}: give one column of it.")
    if not shape:
        sentences = np.asarray(sentences).item()
    elif hasattr(sentences, "numpy"):  # a TensorFlow tensor; iterating over it is slow
        sentences = sentences.numpy()
    elif hasattr(sentences, "to_pylist"):  # Arrow
        sentences = sentences.to_pylist()
    elif hasattr(sentences, "as_numpy_iterator"):  # a tf.data.Dataset
        sentences = sentences.as_numpy_iterator()
    single = isinstance(sentences, (str, bytes))
    if not isinstance(sentences, Iterable) or isinstance(sentences, Mapping):
        raise TypeError(f"Expected strings, received {type(sentences).__name__}.")
    texts = enumerate([sentences] if single else sentences)
    # Most texts are ASCII: this is faster than a call for each.
    return [
        text if type(text) is str and text.isascii() else _as_text(text, index)
        for index, text in texts
    ], single


def _as_text(text: Any, index: int) -> str:
    if isinstance(text, bytes):
        return text.decode("utf-8", "replace")
    if not isinstance(text, str):
        received = f"received {type(text).__name__} at index {index}: {reprlib.repr(text)}"
        raise TypeError(f"Expected strings, {received}. A tf.data.Dataset needs .unbatch().")
    try:
        text.encode()
    except UnicodeEncodeError:  # lone surrogates
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def check_pairs(pairs: Iterable[Any]) -> tuple[list[str], list[str]]:
    """The first and the second strings of pairs, as `one_or_many` gives them."""
    rows = list(pairs)
    for index, pair in enumerate(rows):
        if isinstance(pair, (str, bytes)) or len(pair) != 2:
            raise TypeError(f"Expected pairs of strings, received {pair!r} at index {index}.")
    return one_or_many([row[0] for row in rows])[0], one_or_many([row[1] for row in rows])[0]


def empty_texts(texts: Sequence[str], *, refuse: bool) -> list[int]:
    """Returns the indices of the texts that are empty or only white space, or refuses them."""
    empty = [index for index, text in enumerate(texts) if not text.strip()]
    if empty and refuse:
        raise ValueError(f"found {len(empty)} empty texts, the first at index {empty[0]}.")
    return empty


def check_batch_size(batch_size: Any, name: str = "batch_size") -> None:
    """Refuses anything but a whole number above 0 of any library."""
    if operator.index(batch_size) < 1:
        raise ValueError(f"{name} must be at least 1. Received: {batch_size}")


def mostly_not_english(texts: Sequence[str]) -> bool:
    """Whether many texts are in another language than English; few texts are not judged."""
    if len(texts) < MANY_TEXTS:
        return False
    sample = texts[:: -(-len(texts) // _READ)]
    words = [word for text in sample for word in _WORD.findall(text[:_BEGINNING].lower())]
    letters = sum(map(len, words))
    # Superscripts are parts of words, but not letters.
    others = "".join(word for word in words if not word.isascii())
    other_letters = sum(letter.isalpha() and not letter.isascii() for letter in others)
    english_words = sum(word in _ENGLISH_WORDS for word in words)
    return (
        english_words < _FEW_ENGLISH_WORDS * len(words)
        and other_letters > _MANY_OTHER_LETTERS * letters
    )


def language_message(texts: Sequence[str], languages: Any, model: str) -> str:
    """Says that texts are in none of a model's `languages`, and what to do; empty if they may be.

    The script of their letters decides, and for models of English also how frequent its words are.
    Few texts are not judged, nor models without `languages` or with one of an unknown script.
    """
    if not isinstance(languages, list) or len(texts) < MANY_TEXTS:
        return ""
    known = {str(code).split("-")[0] for code in languages}
    what = f"in {script} script" if (script := _foreign_script(texts, known)) else ""
    if known == {"en"} and not what and mostly_not_english(texts):
        what = "not English"
    if not what:
        return ""
    names = "only English" if known == {"en"} else ", ".join(map(str, languages))
    other = "hf://sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2"
    if _MULTILINGUAL in {*bundled_names()} - {model}:
        other = _MULTILINGUAL
    return f'Many of these texts are {what}, but {model} knows {names}. Load "{other}".'


def _foreign_script(texts: Sequence[str], languages: set[str]) -> str:
    """The script of many letters that none of the languages is written in; empty if there is none.

    Digits, emoji and marks are no letters.
    """
    sample = " ".join(text[:_BEGINNING] for text in texts[:: -(-len(texts) // _READ)])
    if sample.isascii():
        return ""
    scripts = {code: names.split() for names, codes in _SCRIPTS.items() for code in codes.split()}
    if not languages <= scripts.keys():
        return ""
    known = {name for code in languages for name in scripts[code]}
    counts = collections.Counter(unicodedata.normalize("NFKC", sample))
    letters = {letter: count for letter, count in counts.items() if letter.isalpha()}
    foreign: collections.Counter[str] = collections.Counter()
    for letter, count in letters.items():
        name = unicodedata.name(letter, "").split(" ")[0]
        if not letter.isascii() and name not in {*known, "LATIN"}:
            foreign[name] += count
    if sum(foreign.values()) <= _MANY_FOREIGN_LETTERS * sum(letters.values()):
        return ""
    return foreign.most_common(1)[0][0].capitalize().replace("Cjk", "Chinese")


def check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    """Checks the value of an argument that takes one of a few strings."""
    if value not in choices:
        expected = ", ".join(f'"{choice}"' for choice in choices)
        raise ValueError(f"Unknown {name}: {value!r}. Expected one of {expected}.")


def length_sorted_batches(
    texts: Sequence[str], *, sentences: int, characters: int | None = None
) -> Iterator[np.ndarray]:
    """Cuts texts into batches of similar length, longest first.

    Longest first, so that memory runs out at once or not at all.

    Args:
        texts: Strings.
        sentences: The most sentences in a batch.
        characters: The most characters in a batch; each text counts as much as the longest one of
            the batch. A longer text makes a batch of its own. None: 200 for each of `sentences`,
            so that a batch of long texts takes no more memory than one of average texts.

    Yields:
        Indices into `texts`, int64 `[batch]`; each index once.
    """
    sentences = int(sentences)  # NumPy's int8 would overflow.
    if characters is None:
        characters = sentences * _CHARACTERS_PER_SENTENCE
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    order = np.argsort(-lengths, kind="stable")
    start = 0
    while start < len(order):
        longest = max(int(lengths[order[start]]), 1)
        count = max(1, min(sentences, characters // longest))
        yield order[start : start + count]
        start += count
