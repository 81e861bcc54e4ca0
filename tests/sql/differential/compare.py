"""Whether two databases gave the same rows, in any order."""

from decimal import Decimal, InvalidOperation

NUMBERS = "IR"


def same(left, right):
    """Numbers that are not whole count as equal when they agree in six digits after the point or nine in all: the databases
    give averages and quotients different types."""
    if len(left.rows) != len(right.rows) or len(left.kinds) != len(right.kinds):
        return False
    kinds = [a if a != "?" else b for a, b in zip(left.kinds, right.kinds)]
    pairs = zip(ordered(left.rows, kinds), ordered(right.rows, kinds))
    return all(same_cell(a, b, kind) for one, other in pairs for a, b, kind in zip(one, other, kinds))


def ordered(rows, kinds):
    return sorted(rows, key=lambda row: [key(cell, kind) for cell, kind in zip(row, kinds)])


def key(cell, kind):
    if kind not in NUMBERS or cell == "NULL":
        return cell
    number = parsed(cell)
    if number is None or not number.is_finite():
        return cell
    if number == int(number):
        return str(int(number))
    return format(number, ".4f") if abs(number) < 10**15 else format(float(number), ".9g")


def parsed(text):
    try:
        return Decimal(text)
    except InvalidOperation:
        return None


def same_cell(a, b, kind):
    if a == b:
        return True
    if kind not in NUMBERS or "NULL" in (a, b):
        return False
    left, right = parsed(a), parsed(b)
    if left is None or right is None or not left.is_finite() or not right.is_finite():
        return left is not None and right is not None and (left == right or (left.is_nan() and right.is_nan()))
    if left == right:
        return True
    if left == int(left) and right == int(right):
        return False
    return abs(left - right) <= max(Decimal("1e-6"), abs(left) * Decimal("1e-9"))
