//! Replaces a join of a plan by its cached rows.

use super::block::{Block, Shaped};
use super::codes;
use super::expression_text;
use super::rows::CachedRows;
use crate::cache::{CachedJoin, JoinStore, Loaded, Match};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Column, DFSchema, Result, TableReference, plan_err};
use datafusion::config::ConfigOptions;
use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

pub(super) fn column_name(table: usize, column: &str) -> String {
    format!("#{table}.{column}")
}

/// Nodes of a plan by their addresses, with what takes their place.
pub(super) type Replacements = HashMap<usize, LogicalPlan>;

/// What is found in the cache for a block.
pub(super) struct Found<'a> {
    pub(super) block: &'a Block,
    pub(super) shaped: &'a Shaped,
    pub(super) join: &'a CachedJoin,
    pub(super) how: &'a Match,
    pub(super) rows: Loaded,
    pub(super) store: &'a Arc<JoinStore>,
    /// The settings of the session that asks.
    pub(super) options: Arc<ConfigOptions>,
}

impl Found<'_> {
    /// The plan that reads the cached rows and gives what the node at `schema` gives.
    pub(super) fn plan(&self, schema: &DFSchema) -> Result<LogicalPlan> {
        let name = TableReference::bare(format!("join_cache_{}", self.join.id));
        let outputs = self.block.outputs().iter().map(|output| self.over_rows(output, &name));
        let outputs: Vec<Expr> = outputs.collect::<Result<_>>()?;
        let missing = self.how.missing.iter().filter_map(|place| self.block.conditions().get(*place));
        let missing = missing.map(|condition| {
            let condition = self.over_rows(condition, &name)?;
            Ok(codes::over_codes(&condition, &self.rows, &self.options).unwrap_or(condition))
        });
        let missing: Vec<Expr> = missing.collect::<Result<_>>()?;
        let used: BTreeSet<&str> = outputs
            .iter()
            .chain(&missing)
            .flat_map(Expr::column_refs)
            .map(|column| column.name.as_str())
            .collect();
        let places =
            used.iter().map(|name| self.rows.schema.index_of(name)).collect::<Result<Vec<_>, _>>()?;
        let table = CachedRows::new(self.rows.clone(), self.join.id, self.store);
        let scan = LogicalPlanBuilder::scan(name, provider_as_source(Arc::new(table)), Some(places))?;
        let filtered = match missing.into_iter().reduce(Expr::and) {
            Some(condition) => scan.filter(condition)?,
            None => scan,
        };
        let named = schema
            .iter()
            .zip(outputs)
            .map(|((qualifier, field), output)| output.alias_qualified(qualifier.cloned(), field.name()));
        let plan = filtered.project(named.collect::<Vec<_>>())?.build()?;
        if !is_same(schema, plan.schema()) {
            return plan_err!("the cached columns are not those of the plan: {}", plan.schema());
        }
        Ok(plan)
    }

    /// An expression over columns of the block's tables as one over the cached columns.
    fn over_rows(&self, expr: &Expr, name: &TableReference) -> Result<Expr> {
        let changed = expr.clone().transform_up(|expr| {
            let Expr::Column(column) = &expr else { return Ok(Transformed::no(expr)) };
            let Some((table, column)) = expression_text::numbered(column) else {
                return plan_err!("`{column}` is no column of a table");
            };
            let number = self.shaped.numbers.get(table).and_then(|number| self.how.numbers.get(*number));
            let Some(number) = number else { return plan_err!("table {table} is not there") };
            let there = Column::new(Some(name.clone()), column_name(*number, column));
            Ok(Transformed::yes(Expr::Column(there)))
        });
        changed.data()
    }
}

/// What stands above has been planned on exactly these columns.
pub(super) fn is_same(one: &DFSchema, other: &DFSchema) -> bool {
    one.fields().len() == other.fields().len()
        && one.iter().zip(other.iter()).all(|((one_of, one), (other_of, other))| {
            one_of == other_of
                && one.name() == other.name()
                && one.data_type() == other.data_type()
                && one.is_nullable() == other.is_nullable()
                && one.metadata() == other.metadata()
        })
}

/// The plan with some of its nodes replaced; `None` if none of them is in it.
pub(super) fn rebuilt(plan: &LogicalPlan, replacements: &Replacements) -> Result<Option<LogicalPlan>> {
    if let Some(replacement) = replacements.get(&address(plan)) {
        return Ok(Some(replacement.clone()));
    }
    let inputs = plan.inputs().into_iter().map(|input| rebuilt(input, replacements));
    let inputs: Vec<Option<LogicalPlan>> = inputs.collect::<Result<_>>()?;
    if inputs.iter().all(Option::is_none) {
        return Ok(None);
    }
    let mut inputs = inputs.into_iter();
    let changed = plan.clone().map_children(|input| {
        Ok(match inputs.next().flatten() {
            Some(changed) => Transformed::yes(changed),
            None => Transformed::no(input),
        })
    });
    changed.data().map(Some)
}

/// What tells a node from all others of a plan, as long as the plan is not moved.
pub(super) fn address(node: &LogicalPlan) -> usize {
    std::ptr::from_ref(node).addr()
}
