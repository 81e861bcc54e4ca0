//! Queries that are answered from materialized views, which they do not name.

use super::EngineSession;
use crate::catalog::materialized_query;
use crate::materialized::block::Block;
use crate::materialized::rewrite::{View, rewritten, shows};
use crate::plan;
use crate::reuse::{Purpose, SessionCache};
use bowshot_api::Layout;
use bowshot_policy::snapshot::Pinned;
use bowshot_sql::DialectName;
use bowshot_tables::{Definition, Entry, EntryName, Snapshot, Table};
use bowshot_types::result_metadata::result_schema;
use datafusion::arrow::datatypes::Schema;
use datafusion::common::TableReference;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result;
use datafusion::execution::SessionState;
use datafusion::logical_expr::LogicalPlan;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;
use uuid::Uuid;

/// Views whose queries are kept as blocks.
const MAX_BLOCKS: usize = 256;

/// What is known of the views of one server.
#[derive(Debug, Default)]
pub(crate) struct KnownViews(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    /// The snapshot whose views these are.
    snapshot: Weak<Snapshot>,
    names: Arc<Vec<EntryName>>,
    /// The queries of definitions in sessions of a dialect; `None` for one that answers no other.
    blocks: Vec<(Arc<Definition>, DialectName, Option<Arc<Block>>)>,
    /// The snapshots in which queries of views were found to mean what they meant at the last refresh.
    meant: HashMap<Uuid, Weak<Snapshot>>,
}

impl KnownViews {
    /// The views of which it is known what they show.
    fn names(&self, snapshot: &Arc<Snapshot>) -> Arc<Vec<EntryName>> {
        let mut known = self.0.lock();
        if !std::ptr::eq(known.snapshot.as_ptr(), Arc::as_ptr(snapshot)) {
            let is_known = |table: &Table| {
                table.definition().materialized.as_ref().is_some_and(|view| !view.sources.is_empty())
            };
            let views = snapshot.tables().filter(|(_, table)| is_known(table));
            known.names = Arc::new(views.map(|(name, _)| name).collect());
            known.snapshot = Arc::downgrade(snapshot);
        }
        Arc::clone(&known.names)
    }

    fn block(&self, definition: &Arc<Definition>, dialect: DialectName) -> Option<Option<Arc<Block>>> {
        let known = self.0.lock();
        let is_meant =
            |there: &Arc<Definition>, of: DialectName| Arc::ptr_eq(there, definition) && of == dialect;
        let found = known.blocks.iter().find(|(there, of, _)| is_meant(there, *of));
        found.map(|(_, _, block)| block.clone())
    }

    fn keep(&self, definition: &Arc<Definition>, dialect: DialectName, block: Option<Arc<Block>>) {
        let mut known = self.0.lock();
        if known.blocks.len() >= MAX_BLOCKS {
            known.blocks.remove(0);
        }
        known.blocks.push((Arc::clone(definition), dialect, block));
    }

    /// Whether the query of a view is known to mean in a snapshot what it meant at the last refresh.
    pub(super) fn is_meant(&self, view: Uuid, snapshot: &Arc<Snapshot>) -> bool {
        let known = self.0.lock();
        known.meant.get(&view).is_some_and(|known| std::ptr::eq(known.as_ptr(), Arc::as_ptr(snapshot)))
    }

    /// Notes that it does. Earlier snapshots are forgotten.
    pub(super) fn note_meant(&self, view: Uuid, snapshot: &Arc<Snapshot>) {
        let mut known = self.0.lock();
        known.meant.retain(|_, there| std::ptr::eq(there.as_ptr(), Arc::as_ptr(snapshot)));
        known.meant.insert(view, Arc::downgrade(snapshot));
    }
}

impl EngineSession {
    /// The plan with views in the place of what they answer; `None` where they answer nothing. Tables of which somebody sees a
    /// part are no tables that a view shows.
    pub(super) async fn read_from_views(
        &self,
        plan: &LogicalPlan,
        pinned: &Pinned,
        state: &SessionState,
    ) -> Option<LogicalPlan> {
        let options = state.config_options().extensions.get::<SessionCache>()?;
        if self.scratch || !options.materialized_views || pinned.input().is_some() {
            return None;
        }
        let names = self.shared.views.names(pinned.shared());
        if names.is_empty() {
            return None;
        }
        let staleness = Duration::from_millis(options.max_staleness_ms);
        let views = self.fitting_views(&names, (plan, pinned), (staleness, state)).await;
        if views.is_empty() {
            return None;
        }
        let rewritten = rewritten(plan, &views, staleness, state).ok().flatten()?;
        let schema = |plan: &LogicalPlan| result_schema(state, plan, Layout::default());
        same_types(&schema(plan), &schema(&rewritten)).then_some(rewritten)
    }

    /// Notes the views that answer a query which runs.
    pub(super) fn note_answers(&self, plan: &LogicalPlan, pinned: &Pinned) {
        if matches!(plan, LogicalPlan::Explain(_)) || self.purpose() == Purpose::Show {
            return;
        }
        let _: Result<TreeNodeRecursion> = plan.apply_with_subqueries(|node| {
            if let LogicalPlan::TableScan(scan) = node
                && let Some(view) = view_of(&scan.table_name, pinned)
            {
                self.tables.shared.note_answer(view.id());
            }
            Ok(TreeNodeRecursion::Continue)
        });
    }

    /// The views that the caller may know of, and that show nothing but tables of the plan in the states that it reads.
    async fn fitting_views(
        &self,
        names: &[EntryName],
        (plan, pinned): (&LogicalPlan, &Pinned),
        (staleness, state): (Duration, &SessionState),
    ) -> Vec<View> {
        let (tables, access) = (tables_by_id(plan), self.gate.access(pinned));
        let mut views = Vec::new();
        for name in names {
            let Some(Entry::Table(table)) = pinned.entry(name) else { continue };
            // EXPLAIN tells their names; those of the server say nothing.
            if !access.sees(name) && !self.tables.shared.view_usage(table.id()).by_server {
                continue;
            }
            let Some(view) = &table.definition().materialized else { continue };
            let read = view.sources.iter().map(|source| tables.get(&source.table).cloned());
            let Some(read) = read.collect::<Option<Vec<_>>>() else { continue };
            if !shows(table, &read, staleness) {
                continue;
            }
            if let Some(block) = self.view_block(table, pinned, state).await {
                views.push(View { name: name.clone(), table: Arc::clone(table), block });
            }
        }
        views
    }

    /// The query of a view, planned once for each definition and dialect. None that means something else now than when the rows were
    /// made, or in this dialect something else than in theirs.
    async fn view_block(
        &self,
        table: &Arc<Table>,
        pinned: &Pinned,
        state: &SessionState,
    ) -> Option<Arc<Block>> {
        let (definition, options) = (table.definition(), state.config_options());
        let dialect = plan::dialect(options).name();
        if let Some(known) = self.shared.views.block(definition, dialect) {
            return known;
        }
        let view = definition.materialized.as_ref()?;
        let query = Box::pin(materialized_query::query(view, &self.visible(pinned))).await.ok()?;
        let is_meant = view.meaning.as_ref() == Some(&materialized_query::meaning(&query, options));
        let block = Block::read(&query).filter(|_| is_meant).map(Arc::new);
        // Whoever sees a part of the tables has another plan, which says nothing to others.
        if block.is_some() || materialized_query::tables(&query).is_some() {
            self.shared.views.keep(definition, dialect, block.clone());
        }
        block
    }
}

/// The view of a name that a rewritten plan has.
fn view_of<'a>(name: &TableReference, pinned: &'a Pinned) -> Option<&'a Arc<Table>> {
    let TableReference::Full { catalog, schema, table } = name else { return None };
    let name = EntryName::new(catalog.to_string(), schema.to_string(), table.to_string());
    let Some(Entry::Table(table)) = pinned.entry(&name) else { return None };
    Some(table).filter(|table| table.definition().materialized.is_some())
}

/// The tables of which a plan reads all, each in one of the states that it reads.
fn tables_by_id(plan: &LogicalPlan) -> HashMap<Uuid, Arc<Table>> {
    let mut tables: HashMap<Uuid, Arc<Table>> = HashMap::new();
    let _: Result<TreeNodeRecursion> = plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node
            && let Some(table) = materialized_query::own_table(scan)
        {
            tables.entry(table.id()).or_insert(table);
        }
        Ok(TreeNodeRecursion::Continue)
    });
    tables
}

fn same_types(one: &Schema, other: &Schema) -> bool {
    let mut fields = one.fields().iter().zip(other.fields());
    one.fields().len() == other.fields().len()
        && fields.all(|(one, other)| one.data_type() == other.data_type())
}
