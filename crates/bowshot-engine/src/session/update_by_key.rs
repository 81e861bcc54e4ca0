//! UPDATE and DELETE by key: finds the rows in the key index, without optimizing a query or planning a scan. Other statements take
//! the general path.

use crate::catalog::lazy_state::LazyState;
use crate::plan::row_expressions;
use crate::session::EngineSession;
use crate::session::key_lookup::{FilteredScan, key_of};
use crate::write::change::ADDRESS;
use crate::write::literal::{batch, evaluated, is_read};
use bowshot_api::Result;
use bowshot_tables::Table;
use datafusion::arrow::array::{ArrayRef, RecordBatch, UInt64Array};
use datafusion::common::DFSchema;
use datafusion::common::tree_node::TreeNode;
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::{Expr, LogicalPlan, Operator, Projection};
use std::collections::{HashMap, HashSet};
use std::iter;
use std::sync::Arc;

impl EngineSession {
    /// What the query of such a statement gives, in at most one batch. `None` for other statements, and where no index tells.
    ///
    /// # Errors
    /// From computing what a row becomes, as in a query.
    pub(super) async fn find_changed_rows(
        &self,
        plan: &LogicalPlan,
        state: &LazyState,
    ) -> Result<Option<Vec<RecordBatch>>> {
        let Some(changed) = ChangedRow::recognise(plan) else { return Ok(None) };
        let ChangedRow { table, key, columns, row, projection } = changed;
        if self.scratch || !self.may_look_up_key(&table, key.iter().map(|(at, _)| *at)) {
            return Ok(None);
        }
        // What is wrong with an expression is told by planning the query.
        let Some(values) = analysed(projection, &row, state).ok().flatten() else { return Ok(None) };
        let key = key.iter().map(|(at, value)| Some((*at, value.as_literal()?.clone())));
        let Some(key) = key.collect::<Option<Vec<_>>>() else { return Ok(None) };
        let Some(found) = self.find_rows(&table, &key, &columns).await else { return Ok(None) };
        let count = found.addresses.len();
        if count == 0 {
            return Ok(Some(Vec::new()));
        }
        let addresses: ArrayRef = Arc::new(UInt64Array::from(found.addresses));
        let there = iter::once(addresses).chain(found.rows.columns().iter().cloned());
        let there = batch(&row, there.collect(), count)?;
        let values = values.iter().map(|value| {
            let value = evaluated(value, &row, &there)?;
            value.into_array(count).map_err(crate::error::classify)
        });
        let rows = batch(projection.schema.as_ref(), values.collect::<Result<_>>()?, count)?;
        Ok(Some(vec![rows]))
    }
}

/// Whether a plan asks for rows to change by a key alone.
pub(super) fn is_change_by_key(plan: &LogicalPlan) -> bool {
    ChangedRow::recognise(plan).is_some()
}

/// A query for the row with one key, and for what becomes of it.
struct ChangedRow<'p> {
    table: Arc<Table>,
    key: Vec<(usize, &'p Expr)>,
    /// Places of the columns of the table that are asked for.
    columns: Vec<usize>,
    /// The address, then those columns.
    row: DFSchema,
    projection: &'p Projection,
}

impl<'p> ChangedRow<'p> {
    /// `None` behind a row policy, a mask, a grant on columns or a cast, where a plan has another source.
    fn recognise(plan: &'p LogicalPlan) -> Option<Self> {
        let FilteredScan { projection, filter, scan } = FilteredScan::recognise(plan)?;
        if scan.projection.is_some() || !projection.expr.iter().all(is_plain) {
            return None;
        }
        let provider = source_as_provider(&scan.source).ok()?;
        let table = Arc::clone(Table::read_by(provider.as_ref())?);
        let (schema, address) = (filter.input.schema(), table.schema().fields().len());
        if schema.fields().len() != address + 1 || schema.field(address).name() != ADDRESS {
            return None;
        }
        let used = projection.expr.iter().flat_map(Expr::column_refs);
        let used: HashSet<usize> =
            used.map(|column| schema.maybe_index_of_column(column)).collect::<Option<_>>()?;
        let columns: Vec<usize> = (0..address).filter(|place| used.contains(place)).collect();
        let fields = iter::once(address).chain(columns.iter().copied()).map(|place| {
            let (table, field) = schema.qualified_field(place);
            (table.cloned(), Arc::clone(field))
        });
        let row = DFSchema::new_with_metadata(fields.collect(), HashMap::new()).ok()?;
        let key = key_of(&table, &provider.schema(), &filter.predicate)?;
        Some(Self { table, key, columns, row, projection })
    }
}

/// Whether an expression is computed of one row and of parameters, in whatever order its parts are.
fn is_plain(expr: &Expr) -> bool {
    match expr {
        Expr::Column(_) | Expr::Literal(..) | Expr::Placeholder(_) => true,
        Expr::Alias(alias) => is_plain(&alias.expr),
        Expr::Cast(cast) => is_plain(&cast.expr) && !is_read(cast.field.data_type()),
        Expr::Negative(inner) => is_plain(inner),
        Expr::BinaryExpr(binary) => {
            let is_arithmetic = matches!(
                binary.op,
                Operator::Plus | Operator::Minus | Operator::Multiply | Operator::Divide | Operator::Modulo
            );
            is_arithmetic && is_plain(&binary.left) && is_plain(&binary.right)
        }
        _ => false,
    }
}

/// Whether there is nothing to compute.
fn is_value(expr: &Expr) -> bool {
    match expr {
        Expr::Column(_) | Expr::Literal(..) => true,
        Expr::Alias(alias) => is_value(&alias.expr),
        _ => false,
    }
}

/// The expressions with their types settled, and operators as SQL means them.
fn analysed(
    projection: &Projection,
    row: &DFSchema,
    state: &LazyState,
) -> datafusion::error::Result<Option<Vec<Expr>>> {
    if projection.expr.iter().all(is_value) {
        return Ok(Some(projection.expr.clone()));
    }
    let Some(exprs) = row_expressions::analysed(state, projection.expr.clone(), row)? else {
        return Ok(None);
    };
    let reads = |expr: &Expr| Ok(matches!(expr, Expr::Cast(cast) if is_read(cast.field.data_type())));
    for expr in &exprs {
        if expr.exists(reads)? {
            return Ok(None);
        }
    }
    Ok(Some(exprs))
}
