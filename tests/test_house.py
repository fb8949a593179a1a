"""The rules of the house: what is public, who may import whom, what the README says."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import house
import seq2tens

SOURCE = house.ROOT / "src" / "seq2tens"
ROOT = house.ROOT
ROOMS = [room for room in house.ROOMS if room != "csrc"] + house.GROUND


def test_public_names():
    assert sorted(seq2tens.__all__) == [
        "BiLS2T",
        "DeepLS2T",
        "FreeTensor",
        "LS2T",
        "algebra",
        "functional",
        "ls2t",
        "nn",
        "seq2tens",
        "signature",
        "string_features",
    ]
    assert all(hasattr(seq2tens, name) for name in seq2tens.__all__)


def imported_rooms(path):
    """The rooms that a file imports from, anywhere in it, or names in a string that is imported later."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module == "seq2tens":
            yield from (alias.name for alias in node.names)
            continue
        modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        modules += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        modules += [node.value] if isinstance(node, ast.Constant) and isinstance(node.value, str) else []
        for module in modules:
            name = re.fullmatch(r"seq2tens\.(\w+)(\.\w+)*\.?", module)
            if name is not None and name[1] in ROOMS:
                yield name[1]


def test_imports_are_seen_wherever_they_stand(tmp_path):
    lines = ["from seq2tens import nn", "import seq2tens.data.tables", 'load("seq2tens.models.gpvae")']
    lines += ['name = f"seq2tens.cli.{part}"', "from seq2tens.ops import native", "import seq2tens", "x = 1"]
    (tmp_path / "file.py").write_text("def function():\n" + "\n".join(f"    {line}" for line in lines))
    assert sorted(imported_rooms(tmp_path / "file.py")) == ["cli", "data", "models", "nn", "ops"]


def test_imports_go_downwards():
    files = [f for f in SOURCE.rglob("*.py") if f.parent != SOURCE or f.stem in ROOMS]
    assert len(files) > 10
    for path in files:
        room = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        for target in imported_rooms(path):
            assert ROOMS.index(target) >= ROOMS.index(room), f"{path}: {room} must not import {target}"


def imports_from_other_rooms(path):
    """The modules of other rooms that a file imports from, with the names."""
    own = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    for node in ast.walk(ast.parse(path.read_text())):
        module = getattr(node, "module", None) or ""
        if isinstance(node, ast.ImportFrom) and module.startswith("seq2tens."):
            _, room, *_ = parts = module.split(".")
            if room not in (own, *house.GROUND):
                yield SOURCE.joinpath(*parts[1:]), {alias.name for alias in node.names}
        assert not isinstance(node, ast.ImportFrom) or node.level == 0, f"{path}: a relative import"


def offered(package):
    """What stands in the `__init__` of a package, and its public modules."""
    tree = ast.parse((package / "__init__.py").read_text())
    names = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    names |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    names |= {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if hasattr(node, "names")
        for alias in node.names
    }
    return names | {path.stem for path in package.iterdir()}


def test_rooms_import_what_others_offer():
    """Never from a module inside another room, and no name with an underscore."""
    packages = set()
    for path in SOURCE.rglob("*.py"):
        for package, names in imports_from_other_rooms(path):
            assert package.is_dir(), f"{path} must import {names} from a package, not {package.name}.py"
            missing = {name for name in names if name.startswith("_")} | names - offered(package)
            assert not missing, f"{path}: {package.name} does not offer {missing}"
            packages.add(package)
    assert len(packages) > 20


def defined_names(node):
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
        yield node.attr
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id


def test_names_with_an_underscore_stay_in_their_room():
    """`module._name` and `estimator._method` are used where they are defined; `_make` is a named tuple's."""
    nodes = [
        (path.relative_to(SOURCE).parts[0], node)
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
    ]
    rooms = {}
    for room, node in nodes:
        for name in defined_names(node):
            rooms.setdefault(name, set()).add(room)
    private = [(room, n) for room, n in nodes if isinstance(n, ast.Attribute) and n.attr in rooms]
    private = [(room, n) for room, n in private if re.match("_[a-z]", n.attr) and n.attr != "_make"]
    assert len(private) > 100
    for room, node in private:
        assert room in rooms[node.attr], f"{room}: {ast.unparse(node)}"


def test_layers_are_made_of_functions():
    """What `nn` needs, `functional` offers; `_storage` holds the states of streams."""
    for path in (SOURCE / "nn").rglob("*.py"):
        others = set(imported_rooms(path)) - {"nn", "functional", "_checks", "_storage"}
        assert not others, f"{path}: nn must not import {others}"


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_the_picture_of_the_house_is_that_of_its_walls(name):
    """`python tests/house.py` draws it anew."""
    assert house.picture() in (ROOT / name).read_text()


def test_every_room_is_in_the_picture():
    rooms = {path.name for path in SOURCE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert rooms == set(house.ROOMS) - {"csrc"}


def test_rooms_are_small():
    for folder in {path.parent for path in SOURCE.rglob("*.py")}:
        assert len(list(folder.glob("*.py"))) <= 15, folder
    for path in SOURCE.rglob("*.py"):
        assert len(path.read_text().splitlines()) <= 300, path


# Kernels of Triton take pointers one by one; `like_lstm` and `RecurrentLS2T` have torch.nn.LSTM's order.
MANY_PARAMETERS = {"scan", "retrace", "like_lstm", "RecurrentLS2T"}


def test_functions_are_small():
    """Positional parameters count: those after `*` are named in every call."""
    lengths = []
    for path in SOURCE.rglob("*.py"):
        tree = ast.parse(path.read_text())
        owners = {f: cls.name for cls in ast.walk(tree) if isinstance(cls, ast.ClassDef) for f in cls.body}
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                lengths.append(node.end_lineno - node.lineno + 1)
                names = [a.arg for a in (*node.args.posonlyargs, *node.args.args)]
                count = len([name for name in names if name not in ("self", "cls", "ctx")])
                named = node.name if node.name != "__init__" else owners[node]
                assert count <= 6 or named in MANY_PARAMETERS, f"{path}: {named} has {count} parameters"
    assert max(lengths) <= 80
    assert sorted(lengths)[len(lengths) // 2] < 15


# What a name of these says, only the sentence around it would tell.
VAGUE = [
    "found",
    "given",
    "kept",
    "near",
    "nearby",
    "beside",
    "around",
    "outside",
    "tell",
    "told",
    "what",
    "looks",
    "missed",
    "lacking",
    "those",
    "which",
    "whose",
    "some",
    "several",
    "mine",
    "having",
    "among",
    "alone",
    "apart",
    "thing",
    "things",
    "stuff",
]


def test_names_say_what_things_are():
    folders = SOURCE, ROOT / "benchmarks", ROOT / "docs_build"
    for path in (path for folder in folders for path in folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            names = {node.arg} if isinstance(node, ast.arg) else set(defined_names(node))
            vague = {name for name in names if name.strip("_") in VAGUE}
            old = path.name == "rows.py" and vague == {"told"}  # works for one release
            assert not vague or old, f"{path}:{node.lineno}: {vague}"


def test_tests_mirror_the_rooms():
    tests = ROOT / "tests"
    for room in (path.parent.relative_to(SOURCE) for path in SOURCE.rglob("__init__.py")):
        own = any((tests / room).rglob("test_*.py"))
        assert own or any((tests / room.parent).glob(f"test_{room.name}*.py")), room
    for path in tests.rglob("*.py"):
        assert len(path.read_text().splitlines()) <= 400, path


def test_hardware_is_known_to_ops_only():
    for path in SOURCE.rglob("*.py"):
        if "ops" not in path.parts:
            assert not re.search(r"\bcuda\b|\bnumba\b|\btriton\b", path.read_text()), path


def run_python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_import_loads_nothing_heavy():
    heavy = "{'numba', 'scipy', 'sklearn', 'triton', 'matplotlib', 'pandas', 'aeon'}"
    before = run_python(f"import sys, torch, numpy; print(sorted({heavy} & set(sys.modules)))")
    after = run_python(f"import sys; from seq2tens import *; print(sorted({heavy} & set(sys.modules)))")
    assert before == after


# Dependencies of estimators, experiments and the shell, but for torch, numpy, jaxtyping and safetensors.
WITHOUT = """
import sys

class Absent:
    names = {"aeon", "sklearn", "scipy", "pandas", "numba", "matplotlib", "typer", "rich", "baycomp",
             "lightning_fabric", "filelock", "onnx", "onnxscript"}
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self.names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
"""


def test_layers_work_without_the_dependencies_of_estimators():
    told = run_python(
        WITHOUT
        + """
import torch
import seq2tens.data, seq2tens.distributed, seq2tens.exporting, seq2tens.models
from seq2tens import LS2T, BiLS2T, DeepLS2T, nn, signature

x = torch.randn(2, 9, 3, requires_grad=True)
networks = DeepLS2T(3, 4), nn.FCNLS2T(3, 4, 4), nn.FCN(3, 4), nn.ResNet(3, (4,))
for layer in (LS2T(3, 4, 2), BiLS2T(3, 4, 2), *networks):
    layer(x).square().mean().backward()
    assert all(p.grad.isfinite().all() for p in layer.parameters())
signature(x, 3).flatten().sum().backward()
print("all", x.grad.isfinite().all().item())
try:
    import seq2tens.estimators
except ModuleNotFoundError as error:
    print(error.name)
"""
    )
    assert told.split() == ["all", "True", "aeon"]


def test_the_package_bounds_torch_from_below_only():
    """What the tests have passed with is a matter of development, and stands in `constraints.txt`."""
    package, constraints = ((ROOT / name).read_text() for name in ("pyproject.toml", "constraints.txt"))
    assert re.findall(r'"torch([^"]*)"', package) == [">=2.6"]
    assert re.search(r"^torch<\d", constraints, re.MULTILINE)
    installs = [line for line in (ROOT / "Makefile").read_text().splitlines() if "pip install" in line]
    assert len(installs) == 1
    assert "--constraint constraints.txt" in installs[0]


def test_public_names_are_imported_on_first_use():
    told = run_python("import sys, seq2tens; print('torch' in sys.modules, seq2tens.LS2T.__name__)")
    assert told.split() == ["False", "LS2T"]
    with pytest.raises(AttributeError, match="module 'seq2tens' has no attribute 'nothing'"):
        seq2tens.nothing  # noqa: B018


def readme_code():
    return re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)


def test_readme_code_is_short_and_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = readme_code()
    lines = [line for block in blocks for line in block.splitlines() if line.strip()]
    assert 0 < len(lines) < 40
    namespace = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), namespace)


@pytest.mark.parametrize("name", ["LICENSE", "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "CITATION.cff"])
def test_project_files(name):
    assert (ROOT / name).stat().st_size > 200


def test_citation_and_version():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["preferred-citation"]["year"] == 2021
    assert f'version = "{seq2tens.__version__}"' in (ROOT / "pyproject.toml").read_text()
    assert f"[{seq2tens.__version__}]" in (ROOT / "CHANGELOG.md").read_text()


@pytest.mark.slow
def test_shapes_are_as_written():
    """Public functions called with jaxtyping's annotations enforced, in a process of their own."""
    code = (Path(__file__).parent / "shapes.py").read_text()
    assert "shapes hold" in run_python(code)
