"""The library of kernels: its structs are those of the header, and an installation without it still runs."""

import ctypes
import importlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from seq2tens.ops import native

HEADER = Path(__file__).parents[2] / "csrc" / "seq2tens.h"
OPERATIONS = [path.name for path in Path(native.__file__).parent.iterdir() if (path / "cpu.py").is_file()]
SEQUENCE = "x = torch.arange(24.0).reshape(2, 4, 3) / 9; w = torch.ones(2, 3, 5) / 4"
LAYER = (
    f"import torch; from seq2tens.functional import ls2t; {SEQUENCE}; print(ls2t(x, w, order=2).sum().item())"
)


def structs_of_python():
    """Every mirror of a struct, by the struct's name."""
    for operation in OPERATIONS:
        importlib.import_module(f"seq2tens.ops.{operation}.cpu")
    return {mirror.name: mirror for mirror in native.Struct.__subclasses__()}


def structs_of_header():
    """Name and C type of every field of every struct."""
    text = re.sub(r"/\*.*?\*/", "", HEADER.read_text(), flags=re.DOTALL)
    found = {}
    for name, body in re.findall(r"typedef struct (\w+) \{(.*?)\} \1;", text, re.DOTALL):
        body = re.sub(r"\(\*(\w+)\)\([^;]*\)", r"*\1", body)  # pointers to functions
        fields = []
        for declaration in filter(None, map(str.strip, body.split(";"))):
            kind, names = re.fullmatch(r"(.*?[\s*])([\w\s,]+)", " ".join(declaration.split())).groups()
            fields += [(field.strip(), kind.strip()) for field in names.split(",")]
        found[name] = fields
    return found


def test_every_struct_has_the_fields_of_the_header():
    mirrors, structs = structs_of_python(), structs_of_header()
    assert set(mirrors) == set(structs)
    assert len(structs) > 10
    plain = {"int64_t": ctypes.c_int64, "double": ctypes.c_double}
    for name, fields in structs.items():
        assert [field for field, *_ in mirrors[name]._fields_] == [field for field, _ in fields], name
        for (field, kind), (_, mirrored) in zip(fields, mirrors[name]._fields_, strict=True):
            pointer = mirrored is ctypes.c_void_p or issubclass(mirrored, ctypes._Pointer)
            assert pointer if kind.endswith("*") else mirrored is plain[kind], f"{name}.{field}: {kind}"


@pytest.mark.slow
def test_sizes_and_offsets_are_those_of_a_compiler(tmp_path):
    compiler = shutil.which("cc") or shutil.which("c++")
    if compiler is None:
        pytest.skip("there is no C compiler")
    lines = ["#include <stddef.h>", "#include <stdio.h>", f'#include "{HEADER}"', "int main(void) {"]
    expected = []
    for name, mirror in structs_of_python().items():
        lines.append(f'printf("%zu\\n", sizeof({name}));')
        expected.append(ctypes.sizeof(mirror))
        for field, _ in mirror._fields_:
            lines.append(f'printf("%zu\\n", offsetof({name}, {field}));')
            expected.append(getattr(mirror, field).offset)
    (tmp_path / "layout.c").write_text("\n".join([*lines, "return 0; }"]))
    subprocess.run([compiler, tmp_path / "layout.c", "-o", tmp_path / "layout"], check=True)
    told = subprocess.run([tmp_path / "layout"], capture_output=True, text=True, check=True).stdout
    assert list(map(int, told.split())) == expected


def run(code, **environment):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **environment}
    )


@pytest.mark.slow
def test_without_kernels_the_reference_runs_and_says_so_once():
    result = run(f"{LAYER}; {LAYER}", SEQ2TENS_LIBRARY="/nowhere/libseq2tens.so")
    assert result.returncode == 0, result.stderr
    assert result.stderr.count("seq2tens runs without its compiled kernels") == 1
    assert "/nowhere/libseq2tens.so cannot be loaded" in result.stderr
    kernels = run(LAYER)
    assert kernels.stderr == ""
    for told in result.stdout.split():
        assert float(told) == pytest.approx(float(kernels.stdout), rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["x86-64-v2", "x86-64-v3", "x86-64-v4"])
def test_instruction_sets_agree(name):
    result = run(f"{LAYER}; from seq2tens.ops import native; print(native.LOADED[2])", SEQ2TENS_ISA=name)
    if "no instruction set" in result.stderr:
        pytest.skip("this processor does not have it")
    value, chosen = result.stdout.split()
    assert chosen == name
    assert float(value) == pytest.approx(float(run(LAYER).stdout), rel=1e-6)


@pytest.mark.slow
def test_a_system_without_fork():
    result = run(f"import os, torch; del os.register_at_fork; {LAYER}")  # torch itself has to look it up
    assert result.stdout == run(LAYER).stdout, result.stderr


def test_an_unknown_instruction_set_is_named(monkeypatch):
    monkeypatch.setenv("SEQ2TENS_ISA", "x86-64-v9")
    assert "no instruction set 'x86-64-v9'" in native._load()


def test_a_library_of_other_sources_is_refused(monkeypatch, tmp_path):
    for source in HEADER.parent.glob("*.*"):
        if source.is_file():
            shutil.copyfile(source, tmp_path / source.name)  # without its mode, which may forbid writing
    monkeypatch.setattr(native, "_SOURCES", tmp_path)
    assert isinstance(native._load(), native.Library)
    with (tmp_path / "simd.h").open("a") as file:
        file.write("\n")
    assert "was built from other sources" in native._load()


def test_memory_that_cannot_be_had(monkeypatch):
    monkeypatch.setattr(native, "_function", lambda _: lambda _: 1)
    with pytest.raises(MemoryError, match="ls2t_forward"):
        native.run_kernel("ls2t_forward", native.Struct())


def test_torch_may_change_its_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    assert native.threads() == 3
    torch.set_num_threads(before)


def test_a_tensor_without_numbers_has_no_address():
    assert native.addresses(None, torch.empty(0, 3))[0] is None
    with pytest.raises(RuntimeError, match="a tensor with numbers, got a Tensor without"):
        native.addresses(torch.empty(2, device="meta"))
