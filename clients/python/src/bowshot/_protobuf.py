"""As much of the protobuf wire format as Flight SQL needs, so that no generated code has to be kept."""

from __future__ import annotations

import struct
from collections.abc import Iterator

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
_MASK = (1 << 64) - 1

Value = bytes | str | bool | int | float


def varint(number: int) -> bytes:
    """A number in base 128; negative ones as two's complement of 64 bits."""
    number &= _MASK
    out = bytearray()
    while True:
        low, number = number & 0x7F, number >> 7
        out.append(low | (0x80 if number else 0))
        if not number:
            return bytes(out)


def field(number: int, value: Value | None) -> bytes:
    """One field: bytes and text as length-delimited, int and bool as varint, float as double; nothing for None."""
    if value is None:
        return b""
    if isinstance(value, str):
        value = value.encode()
    if isinstance(value, bytes):
        return varint(number << 3 | LENGTH) + varint(len(value)) + value
    if isinstance(value, float):
        return varint(number << 3 | FIXED64) + struct.pack("<d", value)
    return varint(number << 3 | VARINT) + varint(int(value))


def fixed64(number: int, value: int) -> bytes:
    """A field of type sfixed64."""
    return varint(number << 3 | FIXED64) + struct.pack("<q", value)


class Message:
    """The fields of a message that was received, by number; unknown ones are kept and do no harm."""

    def __init__(self, data: bytes) -> None:
        self._fields: dict[int, list[int | bytes]] = {}
        for number, value in _read(data):
            self._fields.setdefault(number, []).append(value)

    def __contains__(self, number: int) -> bool:
        return number in self._fields

    def data(self, number: int) -> bytes:
        """The last value of a length-delimited or fixed field; empty without one."""
        value = self._fields.get(number, [b""])[-1]
        return value if isinstance(value, bytes) else b""

    def all(self, number: int) -> list[bytes]:
        """All values of a repeated field."""
        return [value for value in self._fields.get(number, []) if isinstance(value, bytes)]

    def text(self, number: int) -> str:
        return self.data(number).decode()

    def number(self, number: int) -> int:
        """The last value of a varint field, as int64; 0 without one."""
        value = self._fields.get(number, [0])[-1]
        if not isinstance(value, int):
            return 0
        return value - (1 << 64) if value >> 63 else value


def _read(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    at = 0
    while at < len(data):
        key, at = _read_varint(data, at)
        kind = key & 7
        if kind == VARINT:
            number, at = _read_varint(data, at)
            yield key >> 3, number
            continue
        if kind == LENGTH:
            length, at = _read_varint(data, at)
        elif kind in (FIXED64, FIXED32):
            length = 8 if kind == FIXED64 else 4
        else:
            raise ValueError(f"wire type {kind} is none of protobuf 3")
        if at + length > len(data):
            raise ValueError("a message ends in the middle of a field")
        yield key >> 3, data[at : at + length]
        at += length


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise ValueError("a message ends in the middle of a number")
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return number & _MASK, at
