"""Rules that paraphrase a sentence: nearly the same meaning in other words.

Each rule takes a sentence and a random generator, and returns the altered sentence, or None if the
rule does not apply. Synonyms are in `word_swaps`.
"""

from __future__ import annotations

import random
import re

from experiments.bundled_models.clauses import as_object, as_subject, transitive_clause
from experiments.bundled_models.english import (
    DETERMINERS,
    PREPOSITIONS,
    bare,
    base_of,
    inflected,
    is_participle,
    is_plural,
    lower_first,
    upper_first,
    verb_forms,
)

_FULL_FORMS = {
    "isn't": "is not", "aren't": "are not", "wasn't": "was not", "weren't": "were not",
    "don't": "do not", "doesn't": "does not", "didn't": "did not", "haven't": "have not",
    "hasn't": "has not", "hadn't": "had not", "won't": "will not", "wouldn't": "would not",
    "can't": "cannot", "couldn't": "could not", "shouldn't": "should not", "i'm": "I am",
    "you're": "you are", "we're": "we are", "they're": "they are", "i've": "I have",
    "you've": "you have", "we've": "we have", "they've": "they have", "i'll": "I will",
    "you'll": "you will", "we'll": "we will", "they'll": "they will", "he'll": "he will",
    "she'll": "she will", "let's": "let us",
}  # fmt: skip
_CLITIC = {"it's": "it is", "he's": "he is", "she's": "she is", "that's": "that is"}
_CLITIC |= {"there's": "there is", "what's": "what is", "who's": "who is", "where's": "where is"}
_CONTRACTIONS = {full.lower(): short for short, full in (_FULL_FORMS | _CLITIC).items()}
_SHORT = re.compile(rf"\b(?:{'|'.join((*_FULL_FORMS, *_CLITIC))})(?= \w)", re.IGNORECASE)
_LONG = re.compile(rf"\b(?:{'|'.join(_CONTRACTIONS)})(?= (?-i:[a-z]))", re.IGNORECASE)
_FEW = "a|an|two|three|four|five|six|some|several|many"
_DAY = "(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day"
_AGO = "(?:week|year|month|night)"
_ADVERBS = (
    "quickly|slowly|carefully|quietly|loudly|happily|sadly|gently|suddenly|eagerly|calmly|angrily|"
    "nervously|silently|patiently|repeatedly|secretly|recently|finally|immediately|eventually|"
    "often|sometimes|usually"
)
_IN_PROGRESS = re.compile(
    rf"(?P<who>(?i:{_FEW}) [\w -]{{2,40}}?) (?P<be>is|are|was|were) (?P<doing>[a-z]+ing\b.*)"
)
_THERE = re.compile(
    rf"There (?P<be>is|are|was|were) (?P<who>(?:{_FEW}) [\w -]{{2,40}}?)"
    r" (?P<doing>(?!during|evening|morning|building|wedding|king)[a-z]+ing\b.*)"
)
_PASSIVE = re.compile(
    rf"(?P<thing>(?:{_FEW}|the|this|his|her|one) [\w -]{{2,40}}?) "
    r"(?P<be>is being|are being|is|are|was|were) (?P<verb>[a-z]+) by "
    r"(?P<who>(?:a|an|the|two|three|some|his|her|[A-Z][a-z]+)(?: [\w-]+){0,3}?)(?P<end>[.!]?)",
    re.IGNORECASE,
)
_PLACE_LAST = re.compile(
    r"(?P<what>[A-Z][^,;:?]+) "
    r"(?P<where>(?P<in>in|at|during|after|before|near|behind|under|outside) "
    r"(?:the|a|an|his|her|their) [\w-]+(?: [\w-]+)?)(?P<end>[.!]?)"
)
_PUT = re.compile(r"\b(?:put|puts|putting|place|places|placing|pours?|pouring)\b")
_TIME_LAST = re.compile(
    r"(?P<what>(?!In |On |At )[A-Z][^,;:?]+) (?P<when>yesterday|today|tomorrow|tonight|now|"
    rf"(?:last|next) {_AGO}|on {_DAY}|in \d{{4}})(?P<end>[.!]?)"
)
_TIME_FIRST = re.compile(
    rf"(?P<when>Yesterday|Today|Tomorrow|Tonight|Now|(?:Last|Next) {_AGO}|On {_DAY}|In \d{{4}}),? "
    r"(?P<what>[\w' -]+?)(?P<end>[.!]?)"
)
_ADVERB = re.compile(
    rf"(?P<before>[\w' -]+?(?<! as)(?<! so)(?<! how)(?<! more) )(?P<adverb>{_ADVERBS}) "
    r"(?P<after>[\w' -]+)(?P<end>[.!]?)"
)
_WHAT_IS = re.compile(
    r"(?P<what>What|Who|Where|When|Which \w+|How (?:old|tall|big|far|long|deep|high)) "
    r"(?P<be>is|are|was|were) (?P<thing>(?:the|a|an|[A-Z]\w+)(?: [\w'-]+){0,5}) ?\?"
)
_CAN_YOU_TELL = re.compile(
    r"(?:(?:Can|Could) you (?:please )?tell me|Do you know|Please tell me) "
    r"(?P<what>what|who|where|when|how \w+) (?P<thing>[\w' -]+) (?P<be>is|are|was|were) ?[?.]"
)
_PLEASE = re.compile(r"\bplease,? |,? please\b", re.IGNORECASE)
_CAN_YOU = re.compile(r"(?P<can>Can|Could|Will|Would) you (?!please|tell me)(?P<do>[\w' -]+)\?")
_AND = re.compile(
    r"\b(?P<one>(?:the|a|an) [a-z]+) and (?P<two>(?:the|a|an) [a-z]+)"
    r"(?= (?:is|are|was|were|[a-z]+ing)\b|[.,;]|$)",
    re.IGNORECASE,
)


def contract(text: str, draw: random.Random) -> str | None:
    """Replaces a contraction, such as "don't", by its full form, or the reverse."""
    matches = [*_SHORT.finditer(text), *_LONG.finditer(text)]
    if not matches:
        return None
    match = draw.choice(matches)
    old = match[0].lower()
    before, after = bare((text[: match.start()].split() or [""])[-1]), text[match.end() :].split()
    if old in _CLITIC and (is_participle(bare(after[0])) or before in PREPOSITIONS):
        return None  # "it has been", or misspelt "its"
    new = _FULL_FORMS.get(old) or _CLITIC.get(old) or _CONTRACTIONS[old]
    new = "I" + new[1:] if new.startswith("i'") else upper_first(new, match[0])
    return text[: match.start()] + new + text[match.end() :]


def change_voice(text: str, _draw: random.Random) -> str | None:
    """Changes active to passive, such as "The man was bitten by the dog.", or the reverse."""
    return _to_active(text) or _to_passive(text)


def _to_passive(text: str) -> str | None:
    clause = transitive_clause(text.split())
    if not clause:
        return None
    subject, verb, thing, rest = clause
    ending = thing[-1][len(thing[-1].rstrip(".,;:!?")) :]
    thing = as_subject([*thing[:-1], thing[-1].rstrip(".,;:!?")])
    plural_subject = is_plural(thing)
    if len(verb) == 2:
        be = "was" if verb[0] in {"was", "were"} else "is"
        be = {"is": "are", "was": "were"}[be] if plural_subject else be
        be, base = f"{be} being", base_of(verb[1], "ing")
    elif base := base_of(verb[0], "past"):
        be = "were" if plural_subject else "was"
    else:
        base = base_of(verb[0], "s") or verb[0]
        be = "are" if plural_subject else "is"
    if base is None or thing == ["I"]:
        return None
    by = ["by", *as_object(lower_first(subject))]
    sentence = " ".join([*thing, be, inflected(base, "participle"), *by]) + ending
    return " ".join([upper_first(sentence, text), *rest])


def _to_active(text: str) -> str | None:
    match = _PASSIVE.fullmatch(text)
    if not match or not (base := base_of(match["verb"], "participle")):
        return None
    thing, who = lower_first(match["thing"].split()), match["who"].split()
    plural_subject = is_plural(who)
    if match["be"].endswith("being"):
        verb = f"{'are' if plural_subject else 'is'} {inflected(base, 'ing')}"
    elif match["be"] in {"was", "were"}:
        verb = inflected(base, "past")
    else:
        verb = base if plural_subject else inflected(base, "s")
    return upper_first(f"{' '.join(who)} {verb} {' '.join(thing)}{match['end']}", text)


def introduce(text: str, _draw: random.Random) -> str | None:
    """Inserts "there is", as in "There is a man playing a flute.", or removes it."""
    if match := _IN_PROGRESS.fullmatch(text):
        who = " ".join(lower_first(match["who"].split()))
        there = upper_first("there", text)
        return f"{there} {match['be']} {who} {match['doing']}"
    if match := _THERE.fullmatch(text):
        return upper_first(f"{match['who']} {match['be']} {match['doing']}", text)
    return None


def reorder(text: str, draw: random.Random) -> str | None:
    """Moves an adverb, a time or a place, or exchanges the parts of a pair."""
    rules = [_move_place, _move_time, _move_adverb, _exchange_pair]
    for rule in draw.sample(rules, len(rules)):
        if altered := rule(text):
            return altered
    return None


def _move_place(text: str) -> str | None:
    match = _PLACE_LAST.fullmatch(text)
    if not match or len(match["what"].split()) < 4:
        return None
    before = match["what"].split()[-1]
    where = match["where"].split()
    if _PUT.search(match["what"]) or (len(where) == 4 and where[-1] in verb_forms()):
        return None
    if before in PREPOSITIONS or (match["in"] != "in" and before in verb_forms()):
        return None  # "looks at the camera"
    what = " ".join(lower_first(match["what"].split()))
    return f"{upper_first(match['where'], text)}, {what}{match['end']}"


def _move_time(text: str) -> str | None:
    if match := _TIME_FIRST.fullmatch(text):
        when = match["when"][0].lower() + match["when"][1:]
        return f"{upper_first(match['what'], text)} {when}{match['end']}"
    match = _TIME_LAST.fullmatch(text)
    if not match or len(match["what"].split()) < 3 or match["what"].split()[-1] in PREPOSITIONS:
        return None
    what = " ".join(lower_first(match["what"].split()))
    return f"{upper_first(match['when'], text)}, {what}{match['end']}"


def _move_adverb(text: str) -> str | None:
    match = _ADVERB.fullmatch(text)
    if not match:
        return None
    before = " ".join(lower_first(match["before"].split()))
    return f"{upper_first(match['adverb'], text)}, {before} {match['after']}{match['end']}"


def _exchange_pair(text: str) -> str | None:
    match = _AND.search(text)
    if not match:
        return None
    one, two = match["one"][0].lower() + match["one"][1:], upper_first(match["two"], match["one"])
    return f"{text[: match.start()]}{two} and {one}{text[match.end() :]}"


def be_polite(text: str, draw: random.Random) -> str | None:
    """Adds or removes "please", or makes a question direct or indirect."""
    if direct := _CAN_YOU_TELL.fullmatch(text):
        return f"{upper_first(direct['what'], 'A')} {direct['be']} {direct['thing']}?"
    if place := _PLEASE.search(text):
        return upper_first(text[: place.start()] + text[place.end() :], text)
    if question := _WHAT_IS.fullmatch(text):
        start, end = draw.choice(
            (("Can you tell me", "?"), ("Do you know", "?"), ("Please tell me", "."))
        )
        thing = " ".join(lower_first(question["thing"].split()))
        return f"{start} {question['what'].lower()} {thing} {question['be']}{end}"
    if question := _CAN_YOU.fullmatch(text):
        return f"{question['can']} you please {question['do']}?"
    first, *rest = text.split()
    imperative = first[0].isupper() and base_of(first.lower(), "base") and first != "Like"
    if imperative and rest and bare(rest[0]) in DETERMINERS | {"me", "us", "him", "them"}:
        return f"Please {first.lower()} {' '.join(rest)}"
    return None
