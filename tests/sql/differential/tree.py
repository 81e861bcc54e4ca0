"""Statements as trees of text, so that parts can be taken out of them while they stay statements.

A part is a string or a Node. A node of type `list` joins its parts with a separator and can lose all but `least` of them; an
optional node can go; a node of any other type can be replaced by a node of the same type below it, or by a plain value.
"""

PLAIN = {
    "bool": ["true", "false"],
    "int": ["1", "0"],
    "big": ["1"],
    "dec": ["1.5"],
    "dbl": ["CAST(1.5 AS DOUBLE PRECISION)"],
    "text": ["'a'"],
    "date": ["DATE '2024-01-01'"],
    "ts": ["TIMESTAMP '2024-01-01 00:00:00'"],
}


class Node:
    __slots__ = ("type", "parts", "sep", "optional", "least")

    def __init__(self, type_, *parts, sep="", optional=False, least=1):
        self.type, self.parts, self.sep, self.optional, self.least = type_, list(parts), sep, optional, least

    def text(self):
        return self.sep.join(part if isinstance(part, str) else part.text() for part in self.parts)

    def below(self):
        """All nodes below this one, the nearest first."""
        level = [part for part in self.parts if isinstance(part, Node)]
        while level:
            yield from level
            level = [part for node in level for part in node.parts if isinstance(part, Node)]


def optional(*parts):
    return Node("clause", *parts, optional=True)


def listed(sep, parts, least=1):
    return Node("list", *parts, sep=sep, least=least)


def size(node):
    return len(node.text())


def shrink(root, holds, tries=400):
    """Takes parts out of the tree as long as `holds()` says that the smaller statement still shows what it should."""
    changed = True
    while changed and tries > 0:
        changed = False
        for parent, place, smaller in list(candidates(root)):
            if place >= len(parent.parts):
                continue
            before = list(parent.parts)
            length = size(root)
            if smaller is None:
                del parent.parts[place]
            else:
                parent.parts[place] = smaller
            if size(root) >= length or tries <= 0:
                parent.parts = before
                continue
            tries -= 1
            if holds():
                changed = True
            else:
                parent.parts = before
    return root


def candidates(root):
    """What may be put in the place of what: (parent, place, new part or None to take it out), the largest first."""
    for parent in [root, *root.below()]:
        for place, part in enumerate(parent.parts):
            if parent.type == "list" and len(parent.parts) > parent.least:
                yield parent, place, None
            if not isinstance(part, Node):
                continue
            if part.optional:
                yield parent, place, ""
            for node in part.below():
                if node.type == part.type and part.type not in ("list", "clause"):
                    yield parent, place, node
            for plain in PLAIN.get(part.type, []):
                yield parent, place, plain
