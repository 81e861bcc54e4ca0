"""Takes a sample of SQLite's sqllogictest: every statement of each file, and as many of its queries, evenly spread, as fit.

    sample.py CORPUS
"""

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
MOST_BYTES = 190_000


def main():
    corpus = pathlib.Path(sys.argv[1])
    for path in sorted(corpus.rglob("*.test")):
        target = HERE / "sample" / path.relative_to(corpus)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(cut(path.read_text()))


def cut(text):
    blocks = text.rstrip("\n").split("\n\n")
    queries = [place for place, block in enumerate(blocks) if is_query(block)]
    room = MOST_BYTES - sum(len(block) + 2 for block in blocks if not is_query(block))
    share = min(1.0, room / max(1, sum(len(blocks[place]) + 2 for place in queries)))
    while True:
        kept = {place for nth, place in enumerate(queries) if int((nth + 1) * share) > int(nth * share)}
        chosen = "\n\n".join(block for place, block in enumerate(blocks) if place in kept or not is_query(block)) + "\n"
        if len(chosen.encode()) <= MOST_BYTES:
            return chosen
        share *= 0.97


def is_query(block):
    return any(line.startswith("query ") for line in block.split("\n"))


if __name__ == "__main__":
    main()
