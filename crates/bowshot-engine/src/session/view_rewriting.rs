//! Queries that are answered from materialized views, which they do not name.

use super::EngineSession;
use crate::materialized::block::Block;
use crate::materialized::rewrite::{View, rewritten, shows};
use crate::materialized::{self, sources};
use crate::reuse::SessionCache;
use bowshot_api::Layout;
use bowshot_policy::snapshot::Pinned;
use bowshot_tables::{Definition, Entry, EntryName, Snapshot, Table};
use bowshot_types::result_metadata::result_schema;
use datafusion::arrow::datatypes::Schema;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result;
use datafusion::execution::SessionState;
use datafusion::logical_expr::LogicalPlan;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
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
    /// The queries of definitions; `None` for one that answers no other.
    blocks: Vec<(Arc<Definition>, Option<Arc<Block>>)>,
}

impl KnownViews {
    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The views of which it is known what they show.
    fn names(&self, snapshot: &Arc<Snapshot>) -> Arc<Vec<EntryName>> {
        let mut known = self.lock();
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

    fn block(&self, definition: &Arc<Definition>) -> Option<Option<Arc<Block>>> {
        let known = self.lock();
        let found = known.blocks.iter().find(|(there, _)| Arc::ptr_eq(there, definition));
        found.map(|(_, block)| block.clone())
    }

    fn keep(&self, definition: &Arc<Definition>, block: Option<Arc<Block>>) {
        let mut known = self.lock();
        if known.blocks.len() >= MAX_BLOCKS {
            known.blocks.remove(0);
        }
        known.blocks.push((Arc::clone(definition), block));
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
        let views = self.fitting_views(&names, (plan, pinned), staleness).await;
        if views.is_empty() {
            return None;
        }
        let rewritten = rewritten(plan, &views, staleness, state).ok().flatten()?;
        let schema = |plan: &LogicalPlan| result_schema(state, plan, Layout::default());
        same_types(&schema(plan), &schema(&rewritten)).then_some(rewritten)
    }

    /// The views that the caller may know of, and that show nothing but tables of the plan in the states that it reads.
    async fn fitting_views(
        &self,
        names: &[EntryName],
        (plan, pinned): (&LogicalPlan, &Pinned),
        staleness: Duration,
    ) -> Vec<View> {
        let (tables, access) = (tables_by_id(plan), self.gate.access(pinned));
        let mut views = Vec::new();
        // EXPLAIN tells their names.
        for name in names.iter().filter(|name| access.sees(name)) {
            let Some(Entry::Table(table)) = pinned.entry(name) else { continue };
            let Some(view) = &table.definition().materialized else { continue };
            let read = view.sources.iter().map(|source| tables.get(&source.table).cloned());
            let Some(read) = read.collect::<Option<Vec<_>>>() else { continue };
            if !shows(table, &read, staleness) {
                continue;
            }
            if let Some(block) = self.view_block(table, pinned).await {
                views.push(View { name: name.clone(), table: Arc::clone(table), block });
            }
        }
        views
    }

    /// The query of a view, planned once for each definition.
    async fn view_block(&self, table: &Arc<Table>, pinned: &Pinned) -> Option<Arc<Block>> {
        let definition = table.definition();
        if let Some(known) = self.shared.views.block(definition) {
            return known;
        }
        let view = definition.materialized.as_ref()?;
        let query = Box::pin(materialized::query(view, &self.visible(pinned))).await.ok()?;
        let block = Block::read(&query).map(Arc::new);
        // Whoever sees a part of the tables has another plan, which says nothing to others.
        if block.is_some() || sources::tables(&query).is_some() {
            self.shared.views.keep(definition, block.clone());
        }
        block
    }
}

/// The tables of which a plan reads all, each in one of the states that it reads.
fn tables_by_id(plan: &LogicalPlan) -> HashMap<Uuid, Arc<Table>> {
    let mut tables: HashMap<Uuid, Arc<Table>> = HashMap::new();
    let _: Result<TreeNodeRecursion> = plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node
            && let Some(table) = sources::own_table(scan)
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
