"""`seq2tens info`."""

from __future__ import annotations

import importlib.metadata
import platform
import re
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import seq2tens
from seq2tens.cli import _data, _models

if TYPE_CHECKING:  # importing them takes seconds
    from seq2tens.data import Labelled

Subject = Annotated[
    str | None,
    typer.Argument(metavar="[DIR|DATA]", help="A saved model, a file or a data set.", show_default=False),
]
Facts = dict[str, object]


def info(subject: Subject = None, *, reading: _data.TableReading) -> None:
    """Describe the installation, a saved model or data.

    Without an argument, it shows versions, devices, backends, models and data sets.

    Examples:

    \b
      seq2tens info
      seq2tens info model
      seq2tens info train.csv --label-column speaker
    """
    if subject is None:
        _print(_installation())
    elif Path(subject).is_dir() and not _is_data(Path(subject)):
        _print(_model(_models.load(Path(subject))))
    else:
        _data.check(subject)
        for title, half in _halves(subject, _data.Reading(**asdict(reading))).items():
            _print(_half(half), title)


def _is_data(folder: Path) -> bool:
    from seq2tens.data.readers import tables_in

    return not (folder / "model.json").exists() and bool(tables_in(folder))


def _halves(data: str, reading: _data.Reading) -> dict[str, Labelled]:
    from seq2tens.data import Split

    halves = _data.load_all(data, reading, reading.columns(label_optional=True))
    return {"train": halves.train, "test": halves.test} if isinstance(halves, Split) else {"": halves}


def _installation() -> Facts:
    from seq2tens import ops
    from seq2tens.data import available_datasets
    from seq2tens.estimators import MODELS

    needed = importlib.metadata.requires("seq2tens") or []
    names = [re.split(r"[^\w.-]", line)[0] for line in needed if "extra ==" not in line]
    return {
        "python": platform.python_version(),
        "seq2tens": seq2tens.__version__,  # the metadata of an editable installation may be older
        **{name: importlib.metadata.version(name) for name in names},
        "device": _devices(),
        **{f"backend {name}": reason or "ready" for name, reason in ops.backends().items()},
        "kernels": ops.kernels(),
        "models": ", ".join(MODELS),
        "data sets": ", ".join(available_datasets()),
    }


def _devices() -> str:
    import torch

    threads = f"CPU, {torch.get_num_threads()} threads"
    if not torch.accelerator.is_available():
        return threads
    return f"{torch.accelerator.current_accelerator()} × {torch.accelerator.device_count()}; {threads}"


def _model(model: Any) -> Facts:
    shape, columns = model.metadata_, model.notes_.get("columns")
    classes = {"classes": _data.listed(model.classes_.tolist())} if _models.is_classifier(model) else {}
    return {
        "model": type(model).__name__,
        "task": "classification" if classes else "regression",
        **classes,
        "channels": ", ".join(columns["channels"]) if columns else model.n_channels_,
        "trained on": f"{shape['n_cases']} sequences",
        "missing values": "seen in training" if shape["missing_values"] else "none in training",
        **_training(getattr(model, "history_", [])),
        "settings": ", ".join(f"{name}={value!r}" for name, value in model.get_params().items()),
    }


def _training(history: list[dict[str, float]]) -> Facts:
    """The measures of the last epoch, if the model was trained in epochs."""
    if not history:
        return {}
    last = history[-1]
    measured = [name for name in last if name not in ("epoch", "rate", "seconds")]
    return {"epochs": last["epoch"], **{name.replace("_", " "): f"{last[name]:.4g}" for name in measured}}


def _half(half: Labelled) -> Facts:
    import numpy as np

    sequences = half.sequences
    facts: Facts = {"sequences": len(sequences), "channels": sequences.n_channels}
    if half.channels is not None:
        facts["channels"] = f"{sequences.n_channels} ({_data.listed(half.channels)})"
    if len(sequences):
        low, middle, high = np.quantile(sequences.lengths, [0, 0.5, 1])
        facts["steps"] = f"{low:.0f} to {high:.0f}, median {middle:g}" if low < high else f"{low:.0f}"
        facts["missing"] = f"{np.isnan(sequences.values).mean():.2%} of all values"
        facts["times"] = "none" if sequences.times is None else "one per step"
        facts["classes"] = "no labels" if half.labels is None else _counted(half.labels)
    return facts


def _counted(labels: Any) -> str:
    import numpy as np

    names, counts = np.unique(labels, return_counts=True)
    return _data.listed([f"{name} ({count})" for name, count in zip(names, counts, strict=True)])


def _print(facts: Facts, title: str = "") -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in facts.items():
        table.add_row(Text(name, style="bold"), Text(str(value)))
    console = Console(highlight=False)
    if title:
        console.print(Text(f"\n{title}", style="bold underline"))
    console.print(table)
