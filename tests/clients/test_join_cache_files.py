"""Answers with the join cache are those without it where tables are files: random joins over Parquet and Arrow files that
are replaced, written anew in place, added and removed between the questions, and over Delta tables of others."""

import collections
import random
import shutil
import time

import deltalake
import duckdb
import pyarrow.parquet as pq
import pytest

import data
from join_cases import Table, cases
from server import wait_until
from test_join_cache import CASES, EAGER, SEED, hits, serving, wrong

# After which a file that was written may be relied on, and some more.
SETTLED = 0.06
# Questions between two changes.
EACH = 4


class FoundTable(Table):
    """A table that lies in a folder, in whatever form."""

    def __init__(self, folder, name, dice):
        super().__init__(name, dice)
        self.folder = folder

    def some_rows(self, dice):
        with duckdb.connect() as maker:
            maker.execute(self.create(dice))
            maker.execute(self.insert(dice, dice.randint(1, 20)))
            return maker.execute(f"SELECT * FROM {self.name}").to_arrow_table()


class FileTable(FoundTable):
    """A table of one file, or of a folder of files."""

    def __init__(self, folder, name, dice):
        super().__init__(folder, name, dice)
        self.format = dice.choice(["parquet", "arrow"])
        self.parts = dice.choice([0, 0, 3])
        self.path = folder / (name if self.parts else f"{name}.{self.format}")
        if self.parts:
            self.path.mkdir()
        for number in range(max(self.parts, 1)):
            self.write(self.part(number), dice, False)

    def part(self, number):
        return self.path / f"part-{number}.{self.format}" if self.parts else self.path

    def write(self, path, dice, in_place):
        target = path if in_place else path.with_name(f"{path.name}.tmp")
        if self.format == "parquet":
            pq.write_table(self.some_rows(dice), target)
        else:
            data.write_arrow(target, self.some_rows(dice))
        target.replace(path)

    def change(self, dice):
        parts = [self.part(number) for number in range(6)] if self.parts else [self.path]
        there = [part for part in parts if part.exists()]
        if len(there) > 2 and dice.random() < 0.3:
            dice.choice(there).unlink()
        elif dice.random() < 0.5:
            self.write(dice.choice(there), dice, dice.random() < 0.5)
        else:
            self.write(dice.choice(parts), dice, False)


class DeltaTable(FoundTable):
    """A Delta table of others."""

    def __init__(self, folder, name, dice):
        super().__init__(folder, name, dice)
        self.write(dice, "error")

    def write(self, dice, mode):
        deltalake.write_deltalake(self.folder / self.name, self.some_rows(dice), mode=mode)

    def change(self, dice):
        kind = dice.random()
        if kind < 0.4:
            self.write(dice, "append")
        elif kind < 0.6:
            deltalake.DeltaTable(self.folder / self.name).delete(f"k = {dice.randint(0, 9)}")
        elif kind < 0.8:
            self.write(dice, "overwrite")
        else:
            # Another table, whose log begins with the same name.
            shutil.rmtree(self.folder / self.name)
            self.write(dice, "error")


def given(db, questions, tables):
    """Asks them, and tells how many joins the cache has given by then."""
    for sql in questions:
        difference = wrong(db, sql, tables)
        assert not difference, difference
    return int(hits(db))


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("wait", ["20s", pytest.param("0s", marks=pytest.mark.long)])
def test_random_joins_of_files_give_what_they_give_without_the_cache(wait, tmp_path):
    seen, rounds = collections.Counter(), max(1, CASES // 200)
    environment = {**EAGER, "BOWSHOT_JOIN_CACHE_WAIT": wait, "BOWSHOT_STORAGE_REFRESH": "0s"}
    for seed in range(SEED, SEED + rounds):
        dice, folder = random.Random(seed), tmp_path / f"round{seed}"
        folder.mkdir()
        tables = [kind(folder, f"f_{name}", dice) for name, kind in zip("abcd", (FileTable, FileTable, DeltaTable, DeltaTable))]
        time.sleep(SETTLED)
        with serving(folder, data=tmp_path / f"data{seed}", environment=environment) as (server, db):
            questions = list(cases(seed, tables, min(CASES, 200)))
            for number, sql in enumerate(questions):
                if number % EACH == 0:
                    dice.choice(tables).change(dice)
                    time.sleep(SETTLED)
                difference = wrong(db, sql, tables, seen)
                assert not difference, f"seed {seed}, question {number}: {difference}"
            # On a busy machine few joins are ready before the tables change again: now they stay as they are.
            least = 1 if wait == "0s" else len(questions) // 20 + 1
            wait_until(lambda: hits(db) >= least or given(db, questions[-20:], tables) >= least, "joins are given", 60)
            seen["given"] += int(hits(db))
            assert "the join cache steps aside" not in server.log()
    asked = rounds * min(CASES, 200)
    assert seen["answers"] > 0.9 * asked and seen["with rows"] > asked / 4, (asked, seen)
    assert seen["given"] > (asked / 20 if wait != "0s" else 0), (asked, seen)
