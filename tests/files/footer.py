"""Footers of Parquet files as lists of fields, so that a test can change what one says of its row groups (`parquet.thrift`,
in Thrift's compact protocol)."""

import struct

BINARY, LIST, SET, STRUCT, I64 = 8, 9, 10, 12, 6
# Fields of `Statistics`.
OLD_MAX, OLD_MIN, NULLS, DISTINCT, MAX, MIN, MAX_EXACT, MIN_EXACT = range(1, 9)


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        self.at += count
        return self.data[self.at - count : self.at]

    def varint(self):
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def integer(self):
        value = self.varint()
        return (value >> 1) ^ -(value & 1)

    def value(self, kind):
        if kind in (1, 2):
            return kind == 1
        if kind == 3:
            return self.take(1)
        if kind in (4, 5, 6):
            return self.integer()
        if kind == 7:
            return struct.unpack("<d", self.take(8))[0]
        if kind == BINARY:
            return self.take(self.varint())
        if kind in (LIST, SET):
            head = self.take(1)[0]
            count = head >> 4 if head >> 4 < 15 else self.varint()
            # Booleans in lists take a byte each.
            return head & 15, [self.take(1) if head & 15 in (1, 2) else self.value(head & 15) for _ in range(count)]
        if kind == STRUCT:
            return self.fields()
        raise ValueError(f"no kind {kind} in a footer")

    def fields(self):
        """`{number: (kind, value)}`, in the order of the numbers."""
        found, number = {}, 0
        while head := self.take(1)[0]:
            number = number + (head >> 4) if head >> 4 else self.integer()
            found[number] = (head & 15, self.value(head & 15))
        return found


def varint(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out) + bytes([value])


def integer(value):
    return varint((value << 1) ^ (value >> 63))


def written(kind, value):
    if kind in (1, 2):
        return b""
    if kind == 3:
        return value
    if kind in (4, 5, 6):
        return integer(value)
    if kind == 7:
        return struct.pack("<d", value)
    if kind == BINARY:
        return varint(len(value)) + value
    if kind in (LIST, SET):
        inner, items = value
        head = bytes([len(items) << 4 | inner]) if len(items) < 15 else bytes([240 | inner]) + varint(len(items))
        return head + b"".join(item if inner in (1, 2) else written(inner, item) for item in items)
    return fields(value)


def fields(values):
    out, last = b"", 0
    for number in sorted(values):
        kind, value = values[number]
        kind = (1 if value else 2) if kind in (1, 2) else kind
        step = number - last
        out += (bytes([step << 4 | kind]) if 0 < step < 16 else bytes([kind]) + integer(number)) + written(kind, value)
        last = number
    return out + b"\0"


def rewrite(path, change):
    """Puts the footer below the rows that `change` makes of the file's."""
    data = path.read_bytes()
    length = struct.unpack("<I", data[-8:-4])[0]
    footer = Reader(data[-8 - length : -8]).fields()
    change(footer)
    made = fields(footer)
    path.write_bytes(data[: -8 - length] + made + struct.pack("<I", len(made)) + data[-4:])


def chunks(footer):
    """Row group, place and fields of the metadata of each column chunk."""
    for group, row_group in enumerate(footer[4][1][1]):
        for place, chunk in enumerate(row_group[1][1][1]):
            yield group, place, chunk[3][1]
