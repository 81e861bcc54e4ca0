"""How schemathesis writes the bodies whose types it does not know. A hook of it, see run.py."""

import json

import schemathesis


@schemathesis.serializer("application/sql", "application/x-ndjson", "application/vnd.apache.arrow.stream", "application/vnd.apache.arrow.file")
def as_bytes(_context, value):
    if isinstance(value, bytes):
        return value
    return (value if isinstance(value, str) else json.dumps(value)).encode(errors="surrogatepass")
