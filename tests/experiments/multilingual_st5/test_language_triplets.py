from __future__ import annotations

import numpy as np

from experiments.multilingual_st5.language_triplets import (
    ParallelTriplets,
    parallel_triplets,
)


def pair(premise: str, hypothesis: str, label: int) -> dict[str, object]:
    return {"premise": premise, "hypothesis": hypothesis, "label": label}


def triplets(languages: str = "abcde", rows: int = 400) -> ParallelTriplets:
    return ParallelTriplets(
        {
            language: [
                (f"{language}{row} p", f"{language}{row} e", f"{language}{row} c")
                for row in range(rows)
            ]
            for language in languages
        }
    )


def test_hypotheses_of_one_premise_make_triplets() -> None:
    english = [
        pair("p", "maybe", 1),
        pair("p", "yes", 0),
        pair("q", "no", 2),
        pair("p", "no", 2),
        pair("p", "indeed", 0),
        pair("q", "yes", 0),
        pair("p", "never", 2),
        pair("r", "alone", 0),
        pair("p", "and more", 0),
    ]
    german = [pair(f"{p['premise']}!", f"{p['hypothesis']}!", p["label"]) for p in english]
    made = parallel_triplets({"de": german, "en": english})
    assert made.languages == ("de", "en")
    assert made.texts["en"] == [("p", "yes", "no"), ("p", "indeed", "never"), ("q", "yes", "no")]
    assert made.texts["de"] == [
        tuple(f"{text}!" for text in triplet) for triplet in made.texts["en"]
    ]


def test_three_languages_and_every_choice_of_them_as_often() -> None:
    drawn = triplets("abcd", rows=6000).draw(seed=1).reshape(-1, 3)
    assert all(len({*row}) == 3 for row in drawn.tolist())
    counts = np.unique(drawn @ [16, 4, 1], return_counts=True)[1]
    # 4 passes over 6,000 rows are 24,000 draws, of 24 ordered choices.
    assert len(counts) == 24
    np.testing.assert_allclose(counts, 1000, rtol=0.12)


def test_sentences_belong_together_whatever_their_languages() -> None:
    made = triplets("abc", rows=50)
    examples = [*made.examples()]
    assert set(examples[0]) == {"anchor", "positive", "negative"}
    assert len(examples) == 150
    for number, example in enumerate(examples):
        words = [text[1:].split() for text in example.values()]
        assert words == [[str(number % 50), kind] for kind in "pec"]
    drawn = [["abc".index(text[0]) for text in example.values()] for example in examples]
    np.testing.assert_array_equal(drawn, made.draw().reshape(-1, 3))
