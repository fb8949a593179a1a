"""The model card of a saved estimator: what it is, what it was fitted on, and how to use it."""

from __future__ import annotations

import json
from typing import Any

SHOWN = 20  # largest number of classes or channels that are listed

_CARD = """---
library_name: seq2tens
tags:
- seq2tens
- time-series
- {kind}
---

# {kind}

A `{kind}` of [seq2tens](https://openreview.net/forum?id=dx4b7lm8jMM), saved without pickle:
`model.safetensors` holds its tensors, `model.json` its arguments and the rest of its fitted state.

## Use

```python
from seq2tens.estimators import {kind}

model = {kind}.from_pretrained("PATH OR REPOSITORY")
```

## Fitted on

{data}

## Arguments

{arguments}

## Versions

{versions}
"""


def model_card(document: dict[str, Any]) -> str:
    """Return the model card, Markdown with metadata, for the document of a saved estimator."""
    facts = document["facts"]
    metadata = facts.get("metadata") or {}
    data = {
        "sequences": metadata.get("n_cases"),
        "channels": metadata.get("columns") or metadata.get("n_channels"),
        "classes": (facts.get("classes") or {}).get("values"),
        "unequal lengths": metadata.get("unequal_length"),
        "missing values": metadata.get("missing_values"),
    }
    return _CARD.format(
        kind=document["class"],
        data=_items({name: value for name, value in data.items() if value is not None}),
        arguments=_items(document["params"]),
        versions=_items(document["versions"]),
    )


def _items(values: dict[str, Any]) -> str:
    lines = [f"- {name}: {_code(value)}" for name, value in values.items()]
    return "\n".join(lines) or "Unknown."


def _code(value: Any) -> str:
    """Format JSON as a code span that names of channels and classes cannot break out of."""
    rest = ""
    if isinstance(value, list) and len(value) > SHOWN:
        value, rest = value[:SHOWN], f" and {len(value) - SHOWN} more"
    text = json.dumps(value, ensure_ascii=False)
    fence = "`"
    while fence in text:
        fence += "`"
    padding = " " if len(fence) > 1 else ""
    return f"{fence}{padding}{text}{padding}{fence}{rest}"
