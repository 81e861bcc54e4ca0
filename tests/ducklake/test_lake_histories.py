"""Random histories of a table: after each change, what we read is what DuckDB reads, also of earlier snapshots."""

import random

import duckdb
import pytest

from lake import Lake, asked, same

WIDER = {"TINYINT": "INTEGER", "INTEGER": "BIGINT", "REAL": "DOUBLE", "UTINYINT": "UINTEGER"}
VALUES = {
    "TINYINT": lambda draw: draw.randint(-128, 127), "INTEGER": lambda draw: draw.randint(-(2**31), 2**31 - 1),
    "BIGINT": lambda draw: draw.randint(-(2**63), 2**63 - 1), "UTINYINT": lambda draw: draw.randint(0, 255),
    "UINTEGER": lambda draw: draw.randint(0, 2**32 - 1), "REAL": lambda draw: draw.randint(-1000, 1000) / 8,
    "DOUBLE": lambda draw: draw.choice([0.1, -1e300, 5e-324, draw.random()]), "VARCHAR": lambda draw: draw.choice(["''", "'ü'", "'it''s'", "'NULL'", "'" + "x" * 50 + "'"]),
    "DATE": lambda draw: f"DATE '2000-01-01' + {draw.randint(0, 9999)}", "DECIMAL(9,3)": lambda draw: draw.randint(-(10**8), 10**8) / 1000,
    "BOOLEAN": lambda draw: draw.choice(["true", "false"]), "TIMESTAMP": lambda draw: f"TIMESTAMP '1970-01-01' + INTERVAL ({draw.randint(0, 10**9)}) SECOND",
}


class History:
    """A table whose columns and types are known here."""

    def __init__(self, seed, folder):
        self.draw = random.Random(seed)
        self.lake = Lake(folder, inlined=self.draw.choice([0, 5, 50]))
        self.columns, self.made, self.next = {"id": "BIGINT"}, 0, 0
        for _ in range(self.draw.randint(1, 4)):
            self.columns[self.name()] = self.draw.choice(list(VALUES))
        self.lake.run(f"CREATE TABLE t ({', '.join(f'{name} {kind}' for name, kind in self.columns.items())})")
        self.first = self.lake.snapshot()

    def name(self):
        """Names come again, after their columns have gone."""
        free = [name for name in "abcdefgh" if name not in self.columns]
        return self.draw.choice(free)

    def value(self, kind):
        return "NULL" if self.draw.random() < 0.2 else str(VALUES[kind](self.draw))

    def other(self):
        return self.draw.choice([name for name in self.columns if name != "id"] or ["id"])

    def where(self):
        low = self.draw.randint(0, max(self.next, 1))
        return self.draw.choice([f"id = {low}", f"id BETWEEN {low} AND {low + 5}", f"id % {self.draw.randint(2, 9)} = 0", f"{self.other()} IS NULL"])

    def insert(self):
        rows = []
        for _ in range(self.draw.choice([1, 3, 30, 80])):
            rows.append(f"({self.next}, {', '.join(self.value(kind) for name, kind in self.columns.items() if name != 'id')})".replace(", )", ")"))
            self.next += 1
        return f"INSERT INTO t VALUES {', '.join(rows)}"

    def delete(self):
        return f"DELETE FROM t WHERE {self.where()}"

    def update(self):
        name = self.other()
        if name == "id":
            return self.insert()
        return f"UPDATE t SET {name} = {self.value(self.columns[name])} WHERE {self.where()}"

    def add(self):
        if len(self.columns) > 6:
            return self.drop()
        name, kind = self.name(), self.draw.choice(["INTEGER", "VARCHAR", "DOUBLE", "DECIMAL(9,3)", "TINYINT"])
        self.columns[name] = kind
        default = {"INTEGER": "7", "VARCHAR": "'it''s'", "DOUBLE": "0.25", "DECIMAL(9,3)": "1.5", "TINYINT": "-3"}[kind]
        return f"ALTER TABLE t ADD COLUMN {name} {kind}" + self.draw.choice(["", f" DEFAULT {default}"])

    def drop(self):
        name = self.other()
        if name == "id":
            return self.insert()
        del self.columns[name]
        return f"ALTER TABLE t DROP COLUMN {name}"

    def rename(self):
        name, new = self.other(), self.name()
        if name == "id":
            return self.insert()
        self.columns = {new if known == name else known: kind for known, kind in self.columns.items()}
        return f"ALTER TABLE t RENAME {name} TO {new}"

    def widen(self):
        name = self.other()
        kind = WIDER.get(self.columns[name])
        if not kind:
            return self.insert()
        self.columns[name] = kind
        return f"ALTER TABLE t ALTER {name} TYPE {kind}"

    def keep_house(self):
        return self.draw.choice([
            "CALL ducklake_flush_inlined_data('lake')", "CALL ducklake_merge_adjacent_files('lake')",
            "CALL ducklake_rewrite_data_files('lake', delete_threshold => 0.1)", "ALTER TABLE t SET PARTITIONED BY (bucket(4, id))",
            "ALTER TABLE t RESET PARTITIONED BY",
        ])

    def change(self):
        steps = [self.insert] * 5 + [self.delete] * 3 + [self.update] * 3 + [self.add, self.drop, self.rename, self.widen, self.keep_house, self.keep_house]
        return self.draw.choice(steps)()

    def step(self):
        """Whether a change was made: the writer cannot make some of them, and then has made nothing."""
        known = dict(self.columns)
        change = self.change()
        print(change[:150])
        try:
            self.lake.run(change)
        except duckdb.Error as error:
            print(str(error)[:150])
            self.columns = known
            return False
        self.made += 1
        return True


@pytest.mark.parametrize("seed", [*range(5), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(5, 16))])
def test_a_history(tmp_path, seed):
    history = History(seed, tmp_path / "lake")
    lake = history.lake
    with asked(lake.source) as database:
        for step in range(30):
            if not history.step():
                continue
            same(lake, database)
            if step % 5 == 4:
                same(lake, database, at=history.draw.randint(history.first, lake.snapshot()))
                same(lake, database, f"SELECT count(*) AS n, min(id) AS a, max(id) AS b FROM main.t WHERE id > {history.draw.randint(0, history.next)}")
        assert history.made > 15
    lake.close()
