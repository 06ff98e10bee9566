"""A data folder for the multilingual recipes, a few lines of each file."""

from __future__ import annotations

import json
from pathlib import Path

from use_st5.evaluation.translations import LANGUAGES

WORDS = {
    "en": ("dog", "house", "water", "child", "street", "bread"),
    "de": ("Hund", "Haus", "Wasser", "Kind", "Gasse", "Brot"),
    "fr": ("chien", "maison", "eau", "enfant", "rue", "pain"),
}


def sentences(language: str, number: int) -> tuple[str, str, str]:
    """A premise and two hypotheses."""
    words = WORDS[language]
    a, b, c = (words[(number * step + step) % len(words)] for step in (1, 2, 3))
    return f"{a} {b} {number}", f"{a} {number}", f"{c} {number}"


def write_pairs(path: Path, language: str, *, count: int, header: str = "") -> None:
    """Writes inference pairs: an entailed and a contradicting hypothesis for each premise."""
    contradiction = "contradictory" if header else "contradiction"
    rows = [
        f"{premise}\t{hypothesis}\t{label}\n"
        for premise, yes, no in (sentences(language, number) for number in range(count))
        for hypothesis, label in ((yes, "entailment"), (no, contradiction))
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(header + "".join(rows), encoding="utf-8")


def write_evaluation_sets(root: Path) -> None:
    """Writes Tatoeba in its 112 languages, two pairs each, and JSTS."""
    folder = root / "tatoeba/data/tatoeba/v1"
    folder.mkdir(parents=True)
    for code in LANGUAGES:
        for side in ("eng", code):
            (folder / f"tatoeba.{code}-eng.{side}").write_text("dog street\nwater\n")
    jsts = root / "jglue/datasets/jsts-v1.3/valid-v1.3.json"
    jsts.parent.mkdir(parents=True)
    rows = [
        {
            "sentence_pair_id": str(n),
            "sentence1": "dog",
            "sentence2": f"dog {n}" * n,
            "label": 5.0 - n,
        }
        for n in range(1, 4)
    ]
    jsts.write_text("".join(json.dumps(row) + "\n" for row in rows))
