"""Random queries and statements that change tables, as trees."""

from expressions import Expressions, Scope
from tree import Node, listed, optional

JOINS = ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN"]
SETS = ["UNION", "UNION ALL", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL"]


class Maker(Expressions):
    def __init__(self, random, tables):
        self.random = random
        self.tables = tables
        self.aliases = 0

    def statement(self):
        """A tree, and the table that it changes, if it changes one."""
        if self.chance(0.25):
            return self.change()
        types = [self.random.choice(["int", "int", "text", "dec", "big", "bool", "date", "dbl", "ts"])
                 for _ in range(self.random.randint(1, 3))]
        return Node("statement", self.query(types, 3, None)), None

    # Queries of wanted column types.

    def query(self, types, depth, outer, plain=False):
        """Columns are named v0, v1, …; every LIMIT has an order that leaves nothing open."""
        pick = self.random.random()
        if depth > 0 and pick < 0.14 and not plain:
            left, right = self.query(types, depth - 1, outer, True), self.query(types, depth - 1, outer, True)
            both = Node("query", left, f" {self.random.choice(SETS)} ", right)
            return Node("query", both, self.ending(types)) if self.chance(0.3) else both
        if depth > 1 and pick < 0.2 and not plain:
            return self.with_query(types, depth, outer)
        if depth > 0 and pick < 0.36:
            body = self.grouped(types, depth, outer)
        elif depth > 0 and pick < 0.42 and outer is None:
            body = self.windowed(types, depth, outer)
        else:
            body = self.selected(types, depth, outer)
        ending = self.ending(types) if self.chance(0.2) and not plain else ""
        return Node("query", body, ending) if ending else body

    def ending(self, types):
        keys = [f"{place}{self.random.choice(['', ' DESC'])} {self.random.choice(['NULLS FIRST', 'NULLS LAST'])}"
                for place in range(1, len(types) + 1)]
        limit = self.random.choice(["", " LIMIT 0", " LIMIT 1", " LIMIT 2", " LIMIT 5", " OFFSET 1", " LIMIT 2 OFFSET 1"])
        return optional(" ORDER BY " + ", ".join(keys), optional(limit))

    def items(self, expressions):
        return listed(", ", [Node("item", each, f" AS v{place}") for place, each in enumerate(expressions)],
                      least=len(expressions))

    def selected(self, types, depth, outer):
        source, scope = self.source(outer, depth)
        distinct = optional("DISTINCT ") if self.chance(0.2) else ""
        expressions = [self.expression(scope, type_, depth - 1) for type_ in types]
        return Node("query", "SELECT ", distinct, self.items(expressions), " FROM ", source, self.where(scope, depth))

    def grouped(self, types, depth, outer):
        source, scope = self.source(outer, depth - 1)
        keys = self.random.sample(scope.columns, min(len(scope.columns), self.random.randint(0, 2)))
        inner = Scope(keys, outer)
        expressions = [self.aggregated(scope, inner, type_, depth - 1) for type_ in types]
        having = optional(" HAVING ", self.having(scope, inner, depth - 1)) if self.chance(0.3) else ""
        by = self.group_by([text for text, _ in keys]) if keys else ""
        return Node("query", "SELECT ", self.items(expressions), " FROM ", source, self.where(scope, depth - 1), by, having)

    def group_by(self, keys):
        names = ", ".join(keys)
        form = self.random.random()
        if form < 0.7:
            return f" GROUP BY {names}"
        if form < 0.8:
            return f" GROUP BY ROLLUP ({names})"
        if form < 0.9:
            return f" GROUP BY CUBE ({names})"
        return f" GROUP BY GROUPING SETS (({names}), ({keys[0]}), ())"

    def aggregated(self, scope, keys, type_, depth):
        own = keys.of(type_)
        if own and self.chance(0.5):
            return Node(type_, self.random.choice(own))
        if keys.columns and depth > 0 and self.chance(0.15):
            return self.scalar_subquery(keys, type_, 0)
        return self.aggregate(scope, type_, depth)

    def aggregate(self, scope, type_, depth):
        keep = Node("clause", " FILTER (WHERE ", self.condition(scope, min(depth, 1)), ")", optional=True) if self.chance(0.2) else ""
        bare = Scope(scope.columns)  # an aggregate over outer columns alone would belong to the query around
        value = self.expression(bare, type_, min(depth, 1))
        if type_ == "bool":
            return Node(type_, self.random.choice(["bool_and(", "bool_or("]), value, ")", keep)
        if type_ in ("int", "big") and self.chance(0.5):
            count = self.random.choice(["count(*)", "count({})", "count(DISTINCT {})"])
            argument = self.random.choice(scope.columns)[0]
            return Node(type_, count.format(argument), keep)
        if type_ in ("int", "dec") and self.chance(0.4):
            target = "INT" if type_ == "int" else "DECIMAL(20,2)"
            distinct = "DISTINCT " if self.chance(0.2) else ""
            return Node(type_, f"CAST(sum({distinct}", value, ")", keep, f" AS {target})")
        return Node(type_, self.random.choice(["min(", "max("]), value, ")", keep)

    def having(self, scope, keys, depth):
        type_ = self.random.choice(["int", "int", "text"])
        left = self.aggregated(scope, keys, type_, 0)
        if depth > 0 and self.chance(0.3):
            return Node("bool", "(", left, self.random.choice([" IN (", " NOT IN ("]), self.query([type_], depth - 1, keys), "))")
        return Node("bool", "(", left, f" {self.random.choice(['=', '<>', '>', '<='])} ", self.leaf(keys, type_), ")")

    def windowed(self, types, depth, outer):
        source, scope = self.source(outer, 0)
        every = ", ".join(f"{text} NULLS LAST" for text, _ in scope.columns)
        expressions = []
        for type_ in types:
            part = f"PARTITION BY {self.random.choice(scope.columns)[0]} " if self.chance(0.5) else ""
            frame = self.random.choice(["", "", " ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING", " ROWS UNBOUNDED PRECEDING",
                                        " ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING"])
            over = f" OVER ({part}ORDER BY {every}"
            value = self.leaf(Scope(scope.columns), type_).text()
            if type_ in ("int", "big") and self.chance(0.5):
                name = self.random.choice(["row_number()", "rank()", "dense_rank()", "count(*)"])
                expressions.append(Node(type_, name + over + ")"))
            elif self.chance(0.5):
                name = self.random.choice(["lag", "lead"])
                expressions.append(Node(type_, f"{name}({value})" + over + ")"))
            else:
                name = self.random.choice(["first_value", "last_value", "bool_or" if type_ == "bool" else "max"])
                expressions.append(Node(type_, f"{name}({value})" + over + frame + ")"))
        return Node("query", "SELECT ", self.items(expressions), " FROM ", source, self.where(scope, depth - 1))

    def with_query(self, types, depth, outer):
        name = self.alias("w")
        inner = [self.random.choice(["int", "text", *types]) for _ in range(self.random.randint(1, 3))]
        body = self.query(inner, depth - 2, None, True)
        self.tables.append(Named(name, [(f"v{place}", type_) for place, type_ in enumerate(inner)]))
        main = self.query(types, depth - 1, outer, True)
        self.tables.pop()
        return Node("query", f"WITH {name} AS (", body, ") ", main)

    # FROM and WHERE.

    def alias(self, letter="a"):
        self.aliases += 1
        return f"{letter}{self.aliases}"

    def source(self, outer, depth):
        """What stands behind FROM, and the scope that it makes."""
        source, columns = self.relation(depth)
        for _ in range(self.random.choices([0, 1, 2], [5, 4, 1])[0] if depth > 0 else 0):
            kind = self.random.choice(JOINS)
            if kind in ("CROSS JOIN", "LEFT JOIN") and self.chance(0.25):
                lateral, more = self.lateral(columns, depth - 1)
                source = Node("source", source, f" {kind} LATERAL ", lateral, "" if kind == "CROSS JOIN" else " ON true")
                columns = columns + more
                continue
            right, more = self.relation(depth - 1)
            scope = Scope(columns + more)
            on = "" if kind == "CROSS JOIN" else Node("clause", " ON ", self.on(columns, more, scope, depth - 1))
            source = Node("source", source, f" {kind} ", right, on)
            columns = columns + more
        return source, Scope(columns, outer)

    def on(self, left, right, scope, depth):
        pairs = [(a, b) for a, type_ in left for b, other in right if type_ == other]
        if pairs and self.chance(0.85):
            a, b = self.random.choice(pairs)
            equal = Node("bool", f"{a} {self.random.choice(['=', '=', '=', 'IS NOT DISTINCT FROM'])} {b}")
            if self.chance(0.3):
                return Node("bool", equal, optional(" AND ", self.condition(scope, min(depth, 1))))
            return equal
        return self.condition(scope, min(depth, 1))

    def relation(self, depth):
        if depth > 0 and self.chance(0.25):
            types = [self.random.choice(["int", "int", "text", "big", "dec"]) for _ in range(self.random.randint(1, 3))]
            alias = self.alias("q")
            return (Node("relation", "(", self.query(types, depth - 1, None), f") {alias}"),
                    [(f"{alias}.v{place}", type_) for place, type_ in enumerate(types)])
        table, alias = self.random.choice(self.tables), self.alias()
        return (Node("relation", f"{table.path} {alias}"),
                [(f"{alias}.{name}", type_) for name, type_ in table.columns])

    def lateral(self, columns, depth):
        types = [self.random.choice(["int", "text"])]
        alias = self.alias("l")
        return (Node("relation", "(", self.query(types, max(depth, 0), Scope(columns)), f") {alias}"),
                [(f"{alias}.v0", types[0])])

    def where(self, scope, depth):
        if not self.chance(0.45):
            return ""
        return optional(" WHERE ", self.condition(scope, depth))

    # Statements that change a table.

    def change(self):
        table = self.random.choice(self.tables)
        pick = self.random.random()
        if pick < 0.4:
            return self.delete(table), table
        if pick < 0.8:
            return self.update(table), table
        types = [type_ for _, type_ in table.columns]
        return Node("statement", f"INSERT INTO {table.path} ", self.query(types, 2, None)), table

    def delete(self, table):
        alias = self.alias("d")
        columns = [(f"{alias}.{name}", type_) for name, type_ in table.columns]
        if self.chance(0.25):
            other, more = self.relation(1)
            condition = self.on(columns, more, Scope(columns + more), 2)
            return Node("statement", f"DELETE FROM {table.path} AS {alias} USING ", other, " WHERE ", condition)
        return Node("statement", f"DELETE FROM {table.path} AS {alias} WHERE ", self.condition(Scope(columns), 3))

    def update(self, table):
        """From another table only what does not depend on which of its rows is taken."""
        alias = self.alias("u")
        scope = Scope([(f"{alias}.{name}", type_) for name, type_ in table.columns])
        chosen = self.random.sample(table.columns, self.random.randint(1, min(2, len(table.columns))))
        changes = [Node("item", f"{name} = ", self.expression(scope, type_, 2)) for name, type_ in chosen]
        head = Node("statement", f"UPDATE {table.path} AS {alias} SET ", listed(", ", changes))
        if self.chance(0.25):
            other, more = self.relation(1)
            both = Scope(scope.columns + more)
            return Node("statement", head, " FROM ", other, " WHERE ", self.on(scope.columns, more, both, 2))
        return Node("statement", head, optional(" WHERE ", self.condition(scope, 3)))


class Named:
    """A table that WITH makes."""

    def __init__(self, name, columns):
        self.path, self.columns = name, columns
