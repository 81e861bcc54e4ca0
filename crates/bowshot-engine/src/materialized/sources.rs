//! The tables of this server that a plan reads, and their versions.

use crate::catalog::defaults::without_defaults;
use bowshot_tables::{SourceVersion, Table};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::source_as_provider;
use datafusion::error::Result;
use datafusion::logical_expr::{LogicalPlan, TableScan};
use std::sync::Arc;

/// The table of which a scan reads all rows and columns. `None` for parts that policies leave, and for tables of others.
pub(crate) fn own_table(scan: &TableScan) -> Option<Arc<Table>> {
    let provider = source_as_provider(&scan.source).ok()?;
    let is_whole = scan.filters.is_empty() && scan.fetch.is_none();
    Table::of_provider(without_defaults(provider.as_ref())).filter(|_| is_whole).map(Arc::clone)
}

/// The tables of the scans of a plan, in its order; `None` where it reads anything else.
pub(crate) fn tables(plan: &LogicalPlan) -> Option<Vec<Arc<Table>>> {
    let mut found = Some(Vec::new());
    let walked: Result<TreeNodeRecursion> = plan.apply_with_subqueries(|node| {
        let table = match node {
            LogicalPlan::TableScan(scan) => own_table(scan),
            LogicalPlan::Extension(_) | LogicalPlan::RecursiveQuery(_) => None,
            _ => return Ok(TreeNodeRecursion::Continue),
        };
        found = found.take().zip(table).map(|(mut found, table)| {
            found.push(table);
            found
        });
        Ok(if found.is_some() { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
    });
    walked.ok().and(found)
}

/// The versions that rows of this plan show; none where they cannot all be told, as of tables in memory, and of tables that
/// the transaction has changed.
pub(crate) fn versions(plan: &LogicalPlan) -> Vec<SourceVersion> {
    let tables = tables(plan).unwrap_or_default();
    if !tables.iter().all(|table| table.is_committed()) {
        return Vec::new();
    }
    let mut versions: Vec<SourceVersion> = Vec::new();
    for table in tables {
        if versions.iter().all(|there| there.table != table.id()) {
            versions.push(SourceVersion { table: table.id(), version: table.version() });
        }
    }
    versions
}
