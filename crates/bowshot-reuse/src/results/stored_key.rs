//! Keys as texts, whose digests stand beside results that survive a restart. Two queries have the same text only if they are the same
//! query: a node that is not listed has no text, and its result stays in memory. Expressions are written by `Debug`, which shows all of their
//! fields, except for constants: their bytes follow, since `Debug` does not escape quotation marks in texts.

use super::key::ResultKey;
use datafusion::arrow::array::Array;
use datafusion::arrow::buffer::Buffer;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion, TreeNodeVisitor};
use datafusion::common::{DFSchema, DataFusionError, Result, internal_err};
use datafusion::logical_expr::{Distinct, Expr, LogicalPlan};
use datafusion::scalar::ScalarValue;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Longer texts are not worth their room.
const MAX_BYTES: usize = 256 << 10;

/// A digest of the text of a key, if it has one.
pub(super) fn fingerprint(key: &ResultKey) -> Option<String> {
    text(key).map(|text| Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect())
}

pub(super) fn text(key: &ResultKey) -> Option<String> {
    if key.constants.iter().any(|constant| constant.is_nested()) {
        return None;
    }
    let mut writer = Writer { text: String::new(), refused: false };
    key.plan.visit_with_subqueries(&mut writer).ok()?;
    let Writer { mut text, refused } = writer;
    let (layout, streams) = (key.layout, key.parallelism);
    write!(text, "{:?} {:?} {layout:?} {streams:?}", key.constants, key.settings).ok()?;
    (!refused && text.len() <= MAX_BYTES).then_some(text)
}

struct Writer {
    text: String,
    refused: bool,
}

impl Writer {
    /// What a node says beside its inputs and expressions. Fails for one that is not listed.
    fn node(&mut self, node: &LogicalPlan) -> std::fmt::Result {
        let text = &mut self.text;
        text.push('(');
        if !passes_on(node) {
            schema(text, node.schema())?;
        }
        match node {
            LogicalPlan::Projection(_) => write!(text, "projection"),
            LogicalPlan::Filter(_) => write!(text, "filter"),
            LogicalPlan::Window(_) => write!(text, "window"),
            LogicalPlan::Aggregate(aggregate) => {
                write!(text, "aggregate {}", aggregate.group_expr.len())
            }
            LogicalPlan::Sort(sort) => write!(text, "sort {:?} {:?}", sort.expr, sort.fetch),
            LogicalPlan::Join(join) => write!(
                text,
                "join {:?} {:?} {:?} {} {:?} {:?}",
                join.join_type,
                join.join_constraint,
                join.null_equality,
                join.null_aware,
                join.on,
                join.filter
            ),
            LogicalPlan::Union(_) => write!(text, "union"),
            LogicalPlan::EmptyRelation(empty) => write!(text, "empty {}", empty.produce_one_row),
            LogicalPlan::Subquery(subquery) => write!(text, "subquery {:?}", subquery.outer_ref_columns),
            LogicalPlan::SubqueryAlias(alias) => write!(text, "alias {:?}", alias.alias),
            LogicalPlan::Limit(limit) => write!(text, "limit {:?} {:?}", limit.skip, limit.fetch),
            LogicalPlan::Values(values) => write!(text, "values {:?}", values.values),
            LogicalPlan::Distinct(Distinct::All(_)) => write!(text, "distinct"),
            LogicalPlan::TableScan(scan) => {
                write!(text, "scan {:?} {:?} {:?}", scan.table_name, scan.projection, scan.fetch)
            }
            _ => Err(std::fmt::Error),
        }?;
        let written = node.apply_expressions(|expr| {
            // Writing to a string does not fail.
            let _ = write!(text, " {expr:?}");
            expr.apply(|part| {
                if let Expr::Literal(value, _) = part {
                    constant(text, value)?;
                }
                Ok(TreeNodeRecursion::Continue)
            })
        });
        written.map(|_| ()).map_err(|_| std::fmt::Error)
    }
}

/// Whether a node gives the columns of its input.
fn passes_on(node: &LogicalPlan) -> bool {
    matches!(
        node,
        LogicalPlan::Filter(_) | LogicalPlan::Sort(_) | LogicalPlan::Limit(_) | LogicalPlan::Distinct(_)
    )
}

/// Names, types and qualifiers of columns. What is kept beside them has no order in memory.
fn schema(text: &mut String, schema: &DFSchema) -> std::fmt::Result {
    for (qualifier, field) in schema.iter() {
        let metadata: BTreeMap<_, _> = field.metadata().iter().collect();
        let (name, kind, nullable) = (field.name(), field.data_type(), field.is_nullable());
        write!(text, "{qualifier:?} {name:?} {kind:?} {nullable} {metadata:?}, ")?;
    }
    write!(text, "{:?} ", schema.metadata().iter().collect::<BTreeMap<_, _>>())
}

/// The bytes of a constant; its type stands among those of the key.
fn constant(text: &mut String, value: &ScalarValue) -> Result<()> {
    if value.is_null() {
        text.push_str(" null");
        return Ok(());
    }
    let bytes = value.to_array()?.to_data();
    if !bytes.child_data().is_empty() {
        return internal_err!("a constant has its bytes elsewhere");
    }
    let parts: Vec<&[u8]> = bytes.buffers().iter().map(Buffer::as_slice).collect();
    write!(text, " {parts:?}").map_err(|error| DataFusionError::External(Box::new(error)))
}

impl<'n> TreeNodeVisitor<'n> for Writer {
    type Node = LogicalPlan;

    fn f_down(&mut self, node: &'n LogicalPlan) -> Result<TreeNodeRecursion> {
        self.refused |= self.node(node).is_err() || self.text.len() > MAX_BYTES;
        Ok(if self.refused { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    }

    fn f_up(&mut self, _node: &'n LogicalPlan) -> Result<TreeNodeRecursion> {
        self.text.push(')');
        Ok(TreeNodeRecursion::Continue)
    }
}
