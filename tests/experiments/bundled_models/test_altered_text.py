"""Rules that alter English sentences, and generated text."""

from __future__ import annotations

import json
import random
import re

import numpy as np
import pytest

from experiments.bundled_models import (
    alterations,
    english,
    generated_text,
    related_sentences,
    word_swaps,
)
from experiments.bundled_models.alterations import RULES, altered_by_rule, generate_alterations
from experiments.bundled_models.clauses import finite_verb, noun_phrase_end, transitive_clause
from experiments.bundled_models.generated_text import (
    generate_captions,
    generate_opinions,
    generate_questions,
    generate_spans,
)
from experiments.bundled_models.near_misses import change_tense, exchange_roles, negate
from experiments.bundled_models.paraphrases import (
    be_polite,
    change_voice,
    contract,
    introduce,
    reorder,
)
from experiments.bundled_models.related_sentences import (
    GROUP_SIZE,
    altered_sentences,
    related_rows,
)
from experiments.bundled_models.word_swaps import (
    swap_antonym,
    swap_colour,
    swap_entity,
    swap_number,
    swap_quantifier,
    swap_synonym,
)
from use_st5.data.text_hashes import normalized


@pytest.mark.parametrize(
    "forms",
    [
        "bite bites bit bitten biting",
        "try tries tried tried trying",
        "play plays played played playing",
        "stop stops stopped stopped stopping",
        "visit visits visited visited visiting",
        "make makes made made making",
        "lie lies lay lain lying",
        "see sees saw seen seeing",
        "go goes went gone going",
        "have has had had having",
        "agree agrees agreed agreed agreeing",
        "watch watches watched watched watching",
        "cut cuts cut cut cutting",
        "begin begins began begun beginning",
    ],
)
def test_verbs_are_inflected(forms: str) -> None:
    base, *_ = forms.split()
    names = ("base", "s", "past", "participle", "ing")
    assert [english.inflected(base, name) for name in names] == forms.split()
    assert [
        english.base_of(form, name) for form, name in zip(forms.split(), names, strict=True)
    ] == [base] * 5


def test_a_particle_stays_behind_the_verb() -> None:
    assert english.inflected("turn down", "past") == "turned down"


def test_the_tables_are_as_large_as_they_should_be() -> None:
    assert len(english.listed("irregular")) >= 150
    for row in english.listed("irregular"):
        assert len(row.split()) == 3


@pytest.mark.parametrize(
    ("noun", "expected"),
    [("dog", "dogs"), ("city", "cities"), ("boy", "boys"), ("box", "boxes"), ("woman", "women")]
    + [("child", "children"), ("gentleman", "gentlemen"), ("human being", "human beings")],
)
def test_plurals(noun: str, expected: str) -> None:
    assert english.plural(noun) == expected


@pytest.mark.parametrize(
    ("phrase", "expected"),
    [("the dog", False), ("two dogs", True), ("a pair of dogs", False), ("the dogs of war", True)]
    + [("a boy and a girl", True), ("the glass", False), ("some people", True), ("a bus", False)],
)
def test_number_of_a_noun_phrase(phrase: str, *, expected: bool) -> None:
    assert english.is_plural(phrase.split()) is expected


def test_articles_follow_the_sound() -> None:
    words = "dog owl honest-man hour user uniform uncle unusual one-way European Ukrainian"
    articles = [english.indefinite(word).split()[0] for word in words.split()]
    assert articles == ["a", "an", "an", "an", "a", "a", "an", "an", "a", "a", "a"]
    assert english.with_right_article("I saw a old dog", 8) == "I saw an old dog"
    assert english.with_right_article("An big dog", 3) == "A big dog"
    assert english.with_right_article("the big dog", 4) == "the big dog"


def test_case_of_a_model() -> None:
    assert [english.in_case_of("all", each) for each in ("no", "No", "NO", "I")] == [
        "all",
        "All",
        "ALL",
        "All",
    ]
    assert english.lower_first(["The", "dog"]) == ["the", "dog"]
    assert english.lower_first(["Anna"]) == ["Anna"]


@pytest.mark.parametrize(
    ("text", "place", "base", "form"),
    [
        ("The dog bit the man.", 2, "bite", "past"),
        ("Mary quickly opens the door.", 2, "open", "s"),
        ("He has a dog.", 1, "have", "s"),
        ("She had gone home.", 1, "had", "auxiliary"),
        ("The man did it.", 2, "do", "past"),
        ("They play chess.", 1, "play", "base"),
        ("Two dogs run.", 2, "run", "base"),
        ("The boy plays outside.", 2, "play", "s"),
        ("A man dressed in black is here.", 5, "be", "auxiliary"),
        ("The man who sat there left.", 3, "sit", "past"),
    ],
)
def test_finite_verbs(text: str, place: int, base: str, form: str) -> None:
    verb = finite_verb(text.split())
    assert verb is not None
    assert (verb.place, verb.base, verb.form) == (place, base, form)


@pytest.mark.parametrize(
    "text",
    [
        "Bodies found in the river.",
        "A dog running on grass",
        "at ten am.",
        "five cows in a snow covered field",
        "the many plays of the year",
        "the military potential of the strategic forces",
        "of the walk",
        "",
    ],
)
def test_no_finite_verb(text: str) -> None:
    assert finite_verb(text.split()) is None


@pytest.mark.parametrize(
    ("text", "length"),
    [("the big dog in the park", 3), ("the end of the road", 5), ("Anna Smith sings", 2)]
    + [("dogs", 0), ("the dog, which", 2), ("a b c d e f", 0)],
)
def test_noun_phrases(text: str, length: int) -> None:
    assert noun_phrase_end(["x", *text.split()], 1) == 1 + length


def test_a_transitive_clause_has_four_parts() -> None:
    words = ["The", "old", "man", "is", "riding", "a", "horse", "in", "the", "park."]
    assert transitive_clause(words) == (words[:3], words[3:5], words[5:7], words[7:])


@pytest.mark.parametrize(
    "text",
    [
        "She has a dog.",
        "A woman watches a dog jump down.",
        "Nothing stops the man.",
        "They love each other.",
        "The man was here.",
        "The man, a doctor, opened the door.",
    ],
)
def test_no_transitive_clause(text: str) -> None:
    assert transitive_clause(text.split()) is None


def every(rule: object, text: str) -> set[str | None]:
    return {rule(text, random.Random(seed)) for seed in range(40)}  # type: ignore[operator]


@pytest.mark.parametrize(
    ("text", "denied"),
    [
        ("The dog bit the man.", "The dog did not bite the man."),
        ("He has a dog.", "He does not have a dog."),
        ("They play.", "They do not play."),
        ("She can swim.", "She cannot swim."),
        ("A man is here.", "A man is not here."),
        ("There is a dog.", "There is no dog."),
        ("Is the man here?", "Isn't the man here?"),
        ("Who is Anna?", "Who isn't Anna?"),
    ],
)
def test_negation(text: str, denied: str) -> None:
    assert every(negate, text) == {denied}


@pytest.mark.parametrize(
    ("text", "affirmed"),
    [
        ("The dog did not bite the man.", "The dog bit the man."),
        ("He doesn't sing.", "He sings."),
        ("They don't play.", "They play."),
        ("She cannot swim.", "She can swim."),
        ("Isn't the man here?", "Is the man here?"),
        ("He never sings.", "He sings."),
        ("There is no dog.", "There is a dog."),
    ],
)
def test_negation_removed(text: str, affirmed: str) -> None:
    assert every(negate, text) == {affirmed}


def test_imperatives_are_denied() -> None:
    commands = {"Do not open the door.", "Don't open the door.", "Never open the door."}
    assert every(negate, "Open the door.") == commands


@pytest.mark.parametrize(
    ("text", "others"),
    [
        ("The dog bit the man.", {"The dog will bite the man."}),
        ("The dog bites.", {"The dog bit.", "The dog will bite."}),
        ("She will sing a song.", {"She sang a song."}),
        ("It is late.", {"It was late.", "It will be late."}),
        ("He has left.", {"He had left."}),
        ("He did not go.", {"He will not go."}),
    ],
)
def test_tense(text: str, others: set[str]) -> None:
    assert every(change_tense, text) == others


@pytest.mark.parametrize(
    ("text", "exchanged"),
    [
        ("The dog bit the man.", "The man bit the dog."),
        ("A man is riding two horses.", "Two horses are riding a man."),
        ("He saw her.", "She saw him."),
        ("He saw them.", "They saw him."),
        ("The cat is bigger than the dog.", "The dog is bigger than the cat."),
        ("Two cats are more fun than one dog.", "One dog is more fun than two cats."),
        ("Anna talked to Peter.", "Peter talked to Anna."),
        ("They flew from Paris to New York.", "They flew from New York to Paris."),
        ("Anna lives in Paris.", None),
        ("We met Anna on Monday.", "Anna met us on Monday."),
        ("Anna left on Monday.", None),
        ("Rain brings US trade down.", None),
        ("Thank you, Anna.", None),
        ("Man held after teen shot in Belfast", None),
    ],
)
def test_roles(text: str, exchanged: str | None) -> None:
    assert every(exchange_roles, text) == {exchanged}


@pytest.mark.parametrize(
    ("full", "short"),
    [
        ("I do not know.", "I don't know."),
        ("It is late.", "It's late."),
        ("I am here.", "I'm here."),
        ("We cannot go.", "We can't go."),
        ("Then they will sing.", "Then they'll sing."),
    ],
)
def test_contractions_both_ways(full: str, short: str) -> None:
    assert every(contract, full) == {short}
    assert every(contract, short) == {full}


@pytest.mark.parametrize("text", ["It's been late.", "in it's mouth", "So it is.", "Let it be."])
def test_no_contraction(text: str) -> None:
    assert every(contract, text) == {None}


@pytest.mark.parametrize(
    ("active", "passive"),
    [
        ("The dog bit the man.", "The man was bitten by the dog."),
        ("A man is playing a flute.", "A flute is being played by a man."),
        ("The boy eats an apple.", "An apple is eaten by the boy."),
    ],
)
def test_voice_both_ways(active: str, passive: str) -> None:
    assert every(change_voice, active) == {passive}
    assert every(change_voice, passive) == {active}


@pytest.mark.parametrize(
    ("text", "passive"),
    [
        ("He kicks two balls hard.", None),
        ("He kicks two red balls.", "Two red balls are kicked by him."),
        ("I am watching the film.", "The film is being watched by me."),
        ("He opened the doors in the hall.", "The doors were opened by him in the hall."),
        ("She has a dog.", None),
    ],
)
def test_passive(text: str, passive: str | None) -> None:
    assert every(change_voice, text) == {passive}


def test_there_is_both_ways() -> None:
    text, there = "A man is playing a flute.", "There is a man playing a flute."
    assert every(introduce, text) == {there}
    assert every(introduce, there) == {text}
    assert every(introduce, "The man is playing.") == {None}
    assert every(introduce, "There is a wedding in town.") == {None}


@pytest.mark.parametrize(
    ("text", "moved"),
    [
        ("A man is running in the park.", "In the park, a man is running."),
        ("He is looking at the camera.", None),
        ("A woman is putting meat in a pan.", None),
        ("Anna left the town yesterday.", "Yesterday, Anna left the town."),
        ("On Monday, the shop opens.", "The shop opens on Monday."),
        ("The man quickly ran home.", "Quickly, the man ran home."),
        ("It was found as often as gold.", None),
        ("A man and a woman ran home.", None),
        ("A man and a woman are singing.", "A woman and a man are singing."),
        ("He walks along a road and a man in a car stops.", None),
    ],
)
def test_order(text: str, moved: str | None) -> None:
    assert every(reorder, text) == {moved}


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("Can you open the door?", "Can you please open the door?"),
        ("Please open the door.", "Open the door."),
        ("Open the door.", "Please open the door."),
        ("Can you tell me where the station is?", "Where is the station?"),
        ("The door is open.", None),
    ],
)
def test_politeness(text: str, other: str | None) -> None:
    assert every(be_polite, text) == {other}


def test_questions_become_indirect() -> None:
    assert every(be_polite, "Where is the station?") == {
        "Can you tell me where the station is?",
        "Do you know where the station is?",
        "Please tell me where the station is.",
    }


_SOME = ("Some of them", "None of them", "Most of them", "Few of them")


def every_swap(rule: object, text: str) -> set[str | None]:
    return {rule(text, random.Random(seed)) for seed in range(60)}  # type: ignore[operator]


@pytest.mark.parametrize("kind", ["antonyms", "synonyms"])
def test_the_lists_hold_pairs(kind: str) -> None:
    rows = [
        row for part in ("plain", "nouns", "verbs") for row in word_swaps.lists()[f"{kind}_{part}"]
    ]
    assert len(set(rows)) >= 250
    assert all(len(set(row.split())) == 2 for row in rows)


@pytest.mark.parametrize(
    ("text", "others"),
    [
        ("The door opened.", {"The door closed."}),
        ("It is a boring idea.", {"It is an exciting idea.", "It is an interesting idea."}),
        (
            "Heavy rain fell in Big Sur.",
            {"Light rain fell in Big Sur.", "Heavy rain rose in Big Sur."},
        ),
        ("The cities were large.", {"The villages were large.", "The cities were tiny."}),
        ("A kind of rose", {None}),
        ("They want to end it.", {"They want to begin it."}),
        ("the left hand", {None}),
        ("They will find out.", {None}),
        ("as long as you like", {None}),
        ("near a building", {None}),
    ],
)
def test_antonyms(text: str, others: set[str | None]) -> None:
    assert every_swap(swap_antonym, text) >= others


def test_an_antonym_is_not_one_that_is_there() -> None:
    assert every_swap(swap_antonym, "hot and cold") == {None}


@pytest.mark.parametrize(
    ("text", "others"),
    [
        ("An automobile, a sofa and a kid", {"An automobile, a sofa and a child"}),
        ("She purchased it.", {"She bought it."}),
        ("the children", {"the kids"}),
        ("He rejected it.", {"He turned down it."}),
    ],
)
def test_synonyms(text: str, others: set[str]) -> None:
    assert every_swap(swap_synonym, text) == others


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("12 dogs", r"(?!12)[1-9]\d? dogs"),
        ("in 1987", r"in (?!1987)(?:19|20)\d\d"),
        ("$1,250 paid", r"\$(?!1,250)\d?,?\d{3} paid"),
        ("two dogs", r"(?!two)[a-z]+ dogs"),
        ("the third time", r"the (?!third)(?:first|[a-z]+th) time"),
    ],
)
def test_numbers(text: str, pattern: str) -> None:
    for other in every_swap(swap_number, text):
        assert re.fullmatch(pattern, str(other)), other


@pytest.mark.parametrize("text", ["10:30", "one day", "COVID-19", "a B2 plane", "9/11"])
def test_no_number(text: str) -> None:
    assert every_swap(swap_number, text) == {None}


def test_names_become_names_of_their_kind() -> None:
    kinds = {"Paris": "cities", "Anna": "women", "Monday": "weekdays", "New York": "cities"}
    for name, kind in kinds.items():
        altered = {str(each) for each in every_swap(swap_entity, f"We saw {name} there.")}
        assert len(altered) > 3
        others = set(word_swaps.lists()[kind]) - {name}
        assert altered <= {f"We saw {other} there." for other in others}
    assert every_swap(swap_entity, "no name") == {None}
    assert word_swaps.entity_kind("Anna Karenina") == "women"


def test_an_article_follows_the_new_name() -> None:
    altered = every_swap(swap_entity, "a German car")
    assert "an Italian car" in altered
    assert "a French car" in altered
    assert not [each for each in altered if re.match(r"a [AEIO](?!urop)|an [^AEIO]", str(each))]


def test_colours() -> None:
    altered = every_swap(swap_colour, "a red car")
    assert len(altered) > 5
    assert {"a blue car", "an orange car"} <= altered


@pytest.mark.parametrize(
    ("text", "others"),
    [
        (
            "All of them left.",
            {f"{each} left." for each in _SOME},
        ),
        ("He never sings.", {f"He {each} sings." for each in ("always", "often", "sometimes")}),
        ("Nobody came.", {"Everyone came.", "Someone came."}),
        ("It costs at least ten.", {"It costs at most ten.", "It costs fewer than ten."}),
        ("at all", {None}),
        ("as often as that", {None}),
        ("the most beautiful", {None}),
        ("how many dogs", {None}),
        ("No, thanks", {None}),
        ("Sometimes I sing.", {None}),
    ],
)
def test_quantifiers(text: str, others: set[str | None]) -> None:
    assert every_swap(swap_quantifier, text) == others


SENTENCES = [
    "the dog has bitten the man",
    "a man was not there at all",
    "she will sing a song tonight",
    "no no",
    "rain in spain stays mainly in the plain",
]


def alter(kind: str, sentence: str, *, seed: int = 0) -> list[str]:
    return getattr(alterations, kind)(sentence.split(), random.Random(seed), "x y z w".split)


def test_every_sentence_is_altered_and_the_seed_decides() -> None:
    sentences = SENTENCES * 40
    altered = list(generate_alterations(sentences, seed=5))
    assert all(map(str.__ne__, altered, sentences))
    assert altered == list(generate_alterations(sentences, seed=5))
    assert altered != list(generate_alterations(sentences, seed=6))


def test_new_words_at_random_are_those_of_other_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alterations, "_AT_RANDOM", 1.0)
    words = {word for sentence in SENTENCES for word in sentence.split()} | {"not"}
    assert {word for each in generate_alterations(SENTENCES * 40) for word in each.split()} <= words


@pytest.mark.parametrize("seed", range(5))
def test_kinds(seed: int) -> None:
    words = SENTENCES[4].split()
    replaced = alter("_replace", SENTENCES[4], seed=seed)
    assert len(replaced) == 8
    assert 1 <= sum(map(str.__ne__, replaced, words)) <= 2
    assert 8 - 2 <= len(alter("_remove", SENTENCES[4], seed=seed)) <= 7
    inserted = alter("_insert", SENTENCES[4], seed=seed)
    assert [word for word in inserted if word not in "xyzw"] == words
    assert 9 <= len(inserted) <= 10
    exchanged = alter("_exchange", SENTENCES[4], seed=seed)
    assert sorted(exchanged) == sorted(words)
    assert sum(map(str.__ne__, exchanged, words)) in {0, 2}  # 0 if "in" is exchanged with "in"


def test_denial_and_splice() -> None:
    assert " ".join(alter("_deny", SENTENCES[0])) == "the dog has not bitten the man"
    assert " ".join(alter("_deny", SENTENCES[1])) == "a man was there at all"
    assert alter("_deny", "no no") == ["no", "no"]
    assert alter("_splice", "a b c d e") == ["a", "b", "c", "z", "w"]


@pytest.mark.parametrize("sentences", [["one sentence"], ["two words", "word"]])
def test_too_little_to_alter(sentences: list[str]) -> None:
    with pytest.raises(ValueError, match="two"):
        list(generate_alterations(sentences))


def test_rules_come_first_and_chance_where_none_applies() -> None:
    ruled = [" ".join(SENTENCES[0].split())] * 400
    by_rule = {altered_by_rule(ruled[0], random.Random(seed)) for seed in range(100)}
    share = sum(altered in by_rule for altered in generate_alterations([*ruled, "x y"])) / 400
    assert 0.6 < share < 0.8
    assert altered_by_rule("no no", random.Random(0)) is None


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize(
    "text", ["x y", "A", "?", "...", "'s", "Is it?", "not", "I", "the a", "Who"]
)
def test_rules_bear_any_text(name: str, text: str) -> None:
    altered = RULES[name](text, random.Random(0))
    assert altered is None or altered.strip()


def test_every_rule_alters_some_sentence() -> None:
    sentences = [
        "The dog is chasing two cats in the park.",
        "Anna moved from Paris to Rome on Monday.",
        "All dogs don't bark.",
        "A man is buying a red car.",
        "Can you tell me what the time is?",
    ]
    for name, rule in RULES.items():
        altered = [rule(each, random.Random(0)) for each in sentences]
        assert any(altered), name
        assert all(map(str.__ne__, (each or "" for each in altered), sentences)), name


def test_same_seed_same_captions() -> None:
    assert list(generate_captions(50, seed=3)) == list(generate_captions(50, seed=3))
    assert list(generate_captions(50, seed=3)) != list(generate_captions(50, seed=4))


def test_captions_agree_in_number_and_article() -> None:
    for caption in generate_captions(3000):
        assert caption[0].isupper()
        first, second = caption.lower().split()[:2]
        if first in {"two", "three", "four", "some", "several"}:
            assert " is " not in caption
        if first == "a" and second not in {"few"}:
            assert second[0] not in "aeiou", caption


def test_opinions_are_seeded_and_seldom_the_same() -> None:
    opinions = list(generate_opinions(5000, seed=3))
    assert opinions == list(generate_opinions(5000, seed=3))
    assert opinions != list(generate_opinions(5000, seed=4))
    assert len({each.lower().rstrip(". ") for each in opinions}) > 4700
    assert not [each for each in opinions if re.search(r"[{}_]|  ", each)]


def test_opinions_have_each_slot_filled_by_some_list() -> None:
    words = json.loads(generated_text._OPINIONS.read_text(encoding="utf-8"))
    slots = re.findall(r"\{(?:a_)?(\w+)\}", json.dumps(words))
    assert set(slots) - {"he", "his", "first"} <= set(words)
    assert set(words) - {"opinions", "descriptions", "men", "women"} <= set(slots)
    assert [name for name, each in words.items() if len(each) != len(set(each))] == ["was"]
    good = {each for name in words if name.startswith("good_") for each in words[name]}
    bad = {each for name in words if name.startswith("bad_") for each in words[name]}
    assert not good & bad
    assert min(len(good), len(bad)) >= 150


def test_opinions_repeat_no_word_and_agree_in_article_and_person() -> None:
    sentences = {each.lower() for each in generate_opinions(5000)}
    assert not [each for each in sentences if re.search(r"\b(\w{4,}) (and|but) \1\b", each)]
    assert not [each for each in sentences if re.search(r"\ba [aio]|\ban [bcdfgjkl-np-tv-z]", each)]
    assert not [each for each in sentences if {"his", "her"} <= set(each.split())]
    assert any("an honest" in each for each in sentences)


@pytest.mark.parametrize(
    ("written", "tokens"),
    [
        ("I can't say, Anna's film.", "i ca n't say , anna 's film ."),
        ("first-rate: a joy", "first-rate : a joy"),
    ],
)
def test_reviews_in_lowercase_tokens(written: str, tokens: str) -> None:
    styles = {generated_text._styled(written, random.Random(seed)) for seed in range(50)}
    assert tokens in styles
    assert written in styles


def test_spans_are_consecutive_words() -> None:
    sentences = ["one two three four five six seven", "a"]
    for span in generate_spans(sentences, 200, min_words=2, max_words=3):
        assert any(f" {span} " in f" {sentence} " for sentence in sentences)
        assert len(span.split()) <= 3


def test_questions_take_their_words_from_the_sentences() -> None:
    sentences = ["Who drew the owl, and why, in San Marino?", "An apple ripens."]
    questions = list(generate_questions(sentences, {"owl", "apple"}, 500))
    assert questions == list(generate_questions(sentences, {"owl", "apple"}, 500))
    text = " ".join(questions)
    assert "{" not in text
    assert all(word in text for word in ("an owl", "an apple", "San Marino"))
    assert not {"ripens", "drew"} & set(text.split())


def test_every_frame_of_a_question_is_filled() -> None:
    frames = json.loads(generated_text._QUESTIONS.read_text(encoding="utf-8"))["frames"]
    assert len(set(frames)) == len(frames) >= 150
    sentences = ["She met Anna, a woman and two men."]
    questions = list(generate_questions(sentences, {"woman", "men"}, 5000))
    assert not [each for each in questions if "{" in each or "womans" in each or "a men" in each]
    assert "Why can't women see woman?" in questions


def test_questions_need_nouns_and_names() -> None:
    with pytest.raises(ValueError, match="names"):
        next(generate_questions(["the owl"], {"owl"}, 1))


RELATED = [f"{who} {what} {where}" for who in "abcd" for what in "efgh" for where in ("i", "j k")]


def test_lengths_and_number() -> None:
    pairs = altered_sentences(RELATED, 3, 3, 10)
    assert len({first for first, _ in pairs}) == 10
    assert all(len(first.split()) == 3 and second != first for first, second in pairs)
    assert pairs == altered_sentences(RELATED, 3, 3, 10)
    assert len(altered_sentences(RELATED, 3, 3, 1000)) == 16


def test_no_alteration_is_a_held_out_sentence() -> None:
    pairs = altered_sentences(RELATED, 3, 3, 16)
    held_out = {normalized(second) for _, second in pairs[:5]}
    kept = altered_sentences(RELATED, 3, 3, 16, held_out=held_out)
    assert kept == [pair for pair in pairs if normalized(pair[1]) not in held_out]
    assert len(kept) <= 11


def test_neighbours_are_the_nearest_by_cosine() -> None:
    """Compared with the sorted matrix of all cosines; the vectors need not have length 1."""
    vectors = np.random.default_rng(0).normal(size=(30, 5)).astype(np.float32)
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = units @ units.T - 2 * np.eye(30)
    groups = related_rows(vectors).reshape(30, GROUP_SIZE)
    for row, group in enumerate(groups):
        nearest = np.argsort(-cosines[row])[: GROUP_SIZE - 2]
        np.testing.assert_array_equal(group, [2 * row, 2 * row + 1, *(2 * nearest)])


def test_equal_vectors_are_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(related_sentences, "_QUERIES", 3)  # The last part has only 2 rows.
    vectors = np.tile(np.eye(2, dtype=np.float32), (4, 1))
    for row, group in enumerate(related_rows(vectors).reshape(8, GROUP_SIZE)):
        assert len(set(group)) == GROUP_SIZE
        assert all(other % 4 == 2 * (row % 2) for other in group[2:])
