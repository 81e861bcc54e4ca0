//! Comparisons of rows and with lists of patterns: `(a, b) = (1, 2)`, `(a, b) IN (…)`, `a LIKE ANY ('x%', 'y%')`,
//! `a = ANY (list)`.

use crate::calls::arguments;
use crate::template;
use crate::walk::Tree;
use bowshot_api::{Error, ErrorKind, Result};
use sqlparser::ast::{BinaryOperator, Expr, Function, Query, TableFactor, Value};

pub(super) fn rewrite(statement: &mut impl Tree) -> Result<()> {
    statement.try_change_expressions(|expr| {
        let rewritten = match &*expr {
            Expr::BinaryOp { left, op, right } => match row_with_query(left, op, right) {
                Ok(None) => rows(left, op, right),
                compared => compared,
            },
            Expr::InList { expr, list, negated } => row_in_list(expr, list, *negated),
            Expr::InSubquery { expr, subquery, negated } => row_in_query(expr, subquery, *negated),
            Expr::Like { any, pattern, .. } | Expr::ILike { any, pattern, .. } => {
                several_patterns(expr, *any, pattern)
            }
            Expr::AnyOp { left, compare_op, right, .. } => {
                with_list("quantified_any", left, compare_op, right)
            }
            Expr::AllOp { left, compare_op, right } => with_list("quantified_all", left, compare_op, right),
            _ => Ok(None),
        };
        if let Some(rewritten) = rewritten? {
            *expr = Expr::Nested(Box::new(rewritten));
        }
        Ok(())
    })
}

fn row(expr: &Expr) -> Option<&[Expr]> {
    match expr {
        Expr::Tuple(fields) if fields.len() > 1 => Some(fields),
        Expr::Nested(inner) => row(inner),
        Expr::Function(function) if function.name.to_string().eq_ignore_ascii_case("row") => None,
        _ => None,
    }
}

/// `(a, b) IS NULL`, `ROW(a, b) IS NOT NULL`: all fields are, or none is.
pub(super) fn of_each_field(condition: &Expr) -> Option<Expr> {
    let (value, make): (_, fn(Box<Expr>) -> Expr) = match condition {
        Expr::IsNull(value) => (value, Expr::IsNull),
        Expr::IsNotNull(value) => (value, Expr::IsNotNull),
        _ => return None,
    };
    let fields = fields_of(value)?.into_iter().map(|field| make(Box::new(bracketed(field.clone()))));
    all_of(fields, BinaryOperator::And).map(bracketed)
}

/// The fields of a row that is written out.
fn fields_of(value: &Expr) -> Option<Vec<&Expr>> {
    match value {
        Expr::Nested(inner) => fields_of(inner),
        Expr::Tuple(fields) => Some(fields.iter().collect()),
        Expr::Function(function) if function.name.to_string().eq_ignore_ascii_case("row") => {
            arguments(function)
        }
        _ => None,
    }
}

fn binary(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    Expr::BinaryOp { left: Box::new(left), op, right: Box::new(right) }
}

fn bracketed(expr: Expr) -> Expr {
    Expr::Nested(Box::new(expr))
}

/// All of them joined, in their order, as a tree that is as low as it can be: where each part is one level deeper than the one before
/// it, a stack ends with a long list.
fn all_of(conditions: impl IntoIterator<Item = Expr>, op: BinaryOperator) -> Option<Expr> {
    let mut parts: Vec<Expr> = conditions.into_iter().collect();
    while parts.len() > 1 {
        let mut rest = parts.into_iter();
        parts = std::iter::from_fn(|| {
            let left = rest.next()?;
            Some(match rest.next() {
                Some(right) => joined(left, &op, right),
                None => left,
            })
        })
        .collect();
    }
    parts.pop()
}

/// In brackets on the right, where the text would be read as another tree without them.
fn joined(left: Expr, op: &BinaryOperator, right: Expr) -> Expr {
    let is_same = matches!(&right, Expr::BinaryOp { op: inner, .. } if inner == op);
    binary(left, op.clone(), if is_same { bracketed(right) } else { right })
}

/// Comparisons that one condition becomes: each is planned by itself.
const MAX_COMPARISONS: usize = 50_000;

fn check_comparisons(count: usize) -> Result<()> {
    if count <= MAX_COMPARISONS {
        return Ok(());
    }
    let message = format!("the condition expands to {count} comparisons, and the limit is {MAX_COMPARISONS}");
    Err(Error::new(ErrorKind::LimitReached, message)
        .with_hint("join a table of values in the place of the list"))
}

fn equal(left: &[Expr], right: &[Expr]) -> Result<Expr> {
    check_comparisons(left.len())?;
    if left.len() != right.len() {
        return Err(Error::invalid(format!(
            "a row of {} is compared with one of {}",
            left.len(),
            right.len()
        ))
        .with_hint("give both sides the same number of values"));
    }
    let pairs = left.iter().zip(right);
    let fields = pairs.map(|(left, right)| binary(left.clone(), BinaryOperator::Eq, right.clone()));
    all_of(fields, BinaryOperator::And).ok_or_else(|| Error::invalid("a row is empty"))
}

/// Field by field, from the left.
fn rows(left: &Expr, op: &BinaryOperator, right: &Expr) -> Result<Option<Expr>> {
    let (Some(lefts), Some(rights)) = (row(left), row(right)) else { return Ok(None) };
    let same = equal(lefts, rights)?;
    Ok(match op {
        BinaryOperator::Eq => Some(same),
        BinaryOperator::NotEq => {
            let not = sqlparser::ast::UnaryOperator::Not;
            Some(Expr::UnaryOp { op: not, expr: Box::new(bracketed(same)) })
        }
        BinaryOperator::Lt | BinaryOperator::LtEq | BinaryOperator::Gt | BinaryOperator::GtEq => {
            // Each field is three levels deeper than the one before it, and is needed twice.
            template::check_parts("a row that is compared", lefts.len().saturating_mul(3))?;
            template::check_copies(left, 2)?;
            template::check_copies(right, 2)?;
            Some(ordered(lefts, op, rights))
        }
        _ => None,
    })
}

/// `(a, b) < (c, d)` is `a < c OR a = c AND b < d`.
fn ordered(left: &[Expr], op: &BinaryOperator, right: &[Expr]) -> Expr {
    let strict = match op {
        BinaryOperator::LtEq => BinaryOperator::Lt,
        BinaryOperator::GtEq => BinaryOperator::Gt,
        other => other.clone(),
    };
    let mut result: Option<Expr> = None;
    for (left, right) in left.iter().zip(right).rev() {
        result = Some(match result {
            None => binary(left.clone(), op.clone(), right.clone()),
            Some(rest) => {
                let first = binary(left.clone(), strict.clone(), right.clone());
                let same = binary(left.clone(), BinaryOperator::Eq, right.clone());
                binary(first, BinaryOperator::Or, binary(same, BinaryOperator::And, bracketed(rest)))
            }
        });
    }
    result.unwrap_or_else(|| Expr::value(Value::Null))
}

fn row_in_list(value: &Expr, list: &[Expr], negated: bool) -> Result<Option<Expr>> {
    let Some(left) = row(value) else { return Ok(None) };
    check_comparisons(left.len().saturating_mul(list.len()))?;
    template::check_copies(value, list.len())?;
    let tests = list.iter().map(|item| match row(item) {
        Some(right) => equal(left, right).map(bracketed),
        None => Err(Error::invalid(format!("a row is compared with `{item}`"))),
    });
    let tests = tests.collect::<Result<Vec<_>>>()?;
    let any = all_of(tests, BinaryOperator::Or).map(bracketed);
    Ok(any.map(|any| match negated {
        true => Expr::UnaryOp { op: sqlparser::ast::UnaryOperator::Not, expr: Box::new(any) },
        false => any,
    }))
}

/// `(a, b) = (query)` is a query that compares the fields: unknown without a row, and an error with more than one.
fn row_with_query(left: &Expr, op: &BinaryOperator, right: &Expr) -> Result<Option<Expr>> {
    let (fields, query, is_left) = match (row(left), query_of(right), query_of(left), row(right)) {
        (Some(fields), Some(query), ..) => (fields, query, true),
        (_, _, Some(query), Some(fields)) => (fields, query, false),
        _ => return Ok(None),
    };
    let columns: Vec<String> = (0..fields.len()).map(|at| format!("__field_{at}")).collect();
    let names = columns.iter().map(|name| template::expression(&format!("__row.{name}"), &[]));
    let (written, read) = (Expr::Tuple(fields.to_vec()), Expr::Tuple(names.collect::<Result<_>>()?));
    let compared = if is_left { rows(&written, op, &read)? } else { rows(&read, op, &written)? };
    let Some(compared) = compared else { return Ok(None) };
    let text = format!("(SELECT __compared FROM (SELECT 1) AS __row ({}))", columns.join(", "));
    let mut expr = template::expression(&text, &[("__compared", &compared)])?;
    put_rows(&mut expr, query);
    Ok(Some(expr))
}

fn query_of(expr: &Expr) -> Option<&Query> {
    match expr {
        Expr::Subquery(query) => Some(query),
        Expr::Nested(inner) => query_of(inner),
        _ => None,
    }
}

/// `(a, b) IN (query)`: yes, unknown or no, as the fields say.
fn row_in_query(value: &Expr, query: &Query, negated: bool) -> Result<Option<Expr>> {
    let Some(left) = row(value) else { return Ok(None) };
    template::check_parts("a row that is looked for", left.len())?;
    template::check_copies(value, 2)?;
    template::check_copies(query, 2)?;
    let columns: Vec<String> = (0..left.len()).map(|at| format!("__field_{at}")).collect();
    let tests: Vec<String> = columns.iter().map(|name| format!("__row.{name} = __value_{name}")).collect();
    let holes: Vec<String> = columns.iter().map(|name| format!("__value_{name}")).collect();
    let (test, named) = (tests.join(" AND "), columns.join(", "));
    let (yes, no) = if negated { ("FALSE", "TRUE") } else { ("TRUE", "FALSE") };
    let text = format!(
        "CASE WHEN EXISTS (SELECT 1 FROM (SELECT 1) AS __row ({named}) WHERE {test}) THEN {yes} \
         WHEN EXISTS (SELECT 1 FROM (SELECT 1) AS __row ({named}) WHERE ({test}) IS NULL) THEN NULL ELSE {no} END"
    );
    let filled: Vec<(&str, &Expr)> = holes.iter().map(String::as_str).zip(left).collect();
    let mut expr = template::expression(&text, &filled)?;
    put_rows(&mut expr, query);
    Ok(Some(expr))
}

/// Puts a query in the place of the one that stands for it, and does not look into it: such a condition within it has been
/// rewritten, and has rows of its own.
fn put_rows(expr: &mut Expr, query: &Query) {
    expr.change_tables(|factor| {
        if let TableFactor::Derived { subquery, alias: Some(alias), .. } = factor
            && alias.name.value == "__row"
            && subquery.to_string() == "SELECT 1"
        {
            **subquery = query.clone();
        }
    });
}

/// `LIKE ANY (…)` is one LIKE or another, `LIKE ALL (…)` one and another. `NOT LIKE ANY ('a', 'b')` is neither; with an array,
/// which is PostgreSQL's form, not all of them.
fn several_patterns(expr: &Expr, any: bool, pattern: &Expr) -> Result<Option<Expr>> {
    let list = match pattern {
        Expr::Function(function) if !any && is_all(function) => all_of_list(function),
        _ if !any => return Ok(None),
        Expr::Tuple(patterns) => Some((patterns.iter().collect(), false)),
        Expr::Nested(one) => Some(listed(one)),
        Expr::Array(_) => Some(listed(pattern)),
        _ => None,
    };
    let Some((patterns, is_array)) = list else {
        return Err(Error::unsupported("LIKE ANY and LIKE ALL take a list of patterns in brackets"));
    };
    let mut negation = false;
    // Without the list, which each of its patterns would copy.
    let mut without = expr.clone();
    if let Expr::Like { any, pattern, negated, .. } | Expr::ILike { any, pattern, negated, .. } = &mut without
    {
        *any = false;
        **pattern = Expr::value(Value::Null);
        negation = *negated;
    }
    check_comparisons(patterns.len())?;
    template::check_copies(&without, patterns.len())?;
    let tests = patterns.into_iter().map(|one| {
        let mut test = without.clone();
        if let Expr::Like { pattern, .. } | Expr::ILike { pattern, .. } = &mut test {
            **pattern = one.clone();
        }
        test
    });
    let op = if any && (!negation || is_array) { BinaryOperator::Or } else { BinaryOperator::And };
    Ok(all_of(tests, op))
}

/// The patterns in brackets, and whether they are those of an array.
fn listed(expr: &Expr) -> (Vec<&Expr>, bool) {
    match expr {
        Expr::Array(array) => (array.elem.iter().collect(), true),
        other => (vec![other], false),
    }
}

fn is_all(function: &Function) -> bool {
    function.over.is_none() && function.name.to_string().eq_ignore_ascii_case("all")
}

/// The patterns of `ALL (…)`, which the parser takes for a call.
fn all_of_list(function: &Function) -> Option<(Vec<&Expr>, bool)> {
    match arguments(function)?.as_slice() {
        [Expr::Array(array)] => Some((array.elem.iter().collect(), true)),
        patterns => Some((patterns.to_vec(), false)),
    }
}

/// `a = ANY (list)` with a list in the place of a query: a function that knows three answers.
fn with_list(function: &str, left: &Expr, op: &BinaryOperator, right: &Expr) -> Result<Option<Expr>> {
    let mut list = right;
    while let Expr::Nested(inner) = list {
        list = inner;
    }
    if matches!(list, Expr::Subquery(_)) {
        return Ok(None);
    }
    let op = Expr::value(Value::SingleQuotedString(op.to_string()));
    template::expression(&format!("{function}(o, v, l)"), &[("o", &op), ("v", left), ("l", list)]).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Dialect, DialectName, parse_expression};

    fn rewritten(sql: &str) -> std::result::Result<Expr, ErrorKind> {
        let mut expr =
            parse_expression(sql, Dialect::new(DialectName::Ansi)).map_err(|error| error.kind())?;
        rewrite(&mut expr).map_err(|error| error.kind())?;
        Ok(expr)
    }

    fn depth(expr: &Expr) -> usize {
        match expr {
            Expr::BinaryOp { left, right, .. } => 1 + depth(left).max(depth(right)),
            Expr::Nested(inner) => depth(inner),
            _ => 0,
        }
    }

    fn many(part: &str) -> String {
        vec![part; 20_000].join(", ")
    }

    #[test]
    fn long_lists_become_low_trees() {
        let (patterns, rows) = (many("'x%'"), many("(1, 2)"));
        for (sql, levels) in [(format!("a LIKE ANY ({patterns})"), 15), (format!("(a, b) IN ({rows})"), 17)] {
            assert_eq!(rewritten(&sql).map(|expr| depth(&expr)), Ok(levels));
        }
        let fields = many("1");
        assert_eq!(rewritten(&format!("({fields}) = ({fields})")).map(|expr| depth(&expr)), Ok(16));
    }

    #[test]
    fn the_text_of_a_low_tree_is_read_as_the_same() {
        let sql = "a LIKE ANY ('p', 'q', 'r', 's', 't')";
        let text = "(a LIKE 'p' OR a LIKE 'q' OR (a LIKE 'r' OR a LIKE 's') OR a LIKE 't')";
        for sql in [sql, text] {
            assert_eq!(rewritten(sql).map(|expr| expr.to_string()), Ok(text.to_owned()));
        }
    }

    #[test]
    fn what_would_be_deep_or_copied_often_is_refused() {
        let fields = many("1");
        let copied = format!("concat({fields}) LIKE ANY ({})", many("'x%'"));
        for sql in [format!("({fields}) < ({fields})"), format!("({fields}) IN (SELECT 1)"), copied] {
            assert_eq!(rewritten(&sql).err(), Some(ErrorKind::LimitReached));
        }
    }
}
