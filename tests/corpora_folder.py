"""A folder that holds every corpus of the experiments, a few lines each."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

WORDS = ("the", "man", "woman", "dog", "cat", "child", "plays", "runs", "eats", "reads", "guitar")


def _sentence(draw: random.Random) -> str:
    return " ".join(draw.choices(WORDS, k=draw.randint(3, 8))).capitalize() + "."


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _jsonl(rows: list[dict[str, object]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.fixture
def corpora(tmp_path: Path) -> Path:
    """The folder; sentences are drawn from 11 words."""
    root, draw = tmp_path / "data", random.Random(0)
    some = [[_sentence(draw) for _ in range(6)] for _ in range(12)]
    novel = "\n\n".join(" ".join(paragraph) for paragraph in some)
    _write(root / "text/100_english_novels/corpus/a.txt", novel)
    _write(root / "text/wikitext-2/test.txt", " = Title = \n A dog , a @-@ cat , runs . \n")
    for name in ("sgd_dialogues.jsonl", "self_dialogue.jsonl"):
        _write(root / name, _jsonl([{"turns": turns} for turns in some]))
    pairs = [
        {"premise": turns[0], "hypothesis": turns[1], "label": "enc"[i % 3]}
        for i, turns in enumerate(some)
    ]
    _write(root / "nli/ling_in_loop/NLI_data/1/train_round1.jsonl", _jsonl(pairs))
    _write(root / "nli/semi_automatic_nli/data/sim_wiki/train.jsonl", _jsonl(pairs))
    table = "sentence1\tsentence2\tgold_label\nA man runs.\tA man eats.\tneutral\n"
    _write(root / "nli/cad_snli/NLI/all_combined/train.tsv", table)
    table = "Premise\tHypothesis\tLabel\nA dog runs.\tA cat runs.\tcontradiction\n"
    _write(root / "nli/conjnli/adversarial_train_15k.tsv", table)
    _write(root / "medquad_qa.jsonl", _jsonl([{"question": "Who eats?", "answer": "I. You."}]))
    _write(root / "qa/opentriviaqa/categories/food", "#Q Who eats food?\n^ dog\nA cat\nB dog\n")
    posts = (
        '<posts><row Title="Which ball?" Body="&lt;p&gt;The man&apos;s ball.&lt;/p&gt;"/></posts>'
    )
    _write(root / "qa/stackexchange_small/balls.Posts.xml", posts)
    _write(root / "oewn_definitions.tsv", "dog\tn\ta kind of animal\n")
    _write(root / "wordset_definitions.tsv", "cat\tnoun\tanother animal\tThe cat eats.\n")
    row = "genre\tfile\t2012\t{}\t{}\t{}\t{}\n"
    dev = [row.format(i, i % 6, turns[2], turns[3]) for i, turns in enumerate(some)]
    _write(root / "stsbenchmark/sts-dev.csv", "".join(dev))
    train = [row.format(i, i % 6, turns[4], f"{turns[5]} now") for i, turns in enumerate(some)]
    _write(root / "stsbenchmark/sts-train.csv", "".join(train))
    return root


def write_paper_corpora(root: Path) -> None:
    """Adds SNLI, MultiNLI and the Oxford definitions, in the formats of their publishers."""
    pairs = [
        ("A man runs.", "A man moves.", "entailment"),
        ("A man runs.", "A child reads.", "neutral"),
        ("A man runs.", "A man sleeps.", "contradiction"),
        ("A dog eats.", "A cat eats.", "-"),
    ]
    for number, (premise, hypothesis, label) in enumerate(pairs):
        parsed = {"sentence1_binary_parse": "( a b )", "sentence2_binary_parse": "( a b )"}
        row = {"gold_label": label, "sentence1": premise, "sentence2": hypothesis, **parsed}
        snli = {"annotator_labels": [label], "captionID": "1.jpg#0", "pairID": f"1.jpg#{number}"}
        multinli = {"annotator_labels": [label], "genre": "fiction", "promptID": "7", "pairID": "7"}
        for name, extra in (("snli", snli), ("multinli", multinli)):
            path = root / f"{name}_1.0/{name}_1.0_train.jsonl"
            old = path.read_text() if path.exists() else ""
            _write(path, old + json.dumps(row | extra) + "\n")
    line = "{}%oxford.{}\tpos\toxford\t{}\t[]\t[]\n"
    definitions = {
        "train": [("guitar", 0, "music that one plays ( a `` fine '' kind ) ; music .")],
        "valid": [("dog", 0, "an animal that runs , eats , and barks")],
        "test": [("dog", 1, "a ‘ bad ’ person 's name"), ("old dog", 0, "another person")],
    }
    for part, rows in definitions.items():
        _write(root / f"data/oxford/{part}.txt", "".join(line.format(*row) for row in rows))
        _write(root / f"data/oxford/{part}.eg", "dog%oxford.0\tthe <TRG> runs\n")
