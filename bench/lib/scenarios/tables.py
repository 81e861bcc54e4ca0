"""Whole tables by the clients that users have, a function for each scenario: in each case the same query and the same kind of result
from everybody.
"""

from .. import clickbench_data, contest, data
from ..arena import TRANSPORT, Arena, Contender
from ..contest import Case
from ..options import Options

MILLION = 1_000_000
REPEATS, OFTEN, VERY_OFTEN = 3, 5, 400
# Clients by their labels: the server and the reader.
CLIENTS = {
    "bowshot (pyarrow)": ("bowshot", "flight-ticket"),
    "bowshot (package)": ("bowshot", "package-socket"),
    "bowshot (package, same host)": ("bowshot", "package-memory"),
    "bowshot (ADBC)": ("bowshot", "adbc"),
    "bowshot (JDBC)": ("bowshot", "jdbc-flight"),
    "bowshot (same host)": ("bowshot", "package-memory"),
    "bowshot (package, socket)": ("bowshot", "package-socket"),
    "bowshot (pyarrow, socket)": ("bowshot", "flight-info"),
    "DuckDB Quack": ("quack", "quack"),
    "DuckDB behind Arrow Flight": ("duckdb-flight", "flight-ticket"),
    "DuckDB in process": ("duckdb", "duckdb"),
    "ROAPI (ADBC)": ("roapi", "adbc"),
    "PostgreSQL (ADBC)": ("postgres", "postgres-adbc"),
    "PostgreSQL (connectorx)": ("postgres", "connectorx"),
    "PostgreSQL (psycopg)": ("postgres", "psycopg"),
    "PostgreSQL (pyodbc)": ("postgres", "pyodbc-postgres"),
    "PostgreSQL (JDBC)": ("postgres", "jdbc-postgres"),
    "MariaDB (mysql --quick)": ("mariadb", "mysql-quick"),
    "MariaDB (PyMySQL)": ("mariadb", "pymysql"),
    "MariaDB (pyodbc)": ("mariadb", "pyodbc-mariadb"),
    "MariaDB (JDBC)": ("mariadb", "jdbc-mariadb"),
}
PYARROW, PACKAGE, SAME_HOST, ADBC = OURS = tuple(CLIENTS)[:4]
QUACK, FLIGHT, DUCKDB = "DuckDB Quack", "DuckDB behind Arrow Flight", "DuckDB in process"
SHAPES = {"1 integer": "integer", "20 integers": "integers", "20 texts": "strings"}


def clients(into: str, *labels: str, most: int | None = None) -> list:
    return [Contender(label, *CLIENTS[label], into, most) for label in labels]


def starrocks(options: Options) -> None:
    """StarRocks' shapes. What is compared is what its page compares: the command-line client without printing, a pandas DataFrame, typed
    access over JDBC, a Parquet file."""
    sizes = options.row_counts((10_000,), (MILLION,), (MILLION, 5 * MILLION, 10 * MILLION))
    cases = [(shape, rows) for rows in sizes for shape in options.size(("1 integer", "20 texts"), SHAPES, SHAPES)]
    if options.scale == "large" and not options.rows:
        cases.append(("1 integer", 100 * MILLION))
    compare_shapes("starrocks", cases, starrocks_ways, options, options.size(1, 5, 40))


def starrocks_ways(shape: str) -> dict:
    """Who is compared in what. PyMySQL keeps every value as a Python object, some gigabytes for so many rows, and pandas copies them."""
    most = {"1 integer": 10 * MILLION}.get(shape, 5 * MILLION)
    return {
        "fetched": [*clients("arrow", *OURS), *clients("text", "MariaDB (mysql --quick)")],
        "into pandas": [*clients("pandas", *OURS), *clients("pandas", "MariaDB (PyMySQL)", most=most)],
        "typed access over JDBC": clients("values", "bowshot (JDBC)", "MariaDB (JDBC)"),
        "into a Parquet file": [*clients("parquet", PYARROW, ADBC), *clients("parquet", "MariaDB (PyMySQL)", most=most)],
    }


def doors(options: Options) -> None:
    """The same shapes by clients of PostgreSQL and MySQL: from the database that the client was made for, from Bowshot by that
    protocol, and from the same Bowshot by Arrow Flight. All of one line read the same rows of one table, in one run."""
    sizes = options.row_counts((10_000,), (MILLION,), (MILLION, 5 * MILLION))
    cases = [(shape, rows) for rows in sizes for shape in options.size(("1 integer", "20 texts"), SHAPES, SHAPES)]
    compare_shapes("doors", cases, protocol_ways, options, options.size(1, 5, 20))


def protocol_ways(shape: str) -> dict:
    """Who is compared in what; the first one is ours, the second one the database. What keeps every value as an object of its language
    is not asked for more."""
    most, flight = {"1 integer": 10 * MILLION}.get(shape, MILLION), clients("arrow", PYARROW)
    return {
        "ADBC for PostgreSQL": [*pair("PostgreSQL (ADBC)", "arrow"), *flight],
        "connectorx": [*pair("PostgreSQL (connectorx)", "arrow"), *flight],
        "psycopg": pair("PostgreSQL (psycopg)", "rows", most),
        "JDBC for PostgreSQL": pair("PostgreSQL (JDBC)", "values"),
        "mysql --quick": [*pair("MariaDB (mysql --quick)", "text"), *flight],
        "PyMySQL": pair("MariaDB (PyMySQL)", "rows", most),
        "JDBC for MariaDB": pair("MariaDB (JDBC)", "values"),
    }


def pair(label: str, into: str, most: int | None = None) -> list:
    """One client at our front end for a database, and at the database."""
    database, reader = CLIENTS[label]
    server, protocol = {"postgres": ("bowshot-pg", "PostgreSQL's"), "mariadb": ("bowshot-mysql", "MySQL's")}[database]
    ours = Contender(f"bowshot, {protocol} protocol ({label.split('(')[1]}", server, reader, into, most)
    return [ours, *clients(into, label, most=most)]


def compare_shapes(scenario: str, cases: list, ways, options: Options, needed_gb: float) -> None:
    """Each way to read each shape and number of rows; data is made and loaded for what `--case` leaves."""
    chosen = {
        (shape, rows, way): contenders for shape, rows in cases for way, contenders in ways(shape).items()
        if options.has_case(name(shape, rows, way))
    }
    if not chosen:
        raise ValueError(f"no case has `{options.case}` in its name")
    tables = {f"{SHAPES[shape]}_{rows}": str(data.parquet(SHAPES[shape], rows)) for shape, rows, _ in chosen}
    with Arena(options, tables, needed_gb=needed_gb) as arena:
        for (shape, rows, way), contenders in chosen.items():
            axes, query = {"shape": shape, "rows": rows, "way": way}, f"SELECT * FROM {SHAPES[shape]}_{rows}"
            contest.run(Case(scenario, name(shape, rows, way), query, axes, REPEATS), contenders, arena)


def name(shape: str, rows: int, way: str) -> str:
    return f"{shape}, {rows:,} rows, {way}"


def employees(options: Options) -> None:
    """Hitachi's employee table: id, first name, last name, age, education; all rows into Python. ODBC's way is pyodbc's `fetchall`, a
    list of rows, of some 500 bytes each as Python objects; ours is an Arrow table, or a pandas DataFrame."""
    sizes = options.row_counts((10_000,), (MILLION,), (2_500_000, 12_500_000, 25 * MILLION))
    tables = {f"employees_{rows}": str(data.parquet("employees", rows)) for rows in sizes}
    ways = {"into Python": ("arrow", "rows"), "into pandas": ("pandas", "pandas")}
    with Arena(options, tables, needed_gb=options.size(1, 4, 20)) as arena:
        for rows, table in zip(sizes, tables, strict=True):
            for way, (ours, theirs) in ways.items():
                both = [*clients(ours, PYARROW, ADBC), *clients(theirs, "PostgreSQL (pyodbc)", "MariaDB (pyodbc)", most=12_500_000)]
                axes = {"what": "employees", "rows": rows, "way": way}
                contest.run(Case("employees", name("employees", rows, way), f"SELECT * FROM {table}", axes, REPEATS), both, arena)


def clickbench(options: Options) -> None:
    """105 columns of a web-analytics log into a pandas DataFrame: whole, and by groups of types."""
    rows = options.size(2_000, 200_000, MILLION)
    groups = {"all 105 columns": ["*"], **clickbench_data.groups()}
    contenders = [*clients("pandas", PYARROW, ADBC, DUCKDB, FLIGHT, QUACK), *clients("pandas", "MariaDB (PyMySQL)", most=MILLION)]
    with Arena(options, {"hits": str(clickbench_data.parquet(rows))}, needed_gb=options.size(1, 3, 10)) as arena:
        for group, columns in groups.items():
            axes = {"columns": group, "rows": rows, "way": "into pandas"}
            query = f"SELECT {', '.join(columns)} FROM hits"
            contest.run(Case("clickbench", f"{group}, {rows:,} rows", query, axes, REPEATS), contenders, arena)


def lineitem(options: Options) -> None:
    """TPC-H's lineitem to an Arrow table at the client, by number of rows: the workload of DuckDB's Quack protocol, with the other ways
    of getting such a table. Each size has servers of its own, so that the large one does not cost the small one. The largest size is
    read batch by batch: as one table it does not fit beside the servers' memory."""
    sizes = options.row_counts((5_000,), (100_000, MILLION, 6 * MILLION), (100_000, MILLION, 10 * MILLION, 59_986_052))
    too_many, columnar = 30 * MILLION, (*OURS, QUACK, FLIGHT, DUCKDB)
    others = clients("arrow", "ROAPI (ADBC)", "PostgreSQL (ADBC)", "PostgreSQL (connectorx)", most=10 * MILLION)
    whole = [*clients("arrow", *columnar), *others, *clients("rows", "PostgreSQL (psycopg)", most=MILLION)]
    for rows in sizes:
        path = str(data.parquet_lineitem(options.size(0.01, 1, 10), rows))
        ways = {"": whole} if rows < too_many else {}
        if rows >= options.size(1, too_many, too_many):
            ways[", batch by batch"] = clients("batches", *columnar)
        with Arena(options, {"lineitem": path}, needed_gb=options.size(1, 4, 8)) as arena:
            for way, contenders in ways.items():
                axes = {"what": f"lineitem{way}", "rows": rows}
                contest.run(Case("lineitem", f"{rows:,} rows{way}", "SELECT * FROM lineitem", axes, REPEATS), contenders, arena)


def select(options: Options) -> None:
    """`SELECT *` from Parquet into a pyarrow table: TPC-H lineitem at scale 1, 1 M × 20 integers, 1 M × 20 strings."""
    rows = options.size(50_000, MILLION, MILLION)
    tables = {
        "lineitem": data.lineitem(options.size(0.01, 1, 1)),
        "integers": data.parquet("integers", rows),
        "strings": data.parquet("strings", rows),
    }
    with Arena(options, tables) as arena:
        for table in tables:
            query = f"SELECT * FROM {table}"
            contest.run(Case("select", table, query, {"what": query}, OFTEN), clients("arrow", PYARROW, ADBC, QUACK, FLIGHT), arena)


def same_host(options: Options) -> None:
    """The package for Python on the server's machine: rows in memory that the server shares, against its own socket; large results into
    Arrow, pandas and batch by batch, and small ones, of which the time is a round trip.

    Runs of one client follow one another, each on the memory that the one before has given back. `first_seconds` is that of the first
    run, whose memory is new to the server as it is to a client of the socket. Who maps a result has not touched its values; into pandas
    all of them are."""
    rows = options.size(100_000, MILLION, 4 * MILLION)
    tables = {"integers": data.arrow("integers", rows), "lineitem": data.lineitem(options.size(0.01, 0.1, 1))}
    ways = {"into Arrow": "arrow", "into pandas": "pandas", "batch by batch": "batches"}
    cases = [
        *((f"20 integers, {way}", "SELECT * FROM integers", into, rows, OFTEN) for way, into in ways.items()),
        ("lineitem, into Arrow", "SELECT * FROM lineitem", "arrow", None, OFTEN),
        ("1 row", "SELECT 1 AS one", "arrow", 1, VERY_OFTEN),
        ("1,000 rows", "SELECT * FROM integers LIMIT 1000", "arrow", 1000, VERY_OFTEN),
        ("20,000 rows", "SELECT * FROM integers LIMIT 20000", "arrow", 20_000, VERY_OFTEN // 4),
    ]
    if options.small:  # where nobody looks at the times
        cases = [(*case, min(repeats, 20)) for *case, repeats in cases if case[0] in ("20 integers, into Arrow", "lineitem, into Arrow", "1 row")]
    with Arena(options, tables, starts=TRANSPORT) as arena:
        for what, query, into, count, repeats in cases:
            axes = {"what": what, **({"rows": count} if count and len(what) < 12 else {})}
            contenders = clients(into, "bowshot (same host)", "bowshot (package, socket)", "bowshot (pyarrow, socket)")
            contest.run(Case("same_host", what, query, axes, repeats), contenders, arena)
