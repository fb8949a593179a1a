"""The architecture overview in README and CONTRIBUTING: `python tests/house.py` writes it into both.

`test_house.py` compares them, and checks that imports respect it.
"""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
# Packages, called rooms; each may import those after it.
ROOMS = {
    "cli": "the command `seq2tens`, one file per command",
    "experiments": "the paper's tables: cells, runners, reports, baselines",
    "explaining": "attributions: how inputs contribute to a prediction",
    "estimators": "classifiers, regressors, feature transformers and imputers",
    "exporting": "export to ONNX and torch.export",
    "training": "the training loop; knows no model",
    "models": "networks for one task: GP-VAE, imputation, irregular sampling",
    "data": "ragged sequences, preparation, readers, datasets",
    "distributed": "data and sequence parallelism over several processes",
    "nn": "layers and networks: parameters and wiring, each written once",
    "functional": "pure functions; arguments are checked here, once",
    "algebra": "the free algebra, the full map, words, strings",
    "ops": "every operation: its definition, its fast versions, one choice",
    "csrc": "the kernels, C++ behind a plain C interface",
}
# Modules that every room may import.
GROUND = ["plots", "_storage", "_checks", "_archives", "_errors", "_moved"]
BLOCK = re.compile(r"<!-- the house -->\n.*?<!-- built -->\n", re.DOTALL)


def picture() -> str:
    """Return the list of rooms from top to bottom; imports go downwards."""
    width = max(map(len, ROOMS))
    lines = [f"    {room:<{width}}  {what}" for room, what in ROOMS.items()]
    return "<!-- the house -->\n" + "\n".join(lines) + "\n<!-- built -->\n"


def main() -> None:
    for name in ("README.md", "CONTRIBUTING.md"):
        path = ROOT / name
        path.write_text(BLOCK.sub(lambda _: picture(), path.read_text()))


if __name__ == "__main__":
    main()
