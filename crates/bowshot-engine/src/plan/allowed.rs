//! Which plans may run: every node must be on the list of [`refusal`], since unknown means denied, and there may not be too
//! many of them. What a statement does beside reading is no affair of a plan; `authorize` looks at that.

use crate::error::classify;
use crate::plan::plan_limits;
use crate::plan::steps::Steps;
use bowshot_api::{Error, ErrorKind, Result};
use bowshot_optimizer::materialized_cte::ComputedOnce;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::logical_expr::{DdlStatement, LogicalPlan, Statement};

/// Nodes of one plan, all views that it reads included. The text of a statement is bounded before it is parsed
/// (`bowshot_sql`), but views multiply: one that reads another one twice is twice as large.
const MAX_NODES: usize = 5_000;

/// Checks that a plan is not too large and cannot become so, without walking to the end of one that is. Before anything else
/// walks it.
///
/// # Errors
/// `LimitReached`.
pub(crate) fn check_size(plan: &LogicalPlan) -> Result<()> {
    let mut nodes = 0;
    let walked = plan.apply_with_subqueries(|_| {
        nodes += 1;
        Ok(if nodes > MAX_NODES { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    walked.map_err(classify)?;
    if nodes <= MAX_NODES {
        return plan_limits::check(plan);
    }
    let message =
        format!("the plan has more than {MAX_NODES} operators, with those of the views that it reads");
    Err(Error::new(ErrorKind::LimitReached, message)
        .with_hint("use fewer views, or materialize an inner one: `CREATE TABLE … AS SELECT * FROM view`"))
}

/// Checks that a plan only reads, and is not too large.
///
/// # Errors
/// As [`check_nodes`] and [`check_size`].
pub(crate) fn check_readable(plan: &LogicalPlan) -> Result<()> {
    check_size(plan)?;
    match plan {
        LogicalPlan::Statement(_) => Err(Error::unsupported("a view is a query")),
        _ => check_nodes(plan, false),
    }
}

/// Checks every node of a plan.
///
/// # Errors
/// `Unsupported` and `Denied` for what Bowshot does not run.
pub(crate) fn check_nodes(plan: &LogicalPlan, scratch: bool) -> Result<()> {
    let mut refused = None;
    let walked = plan.apply_with_subqueries(|node| {
        refused = refusal(node, scratch);
        Ok(if refused.is_some() { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    walked.map_err(classify)?;
    refused.map_or(Ok(()), Err)
}

/// Why one node may not run; `None` when it may. Exhaustive on purpose: a new kind of node does not compile.
pub(crate) fn refusal(node: &LogicalPlan, scratch: bool) -> Option<Error> {
    match node {
        LogicalPlan::Projection(_)
        | LogicalPlan::Filter(_)
        | LogicalPlan::Window(_)
        | LogicalPlan::Aggregate(_)
        | LogicalPlan::Sort(_)
        | LogicalPlan::Join(_)
        | LogicalPlan::Repartition(_)
        | LogicalPlan::Union(_)
        | LogicalPlan::TableScan(_)
        | LogicalPlan::EmptyRelation(_)
        | LogicalPlan::Subquery(_)
        | LogicalPlan::SubqueryAlias(_)
        | LogicalPlan::Limit(_)
        | LogicalPlan::Values(_)
        | LogicalPlan::Explain(_)
        | LogicalPlan::Analyze(_)
        | LogicalPlan::Distinct(_)
        | LogicalPlan::DescribeTable(_)
        | LogicalPlan::Unnest(_)
        | LogicalPlan::RecursiveQuery(_) => None,
        LogicalPlan::Statement(statement) => refused_statement(statement, scratch),
        LogicalPlan::Ddl(ddl) => refused_ddl(ddl, scratch),
        LogicalPlan::Dml(_) if scratch => None,
        LogicalPlan::Dml(_) => Some(not_within("INSERT, UPDATE, DELETE and MERGE")),
        LogicalPlan::Copy(_) => Some(
            Error::unsupported("COPY cannot be part of another statement").with_hint("send it by itself"),
        ),
        LogicalPlan::Extension(_) if ComputedOnce::is(node) || !Steps::of(node).is_empty() => None,
        LogicalPlan::Extension(extension) => Some(Error::new(
            ErrorKind::Denied,
            format!("plan node `{}` is not permitted", extension.node.name()),
        )),
    }
}

fn refused_statement(statement: &Statement, scratch: bool) -> Option<Error> {
    match statement {
        Statement::SetVariable(_) | Statement::ResetVariable(_) => None,
        Statement::TransactionStart(_) | Statement::TransactionEnd(_) => {
            Some(Error::unsupported("a transaction cannot begin or end within a statement"))
        }
        Statement::Prepare(_) | Statement::Execute(_) | Statement::Deallocate(_) if scratch => None,
        Statement::Prepare(_) | Statement::Execute(_) | Statement::Deallocate(_) => Some(
            Error::unsupported("PREPARE, EXECUTE and DEALLOCATE are not supported as SQL text").with_hint(
                "use the prepared statements of your client, which keep types and values out of the text",
            ),
        ),
    }
}

fn refused_ddl(ddl: &DdlStatement, scratch: bool) -> Option<Error> {
    match ddl {
        DdlStatement::CreateExternalTable(_) => Some(
            Error::unsupported("CREATE EXTERNAL TABLE is not supported")
                .with_hint("name the file or folder on the command line: `bowshot serve NAME=PATH`"),
        ),
        DdlStatement::CreateFunction(_) | DdlStatement::DropFunction(_) => {
            Some(Error::unsupported("functions cannot be created"))
        }
        _ if scratch => None,
        _ => Some(not_within("this form of CREATE, ALTER and DROP")),
    }
}

/// Statements of their own never come here as nodes: they are recognised before.
fn not_within(what: &str) -> Error {
    Error::unsupported(format!("{what} cannot be part of another statement")).with_hint("send it by itself")
}
