"""MATLAB's files of versions 5 to 7, as far as data sets need them: numbers, texts, cells and structs.

SciPy has a reader. Malformed files make it write where it must not, and the process ends; here every size is
compared with the bytes that are there before anything is made of it.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import Literal

import numpy as np

Order = Literal["<", ">"]

# Types of elements by their numbers.
TYPES = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
SIZES, FLAGS, MATRIX, COMPRESSED = 5, 6, 14, 15
TEXTS = {2: "u1", 4: "u2", 16: "u1", 17: "u2", 18: "u4"}
CELL, STRUCT, CHAR = 1, 2, 4
# Classes of arrays: those of numbers are in this order from 6 on, those from 16 on have no sizes.
NUMBERS = ("f8", "f4", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8")
UNSIZED = 16
LOGICAL, COMPLEX = 0x200, 0x800
HDF5 = 2
# Cells in cells: more than any data set has, fewer than Python's stack.
DEPTH = 20


class Mat5Error(ValueError):
    """Bytes that are not what the format asks for."""


class Hdf5Error(Mat5Error):
    """A file of version 7.3."""


@dataclass(frozen=True)
class Element:
    """A type and the bytes of one element; `order` is the byte order of the file."""

    type: int
    content: memoryview
    order: Order

    def numbers(self, types: Mapping[int, str] = TYPES) -> np.ndarray:
        """The content as one axis of numbers."""
        if (code := types.get(self.type)) is None:
            raise Mat5Error(f"an element of type {self.type} holds no numbers")
        dtype = np.dtype(code).newbyteorder(self.order)
        if len(self.content) % dtype.itemsize:
            raise Mat5Error(f"{len(self.content)} bytes are no whole numbers of {dtype.itemsize} bytes")
        return np.frombuffer(self.content, dtype).astype(dtype.newbyteorder("="))


def parse(content: bytes, limit: int) -> dict[str, np.ndarray]:
    """The variables of a file; together they may unpack to `limit` bytes.

    Cells are arrays of objects, structs have a field of objects for each of theirs, and what is of no use for
    data sets (functions, sparse matrices) is an empty array of objects.
    """
    if len(content) < 128:
        raise Mat5Error(f"the header has 128 bytes, the file {len(content)}")
    marks: dict[bytes, Order] = {b"IM": "<", b"MI": ">"}
    if content[126:128] not in marks:
        raise Mat5Error("the header does not tell the order of bytes")
    order = marks[content[126:128]]
    version = struct.unpack(f"{order}H", content[124:126])[0] >> 8
    if version == HDF5:
        raise Hdf5Error("version 7.3")
    if version != 1:
        raise Mat5Error(f"the version is {version}")
    variables: dict[str, np.ndarray] = {}
    for element in _elements(memoryview(content)[128:], order, aligned=False):
        plain = element
        if element.type == COMPRESSED:
            plain, limit = _unpacked(element, limit)
        name, array = _matrix(plain, 0)
        variables[name] = array
    return variables


def _elements(content: memoryview, order: Order, aligned: bool = True) -> Iterator[Element]:
    """One element after the other; inside arrays they begin at multiples of 8 bytes."""
    at = 0
    while at < len(content):
        if len(content) - at < 8:
            raise Mat5Error(f"an element begins {len(content) - at} bytes before the end")
        first, size = struct.unpack(f"{order}II", content[at : at + 8])
        if first >> 16:  # four bytes or less stand in the tag itself
            kind, size, begin, after = first & 0xFFFF, first >> 16, at + 4, at + 8
        else:
            kind, begin = first, at + 8
            after = begin + size + (-size % 8 if aligned or kind != COMPRESSED else 0)
        if size > len(content) - begin or (first >> 16 and size > 4):
            raise Mat5Error(f"an element says that it has {size} bytes, but the file ends before")
        yield Element(kind, content[begin : begin + size], order)
        at = after


def _unpacked(element: Element, limit: int) -> tuple[Element, int]:
    unpacker = zlib.decompressobj()
    content = unpacker.decompress(element.content, limit + 1)
    if len(content) > limit:
        raise Mat5Error("it unpacks to far more than data would")
    if not unpacker.eof:
        raise Mat5Error("a compressed element ends early")
    variables = list(_elements(memoryview(content), element.order))
    if len(variables) != 1:
        raise Mat5Error(f"a compressed element must hold one variable, got {len(variables)}")
    return variables[0], limit - len(content)


def _matrix(element: Element, depth: int) -> tuple[str, np.ndarray]:
    """Name and value of an array."""
    if element.type != MATRIX:
        raise Mat5Error(f"an element of type {element.type} stands where an array must be")
    if depth > DEPTH:
        raise Mat5Error(f"arrays are nested more than {DEPTH} times")
    if not len(element.content):
        return "", np.zeros((0, 0))
    parts = _elements(element.content, element.order)
    flags = _next(parts)
    if flags.type != FLAGS or len(flags.content) != 8:
        raise Mat5Error("an array has no proper flags")
    flag = int(flags.numbers()[0])
    if flag & 0xFF >= UNSIZED:
        return _text(_next(parts)), np.empty(0, dtype=object)
    sizes, name = _next(parts), _next(parts)
    shape = tuple(sizes.numbers().tolist())
    if sizes.type != SIZES or len(shape) < 2 or min(shape) < 0:
        raise Mat5Error("an array has no proper sizes")
    return _text(name), _value(flag, shape, parts, depth)


def _value(flag: int, shape: tuple[int, ...], parts: Iterator[Element], depth: int) -> np.ndarray:
    kind = flag & 0xFF
    if kind == CELL:
        return _objects([_matrix(part, depth + 1)[1] for part in parts], shape)
    if kind == STRUCT:
        return _struct(shape, parts, depth)
    if kind == CHAR:
        return np.array("".join(map(chr, _next(parts).numbers(TEXTS))))
    if 6 <= kind < 6 + len(NUMBERS) and not flag & COMPLEX:
        numbers = _next(parts).numbers()
        dtype = np.dtype(bool if flag & LOGICAL else NUMBERS[kind - 6])
        return _shaped(numbers.astype(dtype), shape)
    return np.empty(0, dtype=object)


def _struct(shape: tuple[int, ...], parts: Iterator[Element], depth: int) -> np.ndarray:
    width, names = _next(parts).numbers().tolist(), bytes(_next(parts).content)
    if len(width) != 1 or width[0] < 1 or len(names) % width[0]:
        raise Mat5Error("a struct has no proper names of fields")
    size = width[0]
    fields = [names[at : at + size].split(b"\0")[0].decode() for at in range(0, len(names), size)]
    values = [_matrix(part, depth + 1)[1] for part in parts]
    if len(set(fields)) < len(fields) or len(values) != prod(shape) * len(fields):
        raise Mat5Error(f"a struct of shape {shape} must have the fields {', '.join(fields)} once each")
    array = np.empty(shape, dtype=[(field, object) for field in fields], order="F")
    for i, field in enumerate(fields):
        array[field] = _objects(values[i :: len(fields)], shape)
    return array


def _objects(values: list[np.ndarray], shape: tuple[int, ...]) -> np.ndarray:
    array = np.empty(len(values), dtype=object)
    for i, value in enumerate(values):
        array[i] = value
    return _shaped(array, shape)


def _shaped(values: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    if values.size != prod(shape):
        raise Mat5Error(f"an array of shape {shape} must not have {values.size} entries")
    return values.reshape(shape, order="F")


def _next(parts: Iterator[Element]) -> Element:
    element = next(parts, None)
    if element is None:
        raise Mat5Error("an array ends early")
    return element


def _text(element: Element) -> str:
    return bytes(element.content).decode("latin-1")
