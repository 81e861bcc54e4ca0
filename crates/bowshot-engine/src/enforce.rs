//! Turns a logical plan into an [`AuthorizedPlan`], or refuses it. Only this file can make one, and `execute` takes
//! nothing else.
//!
//! Every node of the plan, subqueries included, must be on the list of [`refusal`]: unknown means denied. A statement that
//! changes tables is recognised before it is planned, and comes here as what it changes and the query that gives the
//! rows; a node with an effect is refused unless the session has a scratch catalog of its own, and even there nothing
//! reaches files.

use crate::Planned;
use crate::introspect::SessionStatement;
use crate::pinned::Pinned;
use crate::policy::{self, Access};
use crate::write::Write;
use crate::write::ddl::Ddl;
use crate::write::returning::Returning;
use bowshot_api::{Error, ErrorKind, Result};
use bowshot_sql::CacheStatement;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::logical_expr::{DdlStatement, LogicalPlan, Statement};
use std::sync::Arc;

/// Nodes of one plan, all views that it reads included. The text of a statement is bounded before it is parsed
/// (`complexity.rs`), but views multiply: one that reads another one twice is twice as large.
const MAX_NODES: usize = 5_000;

/// What running the plan does.
#[derive(Debug, Clone)]
pub enum Action {
    /// Reads and returns rows.
    Query,
    /// Sets a session option to a value.
    Set { name: String, value: String },
    /// Sets a session option back to its default.
    Reset { name: String },
    /// Changes the session's scratch catalog.
    Scratch,
    /// Changes tables.
    Write(Change),
    /// Steers the caches.
    Cache(CacheStatement),
    /// Steers the session.
    Session(SessionStatement),
    /// Begins or ends a transaction of the session.
    Transaction(TransactionStatement),
}

/// What a statement changes; only this crate can look inside.
#[derive(Debug, Clone)]
pub struct Change {
    pub(crate) write: Arc<Write>,
    pub(crate) returning: Option<Arc<Returning>>,
}

impl Change {
    pub(crate) fn new(write: impl Into<Arc<Write>>) -> Self {
        Self { write: write.into(), returning: None }
    }

    /// Whether there is something to keep afterwards: what is written to a file is no change of a table.
    pub fn is_of_tables(&self) -> bool {
        !matches!(self.write.as_ref(), Write::CopyOut(_))
    }

    /// Whether it cannot be undone, and so belongs to no transaction.
    pub fn is_final(&self) -> bool {
        matches!(self.write.as_ref(), Write::Ddl(Ddl::Vacuum { .. }))
    }
}

/// A statement about transactions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TransactionStatement {
    /// `BEGIN`, `START TRANSACTION`
    Begin { read_only: bool },
    /// `COMMIT`, `END`
    Commit,
    /// `ROLLBACK`, `ABORT`
    Rollback,
    /// `SAVEPOINT name`
    Savepoint(String),
    /// `RELEASE SAVEPOINT name`
    Release(String),
    /// `ROLLBACK TO SAVEPOINT name`
    RollbackTo(String),
}

impl Action {
    /// Whether it acts instead of returning rows.
    pub fn is_update(&self) -> bool {
        self.acts() && !self.returns()
    }

    /// Whether it does anything but read.
    pub fn acts(&self) -> bool {
        !matches!(self, Self::Query)
    }

    /// Whether it changes rows and returns them.
    pub fn returns(&self) -> bool {
        matches!(self, Self::Write(change) if change.returning.is_some())
    }
}

/// A plan that may run. Its fields are private to this module so that nothing else can make one.
#[derive(Debug, Clone)]
pub struct AuthorizedPlan {
    planned: Planned,
    action: Action,
    pinned: Pinned,
    access: Access,
    text: Option<Arc<str>>,
}

impl AuthorizedPlan {
    /// The same with the text that it was planned from.
    pub(crate) fn with_text(self, text: &str) -> Self {
        Self { text: Some(text.into()), ..self }
    }

    /// The text of a statement without parameters, if it has one.
    pub(crate) fn text(&self) -> Option<&Arc<str>> {
        self.text.as_ref().filter(|_| self.planned.parameters().fields().is_empty())
    }

    /// What running it does.
    pub fn action(&self) -> &Action {
        &self.action
    }

    /// The plan and its parameters.
    pub fn planned(&self) -> &Planned {
        &self.planned
    }

    /// What the statement returns of the rows that it changes.
    pub(crate) fn returning(&self) -> Option<&Arc<Returning>> {
        match &self.action {
            Action::Write(change) => change.returning.as_ref(),
            _ => None,
        }
    }

    /// The state of the tables that the plan reads.
    pub fn pinned(&self) -> &Pinned {
        &self.pinned
    }

    /// The tables that it reads and changes, and which of them somebody sees a part of: for the audit trail.
    pub fn tables(&self) -> Vec<(String, bool)> {
        let mut tables = Vec::new();
        if let Action::Write(change) = &self.action {
            tables.extend(change.write.target().map(|name| (name.to_string(), false)));
        }
        // A plan that was authorised has been walked before.
        let _ = self.planned.plan().apply_with_subqueries(|node| {
            if let LogicalPlan::TableScan(scan) = node {
                let table = (scan.table_name.to_string(), policy::is_guarded(&scan.source));
                if !tables.contains(&table) {
                    tables.push(table);
                }
            }
            Ok(TreeNodeRecursion::Continue)
        });
        tables
    }

    /// Whether it was authorised with these rights.
    pub(crate) fn is_by(&self, access: &Access) -> bool {
        self.access.is_same(access)
    }

    /// The same plan with other values in it: binding parameters does not change what is read.
    pub(crate) fn with_plan(&self, plan: LogicalPlan) -> Self {
        Self {
            planned: self.planned.with_plan(plan),
            action: self.action.clone(),
            pinned: self.pinned.clone(),
            access: self.access.clone(),
            // With other values it says something else.
            text: None,
        }
    }
}

/// Checks every node of the plan, and what it changes against the rights. `recognised` is what the statement does beside
/// reading the plan's rows, whose tables were looked at where they were found.
///
/// # Errors
/// `Unsupported` for statements that Bowshot does not run, with what to do instead; `Denied` for changes without a right.
pub(crate) fn enforce(
    planned: Planned,
    recognised: Option<Action>,
    (pinned, access): (&Pinned, Access),
    scratch: bool,
) -> Result<AuthorizedPlan> {
    let action = match recognised {
        Some(action) => action,
        None => action_of(planned.plan(), scratch)?,
    };
    match &action {
        Action::Write(change) => {
            policy::check_write(&change.write, change.returning.is_some(), pinned, &access)?;
        }
        Action::Cache(_) => policy::check_cache(&access)?,
        // What they read was looked at where its tables were found; the others are the session's own affair.
        Action::Query
        | Action::Set { .. }
        | Action::Reset { .. }
        | Action::Scratch
        | Action::Session(_)
        | Action::Transaction(_) => {}
    }
    check_nodes(planned.plan(), scratch)?;
    Ok(AuthorizedPlan { planned, action, pinned: pinned.clone(), access, text: None })
}

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
    walked.map_err(crate::error::classify)?;
    if nodes <= MAX_NODES {
        return crate::growth::check(plan);
    }
    let message = format!("the plan has more than {MAX_NODES} steps, with those of the views that it reads");
    Err(Error::new(ErrorKind::LimitReached, message).with_hint(
        "read views less often, or keep the rows of an inner one: `CREATE TABLE … AS SELECT * FROM view`",
    ))
}

/// Checks that a plan only reads, and is not too large.
///
/// # Errors
/// As [`enforce`] and [`check_size`].
pub(crate) fn check_readable(plan: &LogicalPlan) -> Result<()> {
    check_size(plan)?;
    match plan {
        LogicalPlan::Statement(_) => Err(Error::unsupported("a view is a query")),
        _ => check_nodes(plan, false),
    }
}

fn check_nodes(plan: &LogicalPlan, scratch: bool) -> Result<()> {
    let mut refused = None;
    let walked = plan.apply_with_subqueries(|node| {
        refused = refusal(node, scratch);
        Ok(if refused.is_some() { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    walked.map_err(crate::error::classify)?;
    refused.map_or(Ok(()), Err)
}

fn action_of(plan: &LogicalPlan, scratch: bool) -> Result<Action> {
    Ok(match plan {
        LogicalPlan::Statement(Statement::SetVariable(set)) => {
            Action::Set { name: set.variable.clone(), value: set.value.clone() }
        }
        LogicalPlan::Statement(Statement::ResetVariable(reset)) => {
            Action::Reset { name: reset.variable.clone() }
        }
        LogicalPlan::Statement(Statement::Execute(_)) if scratch => Action::Query,
        LogicalPlan::Statement(_) | LogicalPlan::Ddl(_) | LogicalPlan::Dml(_) | LogicalPlan::Copy(_)
            if scratch =>
        {
            Action::Scratch
        }
        other => match refusal(other, scratch) {
            Some(error) => return Err(error),
            None => Action::Query,
        },
    })
}

/// Why one node may not run; `None` when it may. Exhaustive on purpose: a new kind of node does not compile.
fn refusal(node: &LogicalPlan, scratch: bool) -> Option<Error> {
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
