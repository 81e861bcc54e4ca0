//! MERGE as one query over the source and, beside each of its rows, the row of the target that it meets.
//!
//! The query gives the address of the met row or null, the number of the clause that acts, and the columns that the row
//! becomes. Which clause acts is decided row by row, the first one that fits, as the standard says; rows for which none
//! fits, or one that does nothing, are left out.

use crate::catalog::names::{self, ident};
use crate::catalog::{defaults, identity};
use crate::error::classify;
use crate::write::change::{self, ADDRESS, assigned, column, no_column, value_or_default};
use bowshot_api::{Error, ErrorKind, Reason, Result};
use bowshot_policy::Touched;
use bowshot_sql::{DO_NOTHING, Tree};
use bowshot_tables::{Column, Definition, EntryName, Storage};
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::sqlparser::ast::{
    AssignmentTarget, Expr, Ident, Merge, MergeAction, MergeClause, MergeClauseKind, MergeInsertExpr,
    MergeInsertKind, ObjectName, OutputClause, Query, SelectItem, SelectItemQualifiedWildcardKind,
};
use std::sync::Arc;

/// Name of the column that says what happens to a row: [`PUT`] or [`TAKE`].
pub(crate) const ACT: &str = "__bowshot_act";
/// The row becomes what the columns say; it is new where it has no address.
pub(crate) const PUT: i64 = 1;
/// The row goes.
pub(crate) const TAKE: i64 = 2;
/// The row would be changed by several rows of the source; see [`row_changes`].
pub(crate) const TWICE: i64 = 3;

/// Name of the column with the word for what happens to a row, which only RETURNING reads.
pub(crate) const ACTION: &str = "__bowshot_action";

/// The table beside the source whose column is null where the source has no row, and that column.
const MET: (&str, &str) = ("__bowshot_source", "__bowshot_met");

/// WHEN clauses of one MERGE.
const MAX_CLAUSES: usize = 100;
/// Values of all clauses: each clause has one for each column of the table.
const MAX_VALUES: usize = 50_000;
/// Bytes of all conditions in the query, where they stand once for each column of the table.
const MAX_CONDITION_BYTES: usize = 8 << 20;

/// The query that a MERGE is.
pub(crate) fn merge(
    merge: &Merge,
    definition: impl FnOnce(&ObjectName) -> Result<Arc<Definition>>,
) -> Result<(ObjectName, Box<Query>)> {
    let returns = returned(merge)?.is_some();
    let (name, target, alias) = change::retarget_factor(&merge.table)?;
    let definition = definition(&name)?;
    change::check_names(&definition)?;
    let address = column(&alias, ADDRESS);
    let mut clauses = Vec::with_capacity(merge.clauses.len());
    for clause in &merge.clauses {
        clauses.push(Clause::read(clause, &alias, &definition)?);
    }
    let by_source = clauses.iter().any(|clause| clause.met == Met::Target);
    let conditions: Vec<String> =
        clauses.iter().map(|clause| clause.condition(&address, by_source)).collect();
    check_conditions(&conditions, definition.columns.len())?;
    let act = act_of(&conditions, &clauses);
    let action = case(&conditions, &clauses, |clause| format!("'{}'", clause.effect.word()));
    let action = if returns { format!(", {action} AS \"{ACTION}\"") } else { String::new() };
    let columns = definition.columns.iter().enumerate().map(|(index, field)| {
        let value = value_of(&conditions, &clauses, (index, field));
        format!(", {value} AS {}", Ident::with_quote('"', field.field.name()))
    });
    let columns: String = columns.collect();
    let (table, met) = MET;
    let joined = if by_source {
        format!("({} CROSS JOIN (SELECT true AS \"{met}\") AS \"{table}\") FULL JOIN", merge.source)
    } else {
        format!("{} LEFT JOIN", merge.source)
    };
    let query = bowshot_sql::read_query(&format!(
        "SELECT {address}, {act} AS \"{ACT}\"{action}{columns} FROM {joined} {target} ON {} WHERE {act} IS NOT NULL",
        merge.on
    ))?;
    Ok((name, query))
}

/// The query that gives each row of the target once, with the act of the clause that changes it, or [`TWICE`], and beside its columns
/// those that clauses assign to as they become, whose names begin with `new`. No clause adds rows.
///
/// # Errors
/// As [`merge`].
pub(crate) fn row_changes(merge: &Merge, definition: &Definition, new: &str) -> Result<Box<Query>> {
    change::check_names(definition)?;
    let (_, target, alias) = change::retarget_factor(&merge.table)?;
    let clauses = merge.clauses.iter().map(|clause| Clause::read(clause, &alias, definition));
    let clauses = clauses.collect::<Result<Vec<_>>>()?;
    let address = column(&alias, ADDRESS);
    let conditions: Vec<String> = clauses.iter().map(|clause| clause.condition(&address, true)).collect();
    check_conditions(&conditions, definition.columns.len())?;
    let act = act_of(&conditions, &clauses);
    let updated = touched(merge, definition)?.updates.unwrap_or_default();
    let columns = definition.columns.iter().enumerate().map(|(index, field)| {
        let name = field.field.name();
        let before = format!(", {}", column(&alias, name));
        if !updated.contains(name) {
            return before;
        }
        let value = value_of(&conditions, &clauses, (index, field));
        format!("{before}, {value} AS {}", Ident::with_quote('"', format!("{new}{name}")))
    });
    let columns: String = columns.collect();
    let ((table, met), source, on) = (MET, &merge.source, &merge.on);
    let (found, times, place, rows) =
        ("__bowshot_found", "__bowshot_times", "__bowshot_place", "__bowshot_rows");
    let each = format!(
        "SELECT {address}, {act} AS \"{found}\"{columns} FROM {target} \
         LEFT JOIN ({source} CROSS JOIN (SELECT true AS \"{met}\") AS \"{table}\") ON {on}"
    );
    let counted = format!(
        "SELECT *, count(\"{found}\") OVER (PARTITION BY \"{ADDRESS}\") AS \"{times}\", \
         row_number() OVER (PARTITION BY \"{ADDRESS}\" ORDER BY \"{found}\" NULLS LAST) AS \"{place}\" \
         FROM ({each}) AS \"{rows}\""
    );
    bowshot_sql::read_query(&format!(
        "SELECT *, CASE WHEN \"{times}\" > 1 THEN {TWICE} ELSE \"{found}\" END AS \"{ACT}\" \
         FROM ({counted}) AS \"{rows}\" WHERE \"{place}\" = 1"
    ))
}

/// The value of the first clause that fits.
fn case(conditions: &[String], clauses: &[Clause], value: impl Fn(&Clause) -> String) -> String {
    let arms = conditions.iter().zip(clauses);
    let arms: String = arms.map(|(when, clause)| format!(" WHEN {when} THEN {}", value(clause))).collect();
    format!("CASE{arms} END")
}

fn act_of(conditions: &[String], clauses: &[Clause]) -> String {
    let act = |clause: &Clause| clause.effect.act().map_or_else(|| "NULL".to_owned(), |act| act.to_string());
    format!("CAST({} AS BIGINT)", case(conditions, clauses, act))
}

/// What a column becomes. Each arm is cast by itself: a common type of all of them could change values on their way.
fn value_of(conditions: &[String], clauses: &[Clause], (index, field): (usize, &Column)) -> String {
    let data_type = bowshot_types::names::sql_type(&bowshot_types::storage_type::logical(&field.field));
    case(conditions, clauses, |clause| {
        let value = clause.values.get(index).map_or_else(|| "NULL".to_owned(), ToString::to_string);
        format!("CAST({value} AS {data_type})")
    })
}

/// A row of the target that several rows of the source change is an error.
pub(crate) fn changed_twice(table: &EntryName) -> Error {
    Error::invalid(format!("a row of table `{table}` would be changed twice"))
        .with_reason(Reason::CardinalityViolation)
        .with_hint("make the source give one row for each row of the target")
}

/// What a MERGE returns.
///
/// # Errors
/// `Unsupported` for what it cannot return.
pub(crate) fn returned(merge: &Merge) -> Result<Option<&[SelectItem]>> {
    match &merge.output {
        None => Ok(None),
        Some(OutputClause::Returning { select_items, .. }) => Ok(Some(select_items)),
        Some(OutputClause::Output { .. }) => Err(change::no_output()),
    }
}

/// The columns that RETURNING reads: the action of a row, and those of the table.
pub(crate) fn returned_definition(definition: &Definition) -> Definition {
    let field = Arc::new(Field::new(ACTION, DataType::Utf8, true));
    let action = Column { field, default: None, comment: None };
    let table = definition.columns.iter().cloned();
    Definition {
        storage: Storage::Memory,
        columns: std::iter::once(action).chain(table).collect(),
        ..Definition::default()
    }
}

/// What is returned, with the column in the place of `merge_action()` and the columns of the table in that of `t.*`.
///
/// # Errors
/// `Unsupported` for `*`, which would have the columns of the source as well.
pub(crate) fn returned_items(
    items: &[SelectItem],
    alias: &Ident,
    definition: &Definition,
) -> Result<Vec<SelectItem>> {
    let mut all = Vec::with_capacity(items.len());
    for item in items {
        match item {
            SelectItem::Wildcard(_) => {
                return Err(Error::unsupported("RETURNING * of a MERGE is not supported")
                    .with_hint(format!("name the columns of the changed table: `RETURNING {alias}.*`")));
            }
            SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _)
                if ident(&names::last(name)?) == ident(alias) =>
            {
                let columns = definition.columns.iter().map(|there| column(alias, there.field.name()));
                all.extend(columns.map(SelectItem::UnnamedExpr));
            }
            SelectItem::UnnamedExpr(expr) if is_action(expr) => {
                let alias = Ident::new("merge_action");
                all.push(SelectItem::ExprWithAlias { expr: expr.clone(), alias });
            }
            other => all.push(other.clone()),
        }
    }
    all.change_expressions(|expr| {
        if is_action(expr) {
            *expr = column(alias, ACTION);
        }
    });
    Ok(all)
}

fn is_action(expr: &Expr) -> bool {
    matches!(expr, Expr::Function(function) if function.name.to_string().eq_ignore_ascii_case("merge_action"))
}

/// Fails if the conditions, which each column of the query repeats, become too long a text.
fn check_conditions(conditions: &[String], columns: usize) -> Result<()> {
    let bytes: usize = conditions.iter().map(String::len).sum();
    if bytes.saturating_mul(columns) <= MAX_CONDITION_BYTES {
        return Ok(());
    }
    let message = format!("the conditions of MERGE are too long for a table of {columns} columns");
    Err(Error::new(ErrorKind::LimitReached, message)
        .with_hint("use fewer or shorter conditions, or compute them as a column of the source"))
}

/// Fails for so many clauses that the query, which repeats each of them for each column, would be too large.
fn check_clauses(clauses: usize, columns: usize) -> Result<()> {
    if clauses <= MAX_CLAUSES && clauses.saturating_mul(columns) <= MAX_VALUES {
        return Ok(());
    }
    let most = MAX_CLAUSES.min(MAX_VALUES / columns.max(1));
    let message = format!("MERGE into a table of {columns} columns takes at most {most} WHEN clauses");
    Err(Error::new(ErrorKind::LimitReached, message)
        .with_hint("make one clause of several: join their conditions with OR, and choose values with CASE"))
}

/// What the clauses do to rows of the table.
///
/// # Errors
/// `LimitReached` for too many clauses, before anything is made of them.
pub(crate) fn touched(merge: &Merge, definition: &Definition) -> Result<Touched> {
    check_clauses(merge.clauses.len(), definition.columns.len())?;
    let mut touched = Touched::default();
    for clause in &merge.clauses {
        match &clause.action {
            action if does_nothing(action) => {}
            MergeAction::Delete { .. } => touched.deletes = true,
            MergeAction::Update(update) => {
                let columns = change::assigned_names(&update.assignments)?;
                touched.updates.get_or_insert_default().extend(columns);
            }
            MergeAction::Insert(insert) => {
                touched.inserts.get_or_insert_default().extend(inserted_columns(insert, definition)?);
            }
        }
    }
    Ok(touched)
}

/// The columns that an INSERT of a MERGE names; the first ones, if it names none.
fn inserted_columns(insert: &MergeInsertExpr, definition: &Definition) -> Result<Vec<String>> {
    let given = match &insert.kind {
        MergeInsertKind::Values(values) => values.rows.first().map_or(0, |row| row.content.len()),
        MergeInsertKind::Row => definition.columns.len(),
    };
    match insert.columns.as_slice() {
        [] => Ok(definition.columns.iter().take(given).map(|column| column.field.name().clone()).collect()),
        columns => columns.iter().map(|name| Ok(ident(&names::last(name)?))).collect(),
    }
}

/// Each condition stands in the query more than once, and must give the same answer each time.
pub(crate) fn check_stable(plan: &LogicalPlan) -> Result<()> {
    let mut volatile = false;
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            volatile |= expr.exists(|part| Ok(part.is_volatile_node() && !identity::is_call(part)))?;
            Ok(TreeNodeRecursion::Continue)
        })
    })
    .map_err(classify)?;
    if volatile {
        return Err(Error::unsupported(
            "MERGE takes no functions that give another value each time, like random()",
        )
        .with_hint("put their values into a table first"));
    }
    Ok(())
}

/// Which side has a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Met {
    Both,
    Source,
    Target,
}

/// What a clause does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    Insert,
    Update,
    Delete,
    Nothing,
}

impl Effect {
    fn act(self) -> Option<i64> {
        match self {
            Self::Insert | Self::Update => Some(PUT),
            Self::Delete => Some(TAKE),
            Self::Nothing => None,
        }
    }

    /// PostgreSQL's `merge_action()`.
    fn word(self) -> &'static str {
        match self {
            Self::Insert => "INSERT",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Nothing => "",
        }
    }
}

/// Whether an action is what `DO NOTHING` is read as.
fn does_nothing(action: &MergeAction) -> bool {
    let is_nothing = |name: &ObjectName| {
        name.0.last().and_then(|part| part.as_ident()).is_some_and(|name| name.value == DO_NOTHING)
    };
    match action {
        MergeAction::Insert(insert) => insert.columns.first().is_some_and(is_nothing),
        MergeAction::Update(update) => match update.assignments.first().map(|first| &first.target) {
            Some(AssignmentTarget::ColumnName(name)) => is_nothing(name),
            _ => false,
        },
        MergeAction::Delete { .. } => false,
    }
}

/// One `WHEN … THEN …`.
struct Clause {
    met: Met,
    predicate: Option<Expr>,
    effect: Effect,
    /// What each column of the table becomes; what it was for a row that goes.
    values: Vec<Expr>,
}

impl Clause {
    fn read(clause: &MergeClause, alias: &Ident, definition: &Definition) -> Result<Self> {
        let met = match clause.clause_kind {
            MergeClauseKind::Matched => Met::Both,
            MergeClauseKind::NotMatched | MergeClauseKind::NotMatchedByTarget => Met::Source,
            MergeClauseKind::NotMatchedBySource => Met::Target,
        };
        let kept = || definition.columns.iter().map(|field| column(alias, field.field.name()));
        let (effect, values) = match (&clause.action, met) {
            (action, _) if does_nothing(action) => (Effect::Nothing, Vec::new()),
            (MergeAction::Delete { .. }, Met::Both | Met::Target) => (Effect::Delete, kept().collect()),
            (MergeAction::Update(update), Met::Both | Met::Target) => {
                if update.update_predicate.is_some() || update.delete_predicate.is_some() {
                    return Err(Error::unsupported("WHERE in a clause of MERGE is not supported")
                        .with_hint("put the condition after WHEN MATCHED AND"));
                }
                let assigned = assigned(&update.assignments, alias, definition)?;
                let values = kept().zip(assigned).map(|(kept, value)| value.unwrap_or(kept));
                (Effect::Update, values.collect())
            }
            (MergeAction::Insert(insert), Met::Source) => (Effect::Insert, inserted(insert, definition)?),
            (action, Met::Source) => {
                return Err(misplaced(&action.to_string(), "NOT MATCHED", "INSERT or DO NOTHING"));
            }
            (action, Met::Both) => {
                return Err(misplaced(&action.to_string(), "MATCHED", "UPDATE, DELETE or DO NOTHING"));
            }
            (action, Met::Target) => {
                let when = "NOT MATCHED BY SOURCE";
                return Err(misplaced(&action.to_string(), when, "UPDATE, DELETE or DO NOTHING"));
            }
        };
        Ok(Self { met, predicate: clause.predicate.clone(), effect, values })
    }

    /// `by_source` says whether the query knows where the source has no row.
    fn condition(&self, address: &Expr, by_source: bool) -> String {
        let (table, column) = MET;
        let met = match self.met {
            Met::Source => format!("{address} IS NULL"),
            Met::Target => format!("\"{table}\".\"{column}\" IS NULL"),
            Met::Both if by_source => {
                format!("{address} IS NOT NULL AND \"{table}\".\"{column}\" IS NOT NULL")
            }
            Met::Both => format!("{address} IS NOT NULL"),
        };
        match &self.predicate {
            Some(predicate) => format!("{met} AND ({predicate})"),
            None => met,
        }
    }
}

fn misplaced(action: &str, when: &str, wanted: &str) -> Error {
    Error::invalid(format!("`{action}` cannot follow WHEN {when}")).with_hint(format!("it takes {wanted}"))
}

/// The values of a new row, the defaults where none is given.
fn inserted(insert: &MergeInsertExpr, definition: &Definition) -> Result<Vec<Expr>> {
    let MergeInsertKind::Values(values) = &insert.kind else {
        return Err(
            Error::unsupported("INSERT ROW is not supported").with_hint("name the columns and their values")
        );
    };
    let [row] = values.rows.as_slice() else {
        return Err(Error::invalid("INSERT in a MERGE takes one row of values"));
    };
    if insert.insert_predicate.is_some() {
        return Err(Error::unsupported("WHERE in a clause of MERGE is not supported")
            .with_hint("put the condition after WHEN NOT MATCHED AND"));
    }
    let named = inserted_columns(insert, definition)?;
    if named.len() != row.content.len() {
        let (columns, values) = (named.len(), row.content.len());
        return Err(Error::invalid(format!("INSERT names {columns} columns and gives {values} values")));
    }
    let mut made = definition
        .columns
        .iter()
        .map(|column| {
            bowshot_sql::read_expression(defaults::of(definition, column).as_deref().unwrap_or("NULL"))
        })
        .collect::<Result<Vec<Expr>>>()?;
    for (at, (name, value)) in named.iter().zip(&row.content).enumerate() {
        if named.iter().take(at).any(|before| before == name) {
            return Err(Error::invalid(format!("column `{name}` is given a value twice"))
                .with_reason(Reason::DuplicateColumn));
        }
        let position = definition.position(name).ok_or_else(|| no_column(name, definition))?;
        let default = definition.columns.get(position).and_then(|column| defaults::of(definition, column));
        change::check_settable(definition, name, value)?;
        let default = default.as_deref();
        if let Some(slot) = made.get_mut(position) {
            *slot = value_or_default(value, default)?;
        }
    }
    Ok(made)
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::sql::sqlparser::ast::Statement;

    #[test]
    fn names_of_columns_are_read_as_names() {
        let sql = "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN DELETE";
        let Ok(Statement::Merge(parsed)) = bowshot_sql::read_statement(sql) else { panic!("{sql}") };
        for (name, is_taken) in [
            ("a b", true),
            (r#"a"b"#, true),
            (r"a\b", true),
            (r#"a\" FROM secrets -- "#, false),
            (r#"a"" FROM secrets -- "#, false),
        ] {
            let field = Arc::new(Field::new(name, DataType::Int64, true));
            let column = Column { field, default: None, comment: None };
            let definition =
                Definition { storage: Storage::Memory, columns: vec![column], ..Definition::default() };
            assert_eq!(row_changes(&parsed, &definition, "new_").is_ok(), is_taken, "{name}");
            assert_eq!(merge(&parsed, |_| Ok(Arc::new(definition))).is_ok(), is_taken, "{name}");
        }
    }
}
