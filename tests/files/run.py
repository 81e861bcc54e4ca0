"""Reads small files of every kind with Bowshot, as tables of a served folder and by their path in SQL, and compares values
and types with DuckDB, or with what is known of the file where it says so. Prints `N passed, N failed`."""

import contextlib
import datetime
import math
import pathlib
import sys
import tempfile

import duckdb
import pyarrow as pa
import pyarrow.flight as flight

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "clients"))

import statements  # noqa: E402
import unions  # noqa: E402
from cases import DIFFERENT, all_cases  # noqa: E402
from server import Server  # noqa: E402

FUNCTIONS = {"csv": "read_csv", "json": "read_json", "jsonl": "read_json", "parquet": "read_parquet"}


def kind(data_type):
    """Types as far as readers must agree."""
    if pa.types.is_dictionary(data_type):
        return kind(data_type.value_type)
    if pa.types.is_integer(data_type):
        return "integer"
    if pa.types.is_floating(data_type):
        return "real"
    if pa.types.is_timestamp(data_type):
        return "moment with zone" if data_type.tz else "moment"
    if pa.types.is_string(data_type) or pa.types.is_large_string(data_type) or pa.types.is_null(data_type):
        return "text"
    if pa.types.is_time(data_type):
        return "time"
    for name, test in [("date", pa.types.is_date), ("truth", pa.types.is_boolean), ("decimal", pa.types.is_decimal),
                       ("list", pa.types.is_list), ("struct", pa.types.is_struct)]:  # fmt: skip
        if test(data_type):
            return name
    return "binary" if "binary" in str(data_type) else str(data_type)


def plain(value):
    """A value as both sides have it."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else value
    if isinstance(value, datetime.datetime):
        return value.astimezone(datetime.UTC).replace(tzinfo=None) if value.tzinfo else value
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(inner) for inner in value]
    return value


def rows_of(table):
    columns = [[plain(value) for value in column.to_pylist()] for column in table.columns]
    return sorted(map(list, zip(*columns)), key=repr) if columns else []


class Reader:
    def __init__(self, uri):
        self.client = flight.connect(uri)

    def __call__(self, sql):
        return self.client.do_get(flight.Ticket(sql.encode())).read_all()


def expected(case, path):
    """DuckDB's rows and kinds."""
    function = FUNCTIONS[case.ending.split(".")[0]]
    options = case.told or case.options
    table = duckdb.sql(f"SELECT * FROM {function}('{path}'{', ' + options if options else ''})").to_arrow_table()
    return rows_of(table), [kind(field.type) for field in table.schema]


@contextlib.contextmanager
def reading(folder, data, *arguments):
    with Server(folder, data=data, arguments=arguments) as server:
        yield Reader(server.grpc_tcp)


def check(case, folder, read):
    path = folder / case.file
    if case.options:
        got = read(f"SELECT * FROM read_csv('{case.file}', {case.options})")
    else:
        got = read(f"SELECT * FROM '{case.file}'")
        served = read(f'SELECT * FROM "{case.file.split(".")[0]}"')
        assert rows_of(served) == rows_of(got), "the served table has other rows than the named file"
    if case.rows is not None:
        wanted = sorted((plain(row) for row in case.rows), key=repr)
        if "dates" in case.tags:
            wanted = [[row[0], row[1], row[2], datetime.date.fromisoformat(row[3])] for row in wanted]
        assert rows_of(got) == wanted, f"{rows_of(got)} instead of {wanted}"
        return
    wanted, kinds = expected(case, path)
    reason = next((reason for reason, names in DIFFERENT.items() if case.name in names), None)
    same = rows_of(got) == wanted and [kind(field.type) for field in got.schema] == kinds
    if reason:
        assert not same, f"is now read as by DuckDB: take it off the list `{reason}`"
        return
    assert rows_of(got) == wanted, f"{rows_of(got)} instead of {wanted}"
    found = [kind(field.type) for field in got.schema]
    assert found == kinds, f"{found} instead of {kinds}"


def main():
    only = sys.argv[1] if len(sys.argv) > 1 else ""
    cases = [case for case in all_cases() if only in case.name]
    passed = failed = 0
    with tempfile.TemporaryDirectory(prefix="bowshot-files-") as name:
        folder = pathlib.Path(name) / "files"
        folder.mkdir()
        for case in cases:
            (folder / case.file).write_bytes(case.content)
        statements.prepare(folder)
        unions.prepare(folder)
        with Server(folder) as server:
            read = Reader(server.grpc_tcp)
            for case in cases:
                try:
                    check(case, folder, read)
                    passed += 1
                except (AssertionError, pa.ArrowException, duckdb.Error) as error:
                    failed += 1
                    print(f"{case.name}: {str(error)[:600]}")
            if not only or only == "statements":
                parts = [statements.check(read), statements.check_kept(reading, folder), unions.check(read)]
                failures = [failure for part, _ in parts for failure in part]
                print("".join(f"{failure}\n" for failure in failures), end="")
                passed, failed = passed + sum(well for _, well in parts), failed + len(failures)
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
