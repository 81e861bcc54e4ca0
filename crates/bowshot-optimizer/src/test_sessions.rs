//! Sessions for tests of rules, and what they answer.

use crate::materialized_cte::ComputedOnce;
use crate::node_rule::Rule;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::MemTable;
use datafusion::execution::SessionStateBuilder;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::displayable;
use datafusion::prelude::{SessionConfig, SessionContext};
use std::path::Path;
use std::sync::Arc;

pub(crate) fn session(config: SessionConfig, rules: Vec<Rule>) -> SessionContext {
    let builder = SessionStateBuilder::new().with_config(config).with_default_features();
    SessionContext::new_with_state(builder.with_physical_optimizer_rules(rules).build())
}

pub(crate) async fn physical_plan(context: &SessionContext, sql: &str) -> String {
    let plan = context.sql(sql).await.unwrap().create_physical_plan().await.unwrap();
    displayable(plan.as_ref()).indent(false).to_string()
}

/// A table in a Parquet file, which has statistics of its values; in memory there are none.
pub(crate) async fn register_file(context: &SessionContext, folder: &Path, name: &str, batch: RecordBatch) {
    let path = folder.join(format!("{name}.parquet"));
    let path = path.to_str().expect("text");
    if !std::fs::exists(path).expect("folder") {
        let frame = context.read_batch(batch).expect("rows");
        frame.write_parquet(path, Default::default(), None).await.expect("file");
    }
    context.register_parquet(name, path, Default::default()).await.expect("table");
}

/// The rows, in the order of their texts.
pub(crate) async fn answer(context: &SessionContext, sql: &str) -> Vec<String> {
    let rows = context.sql(sql).await.expect(sql).collect().await.expect(sql);
    let text = pretty_format_batches(&rows).unwrap().to_string();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort_unstable();
    lines
}

/// The logical plan over the tables `t` and `u`, which have the columns `k`, `v` and `w` and no rows.
pub(crate) async fn optimized(sql: &str) -> LogicalPlan {
    let context = SessionContext::new();
    let fields = ["k", "v", "w"].map(|name| Field::new(name, DataType::Int64, true));
    let schema = Arc::new(Schema::new(fields.to_vec()));
    for name in ["t", "u"] {
        let table = MemTable::try_new(Arc::clone(&schema), vec![Vec::new()]).unwrap();
        context.register_table(name, Arc::new(table)).unwrap();
    }
    context.sql(sql).await.unwrap().into_optimized_plan().unwrap()
}

/// The nodes that read what is computed once.
pub(crate) fn readers(plan: &LogicalPlan) -> Vec<LogicalPlan> {
    let mut readers = Vec::new();
    plan.apply_with_subqueries(|node| {
        readers.extend(ComputedOnce::is(node).then(|| node.clone()));
        Ok(TreeNodeRecursion::Continue)
    })
    .unwrap();
    readers
}
