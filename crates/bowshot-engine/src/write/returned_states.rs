//! `RETURNING old.a, new.a`, as PostgreSQL 18 has it: a row before and after its change. A row that comes has no old one, and a row
//! that goes no new one: their columns are NULL.

use crate::catalog::names::{self, ident};
use crate::error::classify;
use crate::write::change::{column, no_column, select_of};
use bowshot_api::{Result, SAME_NAME_MARK};
use bowshot_sql::{Tree, read_expression};
use bowshot_tables::{Column, Definition, Storage};
use bowshot_types::storage_type;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::sql::sqlparser::ast::{
    Expr, Ident, ObjectName, Query, SelectItem, SelectItemQualifiedWildcardKind,
};
use std::sync::Arc;

/// What the names of columns with values from before begin with, where RETURNING reads them.
const OLD: &str = "__bowshot_old_";

/// What happens to the rows that are returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowChange {
    Inserted,
    Updated,
    Deleted,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Old,
    New,
}

/// The state that a qualifier means; none where the statement calls its table so.
fn state(qualifier: &Ident, table: &Ident) -> Option<State> {
    let name = ident(qualifier);
    let state = match name.as_str() {
        "old" => State::Old,
        "new" => State::New,
        _ => return None,
    };
    (ident(table) != name).then_some(state)
}

/// Whether what is returned names such a state.
pub(super) fn are_named(items: &[SelectItem], table: &Ident) -> bool {
    let is_named = |expr: &Expr| match expr {
        Expr::CompoundIdentifier(parts) => {
            matches!(parts.as_slice(), [first, _] if state(first, table).is_some())
        }
        _ => false,
    };
    items.iter().any(|item| state_of_all(item, table).is_some() || item.has_expression(is_named))
}

fn state_of_all(item: &SelectItem, table: &Ident) -> Option<State> {
    match item {
        SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) => {
            state_of_name(name, table)
        }
        _ => None,
    }
}

fn state_of_name(name: &ObjectName, table: &Ident) -> Option<State> {
    if name.0.len() == 1 { state(&names::last(name).ok()?, table) } else { None }
}

/// What is returned, over [`definition_with_old`] for rows that are updated and over the table itself for others.
///
/// # Errors
/// `NotFound` for a column that the table does not have.
pub(super) fn returned_items(
    items: &[SelectItem],
    table: &Ident,
    definition: &Definition,
    change: RowChange,
) -> Result<Vec<SelectItem>> {
    let states = States { table, definition, change };
    let mut all = Vec::with_capacity(items.len());
    for item in items {
        let of_all = match item {
            SelectItem::Wildcard(_) if change == RowChange::Updated => Some(State::New),
            item => state_of_all(item, table),
        };
        if let Some(state) = of_all {
            for there in &definition.columns {
                let name = there.field.name();
                // Old and new rows have columns of the same names, which differ behind the mark alone.
                let alias = Ident::with_quote('"', format!("{name}{SAME_NAME_MARK}s{}", all.len()));
                all.push(SelectItem::ExprWithAlias { expr: states.value(state, name)?, alias });
            }
            continue;
        }
        let mut item = named(item.clone(), table);
        item.try_change_expressions(|expr| -> Result<()> {
            if let Expr::CompoundIdentifier(parts) = &*expr
                && let [first, name] = parts.as_slice()
                && let Some(state) = state(first, table)
            {
                *expr = states.value(state, &ident(name))?;
            }
            Ok(())
        })?;
        all.push(item);
    }
    Ok(all)
}

/// `old.a` is called `a`.
fn named(item: SelectItem, table: &Ident) -> SelectItem {
    if let SelectItem::UnnamedExpr(Expr::CompoundIdentifier(parts)) = &item
        && let [first, name] = parts.as_slice()
        && state(first, table).is_some()
    {
        let alias = Ident::with_quote('"', ident(name));
        return SelectItem::ExprWithAlias { expr: Expr::CompoundIdentifier(parts.clone()), alias };
    }
    item
}

struct States<'a> {
    table: &'a Ident,
    definition: &'a Definition,
    change: RowChange,
}

impl States<'_> {
    fn value(&self, state: State, name: &str) -> Result<Expr> {
        if self.definition.position(name).is_none() {
            return Err(no_column(name, self.definition));
        }
        match (state, self.change) {
            (State::Old, RowChange::Updated) => Ok(column(self.table, &format!("{OLD}{name}"))),
            (State::Old, RowChange::Inserted) | (State::New, RowChange::Deleted) => {
                read_expression(&format!("CASE WHEN false THEN {} END", column(self.table, name)))
            }
            (State::New, _) | (State::Old, RowChange::Deleted) => Ok(column(self.table, name)),
        }
    }
}

/// Lets the query of an UPDATE give what the rows were, too.
pub(super) fn add_old(query: &mut Query, definition: &Definition, table: &Ident) -> Result<()> {
    let old = definition.columns.iter().map(|there| {
        let name = there.field.name();
        let alias = Ident::with_quote('"', format!("{OLD}{name}"));
        SelectItem::ExprWithAlias { expr: column(table, name), alias }
    });
    select_of(query)?.projection.extend(old);
    Ok(())
}

/// The columns that RETURNING reads of rows that are updated: those of the table, and what they were.
pub(super) fn definition_with_old(definition: &Definition) -> Definition {
    let plain = |name: String, there: &Column| Column {
        field: Arc::new(there.field.as_ref().clone().with_name(name).with_nullable(true)),
        default: None,
        comment: None,
    };
    let new = definition.columns.iter().map(|there| plain(there.field.name().clone(), there));
    let old = definition.columns.iter().map(|there| plain(format!("{OLD}{}", there.field.name()), there));
    Definition { storage: Storage::Memory, columns: new.chain(old).collect(), ..Definition::default() }
}

/// Whether the rows of an UPDATE come with what they were.
pub(super) fn are_in(rows: &RecordBatch) -> bool {
    rows.schema_ref().fields().iter().any(|field| field.name().starts_with(OLD))
}

/// Rows as they become beside what they were, in the columns of [`definition_with_old`].
pub(super) fn beside(rows: &RecordBatch, fitted: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    let given = rows.schema_ref().fields().iter().zip(rows.columns());
    let old = given.filter(|(field, _)| field.name().starts_with(OLD)).map(|(_, values)| values);
    let columns = fitted.columns().iter().chain(old).zip(schema.fields());
    let columns = columns.map(|(values, field)| storage_type::converted(values, field.data_type()));
    let columns =
        columns.collect::<std::result::Result<Vec<_>, _>>().map_err(|error| classify(error.into()))?;
    RecordBatch::try_new(SchemaRef::clone(schema), columns).map_err(|error| classify(error.into()))
}
