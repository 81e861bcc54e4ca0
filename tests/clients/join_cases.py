"""Random tables, joins over them, and ways to ask for the same joins again: narrower, wider, in another order, with other
aliases. For comparing answers with the join cache and without it."""

import dataclasses
import random

TYPES = {
    "BIGINT": lambda dice: str(dice.randint(0, 9)),
    "INT": lambda dice: str(dice.randint(-3, 12)),
    "VARCHAR": lambda dice: "'" + dice.choice(["a", "b", "it''s", "#0", 'q"', "", "größe", "%_"]) + "'",
    "DATE": lambda dice: f"DATE '2021-08-{dice.randint(1, 9):02}'",
    "DECIMAL(9,2)": lambda dice: f"{dice.randint(-5, 5)}.{dice.choice(['00', '25', '50'])}",
    "BOOLEAN": lambda dice: dice.choice(["true", "false"]),
    "DOUBLE": lambda dice: dice.choice(["1.5", "-2.25", "CAST('NaN' AS DOUBLE)", "CAST(3 AS DOUBLE)"]),
    "TIMESTAMP": lambda dice: f"TIMESTAMP '2021-08-03 0{dice.randint(0, 5)}:30:00'",
}
KINDS = tuple(TYPES)
NUMBERS = ("BIGINT", "INT", "DECIMAL(9,2)")
USERS = ("ada", "bob", "eve")
EVERYBODY = "all"
OWNER = "VARCHAR(16)"
TYPES[OWNER] = lambda dice: f"'{dice.choice([*USERS, EVERYBODY])}'"
POLICIES = (
    "owner = current_user", "owner <> current_user", "owner IN (session_user, 'all')", "k > 3 OR owner = current_user",
    "current_user = 'ada' OR owner = current_user", "coalesce(owner, 'eve') = current_user",
    "k IN (SELECT k FROM members WHERE name = current_user)",
    "EXISTS (SELECT 1 FROM members WHERE members.k = base.k AND name = current_user AND j < 7)",
)
# What joins two columns, the usual way first.
WAYS = ("{} = {}", "({} IS NOT DISTINCT FROM {})", "{} + 1 = {}", "{0} = {1} AND {0} < 7", "abs({}) = {}", "{} = coalesce({}, 4)")
AROUND = (
    "SELECT {first} FROM ({query}) o ORDER BY 1 LIMIT 4",
    "SELECT {first}, count(*) OVER (PARTITION BY {first}) AS n FROM ({query}) o",
    "WITH o AS ({query}) SELECT DISTINCT {first} FROM o WHERE {first} IS NOT NULL",
    "WITH o AS ({query}) SELECT {first} FROM o UNION ALL SELECT {first} FROM o WHERE {first} IS NULL",
    "SELECT {first}, count(*) AS n FROM ({query}) o WHERE {first} IN (SELECT {first} FROM ({query}) i) GROUP BY {first}",
    "SELECT count(*) AS n FROM ({query}) o WHERE {first} = (SELECT max({first}) FROM ({query}) i)",
)


@dataclasses.dataclass
class Named:
    """A table that is there."""

    name: str


class Table:
    """A table with random columns; `k` and `j` are the keys of joins."""

    def __init__(self, name, dice):
        self.name = name
        kinds = [dice.choice(KINDS) for _ in range(dice.randint(1, 4))]
        self.columns = [("k", "BIGINT"), ("j", "INT")] + [(f"c{place}", kind) for place, kind in enumerate(kinds)]

    def create(self, dice):
        columns = ", ".join(f"{name} {kind}{' DEFAULT NULL' if dice.random() < 0.1 else ''}" for name, kind in self.columns)
        return f"CREATE TABLE {self.name} ({columns})"

    def insert(self, dice, rows):
        values = ", ".join(
            "(" + ", ".join("NULL" if dice.random() < 0.12 else TYPES[kind](dice) for _, kind in self.columns) + ")"
            for _ in range(rows)
        )
        return f"INSERT INTO {self.name} VALUES {values}"

    def change(self, dice):
        """A statement that changes some rows."""
        kind = dice.random()
        if kind < 0.6:
            return self.insert(dice, dice.randint(1, 4))
        column, of = dice.choice(self.columns)
        key = dice.randint(0, 9)
        if kind < 0.8:
            return f"DELETE FROM {self.name} WHERE k = {key} AND j < {dice.randint(0, 9)}"
        return f"UPDATE {self.name} SET {column} = {TYPES[of](dice)} WHERE k = {key}"


class Owned(Table):
    """A table whose rows have owners."""

    def __init__(self, name, dice):
        super().__init__(name, dice)
        self.columns.append(("owner", OWNER))


class View:
    """What its reader may see of a table: some of the rows, and of some columns only what belongs to the reader."""

    def __init__(self, name, table):
        self.name, self.table, self.columns = name, table, table.columns

    def define(self, dice):
        columns = ", ".join(self.shown(name, dice) for name, _ in self.columns)
        policy = dice.choice(POLICIES)
        return f"CREATE OR REPLACE VIEW {self.name} AS SELECT {columns} FROM {self.table.name} base WHERE {policy}"

    @staticmethod
    def shown(name, dice):
        masked = name.startswith("c") and dice.random() < 0.2
        return f"CASE WHEN owner = current_user THEN {name} END AS {name}" if masked else name


class Join:
    """One way to join some tables. Rendered again and again with other columns, conditions, orders and names."""

    def __init__(self, tables, dice):
        count = dice.choice([2, 2, 2, 3, 3, 4])
        self.tables = [dice.choice(tables) for _ in range(count)]
        self.kinds = [dice.choice(["JOIN"] * 6 + ["LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "SEMI", "ANTI", "COMMA"])
                      for _ in self.tables[1:]]
        self.links = [(dice.randrange(place + 1), dice.choice("kj"), dice.choice("kj")) for place in range(count - 1)]
        self.ways = [dice.choice(WAYS) if dice.random() < 0.3 else WAYS[0] for _ in self.kinds]
        self.more = [dice.random() < 0.15 for _ in self.kinds]

    def query(self, dice):
        names = [f"{dice.choice('abt')}{place}" for place in range(len(self.tables))]
        plain = all(kind in ("JOIN", "COMMA") for kind in self.kinds)
        visible = [0] + [place + 1 for place, kind in enumerate(self.kinds) if kind not in ("SEMI", "ANTI")]
        # A table that only filters is not there for later ones.
        links = [link if link[0] in visible else (0, *link[1:]) for link in self.links]
        links = [(first if first <= place else 0, one, other) for place, (first, one, other) in enumerate(links)]
        conditions = [
            self.ways[place].format(f"{names[first]}.{one}", f"{names[place + 1]}.{other}")
            + (f" AND {names[place + 1]}.k > {dice.randint(0, 3)}" if self.more[place] else "")
            for place, (first, one, other) in enumerate(links)
        ]
        where = []
        if plain and dice.random() < 0.3:
            order = list(range(len(self.tables)))
            dice.shuffle(order)
            source = ", ".join(f"{self.tables[place].name} {names[place]}" for place in order)
            where += conditions
        else:
            source = f"{self.tables[0].name} {names[0]}"
            for place, kind in enumerate(self.kinds):
                table, condition = f"{self.tables[place + 1].name} {names[place + 1]}", conditions[place]
                if kind == "COMMA":
                    kind = "JOIN"
                if kind in ("SEMI", "ANTI"):
                    not_ = "NOT " if kind == "ANTI" else ""
                    where.append(f"{not_}EXISTS (SELECT 1 FROM {table} WHERE {condition})")
                else:
                    source += f" {kind} {table} ON {condition}"
        columns = [(f"{names[place]}.{name}", kind) for place in visible for name, kind in self.tables[place].columns]
        for _ in range(dice.choice([0, 0, 1, 1, 2])):
            where.append(self.condition(columns, dice))
        text = f"FROM {source}" + (f" WHERE {' AND '.join(where)}" if where else "")
        return self.around(self.selected(columns, dice) + " " + text + self.ending(dice), dice)

    def around(self, query, dice):
        """A query that asks for what the first column of another one has, or that one."""
        if not self.first or dice.random() < 0.7:
            return query
        return dice.choice(AROUND).format(first=self.first, query=query)

    @staticmethod
    def condition(columns, dice):
        column, kind = dice.choice(columns)
        value = TYPES[kind](dice)
        return dice.choice([
            f"{column} = {value}", f"{column} < {value}", f"{column} >= {value}", f"{column} <> {value}",
            f"{column} IS NULL", f"{column} IS NOT NULL", f"({column} = {value} OR {column} IS NULL)",
            f"{column} IN ({value}, {TYPES[kind](dice)})", f"coalesce({column}, {value}) = {value}",
            f"{column} BETWEEN {value} AND {TYPES[kind](dice)}" if kind != "BOOLEAN" else f"{column} IS TRUE",
            f"CAST({column} AS VARCHAR) LIKE '%1%'",
            *([
                f"{column} LIKE '%{dice.choice('ae%_')}%'", f"{column} NOT IN ({value}, 'b')", f"length({column}) > 1",
                f"upper({column}) = upper({value})", f"({column} < 'b' OR {column} = '')", f"{column} || 'x' = 'ax'",
            ] if kind == "VARCHAR" else []),
        ])

    def selected(self, columns, dice):
        self.grouped = self.first = None
        kind = dice.random()
        if kind < 0.15:
            return "SELECT *" if "SEMI" not in self.kinds else "SELECT " + columns[0][0]
        if kind < 0.3:
            return "SELECT count(*)"
        if kind < 0.55:
            texts = [name for name, of in columns if of == "VARCHAR"]
            keys = dice.sample([name for name, _ in columns], min(len(columns), dice.choice([1, 1, 2, 3])))
            if texts and dice.random() < 0.5:
                keys[0] = dice.choice(texts)
            keys = list(dict.fromkeys(keys))
            self.grouped, self.first = ", ".join(keys), "g0"
            shown = ", ".join(f"{key} AS g{place}" for place, key in enumerate(keys))
            value = dice.choice([name for name, of in columns if of in NUMBERS])
            counted = dice.choice(["count(*)", f"count(DISTINCT {dice.choice(columns)[0]})", f"max({(texts or keys)[0]})"])
            return f"SELECT {shown}, {counted} AS n, sum({value}) AS s, min({value}) AS m"
        self.first = "v0"
        chosen = dice.sample(columns, min(len(columns), dice.randint(1, 5)))
        shown = []
        for place, (name, of) in enumerate(chosen):
            more = [name, f"coalesce({name}, {TYPES[of](dice)})", f"{name} IS NULL"]
            if of in NUMBERS:
                more.append(f"{name} + 1")
            shown.append(f"{dice.choice([name, name, dice.choice(more)])} AS v{place}")
        return f"SELECT {'DISTINCT ' if dice.random() < 0.1 else ''}{', '.join(shown)}"

    def ending(self, dice):
        if not self.grouped:
            return ""
        groups = f"ROLLUP ({self.grouped})" if dice.random() < 0.1 else self.grouped
        return f" GROUP BY {groups}" + (" HAVING count(*) > 1" if dice.random() < 0.2 else "")


def cases(seed, tables, count):
    """Random queries over tables, a few ways of each join together."""
    dice = random.Random(seed)
    made = 0
    while made < count:
        join = Join(tables, dice)
        for _ in range(dice.randint(1, 6)):
            yield join.query(dice)
            made += 1
