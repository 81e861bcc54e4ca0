"""Parquet files with encryption, as pyarrow writes them: as a whole, with a footer that nobody can read, and some columns below
one that everybody can."""

import base64
import pathlib

import pyarrow as pa
import pyarrow.parquet as parquet
import pyarrow.parquet.encryption as encryption

MASTERS = {"footer": b"0123456789012345", "columns": b"1234567890123450"}


class Keys(encryption.KmsClient):
    """Wraps the keys of files for this test alone: what wraps them stands in front of them."""

    def wrap_key(self, key_bytes, master_key_identifier):
        return base64.b64encode(MASTERS[master_key_identifier] + key_bytes)

    def unwrap_key(self, wrapped_key, master_key_identifier):
        return base64.b64decode(wrapped_key)[len(MASTERS[master_key_identifier]):]


# The name of a file, and what of it is encrypted.
FILES = {
    "encrypted_whole.parquet": {"uniform_encryption": True},
    "encrypted_footer.parquet": {"column_keys": {"columns": ["a"]}},
    "encrypted_columns.parquet": {"column_keys": {"columns": ["a", "s.p"]}, "plaintext_footer": True},
    "encrypted_column.parquet": {"column_keys": {"columns": ["a"]}, "plaintext_footer": True},
}


def write(folder: pathlib.Path):
    factory = encryption.CryptoFactory(lambda _: Keys())
    table = pa.table({
        "a": list(range(100)), "b": [f"x{number:02}" for number in range(100)],
        "s": [{"p": number, "q": -number} for number in range(100)],
    })  # fmt: skip
    for name, what in FILES.items():
        wanted = encryption.EncryptionConfiguration(footer_key="footer", **what)
        properties = factory.file_encryption_properties(encryption.KmsConnectionConfig(), wanted)
        with parquet.ParquetWriter(folder / name, table.schema, encryption_properties=properties) as writer:
            writer.write_table(table)
