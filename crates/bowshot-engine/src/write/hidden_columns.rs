//! Columns that the user who changes a row does not see: they keep their values. No expression of the statement can name them;
//! they are joined to its rows by their addresses, once these are found.

use crate::catalog::names::Names;
use crate::error::classify;
use crate::write::change::ADDRESS;
use bowshot_api::Result;
use bowshot_api::catalog_names::CHANGE_SCHEMA;
use bowshot_policy::Reading;
use bowshot_storage::tables::{EntryName, Table};
use bowshot_types::storage_type;
use datafusion::common::{Column, TableReference};
use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::{Expr, JoinType, LogicalPlan, LogicalPlanBuilder};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The rows of the statement, and those of the table beside them.
const CHANGED: &str = "changed";
const KEPT: &str = "kept";

/// The columns that a statement sees of a table; `None` for all.
pub(super) fn seen(name: &EntryName, names: &Names) -> Option<BTreeSet<String>> {
    match names.access.reading(name) {
        Reading::Limited(limits) => limits.columns,
        Reading::All | Reading::Denied | Reading::Unseen => None,
    }
}

/// Rows with their addresses and some of the table's columns, made whole: the address, then all columns in order.
///
/// # Errors
/// None, unless the table is not what the rows were planned on.
pub(super) fn beside(rows: LogicalPlan, table: &Arc<Table>) -> Result<LogicalPlan> {
    let definition = table.definition();
    let given: BTreeSet<String> = rows.schema().fields().iter().map(|field| field.name().clone()).collect();
    if definition.columns.iter().all(|column| given.contains(column.field.name())) {
        return Ok(rows);
    }
    let of = |table: &str| TableReference::partial(CHANGE_SCHEMA, table);
    let column = |table: &str, name: &str| Column::new(Some(of(table)), name);
    let all = storage_type::as_declared(table.addressed_provider(ADDRESS), definition, of(KEPT));
    let kept = all.and_then(|all| LogicalPlanBuilder::scan(of(KEPT), provider_as_source(all), None)?.build());
    let whole = kept.and_then(|kept| {
        let address = (vec![column(CHANGED, ADDRESS)], vec![column(KEPT, ADDRESS)]);
        let columns = definition.columns.iter().map(|there| {
            let name = there.field.name();
            let table = if given.contains(name) { CHANGED } else { KEPT };
            Expr::Column(column(table, name)).alias(name)
        });
        let address_first = std::iter::once(Expr::Column(column(CHANGED, ADDRESS)));
        LogicalPlanBuilder::from(rows)
            .alias(of(CHANGED))?
            .join(kept, JoinType::Inner, address, None)?
            .project(address_first.chain(columns))?
            .build()
    });
    whole.map_err(classify)
}
