"""Checks that a release is consistent: `make release-check`, or `python tests/release.py [DIST]`.

The version in pyproject.toml must be that of the package, of the newest section of CHANGELOG.md, of the tag
of this commit, if any, and of the files in DIST. The sdist must hold all sources, the wheel the kernels.
"""

import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
IN_SDIST = ("CMakeLists.txt", "csrc/seq2tens.h", "src/seq2tens/__init__.py", "LICENSE", "README.md")
IN_WHEEL = ("seq2tens/__init__.py", "seq2tens/py.typed", "seq2tens/experiments/report/page.css")
KERNELS = re.compile(r"seq2tens/ops/(lib)?seq2tens\.(so|dylib|dll)")


def versions(root: Path = ROOT) -> dict[str, str]:
    """Return the version stated in each place."""
    stated = {
        "pyproject.toml": r'^version = "(.+)"',
        "src/seq2tens/__init__.py": r'^__version__ = "(.+)"',
        "CHANGELOG.md": r"^## \[(.+?)\]",
    }
    found = {
        name: _first(pattern, (root / name).read_text(encoding="utf-8")) for name, pattern in stated.items()
    }
    return found | {f"tag {tag}": tag.removeprefix("v") for tag in _tags(root)}


def _first(pattern: str, text: str) -> str:
    match = re.search(pattern, text, re.MULTILINE)
    return match[1] if match else "none"


def _tags(root: Path) -> list[str]:
    """Return the version tags of this commit; none without a repository."""
    told = subprocess.run(["git", "tag", "--points-at", "HEAD"], cwd=root, capture_output=True, text=True)
    return [tag for tag in told.stdout.split() if re.fullmatch(r"v\d.*", tag)]


def faults(dist: Path, version: str) -> list[str]:
    """Return the problems of the files that would be uploaded."""
    sdists, wheels = list(dist.glob("*.tar.gz")), list(dist.glob("*.whl"))
    if len(sdists) != 1 or len(wheels) != 1:
        return [
            f"{dist} must hold one sdist and one wheel, got {sorted(path.name for path in dist.iterdir())}"
        ]
    sdist, wheel = _names_in_sdist(sdists[0]), zipfile.ZipFile(wheels[0]).namelist()
    wrong = [path.name for path in (*sdists, *wheels) if f"-{version}" not in path.name]
    found = [f"{name} is not version {version}" for name in wrong]
    found += [f"the sdist lacks {name}" for name in IN_SDIST if name not in sdist]
    found += [f"the wheel lacks {name}" for name in IN_WHEEL if name not in wheel]
    return found + ["the wheel lacks the kernels"] * (not any(map(KERNELS.fullmatch, wheel)))


def _names_in_sdist(path: Path) -> set[str]:
    with tarfile.open(path) as archive:
        return {name.partition("/")[2] for name in archive.getnames()}


def main() -> None:
    stated = versions()
    wrong = [] if len(set(stated.values())) == 1 else [f"versions differ: {stated}"]
    wrong += [fault for folder in sys.argv[1:] for fault in faults(Path(folder), stated["pyproject.toml"])]
    if wrong:
        sys.exit("\n".join(wrong))
    print(f"version {stated['pyproject.toml']}: {', '.join(stated)} agree")


if __name__ == "__main__":
    main()
