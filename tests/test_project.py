"""What makes it a project that others can join: files for GitHub, the CI and its local twin, releases."""

import re
import tarfile
import zipfile

import pytest
import yaml

import release
from house import ROOT

GITHUB = ROOT / ".github"
YAML = [*GITHUB.rglob("*.yml"), ROOT / ".pre-commit-config.yaml"]
CI = yaml.safe_load((GITHUB / "workflows" / "ci.yml").read_text())
RELEASE = yaml.safe_load((GITHUB / "workflows" / "release.yml").read_text())


class UniqueKeys(yaml.SafeLoader):
    """YAML lets a second key replace the first, in silence; here it is an error."""

    def construct_mapping(self, node, deep=False):
        keys = [self.construct_object(key, deep=deep) for key, _ in node.value]
        assert len(keys) == len(set(keys)), f"a key stands twice in {keys}"
        return super().construct_mapping(node, deep)


@pytest.mark.parametrize("path", YAML, ids=lambda path: path.name)
def test_yaml_is_well_formed(path):
    assert isinstance(yaml.load(path.read_text(), UniqueKeys), dict)


def test_a_key_that_stands_twice_is_found():
    with pytest.raises(AssertionError, match="stands twice"):
        yaml.load("a: 1\na: 2", UniqueKeys)


@pytest.mark.parametrize("workflow", [CI, RELEASE], ids=["ci", "release"])
def test_jobs_of_a_workflow_can_run(workflow):
    for job in workflow["jobs"].values():
        assert job["runs-on"]
        assert set(job.get("needs", [])) <= set(workflow["jobs"])
        assert all(("uses" in step) != ("run" in step) for step in job["steps"])
        axes = set(job.get("strategy", {}).get("matrix", {}))
        assert set(re.findall(r"matrix\.(\w+)", yaml.dump(job))) == axes


def make_targets():
    return set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def test_the_ci_and_its_local_twin_run_the_same():
    """Fast tests of several Pythons need several Pythons, and coverage takes the tests once more."""
    local = set(re.findall(r"\bmake ([\w-]+)", (ROOT / ".ci" / "run").read_text()))
    public = set(CI["jobs"]["check"]["strategy"]["matrix"]["target"])
    assert public <= make_targets()
    assert public - local == {"coverage"}
    assert local - public == {"test"}


def test_the_ci_covers_the_supported_pythons():
    pyproject = (ROOT / "pyproject.toml").read_text()
    low, high = re.search(r'requires-python = ">=3\.(\d+),<3\.(\d+)"', pyproject).groups()
    matrix = CI["jobs"]["test"]["strategy"]["matrix"]
    assert matrix["python"] == [f"3.{minor}" for minor in range(int(low), int(high))]
    assert matrix["python"] == re.findall(r'"Programming Language :: Python :: (3\.\d+)"', pyproject)
    assert f"matrix.python == '3.{int(high) - 1}'" in CI["jobs"]["test"]["continue-on-error"]
    assert {name.partition("-")[0] for name in matrix["system"]} == {"ubuntu", "macos", "windows"}


def commands(workflow):
    """What a workflow runs in a shell, with every value of its matrix written out."""
    for job in workflow["jobs"].values():
        targets = job.get("strategy", {}).get("matrix", {}).get("target", [""])
        for step in job["steps"]:
            for target in targets:
                yield step.get("run", "").replace("${{ matrix.target }}", target)


@pytest.mark.parametrize("workflow", [CI, RELEASE], ids=["ci", "release"])
def test_workflows_call_what_is_there(workflow):
    text = "\n".join(commands(workflow))
    called = set(re.findall(r"\bmake ([\w-]+)", text))
    assert called
    assert called <= make_targets()
    extras = set(re.findall(r"\.\[(\w+)\]", text))
    pyproject = (ROOT / "pyproject.toml").read_text()
    assert all(re.search(rf"^{extra} = \[", pyproject, re.MULTILINE) for extra in extras)
    assert all((ROOT / path).exists() for path in re.findall(r"[\w/]+\.(?:txt|py|sh)\b", text))


def test_the_ci_installs_the_releases_that_tests_have_passed_with():
    """Ignoring `requires-python` would let old Pythons take releases that were not made for them."""
    (install,) = [command for command in commands(CI) if "pip install" in command]
    assert "--constraint constraints.txt" in install
    assert "--ignore-requires-python" not in install


def test_wheels_are_tried_by_a_script_that_is_there():
    (script,) = re.findall(
        r"^test-command = .*\{project\}/([\w/.]+)", (ROOT / "pyproject.toml").read_text(), re.M
    )
    assert (ROOT / script).exists()


def test_releases_are_published_without_a_password():
    publish = RELEASE["jobs"]["publish"]
    assert publish["permissions"] == {"id-token": "write"}
    assert publish["needs"] == ["wheels", "sdist"]
    assert "startsWith(github.ref, 'refs/tags/v')" in publish["if"]
    assert "secrets." not in (GITHUB / "workflows" / "release.yml").read_text()


def test_hooks_run_tools_of_the_environment():
    (repository,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    assert repository["repo"] == "local"
    assert {hook["entry"].split()[0] for hook in repository["hooks"]} == {".venv/bin/ruff", ".venv/bin/mypy"}


@pytest.mark.parametrize("name", ["CODE_OF_CONDUCT.md", "SECURITY.md", "GOVERNANCE.md"])
def test_newcomers_find_the_rules(name):
    assert f"]({name})" in (ROOT / "CONTRIBUTING.md").read_text()
    assert (ROOT / name).stat().st_size > 200


def test_every_make_target_that_contributing_names_is_there():
    named = set(re.findall(r"\bmake ([a-z][\w-]+)", (ROOT / "CONTRIBUTING.md").read_text()))
    assert {"coverage", "release-check"} <= named <= make_targets()


def test_files_of_the_first_hour_are_there():
    hour = (ROOT / "CONTRIBUTING.md").read_text().partition("## Your first hour")[2].partition("\n## ")[0]
    paths = re.findall(r"`((?:nn|functional|ops)/[\w/]+\.py)`", hour)
    assert len(paths) >= 3
    assert all((ROOT / "src" / "seq2tens" / path).exists() for path in paths)


def test_all_places_state_one_version():
    assert len(set(release.versions().values())) == 1, release.versions()


def write_project(root, changelog):
    (root / "src" / "seq2tens").mkdir(parents=True)
    (root / "pyproject.toml").write_text('name = "x"\nversion = "1.2"\n')
    (root / "src" / "seq2tens" / "__init__.py").write_text('__version__ = "1.2"\n')
    (root / "CHANGELOG.md").write_text(changelog)


def test_a_version_that_differs_is_seen(tmp_path):
    write_project(tmp_path, "# Changelog\n\n## [1.1] - 2026-01-01\n\n## [1.0] - 2025-01-01\n")
    assert release.versions(tmp_path) == {
        "pyproject.toml": "1.2",
        "src/seq2tens/__init__.py": "1.2",
        "CHANGELOG.md": "1.1",
    }


def write_files(folder, sdist, wheel, version="1.2"):
    (folder / "empty").touch()
    with tarfile.open(folder / f"seq2tens-{version}.tar.gz", "w:gz") as archive:
        for name in sdist:
            archive.add(folder / "empty", f"seq2tens-{version}/{name}")
    with zipfile.ZipFile(folder / f"seq2tens-{version}-py3-none-any.whl", "w") as archive:
        for name in wheel:
            archive.writestr(name, "")


def test_files_to_upload_are_whole(tmp_path):
    kernels = "seq2tens/ops/libseq2tens.so"
    write_files(tmp_path, release.IN_SDIST, [*release.IN_WHEEL, kernels])
    assert release.faults(tmp_path, "1.2") == []
    assert len(release.faults(tmp_path, "1.3")) == 2
    write_files(tmp_path, release.IN_SDIST[1:], release.IN_WHEEL)
    assert release.faults(tmp_path, "1.2") == [
        "the sdist lacks CMakeLists.txt",
        "the wheel lacks the kernels",
    ]
    write_files(tmp_path, [], [], version="1.1")
    (fault,) = release.faults(tmp_path, "1.2")
    assert "must hold one sdist and one wheel" in fault
