//! MERGE as one query over the source and, beside each of its rows, the row of the target that it meets.
//!
//! The query gives the address of the met row or null, the number of the clause that acts, and the columns that the row
//! becomes. Which clause acts is decided row by row, the first one that fits, as the standard says; rows for which none
//! fits are left out.

use crate::catalog::names::{self, ident};
use crate::catalog::{defaults, identity};
use crate::error::classify;
use crate::policy::Touched;
use crate::types;
use crate::write::change::{self, ADDRESS, assigned, column, no_column, value_or_default};
use bowshot_api::{Error, ErrorKind, Result};
use bowshot_storage::tables::Definition;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::sqlparser::ast::{
    Expr, Ident, Merge, MergeAction, MergeClause, MergeClauseKind, MergeInsertExpr, MergeInsertKind,
    ObjectName, Query,
};
use std::sync::Arc;

/// Name of the column that says what happens to a row: [`PUT`] or [`TAKE`].
pub(crate) const ACT: &str = "__bowshot_act";
/// The row becomes what the columns say; it is new where it has no address.
pub(crate) const PUT: i64 = 1;
/// The row goes.
pub(crate) const TAKE: i64 = 2;

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
    if merge.output.is_some() {
        return Err(Error::unsupported("OUTPUT is not supported"));
    }
    let (name, target, alias) = change::retarget_factor(&merge.table)?;
    let definition = definition(&name)?;
    let address = column(&alias, ADDRESS);
    let mut clauses = Vec::with_capacity(merge.clauses.len());
    for clause in &merge.clauses {
        clauses.push(Clause::read(clause, &alias, &definition)?);
    }
    let conditions: Vec<String> = clauses.iter().map(|clause| clause.condition(&address)).collect();
    check_conditions(&conditions, definition.columns.len())?;
    let case = |value: &dyn Fn(&Clause) -> String| {
        let arms = conditions.iter().zip(&clauses);
        let arms: String =
            arms.map(|(when, clause)| format!(" WHEN {when} THEN {}", value(clause))).collect();
        format!("CASE{arms} END")
    };
    let act = case(&|clause| clause.act().to_string());
    let columns = definition.columns.iter().enumerate().map(|(index, field)| {
        // Each arm by itself: a common type of all of them could change values on their way.
        let data_type = types::names::sql_type(&types::stored::logical(&field.field));
        let value = case(&|clause| {
            let value = clause.values.get(index).map_or_else(|| "NULL".to_owned(), ToString::to_string);
            format!("CAST({value} AS {data_type})")
        });
        format!(", {value} AS {}", Ident::with_quote('"', field.field.name()))
    });
    let columns: String = columns.collect();
    let query = change::parse(&format!(
        "SELECT {address}, {act} AS \"{ACT}\"{columns} FROM {} LEFT JOIN {target} ON {} WHERE {act} IS NOT NULL",
        merge.source, merge.on
    ))?;
    Ok((name, query))
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

/// The columns that an INSERT of a MERGE names; all, if it names none.
fn inserted_columns(insert: &MergeInsertExpr, definition: &Definition) -> Result<Vec<String>> {
    match insert.columns.as_slice() {
        [] => Ok(definition.columns.iter().map(|column| column.field.name().clone()).collect()),
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

/// One `WHEN … THEN …`.
struct Clause {
    matched: bool,
    predicate: Option<Expr>,
    takes: bool,
    /// What each column of the table becomes; none for a row that goes.
    values: Vec<Expr>,
}

impl Clause {
    fn read(clause: &MergeClause, alias: &Ident, definition: &Definition) -> Result<Self> {
        let matched = match clause.clause_kind {
            MergeClauseKind::Matched => true,
            MergeClauseKind::NotMatched | MergeClauseKind::NotMatchedByTarget => false,
            MergeClauseKind::NotMatchedBySource => {
                return Err(Error::unsupported("WHEN NOT MATCHED BY SOURCE is not supported").with_hint(
                    "take those rows out with DELETE … WHERE NOT EXISTS in the same transaction",
                ));
            }
        };
        let (takes, values) = match (&clause.action, matched) {
            (MergeAction::Delete { .. }, true) => (true, Vec::new()),
            (MergeAction::Update(update), true) => {
                if update.update_predicate.is_some() || update.delete_predicate.is_some() {
                    return Err(Error::unsupported("WHERE in a clause of MERGE is not supported")
                        .with_hint("put the condition after WHEN MATCHED AND"));
                }
                let assigned = assigned(&update.assignments, alias, definition)?;
                let columns = definition.columns.iter().zip(assigned);
                let kept = |name: &str| column(alias, name);
                (
                    false,
                    columns.map(|(field, value)| value.unwrap_or_else(|| kept(field.field.name()))).collect(),
                )
            }
            (MergeAction::Insert(insert), false) => (false, inserted(insert, definition)?),
            (action, true) => return Err(misplaced(&action.to_string(), "MATCHED", "UPDATE or DELETE")),
            (action, false) => return Err(misplaced(&action.to_string(), "NOT MATCHED", "INSERT")),
        };
        Ok(Self { matched, predicate: clause.predicate.clone(), takes, values })
    }

    fn condition(&self, address: &Expr) -> String {
        let met = if self.matched { "IS NOT NULL" } else { "IS NULL" };
        match &self.predicate {
            Some(predicate) => format!("{address} {met} AND ({predicate})"),
            None => format!("{address} {met}"),
        }
    }

    fn act(&self) -> i64 {
        if self.takes { TAKE } else { PUT }
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
        .map(|column| change::expression(defaults::of(definition, column).as_deref().unwrap_or("NULL")))
        .collect::<Result<Vec<Expr>>>()?;
    for (name, value) in named.iter().zip(&row.content) {
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
