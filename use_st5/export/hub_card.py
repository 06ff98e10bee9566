"""The model card of a hub: our card with the header that the hub reads."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

# The tags by which the hub lists a model.
_TAGS = ("sentence-similarity", "feature-extraction", "tensorflow", "keras")
# The words by which people search for our families.
_FAMILIES = dict.fromkeys(("use_dan", "use_transformer"), "universal-sentence-encoder")


def hub_card(
    card: str,
    *,
    name: str,
    metadata: Mapping[str, Any],
    family: str | None = None,
    languages: Sequence[str] = (),
    license: str | None = None,
    metrics: Sequence[str] = (),
) -> str:
    """Puts the YAML header of the hub before a model card.

    The fields are those of the hub's model cards: `language`, `license`, `library_name`,
    `pipeline_tag`, `tags`, `metrics` and `base_model`. An older header is replaced.

    Args:
        card: The card, Markdown; empty for a card of a few lines.
        name: The model's name on the hub, "ORG/NAME".
        metadata: The `metadata` of `use_st5.json`: `languages`, `license` and `source` are read.
        family: The family of the model.
        languages: ISO 639-1 codes, such as "en"; if empty, those of the metadata.
        license: The licence, such as "apache-2.0"; if None, that of the metadata.
        metrics: The metrics that the card states, such as "spearmanr".
    """
    license = license or metadata.get("license")
    if not license:
        raise ValueError(
            f"{name}: expected a licence in the model's metadata, found none. State one, such as "
            '--license apache-2.0, or "other".'
        )
    source = str(metadata.get("source", ""))
    fields: dict[str, Any] = {
        "language": [*(languages or metadata.get("languages", ()))],
        "license": str(license).lower(),
        "library_name": "use_st5",
        "pipeline_tag": "sentence-similarity",
        "tags": ["use_st5", *filter(None, [_FAMILIES.get(family or "", family)]), *_TAGS],
        "metrics": [*metrics],
        "base_model": source.removeprefix("hf://").partition("@")[0] if "hf://" in source else "",
    }
    header = "".join(_line(key, value) for key, value in fields.items() if value)
    body = _without_header(card).strip() or _short_card(name)
    return f"---\n{header}---\n\n{body}\n"


def _line(key: str, value: str | list[str]) -> str:
    # JSON strings are YAML strings.
    if isinstance(value, str):
        return f"{key}: {json.dumps(value)}\n"
    return f"{key}:\n" + "".join(f"- {json.dumps(str(each))}\n" for each in value)


def _without_header(card: str) -> str:
    return card.partition("\n---\n")[2] if card.startswith("---\n") else card


def _short_card(name: str) -> str:
    return f"""# {name.split("/")[-1]}

A sentence encoder that turns strings into vectors, exported by use_st5.

```python
import use_st5

use_st5.load("hf://{name}").encode(["How old are you?"])
```"""
