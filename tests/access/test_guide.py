"""The guide does what it says: all of its statements, in their order, and what Ada sees in between."""

import pathlib
import re


from world import PASSWORDS, refused, world

GUIDE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "how-to" / "access.md"


def test_every_statement_of_the_guide(tmp_path):
    blocks = re.findall(r"```sql\n(.*?)```", GUIDE.read_text(), re.S)
    assert len(blocks) == 7
    PASSWORDS["ada"], before = "a secret of her own", PASSWORDS["ada"]
    try:
        with world(tmp_path, setup=()) as made:
            root = made.at("root")

            def run(block):
                for sql in filter(None, map(str.strip, block.split(";"))):
                    root.rows(sql)

            users, rights, handed_on, rows, values, looks, tokens = blocks
            run(users)
            ada = made.at("ada")
            refused(ada, "SELECT * FROM orders", "not found")
            run(rights)
            assert len(ada.rows("SELECT * FROM people")) == 2 and len(ada.rows("SELECT * FROM orders")[0]) == 1
            run(handed_on)
            run(rows)
            run(values)
            assert ada.rows("SELECT * FROM people") == [("1", "Anna", "EU", "*******3333", "100")]
            run(looks)
            assert len(ada.rows("SELECT * FROM people")) == 2
            run(tokens)
    finally:
        PASSWORDS["ada"] = before
