"""Random expressions of a wanted type over the columns in scope, with subqueries of every kind in every place."""

from schemas import LITERALS, TYPES
from tree import Node, listed

COMPARISONS = ["=", "<>", "<", ">", "<=", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"]
ORDERED = ["=", "<>", "<", ">", "<=", ">="]


class Scope:
    """Columns that an expression may name: those of its own query, and those of the queries around it."""

    def __init__(self, columns, outer=None):
        self.columns = columns  # of (text, type)
        self.outer = outer

    def of(self, type_):
        return [text for text, found in self.columns if found == type_]


class Expressions:
    """Mixed into the maker of queries, whose `query` it uses for subqueries."""

    def expression(self, scope, type_, depth):
        if depth <= 0 or self.chance(0.3):
            return self.leaf(scope, type_)
        if type_ == "bool":
            return self.condition(scope, depth)
        pick = self.random.random()
        if pick < 0.12:
            return Node(type_, "CASE WHEN ", self.condition(scope, depth - 1), " THEN ", self.expression(scope, type_, depth - 1),
                        " ELSE ", self.expression(scope, type_, depth - 1), " END")
        if pick < 0.22:
            return Node(type_, "coalesce(", self.expression(scope, type_, depth - 1), ", ", self.leaf(scope, type_), ")")
        if pick < 0.28:
            return Node(type_, "nullif(", self.expression(scope, type_, depth - 1), ", ", self.leaf(scope, type_), ")")
        if pick < 0.32 and type_ not in ("text",):
            return Node(type_, self.random.choice(["greatest", "least"]), "(", self.expression(scope, type_, depth - 1), ", ",
                        self.leaf(scope, type_), ")")
        if pick < 0.5:
            return self.scalar_subquery(scope, type_, depth - 1)
        return self.computed(scope, type_, depth)

    def computed(self, scope, type_, depth):
        below = self.expression(scope, type_, depth - 1)
        if type_ in ("int", "big"):
            form = self.random.randrange(4)
            if form == 0:
                return Node(type_, "(", below, " ", self.random.choice("+-*"), " ", self.leaf(scope, "int"), ")")
            if form == 1:
                return Node(type_, "(- ", below, ")")
            if form == 2:
                return Node(type_, "length(", self.expression(scope, "text", depth - 1), ")")
            return Node(type_, "(", below, " % 3)")
        if type_ in ("dec", "dbl"):
            return Node(type_, "(", below, " ", self.random.choice("+-"), " ", self.leaf(scope, type_), ")")
        if type_ == "text":
            if self.chance(0.5):
                return Node(type_, "(", below, " || ", self.leaf(scope, "text"), ")")
            return Node(type_, self.random.choice(["upper", "lower"]), "(", below, ")")
        if type_ == "date":
            return Node(type_, "CAST(", self.leaf(scope, "ts"), " AS DATE)")
        if type_ == "ts":
            return Node(type_, "CAST(", self.leaf(scope, "date"), " AS TIMESTAMP)")
        return below

    def leaf(self, scope, type_):
        own = scope.of(type_)
        outer = scope.outer.of(type_) if scope.outer and self.chance(0.35) else []
        if own or outer:
            if self.chance(0.75):
                return Node(type_, self.random.choice(outer or own))
        if self.chance(0.06):
            return Node(type_, f"CAST(NULL AS {TYPES[type_]})")
        return Node(type_, self.random.choice(LITERALS[type_]))

    def condition(self, scope, depth):
        if depth <= 0:
            return self.simple(scope, 0)
        pick = self.random.random()
        if pick < 0.18:
            parts = [self.condition(scope, depth - 1) for _ in range(self.random.randint(2, 3))]
            return Node("bool", "(", listed(self.random.choice([" AND ", " OR "]), parts), ")")
        if pick < 0.28:
            return Node("bool", "(NOT ", self.condition(scope, depth - 1), ")")
        if pick < 0.34:
            test = self.random.choice(["IS NULL", "IS NOT TRUE", "IS TRUE", "IS NOT FALSE", "IS NOT NULL"])
            return Node("bool", "(", self.condition(scope, depth - 1), f" {test})")
        if pick < 0.64:
            return self.subquery_condition(scope, depth - 1)
        return self.simple(scope, depth - 1)

    def simple(self, scope, depth):
        type_ = self.some_type(scope)
        left = self.expression(scope, type_, depth)
        pick = self.random.random()
        if pick < 0.5:
            return Node("bool", "(", left, f" {self.random.choice(COMPARISONS)} ", self.expression(scope, type_, depth), ")")
        if pick < 0.6:
            return Node("bool", "(", left, self.random.choice([" IS NULL", " IS NOT NULL"]), ")")
        if pick < 0.75:
            items = [self.leaf(scope, type_) for _ in range(self.random.randint(1, 3))]
            if self.chance(0.25):
                items.append(Node(type_, "NULL"))
            return Node("bool", "(", left, self.random.choice([" IN (", " NOT IN ("]), listed(", ", items), "))")
        if pick < 0.85:
            return Node("bool", "(", left, self.random.choice([" BETWEEN ", " NOT BETWEEN "]), self.leaf(scope, type_), " AND ",
                        self.leaf(scope, type_), ")")
        if type_ == "text":
            pattern = self.random.choice(["'a%'", "'%b'", "'_'", "'%'", "''", "'a!%' ESCAPE '!'"])
            return Node("bool", "(", left, f"{self.random.choice([' LIKE ', ' NOT LIKE '])}{pattern})")
        return self.leaf(scope, "bool")

    def subquery_condition(self, scope, depth):
        type_ = self.some_type(scope)
        pick = self.random.random()
        if pick < 0.3:
            no = self.random.choice(["EXISTS (", "NOT EXISTS ("])
            return Node("bool", no, self.query([self.some_type(scope)], depth, scope, plain=False), ")")
        if pick < 0.65:
            word = self.random.choice([" IN (", " NOT IN ("])
            return Node("bool", "(", self.expression(scope, type_, min(depth, 1)), word, self.query([type_], depth, scope), "))")
        if pick < 0.9:
            word = f" {self.random.choice(ORDERED)} {self.random.choice(['ANY', 'ALL'])} ("
            return Node("bool", "(", self.expression(scope, type_, min(depth, 1)), word, self.query([type_], depth, scope), "))")
        pair = [type_, self.some_type(scope)]
        left = listed(", ", [self.leaf(scope, each) for each in pair], least=2)
        word = self.random.choice([") IN (", ") NOT IN ("])
        return Node("bool", "((", left, word, self.query(pair, depth, scope), "))")

    def scalar_subquery(self, scope, type_, depth):
        """One that gives at most one row: an aggregate, or the first row in an order that decides its value."""
        source, inner = self.source(scope, min(depth, 1))
        where = self.where(inner, depth)
        if self.chance(0.3):
            order = self.random.choice(["", " DESC"]) + self.random.choice([" NULLS FIRST", " NULLS LAST"])
            value = self.expression(inner, type_, min(depth, 1))
            return Node(type_, "(SELECT ", value, " AS v FROM ", source, where, f" ORDER BY 1{order} LIMIT 1)")
        if type_ == "int" and self.chance(0.4):
            count = self.random.choice(["count(*)", "count(*) + 1"])
            return Node(type_, "(SELECT CAST(" + count + " AS INT) FROM ", source, where, ")")
        name = "bool_or" if type_ == "bool" else self.random.choice(["min", "max"])
        return Node(type_, f"(SELECT {name}(", self.expression(inner, type_, min(depth, 1)), ") FROM ", source, where, ")")

    def some_type(self, scope):
        """A type that a column in scope has, most of the time."""
        if scope.columns and self.chance(0.9):
            return self.random.choice(scope.columns)[1]
        return self.random.choice(["int", "int", "text", "big"])

    def chance(self, probability):
        return self.random.random() < probability
