"""Random tables with random materialized views over them, queries that these may answer, and changes, for `view_histories.py`."""

import dataclasses
import itertools

# The dialect `postgres` reads anew with each statement.
SNAPSHOT = "BEGIN ISOLATION LEVEL REPEATABLE READ"
TYPES = {
    "SMALLINT": [str(n) for n in range(-1, 5)],
    "INT": [str(n) for n in range(-1, 5)],
    "BIGINT": ["0", "1", "2", "7", "-3", "5000000000"],
    "DECIMAL(10, 2)": ["0", "0.50", "1.25", "3", "-2.75", "100"],
    "DOUBLE": ["0.25", "1.5", "-2", "3"],
    "VARCHAR": ["''", "'a'", "'b'", "'A'", "'a '", "'é'", "'a longer text than twelve bytes'"],
    "CHAR(3)": ["'a'", "'b'", "'abc'"],
    "DATE": ["DATE '2024-01-01'", "DATE '2024-01-31'", "DATE '2024-02-29'", "DATE '1969-12-31'"],
    "TIMESTAMP": ["TIMESTAMP '2024-01-01 00:00:00'", "TIMESTAMP '2024-01-01 00:00:00.000001'", "TIMESTAMP '1960-02-03 04:05:06'"],
    "BOOLEAN": ["true", "false"],
}
NUMBERS, TEXTS = ("SMALLINT", "INT", "BIGINT", "DECIMAL(10, 2)", "DOUBLE"), ("VARCHAR", "CHAR(3)")
FULL_FORMS = [
    "SELECT DISTINCT {select} {rest}",
    "SELECT {select} {rest} ORDER BY {order} LIMIT 3",
    "SELECT {select} {rest} UNION ALL SELECT {select} {rest}",
    "SELECT s.*, row_number() OVER (ORDER BY {order}) AS at FROM (SELECT {select} {rest}) AS s",
    "SELECT s.*, x.c0 AS other FROM (SELECT {select} {rest}) AS s LEFT JOIN {{t1}} AS x ON s.o0 IS NULL",
    "SELECT s.* FROM (SELECT {select} {rest}) AS s WHERE EXISTS (SELECT 1 FROM {{t1}} AS x WHERE x.c0 = 1)",
]
QUERY_FORMS = [
    *["SELECT {select} {rest}"] * 6,
    "SELECT DISTINCT {select} {rest}",
    "SELECT count(*), max(s.o0) FROM (SELECT {select} {rest}) AS s",
    "SELECT count(*), count(s.o0) FROM {{t0}} AS x, (SELECT {select} {rest}) AS s WHERE x.c0 IS NOT NULL",
]


@dataclasses.dataclass
class Query:
    """Parts of a SELECT; `{t0}` is a table where it is read, and `{a}`, `{b}`, `{c}` are its names in the query."""

    tables: list
    where: list
    groups: list
    rest: list
    aggregated: bool
    form: str = "SELECT {select} {rest}"

    def text(self, dice=None):
        """With other names, and in another order, for who has dice."""
        tables, where = (dice.sample(some, len(some)) if dice else some for some in (self.tables, self.where))
        select = ", ".join(f"{output} AS o{at}" for at, output in enumerate([*self.groups, *self.rest]))
        rest = "FROM " + ", ".join(f"{{{table}}} AS {{{alias}}}" for alias, table in tables)
        rest += (f" WHERE {' AND '.join(where)}" if where else "") + (f" GROUP BY {', '.join(self.groups)}" if self.groups else "")
        text = self.form.format(select=select, rest=rest, order=", ".join(self.outputs()))
        for name, alias in zip("abc", "xyz" if dice else "abc", strict=True):
            text = text.replace(f"{{{name}}}", alias)
        return text

    def outputs(self):
        return [f"o{at}" for at in range(len(self.groups) + len(self.rest))]


class World:
    """Tables, views and the statements over them, all chosen by dice."""

    def __init__(self, dice, schema):
        self.dice, self.schema, self.newest = dice, schema, 0
        self.tables = {}
        for table in ("t0", "t1", "t2")[: dice.choice([2, 2, 3])]:
            self.tables[table] = {f"c{at}": kind for at, kind in enumerate(["INT", *dice.choices(list(TYPES), k=dice.randrange(2, 5))])}
        self.keyed = {table: dice.random() < 0.5 for table in self.tables}
        self.real = {table: table for table in self.tables}
        # What eve reads of each table.
        self.hers, self.rights = dict(self.real), [f"GRANT SELECT ON {table} TO eve" for table in self.tables]
        for table in [table for table in self.tables if table == "t0" or dice.random() < 0.3]:
            columns, policy = self.tables[table], self.predicate(self.tables[table])
            masked = dice.choice([None, None, *columns])
            self.rights.append(f"CREATE ROW POLICY p_{table} ON {table} FOR eve USING ({policy})")
            self.rights += [f"CREATE MASK m_{table} ON {table} ({masked}) FOR eve USING (NULL)"] if masked else []
            seen = ["id", *(f"CAST(NULL AS {kind}) AS {name}" if name == masked else name for name, kind in columns.items())]
            self.hers[table] = f"(SELECT {', '.join(seen)} FROM {table} WHERE {policy})"
        plain = "CREATE OR REPLACE VIEW plain AS SELECT id, c0, c1 FROM t0 WHERE"
        self.plain = [f"{plain} {self.predicate(self.tables['t0'])}" for _ in range(2)]
        # Queries, or texts of those that read other views; `base` is the view that is read.
        self.queries, self.views, self.modes, self.base = {}, {}, {}, {}
        for at in range(dice.randrange(3, 6)):
            self.views[f"v{at}"] = self.view(f"v{at}")
        self.prepared = [self.random_query().text(dice).format(**self.real) for _ in range(2)]

    def view(self, view):
        kind = self.dice.choices(["query", "full", "over", "plain"], [6, 2, 1, 1])[0]
        if kind == "plain":
            return "SELECT c0, count(*) AS o0, min(c1) AS o1 FROM plain GROUP BY c0"
        if kind == "over" and self.queries:
            base = self.base[view] = self.dice.choice(list(self.queries))
            return self.dice.choice([
                f"SELECT {', '.join(self.queries[base].outputs())} FROM {base} WHERE o0 IS NOT NULL",
                f"SELECT o0, count(*) AS more FROM {base} GROUP BY o0",
                f"SELECT a.c1 AS beside, b.* FROM t1 AS a JOIN {base} AS b ON CAST(a.c0 AS VARCHAR) = CAST(b.o0 AS VARCHAR)",
            ])
        query = self.queries[view] = self.query()
        query.form = self.dice.choice(FULL_FORMS) if kind == "full" else query.form
        return query.text().format(**self.real)

    def predicate(self, columns, alias=""):
        name = self.dice.choice(list(columns))
        one, two = self.dice.sample(TYPES[columns[name]], 2)
        c = f"{alias}{name}"
        simple = [f"{c} = {one}", f"{c} <> {one}", f"{c} IS NULL", f"{c} IS NOT NULL", f"{c} IN ({one}, {two})", f"NOT ({c} = {one})"]
        simple += [f"{c} IS DISTINCT FROM {one}", f"({c} = {one} OR {c} IS NULL)"]
        ordered = [f"{c} > {one}", f"{c} <= {one}", f"{c} BETWEEN {one} AND {two}", f"({c} > {one} AND {c} < {two})"]
        return self.dice.choice([*simple, *([c, f"NOT {c}"] if columns[name] == "BOOLEAN" else ordered)])

    def expression(self, columns, alias):
        name = self.dice.choice(list(columns))
        kind, c = columns[name], f"{alias}{name}"
        forms = [c] * 4 + [f"coalesce({c}, {TYPES[kind][0]})", f"{c} IS NULL"]
        if kind in NUMBERS:
            forms += [f"{c} + 1", f"abs({c})", f"CASE WHEN {c} > 1 THEN 'big' ELSE 'small' END"]
        elif kind in TEXTS:
            forms += [f"upper({c})", f"length({c})", f"concat({c}, 'x')", f"{c} || '-'"]
        elif kind in ("DATE", "TIMESTAMP"):
            forms += [f"extract(year FROM {c})", f"date_trunc('month', {c})"]
        return self.dice.choice(forms)

    def aggregate(self, columns, alias):
        c, n = (alias + self.dice.choice([name for name, kind in columns.items() if kind in kinds]) for kinds in (TYPES, NUMBERS))
        rare = [f"count(DISTINCT {c})", f"sum(DISTINCT {n})", f"sum({n}) FILTER (WHERE {self.predicate(columns, alias)})", f"max({n} + 1)"]
        return self.dice.choice([*["count(*)", f"count({c})", f"sum({n})", f"min({c})", f"max({c})", f"avg({n})"] * 2, *rare])

    def query(self):
        """Of one table, or an inner join; with or without groups."""
        dice, count = self.dice, self.dice.choices([1, 2, 3], [5, 4, 1])[0]
        # A table that occurs twice is in some of them.
        chosen = dice.choices(list(self.tables), k=count) if dice.random() < 0.15 else dice.sample(list(self.tables), min(count, len(self.tables)))
        tables = list(zip("abc", chosen, strict=False))

        def parts(make, count):
            chosen = dice.choices(tables, k=count)
            return list(dict.fromkeys(make(self.tables[table], f"{{{alias}}}.") for alias, table in chosen))

        where = [f"{{{one}}}.c0 = {{{two}}}.c0" for (one, _), (two, _) in itertools.pairwise(tables)] + parts(self.predicate, dice.choice([0, 0, 1, 2]))
        if dice.random() < 0.35:
            return Query(tables, where, [], parts(self.expression, dice.randrange(1, 5)), False)
        groups = parts(self.expression, dice.choices([0, 1, 2, 3], [1, 5, 4, 1])[0])
        return Query(tables, where, groups, parts(self.aggregate, dice.randrange(1, 4)), True)

    def random_query(self):
        """Most are what a view may answer: its query with fewer groups or columns, more conditions, other names and order."""
        dice = self.dice
        if not self.queries or dice.random() < 0.2:
            return self.query()
        query = dice.choice(list(self.queries.values()))
        groups = dice.sample(query.groups, dice.randrange(len(query.groups) + 1)) if dice.random() < 0.6 else query.groups
        rest, aggregated = dice.sample(query.rest, dice.randrange(1, len(query.rest) + 1)), query.aggregated
        where, stored = list(query.where), query.groups if aggregated else query.rest
        if stored and dice.random() < 0.5:
            alias, _, name = (column := dice.choice(stored)).partition(".")
            kind = self.tables[dict(query.tables).get(alias.strip("{}"), "t0")].get(name)
            where.append(self.predicate({name: kind}, f"{alias}.") if kind else f"{column} IS NOT NULL")
        if not aggregated and dice.random() < 0.3:
            rest, aggregated = [f"count({dice.choice(rest)})", f"max({dice.choice(rest)})"], True
        return Query(query.tables, where, groups, rest, aggregated, dice.choice(QUERY_FORMS))

    def rows(self, table, count):
        self.newest += count
        value = lambda kind: "NULL" if self.dice.random() < 0.2 else self.dice.choice(TYPES[kind])
        return [f"({self.newest - at}, {', '.join(map(value, self.tables[table].values()))})" for at in range(count)]

    def change(self):
        """A statement that changes rows of a table."""
        dice, table = self.dice, self.dice.choice(list(self.tables))
        columns, names = self.tables[table], ", ".join(["id", *self.tables[table]])
        name, into, keyed = dice.choice(list(columns)), f"INSERT INTO {table} ({names})", self.keyed[table]
        kind = dice.choice(["insert"] * 5 + ["update"] * 4 + ["delete"] * 3 + ["merge"] * 2 + ["upsert"] * 2 + ["select", "truncate"])
        within = f"c0 IN (SELECT c0 FROM t1 WHERE {self.predicate(self.tables['t1'])})"
        place = dice.choice([self.predicate(columns), f"id % {dice.randrange(2, 7)} = 0", within])
        if kind == "update":
            number = columns[name] in NUMBERS and dice.random() < 0.5
            return f"UPDATE {table} SET {name} = {f'abs({name}) % 50 + 1' if number else dice.choice(['NULL', *TYPES[columns[name]]])} WHERE {place}"
        if kind in ("delete", "truncate"):
            return f"DELETE FROM {table} WHERE {place}" if kind == "delete" else f"TRUNCATE TABLE {table}"
        rows = self.rows(table, dice.randrange(1, 5))
        older = f"({self.newest - dice.randrange(5, 30)}{rows[0][rows[0].index(',') :]}"
        if kind == "select":
            return f"{into} SELECT {self.newest + 100_000}, {', '.join(columns)} FROM {table} WHERE id = (SELECT max(id) FROM {table} WHERE id < 100000)"
        if kind == "upsert" and keyed:
            return f"{into} VALUES {rows[0]}, {older} ON CONFLICT (id) DO UPDATE SET {name} = excluded.{name}"
        if kind == "merge":
            casts = ", ".join(f"CAST(s.{column} AS {of}) AS {column}" for column, of in columns.items())
            source = f"(SELECT s.id, {casts} FROM (VALUES {', '.join(rows)}, {older}) AS s({names}))"
            matched = dice.choice([f"UPDATE SET {name} = s.{name}", "DELETE"])
            new = f"INSERT ({names}) VALUES ({', '.join(f's.{column}' for column in ['id', *columns])})"
            return f"MERGE INTO {table} AS t USING {source} AS s ON t.id = s.id WHEN MATCHED THEN {matched} WHEN NOT MATCHED THEN {new}"
        return f"{into} VALUES {', '.join(rows if keyed or dice.random() < 0.7 else [*rows, rows[0]])}"

    def transaction(self):
        """Statements up to the end of a transaction, and the end."""
        statements = [self.dice.choice(["BEGIN", SNAPSHOT]), *(self.change() for _ in range(self.dice.randrange(1, 4)))]
        if self.dice.random() < 0.5:
            undo = self.dice.choice(["ROLLBACK TO SAVEPOINT s", "RELEASE SAVEPOINT s"])
            statements += ["SAVEPOINT s", self.change(), undo, *([self.change()] if self.dice.random() < 0.5 else [])]
        return statements, self.dice.choice(["COMMIT", "COMMIT", "ROLLBACK"])

    def definition(self):
        """DDL or maintenance: statements to run one after the other, the first of which may be refused."""
        table, view = self.dice.choice(list(self.tables)), self.dice.choice(list(self.views))
        return self.dice.choice([
            [f"ALTER TABLE {table} ADD COLUMN IF NOT EXISTS more INT"],
            [f"ALTER TABLE {table} DROP COLUMN IF EXISTS more"],
            [f"ALTER TABLE {table} RENAME TO w", f"ALTER TABLE w RENAME TO {table}"],
            [self.dice.choice(self.plain)],
            [f"OPTIMIZE {table}"],
            [f"VACUUM {table} RETAIN 0 HOURS"],
            [f"DROP MATERIALIZED VIEW {view}", f"CREATE MATERIALIZED VIEW {view} AS {self.views[view]}", f"GRANT SELECT ON {view} TO eve"],
        ])

    def follows(self, view):
        """Whether the server refreshes, in its own time, what a view reads."""
        return self.modes.get(self.base.get(view), "").startswith("EVERY")
