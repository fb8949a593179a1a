"""Parser of MATLAB files of versions 5 to 7, as far as data sets need them: numbers, text, cells and structs.

SciPy's reader can corrupt memory and crash on malformed files; here, every size is checked against the
available bytes before it is used.
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
# Classes of arrays: numeric ones are in this order from 6 on, those from 16 on have no sizes.
NUMERIC_CLASSES = ("f8", "f4", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8")
UNSIZED = 16
LOGICAL, COMPLEX = 0x200, 0x800
HDF5 = 2
# Maximum nesting of cells: more than any data set has, less than Python's recursion limit.
DEPTH = 20


class Mat5Error(ValueError):
    """Raised for bytes that violate the format."""


class Hdf5Error(Mat5Error):
    """Raised for a file of version 7.3."""


@dataclass(frozen=True)
class Element:
    """Type and bytes of one element; `order` is the byte order of the file."""

    type: int
    content: memoryview
    order: Order

    def numbers(self, types: Mapping[int, str] = TYPES) -> np.ndarray:
        """Return the content as a one-dimensional array."""
        if (code := types.get(self.type)) is None:
            raise Mat5Error(f"an element of type {self.type} holds no numbers")
        dtype = np.dtype(code).newbyteorder(self.order)
        if len(self.content) % dtype.itemsize:
            raise Mat5Error(f"{len(self.content)} bytes are not a multiple of {dtype.itemsize} bytes")
        return np.frombuffer(self.content, dtype).astype(dtype.newbyteorder("="))


def parse(content: bytes, limit: int) -> dict[str, np.ndarray]:
    """Return the variables of a file; together they may unpack to at most `limit` bytes.

    Cells become arrays of objects, structs become structured arrays with fields of objects, and types that
    data sets do not need (functions, sparse matrices) become empty arrays of objects.
    """
    if len(content) < 128:
        raise Mat5Error(f"the header has 128 bytes, the file {len(content)}")
    marks: dict[bytes, Order] = {b"IM": "<", b"MI": ">"}
    if content[126:128] not in marks:
        raise Mat5Error("the header does not give the byte order")
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
    """Yield the elements in order; inside arrays they are aligned to 8 bytes."""
    at = 0
    while at < len(content):
        if len(content) - at < 8:
            raise Mat5Error(f"an element begins {len(content) - at} bytes before the end")
        first, size = struct.unpack(f"{order}II", content[at : at + 8])
        if first >> 16:  # up to four bytes are stored in the tag itself
            kind, size, start, after = first & 0xFFFF, first >> 16, at + 4, at + 8
        else:
            kind, start = first, at + 8
            after = start + size + (-size % 8 if aligned or kind != COMPRESSED else 0)
        if size > len(content) - start or (first >> 16 and size > 4):
            raise Mat5Error(f"an element claims {size} bytes, but the file ends before")
        yield Element(kind, content[start : start + size], order)
        at = after


def _unpacked(element: Element, limit: int) -> tuple[Element, int]:
    unpacker = zlib.decompressobj()
    content = unpacker.decompress(element.content, limit + 1)
    if len(content) > limit:
        raise Mat5Error("it unpacks to implausibly many bytes")
    if not unpacker.eof:
        raise Mat5Error("a compressed element ends early")
    variables = list(_elements(memoryview(content), element.order))
    if len(variables) != 1:
        raise Mat5Error(f"a compressed element must hold one variable, got {len(variables)}")
    return variables[0], limit - len(content)


def _matrix(element: Element, depth: int) -> tuple[str, np.ndarray]:
    """Return name and value of an array."""
    if element.type != MATRIX:
        raise Mat5Error(f"an element of type {element.type} is in the place of an array")
    if depth > DEPTH:
        raise Mat5Error(f"arrays are nested more than {DEPTH} times")
    if not len(element.content):
        return "", np.zeros((0, 0))
    parts = _elements(element.content, element.order)
    flags = _next(parts)
    if flags.type != FLAGS or len(flags.content) != 8:
        raise Mat5Error("an array has invalid flags")
    flag = int(flags.numbers()[0])
    if flag & 0xFF >= UNSIZED:
        return _text(_next(parts)), np.empty(0, dtype=object)
    sizes, name = _next(parts), _next(parts)
    shape = tuple(sizes.numbers().tolist())
    if sizes.type != SIZES or len(shape) < 2 or min(shape) < 0:
        raise Mat5Error("an array has invalid sizes")
    return _text(name), _value(flag, shape, parts, depth)


def _value(flag: int, shape: tuple[int, ...], parts: Iterator[Element], depth: int) -> np.ndarray:
    kind = flag & 0xFF
    if kind == CELL:
        return _objects([_matrix(part, depth + 1)[1] for part in parts], shape)
    if kind == STRUCT:
        return _struct(shape, parts, depth)
    if kind == CHAR:
        return np.array("".join(map(chr, _next(parts).numbers(TEXTS))))
    if 6 <= kind < 6 + len(NUMERIC_CLASSES) and not flag & COMPLEX:
        numbers = _next(parts).numbers()
        dtype = np.dtype(bool if flag & LOGICAL else NUMERIC_CLASSES[kind - 6])
        return _shaped(numbers.astype(dtype), shape)
    return np.empty(0, dtype=object)


def _struct(shape: tuple[int, ...], parts: Iterator[Element], depth: int) -> np.ndarray:
    width, names = _next(parts).numbers().tolist(), bytes(_next(parts).content)
    if len(width) != 1 or width[0] < 1 or len(names) % width[0]:
        raise Mat5Error("a struct has invalid field names")
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
