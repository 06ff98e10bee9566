"""The header that the hub reads."""

from __future__ import annotations

import pytest

from use_st5.export.hub_card import hub_card

METADATA = {"languages": ["en", "de"], "license": "Apache-2.0", "source": "hf://org/base@abc"}


def test_the_header_in_full() -> None:
    card = hub_card(
        "# Mine\n\nText.\n",
        name="me/mine",
        metadata=METADATA,
        family="use_dan",
        metrics=["spearmanr"],
    )
    assert (
        card
        == """---
language:
- "en"
- "de"
license: "apache-2.0"
library_name: "use_st5"
pipeline_tag: "sentence-similarity"
tags:
- "use_st5"
- "universal-sentence-encoder"
- "sentence-similarity"
- "feature-extraction"
- "tensorflow"
- "keras"
metrics:
- "spearmanr"
base_model: "org/base"
---

# Mine

Text.
"""
    )


def test_the_hub_reads_it() -> None:
    hub = pytest.importorskip("huggingface_hub", reason="the extra `hub-models` is not installed")
    card = hub_card("", name="me/mine", metadata=METADATA, license="other", languages=["no"])
    read = hub.ModelCard(card)
    assert read.data.language == ["no"], "in YAML a bare no is False"
    assert (read.data.license, read.data.library_name) == ("other", "use_st5")
    assert 'use_st5.load("hf://me/mine")' in read.text


def test_an_older_header_is_replaced() -> None:
    first = hub_card("# Mine\n\n---\n\nBelow a rule.\n", name="me/mine", metadata=METADATA)
    again = hub_card(first, name="me/mine", metadata={"license": "mit"})
    assert again.count("license:") == 1
    assert again.endswith("# Mine\n\n---\n\nBelow a rule.\n")


def test_a_licence_is_asked_for() -> None:
    with pytest.raises(ValueError, match="me/mine: expected a licence .* --license"):
        hub_card("", name="me/mine", metadata={})
