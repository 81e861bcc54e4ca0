//! Cached plans over empty tables, bound to the tables that a statement sees.

use crate::authorize::AuthorizedPlan;
use crate::authorize::lookup_form::BoundLookup;
use crate::catalog::defaults::{WithDefaults, without_defaults};
use crate::session::key_lookup::bound_by;
use crate::session::statement_literals::with_literals;
use crate::write::change::ADDRESS;
use bowshot_policy::snapshot::Pinned;
use bowshot_sql::rewrite::marked;
use bowshot_tables::{Entry, EntryName, Table};
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNodeRecursion};
use datafusion::datasource::{provider_as_source, source_as_provider};
use datafusion::logical_expr::{LogicalPlan, TableScan, TableSource};
use std::sync::Arc;

/// What is kept of a plan, of which the rows are left out.
#[derive(Debug, Clone)]
pub(super) struct BarePlan {
    plan: AuthorizedPlan,
    /// The tables that it reads.
    tables: Vec<EntryName>,
}

impl BarePlan {
    /// `pinned` is the state that the plan was made on, without rows. `None` if it reads anything but tables of that state: an
    /// earlier state of a table is none of these.
    pub(super) fn new(plan: &AuthorizedPlan, pinned: Pinned) -> Option<Self> {
        let query = plan.planned().plan();
        let tables = tables_of(query)?;
        let names = tables.iter().map(|table| name_of(table, plan.pinned())).collect::<Option<Vec<_>>>()?;
        Some(Self { plan: plan.on(on_tables(query, &without_rows(&tables))?, pinned), tables: names })
    }

    pub(super) fn plan(&self) -> &AuthorizedPlan {
        &self.plan
    }

    /// Whether names stand for the same in a state as they did when it was planned.
    pub(super) fn fits(&self, pinned: &Pinned) -> bool {
        self.plan.pinned().is_same_but_for_rows(pinned)
    }

    /// The plan on the tables as a statement sees them, if it fits. Whoever uses it asks whether its rights still hold.
    pub(super) fn on(&self, pinned: &Pinned) -> Option<AuthorizedPlan> {
        if !self.fits(pinned) {
            return None;
        }
        let tables = self.tables.iter().map(|name| read(name, pinned));
        let tables = tables.collect::<Option<Vec<_>>>()?;
        Some(self.plan.on(on_tables(self.plan.planned().plan(), &tables)?, pinned.clone()))
    }

    /// The same of a lookup by a key, with other literals of the same types. Its plan is made when somebody asks for it: the rows
    /// are found without one.
    pub(super) fn on_with_literals(
        &self,
        pinned: &Pinned,
        literals: Vec<ScalarValue>,
    ) -> Option<AuthorizedPlan> {
        if !self.fits(pinned) {
            return None;
        }
        let [name] = self.tables.as_slice() else { return None };
        let (table, form) = (read(name, pinned)?, Arc::clone(self.plan.planned().form()));
        let BoundLookup { table: bare, literals: before } = bound_by(&form)?;
        let is_same = table.id() == bare.id() && Arc::ptr_eq(table.definition(), bare.definition());
        let types = |values: &[ScalarValue]| values.iter().map(ScalarValue::data_type).collect::<Vec<_>>();
        if !is_same || types(&before) != types(&literals) {
            return None;
        }
        let (read, values) = (Arc::clone(&table), literals.clone());
        let make = move || {
            let values: Vec<Option<ScalarValue>> = values.into_iter().map(Some).collect();
            let made = on_tables(&form, &[read]).and_then(|plan| with_literals(&plan, &values));
            made.unwrap_or_else(|| unreachable!("table and types of literals are those of the form"))
        };
        Some(self.plan.bound_to(BoundLookup { table, literals }, pinned.clone(), Box::new(make)))
    }
}

/// The table of this name, which is read.
fn read(name: &EntryName, pinned: &Pinned) -> Option<Arc<Table>> {
    let Some(Entry::Table(table)) = pinned.entry(name) else { return None };
    pinned.note_read(name);
    Some(Arc::clone(table))
}

/// The tables that a plan reads, each once. `None` if it reads anything else, or a table in two states.
pub(super) fn tables_of(plan: &LogicalPlan) -> Option<Vec<Arc<Table>>> {
    let mut found = Vec::new();
    let mut is_plain = true;
    let walked = plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node {
            is_plain = add_table(scan, &mut found).is_some();
        }
        Ok(if is_plain { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
    });
    (walked.is_ok() && is_plain).then_some(found)
}

fn add_table(scan: &TableScan, found: &mut Vec<Arc<Table>>) -> Option<()> {
    // The state that a statement names may be the present one, and stays.
    if marked(scan.table_name.table()).is_some() {
        return None;
    }
    let provider = source_as_provider(&scan.source).ok()?;
    let table = Table::read_by(without_defaults(provider.as_ref()))?;
    if let Some(there) = found.iter().find(|there| there.id() == table.id()) {
        return Arc::ptr_eq(there, table).then_some(());
    }
    found.push(Arc::clone(table));
    Some(())
}

/// The tables as they would be without rows.
pub(super) fn without_rows(tables: &[Arc<Table>]) -> Vec<Arc<Table>> {
    tables.iter().map(|table| Arc::new(table.without_rows())).collect()
}

/// The plan on its tables in other states. `None` if one of them is not there, or has another definition.
pub(super) fn on_tables(plan: &LogicalPlan, tables: &[Arc<Table>]) -> Option<LogicalPlan> {
    let mut is_complete = true;
    let moved = plan.clone().transform_up_with_subqueries(|node| {
        let LogicalPlan::TableScan(mut scan) = node else { return Ok(Transformed::no(node)) };
        match source_on(&scan, tables) {
            Some(source) => scan.source = source,
            None => is_complete = false,
        }
        Ok(Transformed::yes(LogicalPlan::TableScan(scan)))
    });
    moved.data().ok().filter(|_| is_complete)
}

fn source_on(scan: &TableScan, tables: &[Arc<Table>]) -> Option<Arc<dyn TableSource>> {
    let provider = source_as_provider(&scan.source).ok()?;
    let rows = without_defaults(provider.as_ref());
    let before = Table::read_by(rows)?;
    let table = tables
        .iter()
        .find(|table| table.id() == before.id() && Arc::ptr_eq(table.definition(), before.definition()))?;
    let has_addresses = Table::of_provider(rows).is_none();
    let rows = if has_addresses { table.addressed_provider(ADDRESS) } else { table.provider() };
    Some(provider_as_source(WithDefaults::on(provider.as_ref(), rows)))
}

/// The name of a table in the state in which it is there.
fn name_of(table: &Arc<Table>, pinned: &Pinned) -> Option<EntryName> {
    let mut all = pinned.shared().tables().chain(pinned.own().tables());
    all.find(|(_, there)| Arc::ptr_eq(there, table)).map(|(name, _)| name)
}
