"""Each corpus is read from its own format; a missing one is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.corpora import CORPORA, NOVELS, STACK_EXCHANGE, dialogue_pairs, inference_pairs

KEYS = {
    "100_english_novels": {"previous", "sentence", "next"},
    "wikitext_2": {"sentence"},
    "sgd_dialogues": {"input", "response"},
    "self_dialogue": {"input", "response"},
    "ling_in_loop": {"premise", "hypothesis", "label"},
    "semi_automatic_nli": {"premise", "hypothesis", "label"},
    "cad_snli": {"premise", "hypothesis", "label"},
    "conjnli": {"premise", "hypothesis", "label"},
    "medquad": {"anchor", "positive"},
    "oewn": {"word", "part_of_speech", "definition", "example"},
    "wordset": {"word", "part_of_speech", "definition", "example"},
}


@pytest.mark.parametrize("name", KEYS)
def test_a_corpus_gives_what_it_says(corpora: Path, name: str) -> None:
    assert set(next(CORPORA[name].examples(corpora))) == KEYS[name]
    assert {*CORPORA[name].what.split(": ")[1].split(", ")} <= KEYS[name]


def test_every_corpus_has_its_name_and_a_licence() -> None:
    assert all(corpus.name == name and corpus.licence for name, corpus in CORPORA.items())
    assert "no licence file" in CORPORA["ling_in_loop"].licence


def test_labels_are_classes(corpora: Path) -> None:
    assert {example["label"] for example in inference_pairs(corpora)} == {0, 1, 2}


def test_a_missing_corpus_is_named(corpora: Path) -> None:
    (corpora / "self_dialogue.jsonl").unlink()
    with pytest.raises(FileNotFoundError, match=r"open dialogues.*self_dialogue\.jsonl"):
        dialogue_pairs(corpora)
    with pytest.raises(FileNotFoundError, match="expected a folder with data sets"):
        NOVELS.examples(corpora / "nowhere")


def test_answers_of_one_site_do_not_go_to_questions_of_another(corpora: Path) -> None:
    row = '<row Id="{}" PostTypeId="1" ParentId="{}" Title="{}" Body="{}"/>'
    posts = [row.format(1, "", "Which ball?", ""), row.format(2, 1, "", "&lt;p&gt;This.&lt;/p&gt;")]
    folder = corpora / "qa/stackexchange_small"
    (folder / "balls.Posts.xml").write_text(f"<posts>{posts[0]}{posts[1]}</posts>")
    (folder / "cats.Posts.xml").write_text(f"<posts>{posts[1]}</posts>")
    assert list(STACK_EXCHANGE.examples(corpora)) == [
        {"anchor": "Which ball?", "positive": "This."}
    ]
