//! The values of an INSERT, made into what the planner knows: `DEFAULT` is the default of its column, and rows with queries
//! among their values are queries themselves.

use crate::catalog::Visible;
use crate::catalog::defaults;
use crate::catalog::names::{self, ident};
use crate::write::change;
use bowshot_api::{Error, ErrorKind, Result};
use bowshot_sql::Tree;
use bowshot_system_catalog::client::Flavour;
use bowshot_tables::{Column, Definition};
use datafusion::sql::sqlparser::ast::{
    AssignmentTarget, Expr, Ident, Insert, ObjectName, Query, SelectItem, SetExpr, SetOperator,
    SetQuantifier, Value, Values,
};
use std::cell::LazyCell;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

/// Rows with queries among their values in one statement: each becomes a query.
const MAX_QUERIES: usize = 100;

/// `INSERT … SET a = 1, b = 2` as a row of values.
pub(crate) fn assigned(insert: &mut Insert) -> Result<()> {
    if insert.assignments.is_empty() {
        return Ok(());
    }
    let mut query = bowshot_sql::read_query("VALUES (1)")?;
    let SetExpr::Values(values) = query.body.as_mut() else {
        return Err(Error::internal("a row was parsed as something else"));
    };
    let Some(row) = values.rows.first_mut() else { return Err(Error::internal("a row was parsed as none")) };
    row.content.clear();
    for assignment in std::mem::take(&mut insert.assignments) {
        let AssignmentTarget::ColumnName(name) = assignment.target else {
            return Err(Error::unsupported("INSERT … SET takes one column for each value"));
        };
        insert.columns.push(ObjectName::from(vec![names::last(&name)?]));
        row.content.push(assignment.value);
    }
    insert.source = Some(query);
    Ok(())
}

/// Rewrites the values of an INSERT into the table. In MySQL's dialect NULL and 0 ask for the next number of a column that
/// numbers itself.
///
/// # Errors
/// `LimitReached` for too many rows with queries.
pub(crate) fn written_out(insert: &mut Insert, definition: &Definition, visible: &Visible) -> Result<()> {
    if insert.source.is_none() && insert.columns.is_empty() && insert.assignments.is_empty() {
        let defaults = definition.columns.iter().map(|_| "DEFAULT").collect::<Vec<_>>().join(", ");
        insert.source = Some(bowshot_sql::read_query(&format!("VALUES ({defaults})"))?);
    }
    let named = positions(&insert.columns, definition)?;
    let Some(source) = &mut insert.source else { return Ok(()) };
    let SetExpr::Values(values) = source.body.as_mut() else { return Ok(()) };
    let column_of = |place: usize| {
        let position = if named.is_empty() { Some(place) } else { named.get(place).copied().flatten() };
        position.and_then(|position| definition.columns.get(position))
    };
    if visible.flavour() == Flavour::MySql && !definition.identities.is_empty() {
        let numbers_zeros = LazyCell::new(|| visible.numbers_zeros());
        let asks = |value: &Expr| is_null(value) || (is_zero(value) && *numbers_zeros);
        number_rows(values, definition, column_of, asks);
    }
    write_defaults(values, definition, column_of)?;
    if has_query(values) {
        let rows = std::mem::take(&mut values.rows);
        if rows.len() > MAX_QUERIES {
            let message = format!("{} rows of values with queries among them", rows.len());
            return Err(Error::new(ErrorKind::LimitReached, message)
                .with_hint(format!("insert at most {MAX_QUERIES} at once, or use INSERT … SELECT")));
        }
        let rows = rows.into_iter().map(|row| selected(row.content, column_of)).collect::<Result<_>>()?;
        *source.body = united(rows)?;
    }
    Ok(())
}

/// Places of the columns that an INSERT names.
fn positions(columns: &[ObjectName], definition: &Definition) -> Result<Vec<Option<usize>>> {
    if columns.is_empty() {
        return Ok(Vec::new());
    }
    let there = definition.columns.iter().enumerate();
    let there: HashMap<&str, usize> =
        there.map(|(position, column)| (column.field.name().as_str(), position)).collect();
    columns.iter().map(|name| Ok(there.get(ident(&names::last(name)?).as_str()).copied())).collect()
}

/// Puts the defaults into the rows, and refuses other values for columns that take none. What a column is, is found out once
/// and not for each of its values: there may be a million.
fn write_defaults<'a>(
    values: &mut Values,
    definition: &Definition,
    column_of: impl Fn(usize) -> Option<&'a Column>,
) -> Result<()> {
    let numbered = definition.identities.iter().filter(|identity| identity.is_always());
    let computed = definition.generated.iter().map(|generated| generated.column.as_str());
    let fixed: HashSet<&str> = computed.chain(numbered.map(|identity| identity.column.as_str())).collect();
    let mut written: HashMap<usize, Expr> = HashMap::new();
    for row in &mut values.rows {
        for (place, value) in row.content.iter_mut().enumerate() {
            if change::is_default(value) {
                *value = match written.entry(place) {
                    Entry::Occupied(entry) => entry.get().clone(),
                    Entry::Vacant(entry) => {
                        let default = column_of(place).and_then(|column| defaults::of(definition, column));
                        entry
                            .insert(bowshot_sql::read_expression(default.as_deref().unwrap_or("NULL"))?)
                            .clone()
                    }
                };
            } else if let Some(column) = column_of(place)
                && fixed.contains(column.field.name().as_str())
            {
                change::check_settable(definition, column.field.name(), value)?;
            }
        }
    }
    Ok(())
}

/// `INSERT INTO t VALUES (1)`, `INSERT INTO t SELECT 1` into a table of more columns: the others get their defaults, as in
/// PostgreSQL.
pub(crate) fn name_first_columns(insert: &mut Insert, definition: &Definition) {
    let Some(count) = insert.source.as_ref().and_then(|source| columns_of(&source.body)) else { return };
    if insert.columns.is_empty() && count > 0 && count < definition.columns.len() {
        let names = definition.columns.iter().take(count).map(|column| column.field.name());
        let names = names.map(|name| ObjectName::from(vec![Ident::with_quote('"', name)]));
        insert.columns = names.collect();
    }
}

/// How many columns a query has, where its text alone says so.
fn columns_of(body: &SetExpr) -> Option<usize> {
    match body {
        SetExpr::Values(values) => {
            let count = values.rows.first()?.content.len();
            values.rows.iter().all(|row| row.content.len() == count).then_some(count)
        }
        SetExpr::Select(select) => {
            let is_one = |item: &SelectItem| match item {
                SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => {
                    !expr.has_expression(may_be_several)
                }
                _ => false,
            };
            select.projection.iter().all(is_one).then_some(select.projection.len())
        }
        SetExpr::SetOperation { left, .. } => columns_of(left),
        SetExpr::Query(inner) => columns_of(&inner.body),
        _ => None,
    }
}

/// `COLUMNS(…)`, and `unnest` of a struct.
fn may_be_several(expr: &Expr) -> bool {
    match expr {
        Expr::Function(function) => {
            let name = function.name.to_string().to_lowercase();
            matches!(name.trim_matches('"'), "columns" | "unnest")
        }
        Expr::Wildcard(_) | Expr::QualifiedWildcard(..) => true,
        _ => false,
    }
}

/// Whether a query has VALUES that are not its rows themselves.
pub(crate) fn are_within(query: &Query) -> bool {
    fn in_body(body: &SetExpr) -> bool {
        match body {
            SetExpr::Values(_) => true,
            SetExpr::SetOperation { left, right, .. } => in_body(left) || in_body(right),
            _ => false,
        }
    }

    let has_values = |query: &Query| in_body(&query.body);
    match query.body.as_ref() {
        SetExpr::Values(values) => values.has_query(has_values),
        SetExpr::Query(inner) => are_within(inner),
        _ => query.has_query(has_values),
    }
}

fn is_null(value: &Expr) -> bool {
    matches!(value, Expr::Value(value) if value.value == Value::Null)
}

/// Whether a value is a zero as a number or a text.
pub(crate) fn is_zero(value: &Expr) -> bool {
    let Expr::Value(value) = value else { return false };
    let (Value::Number(text, _) | Value::SingleQuotedString(text)) = &value.value else { return false };
    text.starts_with('0') && text.bytes().all(|byte| matches!(byte, b'0' | b'.'))
}

/// Puts `DEFAULT` in the place of values that ask for a number, where a column numbers itself.
fn number_rows<'a>(
    values: &mut Values,
    definition: &Definition,
    column_of: impl Fn(usize) -> Option<&'a Column>,
    asks: impl Fn(&Expr) -> bool,
) {
    for row in &mut values.rows {
        for (place, value) in row.content.iter_mut().enumerate() {
            let numbers = |column: &Column| definition.identity(column.field.name()).is_some();
            if asks(value) && column_of(place).is_some_and(numbers) {
                *value = Expr::Identifier(Ident::new("DEFAULT"));
            }
        }
    }
}

fn has_query(values: &Values) -> bool {
    values.has_expression(|expr| {
        matches!(expr, Expr::Subquery(_) | Expr::InSubquery { .. } | Expr::Exists { .. })
    })
}

/// `SELECT` of the values of one row, each in the type of its column: rows that are united would change each other's.
fn selected<'a>(values: Vec<Expr>, column_of: impl Fn(usize) -> Option<&'a Column>) -> Result<SetExpr> {
    let mut query = bowshot_sql::read_query("SELECT 1")?;
    let items = values.into_iter().enumerate().map(|(place, value)| {
        let expr = match column_of(place) {
            Some(column) => cast(value, column)?,
            None => value,
        };
        Ok(SelectItem::ExprWithAlias { expr, alias: Ident::new(format!("value_{place}")) })
    });
    change::select_of(&mut query)?.projection = items.collect::<Result<_>>()?;
    Ok(*query.body)
}

/// The value in the type of its column. It goes in as it was parsed: its text may mean another thing in another dialect.
pub(crate) fn cast(value: Expr, column: &Column) -> Result<Expr> {
    let mut call = bowshot_sql::read_expression(&format!(
        "CAST(NULL AS {})",
        bowshot_types::names::sql_type(&bowshot_types::storage_type::logical(&column.field))
    ))?;
    if let Expr::Cast { expr, .. } = &mut call {
        **expr = value;
        return Ok(call);
    }
    Err(Error::internal("a cast is parsed as something else"))
}

/// All of them with UNION ALL, in halves, so that the tree stays low.
fn united(mut queries: Vec<SetExpr>) -> Result<SetExpr> {
    if queries.len() > 1 {
        let right = queries.split_off(queries.len() / 2);
        return Ok(SetExpr::SetOperation {
            op: SetOperator::Union,
            set_quantifier: SetQuantifier::All,
            left: Box::new(united(queries)?),
            right: Box::new(united(right)?),
        });
    }
    queries.pop().ok_or_else(|| Error::internal("VALUES without rows"))
}
