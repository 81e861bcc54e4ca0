"""Random tables: few rows with many NULLs, few distinct values so that keys meet, and the values at which things break."""

import dataclasses

TYPES = {
    "int": "INT",
    "big": "BIGINT",
    "dec": "DECIMAL(10,2)",
    "dbl": "DOUBLE PRECISION",
    "text": "VARCHAR",
    "date": "DATE",
    "ts": "TIMESTAMP",
    "bool": "BOOLEAN",
}
VALUES = {
    "int": ["-2", "-1", "0", "1", "2", "3", "3", "5", "100"],
    "big": ["0", "1", "2", "3", "-1", "9007199254740993", "9223372036854775807", "-9223372036854775808"],
    "dec": ["0.00", "1.00", "1.50", "-2.25", "3.00", "99999999.99", "0.10"],
    "dbl": ["0", "1", "1.5", "-2.25", "3", "'NaN'", "'Infinity'", "'-Infinity'", "10000000000"],
    "text": ["''", "'a'", "'b'", "'ab'", "'A'", "'a%'", "'abc'", "'é'"],
    "date": ["'2024-01-01'", "'2024-02-29'", "'2023-12-31'", "'0001-01-01'", "'9999-12-31'", "'1970-01-01'"],
    "ts": [
        "'2024-01-01 00:00:00'", "'2024-02-29 12:30:00.5'", "'2023-12-31 23:59:59'", "'0001-01-01 00:00:00'",
        "'9999-12-31 23:59:59.999999'",
    ],
    "bool": ["true", "false"],
}
LITERALS = {
    **VALUES,
    "big": ["0", "1", "2", "9007199254740993"],
    "dbl": [f"CAST({value} AS DOUBLE PRECISION)" for value in VALUES["dbl"]],
    "date": [f"DATE {value}" for value in VALUES["date"]],
    "ts": [f"TIMESTAMP {value}" for value in VALUES["ts"]],
}


@dataclasses.dataclass
class Table:
    schema: str
    name: str
    columns: list  # of (name, type)
    rows: list  # of lists of literals

    @property
    def path(self):
        return f"{self.schema}.{self.name}" if self.schema else self.name

    def create(self):
        columns = ", ".join(f"{name} {TYPES[type_]}" for name, type_ in self.columns)
        return f"CREATE TABLE {self.path} ({columns})"

    def fill(self):
        if not self.rows:
            return []
        return [f"INSERT INTO {self.path} VALUES " + ", ".join(f"({', '.join(row)})" for row in self.rows)]

    def script(self):
        return [self.create(), *self.fill()]


def random_tables(random):
    """Two to four tables in the current schema, and one or two of the same names in another."""
    tables = [random_table(random, "", f"t{number}") for number in range(random.randint(2, 4))]
    for table in random.sample(tables, random.randint(1, 2)):
        twin = random_table(random, "s1", table.name)
        if random.random() < 0.5:  # the same columns, other rows
            twin.columns = table.columns
            twin.rows = random_rows(random, table.columns)
        tables.append(twin)
    return tables


def random_table(random, schema, name):
    types = ["int", *random.choices(list(TYPES), [4, 2, 2, 2, 3, 1, 1, 2], k=random.randint(1, 4))]
    columns = [(f"c{place}", type_) for place, type_ in enumerate(types)]
    return Table(schema, name, columns, random_rows(random, columns))


def random_rows(random, columns):
    count = random.choices([0, 1, 3, 6, 12], [1, 1, 3, 6, 5])[0]
    nulls = random.choice([0.0, 0.15, 0.4])
    extreme = random.random() < 0.3
    return [[random_value(random, type_, nulls, extreme) for _, type_ in columns] for _ in range(count)]


def random_value(random, type_, nulls, extreme):
    if random.random() < nulls:
        return "NULL"
    values = VALUES[type_]
    if type_ == "big" and not extreme:
        values = values[:6]
    return random.choice(values)
