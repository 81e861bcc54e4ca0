//! The literals of statements about rows with one key, and of rows that are written out: where they stand in the text, and in its plan.

use bowshot_sql::{PlainLiteral, PlainSelect, Tree};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::{BinaryExpr, Expr, Limit, LogicalPlan, Operator, Sort};
use datafusion::sql::sqlparser::ast::{
    self, BinaryOperator, Delete, FromTable, SelectItem, SelectItemQualifiedWildcardKind, SetExpr, Statement,
    TableFactor, TableWithJoins, UnaryOperator, Update, Value,
};
use std::slice::{self, Iter};
use std::sync::Arc;

/// Rows of VALUES up to which planning them takes the time. Each number of rows is a statement of its own.
const MAX_ROWS: usize = 16;

/// What was taken out of a statement.
#[derive(Debug)]
pub(super) struct Taken {
    /// The literals in the order of the text.
    pub(super) literals: Vec<ast::Expr>,
    /// What the planner makes of them. Of rows that are written out, each place has one, which is none where the text has
    /// something else than a literal.
    pub(super) values: Vec<Option<ScalarValue>>,
}

/// Takes the literals out of a statement, and leaves blanks. `None` for other statements, which stay as they are.
pub(super) fn take_literals(statement: &mut Statement) -> Option<Taken> {
    let places = places(statement)?;
    let values = places.iter().map(|place| place.as_ref().and_then(|literal| value(literal))).collect();
    let literals = places.into_iter().flatten().map(|literal| {
        let blank = match &*literal {
            ast::Expr::Value(value) if matches!(value.value, Value::SingleQuotedString(_)) => {
                Value::SingleQuotedString(String::new())
            }
            _ => Value::Number("0".to_owned(), false),
        };
        std::mem::replace(literal, ast::Expr::Value(blank.into()))
    });
    Some(Taken { literals: literals.collect(), values })
}

/// Puts literals where they were taken from.
pub(super) fn put_literals(statement: &mut Statement, taken: Vec<ast::Expr>) {
    let places = places(statement).unwrap_or_default();
    places.into_iter().flatten().zip(taken).for_each(|(place, literal)| *place = literal);
}

/// The literals in the order of the text, each a whole number or a text; parameters are none. Rows that are written out have a
/// place for each of their values.
fn places(statement: &mut Statement) -> Option<Vec<Option<&mut ast::Expr>>> {
    if !matches!(statement, Statement::Insert(_)) {
        return literals(statement).map(|found| found.into_iter().map(Some).collect());
    }
    let Statement::Insert(insert) = statement else { return None };
    if insert.on.is_some() {
        return None;
    }
    let SetExpr::Values(values) = insert.source.as_mut()?.body.as_mut() else { return None };
    if values.rows.len() > MAX_ROWS {
        return None;
    }
    values.rows.iter_mut().flat_map(|row| row.content.iter_mut()).map(place_in_row).collect()
}

/// The place of a value of a row. Who writes other literals than whole numbers and texts writes others the next time.
fn place_in_row(written: &mut ast::Expr) -> Option<Option<&mut ast::Expr>> {
    if value(written).is_some() {
        return Some(Some(written));
    }
    let is_literal_or_query = |part: &ast::Expr| match part {
        ast::Expr::Value(value) => {
            !matches!(value.value, Value::Placeholder(_) | Value::Null | Value::Boolean(_))
        }
        ast::Expr::TypedString { .. }
        | ast::Expr::Subquery(_)
        | ast::Expr::InSubquery { .. }
        | ast::Expr::Exists { .. } => true,
        _ => false,
    };
    (!written.has_expression(is_literal_or_query)).then_some(None)
}

/// The literals of statements about rows that are there.
fn literals(statement: &mut Statement) -> Option<Vec<&mut ast::Expr>> {
    let mut found = Vec::new();
    match statement {
        Statement::Query(query) => {
            // What stands in ORDER BY and LIMIT stays: with other numbers it is another statement.
            if query.with.is_some() {
                return None;
            }
            let SetExpr::Select(select) = query.body.as_mut() else { return None };
            if !is_one_table(&select.from) || !select.projection.iter().all(is_plain) {
                return None;
            }
            add_conditions(select.selection.as_mut()?, &mut found)?;
        }
        Statement::Update(update) if is_bare_update(update) => {
            for assignment in &mut update.assignments {
                add_operands(&mut assignment.value, &mut found)?;
            }
            add_conditions(update.selection.as_mut()?, &mut found)?;
        }
        Statement::Delete(delete) if is_bare_delete(delete) => {
            add_conditions(delete.selection.as_mut()?, &mut found)?;
        }
        _ => return None,
    }
    Some(found)
}

fn is_one_table(from: &[TableWithJoins]) -> bool {
    let [from] = from else { return false };
    let is_table = matches!(from.relation, TableFactor::Table { args: None, version: None, .. });
    is_table && from.joins.is_empty()
}

fn is_bare_update(update: &Update) -> bool {
    let Update { from, output, or, order_by, limit, .. } = update;
    let is_bare = from.is_none() && output.is_none() && or.is_none();
    is_bare && order_by.is_empty() && limit.is_none() && is_one_table(std::slice::from_ref(&update.table))
}

fn is_bare_delete(delete: &Delete) -> bool {
    let Delete { tables, from, using, output, order_by, limit, .. } = delete;
    let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = from;
    let is_bare = tables.is_empty() && using.is_none() && output.is_none();
    is_bare && order_by.is_empty() && limit.is_none() && is_one_table(from)
}

fn is_plain(item: &SelectItem) -> bool {
    match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => is_column(expr),
        SelectItem::Wildcard(_) => true,
        SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(_), _) => true,
        _ => false,
    }
}

fn is_column(expr: &ast::Expr) -> bool {
    matches!(expr, ast::Expr::Identifier(_) | ast::Expr::CompoundIdentifier(_))
}

/// Adds the values of `column = value AND …`.
fn add_conditions<'s>(condition: &'s mut ast::Expr, found: &mut Vec<&'s mut ast::Expr>) -> Option<()> {
    let ast::Expr::BinaryOp { left, op, right } = condition else { return None };
    match op {
        BinaryOperator::And => {
            add_conditions(left, found)?;
            add_conditions(right, found)
        }
        BinaryOperator::Eq => {
            let (column, other) = if is_column(left) { (left, right) } else { (right, left) };
            let is_value = matches!(&**other, ast::Expr::Value(_)) && is_column(column);
            if is_value { add_value(other, found) } else { None }
        }
        _ => None,
    }
}

/// Adds those of a column, a value, and of sums, differences and products of such.
fn add_operands<'s>(expr: &'s mut ast::Expr, found: &mut Vec<&'s mut ast::Expr>) -> Option<()> {
    if is_column(expr) {
        return Some(());
    }
    match expr {
        ast::Expr::BinaryOp {
            left,
            op: BinaryOperator::Plus | BinaryOperator::Minus | BinaryOperator::Multiply,
            right,
        } => {
            add_operands(left, found)?;
            add_operands(right, found)
        }
        ast::Expr::Nested(inner) => add_operands(inner, found),
        value => add_value(value, found),
    }
}

fn add_value<'s>(expr: &'s mut ast::Expr, found: &mut Vec<&'s mut ast::Expr>) -> Option<()> {
    if matches!(expr, ast::Expr::Value(value) if matches!(value.value, Value::Placeholder(_))) {
        return Some(());
    }
    value(expr)?;
    found.push(expr);
    Some(())
}

/// The value that the planner makes of a literal. `None` for all that is no `Int64` and no plain text.
fn value(literal: &ast::Expr) -> Option<ScalarValue> {
    match literal {
        ast::Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) => Some(ScalarValue::Utf8(Some(text.clone()))),
            number => whole_number(number).map(|number| ScalarValue::Int64(Some(number))),
        },
        ast::Expr::UnaryOp { op: UnaryOperator::Minus, expr } => match expr.as_ref() {
            ast::Expr::Value(value) => {
                whole_number(&value.value).map(|number| ScalarValue::Int64(Some(-number)))
            }
            _ => None,
        },
        _ => None,
    }
}

/// The same for a literal of a text that is not parsed.
pub(super) fn plain_value(literal: &PlainLiteral<'_>) -> ScalarValue {
    match literal {
        PlainLiteral::Number(number) => ScalarValue::Int64(Some(*number)),
        PlainLiteral::Text(text) => ScalarValue::Utf8(Some((*text).to_owned())),
    }
}

/// Whether the literals of a text are those that its statement was found to have.
pub(super) fn has_values(select: &PlainSelect<'_>, values: &[ScalarValue]) -> bool {
    select.literals().iter().map(plain_value).eq(values.iter().cloned())
}

fn whole_number(literal: &Value) -> Option<i64> {
    match literal {
        Value::Number(digits, false) if digits.bytes().all(|digit| digit.is_ascii_digit()) => {
            digits.parse().ok()
        }
        _ => None,
    }
}

/// The plan with other literals, which are of the same types and in the order of the text; see [`Taken::values`].
pub(super) fn with_literals(plan: &LogicalPlan, values: &[Option<ScalarValue>]) -> Option<LogicalPlan> {
    let mut values = values.iter();
    let replaced = in_plan(plan, &mut values)?;
    values.next().is_none().then_some(replaced)
}

fn in_plan(plan: &LogicalPlan, values: &mut Iter<'_, Option<ScalarValue>>) -> Option<LogicalPlan> {
    Some(match plan {
        LogicalPlan::Projection(node) => {
            let mut node = node.clone();
            // Literals above rows that are written out are defaults.
            if !gives_values(&node.input) {
                node.expr.iter_mut().try_for_each(|expr| replace_literals(expr, values))?;
            }
            node.input = Arc::new(in_plan(&node.input, values)?);
            LogicalPlan::Projection(node)
        }
        LogicalPlan::Filter(node) => {
            let mut node = node.clone();
            replace_literals(&mut node.predicate, values)?;
            node.input = Arc::new(in_plan(&node.input, values)?);
            LogicalPlan::Filter(node)
        }
        LogicalPlan::Limit(node) => {
            let input = Arc::new(in_plan(&node.input, values)?);
            LogicalPlan::Limit(Limit { input, ..node.clone() })
        }
        LogicalPlan::Sort(node) => {
            let input = Arc::new(in_plan(&node.input, values)?);
            LogicalPlan::Sort(Sort { input, ..node.clone() })
        }
        LogicalPlan::Values(node) => {
            let mut node = node.clone();
            for expr in node.values.iter_mut().flatten() {
                let place = values.next()?;
                if place.is_some() {
                    let mut only = slice::from_ref(place).iter();
                    replace_literals(expr, &mut only)?;
                    only.next().is_none().then_some(())?;
                }
            }
            LogicalPlan::Values(node)
        }
        // The name of a table stands before its scan, which has none.
        LogicalPlan::SubqueryAlias(node) if matches!(node.input.as_ref(), LogicalPlan::TableScan(_)) => {
            plan.clone()
        }
        LogicalPlan::TableScan(_) => plan.clone(),
        _ => return None,
    })
}

fn gives_values(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Values(_) => true,
        LogicalPlan::Projection(node) => gives_values(&node.input),
        _ => false,
    }
}

fn replace_literals(expr: &mut Expr, values: &mut Iter<'_, Option<ScalarValue>>) -> Option<()> {
    match expr {
        Expr::BinaryExpr(BinaryExpr {
            left,
            op: Operator::Plus | Operator::Minus | Operator::Multiply,
            right,
        }) => {
            replace_operand(left, values)?;
            replace_operand(right, values)
        }
        Expr::BinaryExpr(BinaryExpr { left, right, .. }) => {
            replace_literals(left, values)?;
            replace_literals(right, values)
        }
        Expr::Alias(alias) => replace_literals(&mut alias.expr, values),
        Expr::Cast(cast) => replace_literals(&mut cast.expr, values),
        Expr::Literal(literal, None) => {
            let value = values.next()?.as_ref()?;
            if literal.data_type() != value.data_type() {
                return None;
            }
            *literal = value.clone();
            Some(())
        }
        Expr::Column(_) | Expr::Placeholder(_) => Some(()),
        Expr::ScalarFunction(function) if function.args.is_empty() => Some(()),
        _ => None,
    }
}

/// In a computation, a number that is an `INT` has that type.
fn replace_operand(expr: &mut Expr, values: &mut Iter<'_, Option<ScalarValue>>) -> Option<()> {
    let Expr::Literal(literal, None) = expr else { return replace_literals(expr, values) };
    let Some(ScalarValue::Int64(Some(number))) = values.next()? else { return None };
    *literal = match (&*literal, i32::try_from(*number)) {
        (ScalarValue::Int32(Some(_)), Ok(number)) => ScalarValue::Int32(Some(number)),
        (ScalarValue::Int64(Some(before)), number_as_int)
            if number_as_int.is_ok() == i32::try_from(*before).is_ok() =>
        {
            ScalarValue::Int64(Some(*number))
        }
        _ => return None,
    };
    Some(())
}

/// Whether a plan has these literals and no others, in this order. Equal ones do not tell.
pub(super) fn are_literals_of(plan: &LogicalPlan, values: &[Option<ScalarValue>]) -> bool {
    let given: Vec<&ScalarValue> = values.iter().flatten().collect();
    let are_different =
        given.iter().enumerate().all(|(at, value)| !given.iter().skip(at + 1).any(|other| other == value));
    are_different && with_literals(plan, values).is_some_and(|same| same == *plan)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bowshot_sql::{Dialect, DialectName};

    #[test]
    fn literals_are_taken_and_put_back() {
        for (sql, expected) in [
            ("SELECT word FROM t WHERE id = 7", Some(1)),
            ("SELECT *, id AS a, t.* FROM t WHERE 'x' = word AND t.id = 7 AND id = $1", Some(2)),
            ("SELECT * FROM t WHERE id = $1", Some(0)),
            ("SELECT * FROM t WHERE id = 9223372036854775807", Some(1)),
            ("SELECT * FROM t WHERE id = 9223372036854775808", None),
            ("SELECT * FROM t WHERE id = -7", None),
            ("SELECT * FROM t WHERE id = 7.0", None),
            ("SELECT * FROM t WHERE id = NULL", None),
            ("SELECT * FROM t WHERE 7 = 7", None),
            ("SELECT * FROM t WHERE id = 7 OR id = 8", None),
            ("SELECT id + 1 FROM t WHERE id = 7", None),
            ("SELECT * FROM t WHERE id = 7 ORDER BY id LIMIT 1", Some(1)),
            ("WITH u AS (SELECT 1) SELECT * FROM t WHERE id = 7", None),
            ("SELECT * FROM t, t AS u WHERE t.id = 7", None),
            ("SELECT * FROM (SELECT * FROM t) AS u WHERE id = 7", None),
            ("SELECT * FROM t", None),
            ("DELETE FROM t WHERE id = 7", Some(1)),
            ("DELETE FROM t WHERE id = 7 RETURNING id, 'x'", Some(1)),
            ("DELETE FROM t USING u WHERE t.id = 7", None),
            ("UPDATE t SET n = (n + 5) * -2, word = 'x', m = n WHERE id = 7", Some(4)),
            ("UPDATE t SET n = $1 - 1 WHERE id = $2", Some(1)),
            ("UPDATE t SET n = abs(5) WHERE id = 7", None),
            ("UPDATE t SET n = NULL WHERE id = 7", None),
            ("UPDATE t SET n = 5 FROM u WHERE t.id = 7", None),
            ("UPDATE t SET n = 5", None),
            ("INSERT INTO t VALUES (1, 'x'), (-2, CURRENT_TIMESTAMP)", Some(3)),
            ("INSERT INTO t VALUES (1, DEFAULT, NULL, TRUE, $1, $2 + $3, CAST($4 AS DATE))", Some(1)),
            ("INSERT INTO t VALUES (1, 2.5)", None),
            ("INSERT INTO t VALUES (1, upper('x'))", None),
            ("INSERT INTO t VALUES (1, DATE '2024-01-31')", None),
            ("INSERT INTO t VALUES (1, (SELECT 2))", None),
            ("INSERT INTO t (id) VALUES (1) RETURNING id", Some(1)),
            ("INSERT INTO t (id) VALUES (1) ON CONFLICT DO NOTHING", None),
            ("INSERT INTO t SELECT 1", None),
        ] {
            let parsed = || bowshot_sql::parse(sql, Dialect::new(DialectName::Ansi), 50).unwrap().remove(0);
            let (bowshot_sql::Statement::Sql(mut statement), bowshot_sql::Statement::Sql(written)) =
                (parsed(), parsed())
            else {
                panic!("{sql}")
            };
            let taken = take_literals(&mut statement);
            assert_eq!(taken.as_ref().map(|taken| taken.literals.len()), expected, "{sql}");
            assert_eq!(statement == written, expected.unwrap_or(0) == 0, "{sql}");
            put_literals(&mut statement, taken.map(|taken| taken.literals).unwrap_or_default());
            assert_eq!(statement, written, "{sql}");
        }
    }
}
