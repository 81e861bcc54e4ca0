//! What decides a result: the authorized plan with its values, the contents of its tables, and settings. Plans are compared as they are,
//! not by a digest, so two queries have the same key only if they are the same query. Only what is listed here has a key: unknown nodes,
//! expressions and tables have none, nor have functions that may return something else the next time.

use crate::cache::{Content, TableKey, TableName};
use crate::{keys, settings};
use bowshot_api::Layout;
use bowshot_engine::Parallelism;
use bowshot_engine::reuse::Form;
use bowshot_optimizer::SessionJoinOrder;
use bowshot_optimizer::common_subplans::SharedWork;
use bowshot_tables::Snapshot;
use datafusion::arrow::datatypes::DataType;
use datafusion::catalog::TableProvider;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion, TreeNodeVisitor};
use datafusion::common::{DataFusionError, Result};
use datafusion::datasource::source_as_provider;
use datafusion::execution::SessionState;
use datafusion::logical_expr::builder::LogicalTableSource;
use datafusion::logical_expr::{Expr, LogicalPlan, TableScan, Volatility, WindowFunctionDefinition};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// Expressions and nodes of one plan.
const MAX_PARTS: usize = 10_000;
/// How deep they may be nested: comparing plans takes stack for each level.
const MAX_DEPTH: usize = 250;
/// Bytes of an expression or a node, about.
const PART_BYTES: u64 = 300;
/// Bytes of a field in the schema of a node, about.
const FIELD_BYTES: u64 = 100;
/// Bytes of what tells the version of a table, about.
const TABLE_BYTES: u64 = 500;

/// Why a result is not kept.
pub(super) type Reason = &'static str;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct ResultKey {
    pub(super) plan: LogicalPlan,
    /// What the scanned tables hold, in the order of the plan.
    pub(super) tables: Vec<TableKey>,
    /// Types of all constants in the order of the plan: equal constants may differ in their time zones.
    pub(super) constants: Vec<DataType>,
    pub(super) settings: String,
    pub(super) layout: Layout,
    /// The streams that were asked for.
    pub(super) parallelism: Parallelism,
}

impl ResultKey {
    fn digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (&self.plan, &self.constants, &self.settings, self.layout, self.parallelism).hash(&mut hasher);
        hasher.finish()
    }

    /// Whether it is the same query over the same tables, whatever these hold.
    pub(super) fn is_of_same_query(&self, other: &Self) -> bool {
        self.plan == other.plan
            && self.constants == other.constants
            && self.settings == other.settings
            && self.layout == other.layout
            && self.parallelism == other.parallelism
            && self.names().eq(other.names())
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &TableName> {
        self.tables.iter().map(|table| &table.name)
    }

    /// The key without the tables themselves, which must not live as long as it does; `None` if that changes it.
    pub(super) fn to_keep(&self) -> Option<Self> {
        let stripped = self.plan.clone().transform_down_with_subqueries(|node| {
            let LogicalPlan::TableScan(scan) = node else { return Ok(Transformed::no(node)) };
            let source = Arc::new(LogicalTableSource::new(scan.source.schema()));
            Ok(Transformed::yes(LogicalPlan::TableScan(TableScan { source, ..scan })))
        });
        let key = Self { plan: stripped.ok()?.data, ..self.clone() };
        (key == *self).then_some(key)
    }
}

/// A query whose result may be kept.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) key: ResultKey,
    /// Of the query and not of what its tables hold: all that is kept of a query is found by one digest.
    pub(super) digest: u64,
    pub(super) bytes: u64,
    tables: Vec<Arc<dyn TableProvider>>,
}

impl Question {
    /// Reads a plan before it is optimised. `newest` is the committed state of all tables.
    pub(super) fn of(
        plan: &LogicalPlan,
        state: &SessionState,
        (layout, parallelism): Form,
        newest: &Snapshot,
    ) -> Result<Self, Reason> {
        let names = &state.config_options().catalog;
        let defaults = (names.default_catalog.as_str(), names.default_schema.as_str());
        let mut reader = Reader { defaults, newest: Some(newest), ..Reader::default() };
        reader.read(plan)?;
        if reader.tables.is_empty() {
            return Err("it reads no table");
        }
        let bytes = reader.bytes + reader.parts as u64 * PART_BYTES;
        let key = ResultKey {
            plan: plan.clone(),
            tables: reader.found,
            constants: reader.constants,
            settings: all_settings(state),
            layout,
            parallelism,
        };
        Ok(Self { digest: key.digest(), key, bytes, tables: reader.tables })
    }

    /// Whether a scan that was planned until now has read what the key says.
    pub(super) fn still_holds(&self) -> bool {
        self.tables.iter().all(|table| keys::is_pinned(table.as_ref()))
    }
}

/// Walks a plan, its subqueries included.
#[derive(Default)]
struct Reader<'a> {
    /// Default catalog and schema.
    defaults: (&'a str, &'a str),
    /// Without it no table has a key.
    newest: Option<&'a Snapshot>,
    found: Vec<TableKey>,
    tables: Vec<Arc<dyn TableProvider>>,
    constants: Vec<DataType>,
    parts: usize,
    depth: usize,
    bytes: u64,
    refused: Option<Reason>,
}

impl Reader<'_> {
    fn read(&mut self, plan: &LogicalPlan) -> Result<(), Reason> {
        plan.visit_with_subqueries(self).map_err(|_| "its plan cannot be walked")?;
        self.refused.map_or(Ok(()), Err)
    }

    fn enter(&mut self) -> Result<(), Reason> {
        self.parts += 1;
        self.depth += 1;
        if self.parts > MAX_PARTS || self.depth > MAX_DEPTH { Err("its plan is too large") } else { Ok(()) }
    }

    fn go_on(&mut self, seen: Result<(), Reason>) -> TreeNodeRecursion {
        match seen {
            Ok(()) => TreeNodeRecursion::Continue,
            Err(reason) => {
                self.refused.get_or_insert(reason);
                TreeNodeRecursion::Stop
            }
        }
    }

    fn node(&mut self, node: &LogicalPlan) -> Result<(), Reason> {
        self.enter()?;
        let names = node.schema().fields().iter().map(|field| field.name().len() as u64 + FIELD_BYTES);
        self.bytes += names.sum::<u64>();
        match node {
            LogicalPlan::TableScan(scan) => self.table(scan)?,
            LogicalPlan::Projection(_)
            | LogicalPlan::Filter(_)
            | LogicalPlan::Window(_)
            | LogicalPlan::Aggregate(_)
            | LogicalPlan::Sort(_)
            | LogicalPlan::Join(_)
            | LogicalPlan::Repartition(_)
            | LogicalPlan::Union(_)
            | LogicalPlan::EmptyRelation(_)
            | LogicalPlan::Subquery(_)
            | LogicalPlan::SubqueryAlias(_)
            | LogicalPlan::Limit(_)
            | LogicalPlan::Values(_)
            | LogicalPlan::Distinct(_)
            | LogicalPlan::Unnest(_)
            | LogicalPlan::RecursiveQuery(_) => {}
            LogicalPlan::Extension(node) if node.node.name() == "ComputedOnce" => {
                return Err("its rows may differ the next time");
            }
            _ => return Err("it is no plain query"),
        }
        let walked = node.apply_expressions(|expr| {
            expr.visit(&mut Expressions(self))?;
            Ok(if self.refused.is_some() { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        });
        walked.map(|_| ()).map_err(|_| "its plan cannot be walked")
    }

    fn table(&mut self, scan: &TableScan) -> Result<(), Reason> {
        let provider = source_as_provider(&scan.source).map_err(|_| "a table is of an unknown kind")?;
        let (catalog, schema) = self.defaults;
        let name = scan.table_name.clone().resolve(catalog, schema);
        let newest = self.newest.ok_or("the version of a table is not known")?;
        let key = keys::of(&provider, &name, (newest, false))?;
        self.bytes += TABLE_BYTES;
        if let Content::Own { segments, .. } = &key.content {
            self.bytes += size_of_val(segments.as_slice()) as u64;
        }
        self.found.push(key);
        self.tables.push(provider);
        Ok(())
    }

    fn expression(&mut self, expr: &Expr) -> Result<(), Reason> {
        self.enter()?;
        match expr {
            Expr::Literal(value, _) => {
                self.bytes += value.size() as u64;
                self.constants.push(value.data_type());
                Ok(())
            }
            Expr::ScalarFunction(call) => stable(call.func.signature().volatility),
            Expr::AggregateFunction(call) => stable(call.func.signature().volatility),
            Expr::WindowFunction(call) => stable(match &call.fun {
                WindowFunctionDefinition::AggregateUDF(function) => function.signature().volatility,
                WindowFunctionDefinition::WindowUDF(function) => function.signature().volatility,
            }),
            Expr::Alias(alias) => {
                self.bytes += alias.name.len() as u64;
                Ok(())
            }
            Expr::Column(column) => {
                self.bytes += column.name.len() as u64;
                Ok(())
            }
            Expr::BinaryExpr(_)
            | Expr::Like(_)
            | Expr::SimilarTo(_)
            | Expr::Not(_)
            | Expr::IsNotNull(_)
            | Expr::IsNull(_)
            | Expr::IsTrue(_)
            | Expr::IsFalse(_)
            | Expr::IsUnknown(_)
            | Expr::IsNotTrue(_)
            | Expr::IsNotFalse(_)
            | Expr::IsNotUnknown(_)
            | Expr::Negative(_)
            | Expr::Between(_)
            | Expr::Case(_)
            | Expr::Cast(_)
            | Expr::TryCast(_)
            | Expr::InList(_)
            | Expr::Exists(_)
            | Expr::InSubquery(_)
            | Expr::SetComparison(_)
            | Expr::ScalarSubquery(_)
            | Expr::GroupingSet(_)
            | Expr::OuterReferenceColumn(..)
            | Expr::Unnest(_) => Ok(()),
            _ => Err("it has an expression of an unknown kind"),
        }
    }
}

/// What changes the meaning of a query, and what changes how it is computed: who tries another way wants to see it.
fn all_settings(state: &SessionState) -> String {
    let extensions = &state.config_options().extensions;
    let order = extensions.get::<SessionJoinOrder>().map(|order| order.by_statistics);
    let joins = settings::of_session(state).map(|cache| cache.enabled);
    let shared = extensions.get::<SharedWork>();
    format!("{} {order:?} {joins:?} {shared:?}", settings::meaning(state))
}

fn stable(volatility: Volatility) -> Result<(), Reason> {
    if volatility == Volatility::Immutable {
        Ok(())
    } else {
        Err("a function may give something else the next time")
    }
}

impl<'n> TreeNodeVisitor<'n> for Reader<'_> {
    type Node = LogicalPlan;

    fn f_down(&mut self, node: &'n LogicalPlan) -> Result<TreeNodeRecursion, DataFusionError> {
        let seen = self.node(node);
        Ok(self.go_on(seen))
    }

    fn f_up(&mut self, _node: &'n LogicalPlan) -> Result<TreeNodeRecursion, DataFusionError> {
        self.depth -= 1;
        Ok(TreeNodeRecursion::Continue)
    }
}

/// The same for the expressions of a node.
struct Expressions<'r, 'a>(&'r mut Reader<'a>);

impl<'n> TreeNodeVisitor<'n> for Expressions<'_, '_> {
    type Node = Expr;

    fn f_down(&mut self, expr: &'n Expr) -> Result<TreeNodeRecursion, DataFusionError> {
        let seen = self.0.expression(expr);
        Ok(self.0.go_on(seen))
    }

    fn f_up(&mut self, _expr: &'n Expr) -> Result<TreeNodeRecursion, DataFusionError> {
        self.0.depth -= 1;
        Ok(TreeNodeRecursion::Continue)
    }
}

#[cfg(test)]
impl Question {
    /// The question of a plan without scans as if it read a table with these contents.
    pub(super) fn over(plan: &LogicalPlan, tables: Vec<TableKey>) -> Result<Self, Reason> {
        let mut reader = Reader::default();
        reader.read(plan)?;
        let (constants, settings, layout) = (reader.constants, String::new(), Layout::default());
        let parallelism = Parallelism::Default;
        let key = ResultKey { plan: plan.clone(), tables, constants, settings, layout, parallelism };
        Ok(Self { digest: key.digest(), key, bytes: 0, tables: Vec::new() })
    }
}
