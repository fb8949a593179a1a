"""Draw the figure of docs/universality.md with the code of that page."""

from __future__ import annotations

import os
import re
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "universality.md"


def main(folder: Path = PAGE.parent / "figures") -> dict[str, object]:
    """Run the code of the page, which writes its figure; return the names that it defines."""
    folder.mkdir(parents=True, exist_ok=True)
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    names: dict[str, object] = {"__name__": PAGE.name}
    before = Path.cwd()
    os.chdir(folder)  # the page writes its figure to the current folder
    try:
        for block in blocks:
            exec(compile(block, str(PAGE), "exec"), names)
    finally:
        os.chdir(before)
    return names


if __name__ == "__main__":
    found = main()
    for (order, degree), (train, test) in found["errors"].items():  # type: ignore[attr-defined]
        print(f"order {order}, degree {degree}: {test:.3f} ({train:.3f})")
    for weights, errors in found["by_width"].items():  # type: ignore[attr-defined]
        print(weights, ", ".join(f"{error:.3f}" for error in errors))
