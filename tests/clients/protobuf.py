"""The protobuf of Flight SQL, as the Python client writes and reads it."""

import sys

from server import ROOT

sys.path.append(str(ROOT / "clients/python/src"))

from bowshot._messages import any_of, session_options, set_session_options  # noqa: E402, F401
from bowshot._protobuf import Message, field  # noqa: E402, F401


def fields(message):
    """Field number to the list of its raw values: numbers for varints, bytes for everything else."""
    return Message(message)._fields


def unwrap(message):
    """Name and body of a message in google.protobuf.Any."""
    found = fields(message)
    return found[1][0].decode().rsplit(".", 1)[1], found.get(2, [b""])[0]
