"""As much of the protobuf wire format as the Flight actions need, so that no generated code has to be kept."""

import struct


def varint(number):
    number &= (1 << 64) - 1
    out = bytearray()
    while True:
        low, number = number & 0x7F, number >> 7
        out.append(low | (0x80 if number else 0))
        if not number:
            return bytes(out)


def field(number, value):
    """One field: bytes and text as length-delimited, int and bool as varint, float as double."""
    if isinstance(value, str):
        value = value.encode()
    if isinstance(value, bytes):
        return varint(number << 3 | 2) + varint(len(value)) + value
    if isinstance(value, float):
        return varint(number << 3 | 1) + struct.pack("<d", value)
    return varint(number << 3) + varint(int(value))


def fields(message):
    """Field number to the list of its raw values: numbers for varints, bytes for everything else."""
    found, at = {}, 0

    def read_varint():
        nonlocal at
        number = shift = 0
        while True:
            byte = message[at]
            at += 1
            number |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return number

    while at < len(message):
        key = read_varint()
        kind = key & 7
        if kind == 0:
            value = read_varint()
        elif kind == 1:
            value, at = bytes(message[at : at + 8]), at + 8
        elif kind == 2:
            length = read_varint()
            value, at = bytes(message[at : at + length]), at + length
        else:
            raise ValueError(f"wire type {kind}")
        found.setdefault(key >> 3, []).append(value)
    return found


def any_of(name, body):
    """A Flight SQL message wrapped in google.protobuf.Any."""
    return field(1, f"type.googleapis.com/arrow.flight.protocol.sql.{name}") + field(2, body)


def unwrap(message):
    """Name and body of a message in google.protobuf.Any."""
    found = fields(message)
    return found[1][0].decode().rsplit(".", 1)[1], found.get(2, [b""])[0]


OPTION_FIELDS = {str: 1, bool: 2, int: 3, float: 4}


def option_value(value):
    """SessionOptionValue; None erases."""
    if value is None:
        return b""
    if isinstance(value, list):
        return field(5, b"".join(field(1, text) for text in value))
    if type(value) is int:
        return varint(OPTION_FIELDS[int] << 3 | 1) + struct.pack("<q", value)
    return field(OPTION_FIELDS[type(value)], value)


def set_session_options(options):
    return b"".join(field(1, field(1, name) + field(2, option_value(value))) for name, value in options.items())


def session_options(message):
    """GetSessionOptionsResult as a dictionary."""
    options = {}
    for entry in fields(message).get(1, []):
        parts = fields(entry)
        value = fields(parts.get(2, [b""])[0])
        name = parts[1][0].decode()
        if 1 in value:
            options[name] = value[1][0].decode()
        elif 2 in value:
            options[name] = bool(value[2][0])
        elif 3 in value:
            (options[name],) = struct.unpack("<q", value[3][0])
        elif 4 in value:
            (options[name],) = struct.unpack("<d", value[4][0])
        elif 5 in value:
            options[name] = [text.decode() for text in fields(value[5][0]).get(1, [])]
    return options
