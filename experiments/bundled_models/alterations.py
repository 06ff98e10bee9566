"""Alters sentences: by rules that keep them English, or at random.

Two random sentences have little to do with each other, so a batch of them teaches a student little
about what changes the meaning of a sentence. A sentence and its alteration share most words; the
teacher decides how near their meanings are (data augmentation for distillation as in TinyBERT,
arXiv 1909.10351, section 3.2, there with a language model's words). Rules make near misses, such as
"The man bit the dog.", and paraphrases, such as "The man was bitten by the dog.". If no rule
applies, and for a share of the sentences, words are replaced, left out, inserted, negated or
exchanged at random.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence

from experiments.bundled_models import near_misses, paraphrases, word_swaps
from experiments.bundled_models.english import AUXILIARIES, Words

_AUXILIARIES = AUXILIARIES | {"be", "been"}
_AT_RANDOM = 0.3  # the share of random alterations, even if a rule would apply
Rule = Callable[[str, random.Random], str | None]
RULES: dict[str, Rule] = {
    "negation": near_misses.negate,
    "roles": near_misses.exchange_roles,
    "tense": near_misses.change_tense,
    "number": word_swaps.swap_number,
    "antonym": word_swaps.swap_antonym,
    "entity": word_swaps.swap_entity,
    "colour": word_swaps.swap_colour,
    "quantifier": word_swaps.swap_quantifier,
    "synonym": word_swaps.swap_synonym,
    "contraction": paraphrases.contract,
    "voice": paraphrases.change_voice,
    "introduction": paraphrases.introduce,
    "order": paraphrases.reorder,
    "politeness": paraphrases.be_polite,
}
# Weights of the draw of the rule to try next: higher for rules that rarely apply.
_WEIGHTS = {"roles": 4, "voice": 4, "quantifier": 3, "order": 3, "contraction": 3, "synonym": 2}


def generate_alterations(sentences: Sequence[str], *, seed: int = 0) -> Iterator[str]:
    """Yields one alteration of each sentence.

    Args:
        sentences: Texts of at least two words; random words to insert are taken from them, too.
        seed: Same seed and sentences, same alterations.

    Yields:
        A sentence that differs from the original one.
    """
    if len(sentences) < 2 or any(" " not in sentence for sentence in sentences):
        raise ValueError("Expected at least two sentences, of two words or more each.")
    draw = random.Random(seed)
    for sentence in sentences:
        yield _altered(sentence, draw, lambda: draw.choice(sentences).split())


def altered_by_rule(sentence: str, draw: random.Random) -> str | None:
    """The sentence altered by the first rule that applies, the rules in random order."""
    # Drawn without replacement by weight (Efraimidis and Spirakis, 2006).
    order = sorted(RULES, key=lambda name: draw.random() ** (1 / _WEIGHTS.get(name, 1)))
    for name in reversed(order):
        altered = RULES[name](sentence, draw)
        if altered and altered != sentence:
            return altered
    return None


def _altered(sentence: str, draw: random.Random, other: Callable[[], Words]) -> str:
    """Draws until the sentence is different: an exchange of equal words changes nothing."""
    if draw.random() >= _AT_RANDOM and (by_rule := altered_by_rule(sentence, draw)):
        return by_rule
    while True:
        words = draw.choice(_KINDS)(sentence.split(), draw, other)
        if words and (altered := " ".join(words)) != sentence:
            return altered


def _replace(words: Words, draw: random.Random, other: Callable[[], Words]) -> Words:
    for place in _places(words, draw, share=4):
        words[place] = draw.choice(other())
    return words


def _remove(words: Words, draw: random.Random, _other: Callable[[], Words]) -> Words:
    removed_places = _places(words, draw, share=3)
    return [word for place, word in enumerate(words) if place not in removed_places]


def _insert(words: Words, draw: random.Random, other: Callable[[], Words]) -> Words:
    for place in sorted(_places(words, draw, share=4), reverse=True):
        words.insert(place, draw.choice(other()))
    return words


def _deny(words: Words, _draw: random.Random, _other: Callable[[], Words]) -> Words:
    """Inserts "not" behind the first auxiliary verb, or removes the first "not"."""
    lower = [word.lower() for word in words]
    if "not" in lower:
        del words[lower.index("not")]
    elif place := next((i for i, word in enumerate(lower, 1) if word in _AUXILIARIES), 0):
        words.insert(place, "not")
    return words


def _exchange(words: Words, draw: random.Random, _other: Callable[[], Words]) -> Words:
    """Two words change places, which may exchange who did it to whom."""
    first, second = draw.sample(range(len(words)), 2)
    words[first], words[second] = words[second], words[first]
    return words


def _splice(words: Words, _draw: random.Random, other: Callable[[], Words]) -> Words:
    """Joins the first half of one sentence and the second half of another."""
    end = other()
    return words[: (len(words) + 1) // 2] + end[len(end) // 2 :]


def _places(words: Words, draw: random.Random, *, share: int) -> set[int]:
    """Some places, at least one and at most one in `share`."""
    most = max(1, len(words) // share)
    return set(draw.sample(range(len(words)), draw.randint(1, most)))


_KINDS = (_replace, _replace, _remove, _insert, _deny, _exchange, _splice)
