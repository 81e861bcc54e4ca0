//! Turns a logical plan into an [`AuthorizedPlan`], or refuses it. Only this file can make one, and `execute` takes
//! nothing else. Whoever decides on statements beside the rules of this server is asked here too, last.
//!
//! Every node of the plan, subqueries included, must be on the list of `plan/allowed.rs`: unknown means denied. A statement that
//! changes tables is recognised before it is planned, and comes here as what it changes and the query that gives the
//! rows; a node with an effect is refused unless the session has a scratch catalog of its own, and even there nothing
//! reaches files.

pub(crate) mod changes;
pub(crate) mod decision;
pub(crate) mod lookup_form;
pub(crate) mod optimized_slot;

use crate::catalog::input::is_input;
use crate::plan::allowed::{check_nodes, refusal};
use crate::plan::plan_limits;
use crate::plan::planned_statement::{MakePlan, Planned};
use crate::secured_scan;
use crate::write::Write;
use crate::write::copy::CopyIn;
use crate::write::data_modifying_with::Step;
use crate::write::ddl::Ddl;
use crate::write::returning::{Detail, Returning};
use bowshot_api::catalog_names::CHANGE_SCHEMA;
use bowshot_api::{Error, ErrorKind, PolicyDecisionPoint, Principal, Result};
use bowshot_policy::Access;
use bowshot_policy::snapshot::Pinned;
use bowshot_sql::{
    CacheStatement, CursorStatement, DatabaseStatement, LockClause, SessionStatement, TransactionStatement,
};
use bowshot_tables::EntryName;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::logical_expr::{LogicalPlan, Statement};
use lookup_form::{BoundLookup, LookupForm};
use optimized_slot::OptimizedSlot;
use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

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
    /// Opens or leaves another database.
    Database(DatabaseStatement),
    /// Steers the session.
    Session(SessionStatement),
    /// Opens, reads or closes a cursor of the session.
    Cursor(CursorStatement),
    /// Begins or ends a transaction of the session.
    Transaction(TransactionStatement),
}

/// What a statement changes; only this crate can look inside.
#[derive(Debug, Clone)]
pub struct Change {
    pub(crate) write: Arc<Write>,
    pub(crate) returning: Option<Arc<Returning>>,
    /// The queries of its WITH that run before it, if some of them change rows.
    pub(crate) before: Arc<[Step]>,
}

impl Change {
    pub(crate) fn new(write: impl Into<Arc<Write>>) -> Self {
        Self { write: write.into(), returning: None, before: Arc::default() }
    }

    /// Whether there is something to keep afterwards: what is written to a file or to another database is no change of a
    /// table here.
    pub fn is_of_tables(&self) -> bool {
        !matches!(
            self.write.as_ref(),
            Write::CopyOut(_)
                | Write::CopyIn(CopyIn { in_database: true, .. })
                | Write::DatabaseInsert(_)
                | Write::DatabaseDefine(_)
                | Write::DatabaseRewrite(_)
        )
    }

    /// Whether its query is kept and will run again.
    pub fn keeps_query(&self) -> bool {
        matches!(self.write.as_ref(), Write::CreateAs(new) if new.definition.materialized.is_some())
    }

    /// Whether it cannot be undone, and so belongs to no transaction.
    pub fn is_final(&self) -> bool {
        matches!(
            self.write.as_ref(),
            Write::Ddl(Ddl::Vacuum { .. })
                | Write::CopyIn(CopyIn { in_database: true, .. })
                | Write::DatabaseInsert(_)
                | Write::DatabaseDefine(_)
                | Write::DatabaseRewrite(_)
        )
    }
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

    /// Whether it does something and returns rows.
    pub fn returns(&self) -> bool {
        match self {
            Self::Write(change) => change.returning.is_some(),
            other => matches!(other, Self::Cursor(CursorStatement::Fetch { .. })),
        }
    }
}

/// A plan that may run. Its fields are private to this module so that nothing else can make one.
#[derive(Debug, Clone)]
pub struct AuthorizedPlan {
    planned: Planned,
    action: Action,
    pinned: Pinned,
    access: Access,
    /// The tables that planning looked up, where somebody wants to know.
    noted: Arc<BTreeSet<EntryName>>,
    text: Option<Arc<str>>,
    made: Instant,
    /// Whether it may run again as it is.
    is_reusable: bool,
    optimized: Arc<OptimizedSlot>,
    /// Whether it is a lookup by a key, once somebody has asked.
    lookup: Arc<OnceLock<Option<LookupForm>>>,
    bound: Option<Arc<BoundLookup>>,
    row_lock: Option<LockClause>,
}

impl AuthorizedPlan {
    /// The same for a query that locks its rows, if it does.
    pub(crate) fn with_row_lock(self, row_lock: Option<LockClause>) -> Self {
        Self { row_lock, ..self }
    }

    /// How the query locks its rows, if it says so.
    pub fn row_lock(&self) -> Option<&LockClause> {
        self.row_lock.as_ref()
    }

    /// The same with the text that it was planned from.
    pub(crate) fn with_text(self, text: &str) -> Self {
        Self { text: Some(text.into()), ..self }
    }

    /// The same change, which returns its own plan with what it took.
    ///
    /// # Errors
    /// As [`Returning::measured_plan`].
    pub(crate) fn measured(self, detail: Detail) -> Result<Self> {
        let returning = Some(Arc::new(Returning::measured_plan(detail)?));
        let action = match self.action {
            Action::Write(change) => Action::Write(Change { returning, ..change }),
            action => action,
        };
        Ok(Self { action, ..self })
    }

    /// The same query, as that of the cursor which the statement declares.
    ///
    /// # Errors
    /// `Syntax` for what is no query.
    pub(crate) fn declared(self, statement: CursorStatement) -> Result<Self> {
        match self.action {
            Action::Query => Ok(Self { action: Action::Cursor(statement), text: None, ..self }),
            _ => Err(Error::new(ErrorKind::Syntax, "syntax error: DECLARE CURSOR takes a query")),
        }
    }

    /// The text of a statement without parameters, if it has one.
    pub(crate) fn text(&self) -> Option<&Arc<str>> {
        self.text.as_ref().filter(|_| self.planned.parameters().fields().is_empty())
    }

    /// The same for one execution: it has values of the session in it, which another statement may change.
    pub(crate) fn once(self) -> Self {
        Self { is_reusable: false, ..self }
    }

    /// Whether it may run again as it is.
    pub fn is_reusable(&self) -> bool {
        self.is_reusable
    }

    /// When it was authorized.
    pub fn made(&self) -> Instant {
        self.made
    }

    /// Its optimized plan, which its clones share.
    pub(crate) fn optimized(&self) -> &OptimizedSlot {
        &self.optimized
    }

    /// The form of a query that is a lookup by a key, which `recognise` finds out once for all clones.
    pub(crate) fn lookup(
        &self,
        recognise: impl FnOnce(&LogicalPlan) -> Option<LookupForm>,
    ) -> Option<&LookupForm> {
        if !matches!(self.action, Action::Query) {
            return None;
        }
        self.lookup.get_or_init(|| recognise(self.planned.form())).as_ref()
    }

    /// What is looked up, where the plan is made late.
    pub(crate) fn bound(&self) -> Option<&BoundLookup> {
        self.bound.as_deref()
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

    /// Whether looking through it, or planning how it runs, takes about a millisecond at most.
    pub fn is_small(&self) -> bool {
        plan_limits::is_small(self.planned.form())
    }

    /// The state of the tables that the plan reads.
    pub fn pinned(&self) -> &Pinned {
        &self.pinned
    }

    /// The tables that it reads and changes, and which of them somebody sees a part of: for the audit trail.
    pub fn tables(&self) -> Arc<[(String, bool)]> {
        match self.lookup.get() {
            Some(Some(form)) => Arc::clone(form.tables.get_or_init(|| self.find_tables().into())),
            _ => self.find_tables().into(),
        }
    }

    fn find_tables(&self) -> Vec<(String, bool)> {
        let mut tables: Vec<(String, bool)> = Vec::new();
        if let Action::Write(change) = &self.action {
            let writes = change.before.iter().map(|step| &step.write).chain(std::iter::once(&change.write));
            tables.extend(writes.filter_map(|write| write.target()).map(|name| (name.to_string(), false)));
        }
        let target = match tables.as_slice() {
            [(name, _)] => Some(name.clone()),
            _ => None,
        };
        for (plan, _) in self.queries() {
            // A plan that was authorised has been walked before.
            let _ = plan.apply_with_subqueries(|node| {
                if let LogicalPlan::TableScan(scan) = node
                    && !is_input(&scan.source)
                {
                    let guarded = secured_scan::is_guarded(&scan.source);
                    let is_change = scan.table_name.schema() == Some(CHANGE_SCHEMA);
                    let name = match &target {
                        Some(target) if is_change => target.clone(),
                        // The changed tables are there, and the rows of another part of the statement are no table.
                        None if is_change && !guarded => return Ok(TreeNodeRecursion::Continue),
                        _ => bowshot_sql::rewrite::unmarked(&scan.table_name.to_string()).into_owned(),
                    };
                    let table = (name, guarded);
                    if !tables.contains(&table) {
                        tables.push(table);
                    }
                }
                Ok(TreeNodeRecursion::Continue)
            });
        }
        tables
    }

    /// The forms of its queries, each with the table that is changed beside it. What RETURNING shows is a query of its own over the rows
    /// that were changed.
    fn queries(&self) -> impl Iterator<Item = (&LogicalPlan, Option<&EntryName>)> {
        let change = match &self.action {
            Action::Write(change) => Some(change),
            _ => None,
        };
        let target = change.and_then(|change| change.write.target());
        let returning = self.returning().map(|returning| returning.plan());
        let own =
            std::iter::once(self.planned.form().as_ref()).chain(returning).map(move |plan| (plan, target));
        let steps = change.into_iter().flat_map(|change| change.before.iter());
        own.chain(steps.filter_map(|step| Some((step.returning.as_ref()?.plan(), step.write.target()))))
    }

    /// Whether it reads the rows that come along with the statement.
    pub fn reads_input(&self) -> bool {
        let mut reads = false;
        let _ = self.planned.form().apply_with_subqueries(|node| {
            reads |= matches!(node, LogicalPlan::TableScan(scan) if is_input(&scan.source));
            Ok(if reads { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        });
        reads
    }

    /// Whether its rows have no end, since it follows the changes of a table.
    pub fn is_endless(&self) -> bool {
        is_endless(self.planned.form())
    }

    /// Who runs it.
    pub(crate) fn principal(&self) -> &Principal {
        self.access.principal()
    }

    /// Whether it was authorised with these rights.
    pub(crate) fn is_by(&self, access: &Access) -> bool {
        self.access.is_same(access)
    }

    /// The same plan on tables in another state, in which only rows are others. Whoever uses it asks whether its rights still hold.
    pub(crate) fn on(&self, plan: LogicalPlan, pinned: Pinned) -> Self {
        Self { planned: self.planned.with_plan(plan), pinned, bound: None, ..self.clone() }
    }

    /// The same lookup of other rows in another state, whose plan `make` makes. Whoever uses it asks whether its rights still hold.
    pub(crate) fn bound_to(&self, bound: BoundLookup, pinned: Pinned, make: MakePlan) -> Self {
        let (planned, bound) = (self.planned.with_late_plan(make), Some(Arc::new(bound)));
        Self { planned, pinned, bound, text: None, optimized: Arc::default(), ..self.clone() }
    }

    /// The same plan with other literals, which are of the same types.
    pub(crate) fn with_literals(&self, plan: LogicalPlan) -> Self {
        Self { lookup: Arc::clone(&self.lookup), ..self.with_plan(plan) }
    }

    /// The same plan with other values in it: binding parameters does not change what is read.
    pub(crate) fn with_plan(&self, plan: LogicalPlan) -> Self {
        Self {
            planned: self.planned.with_plan(plan),
            action: self.action.clone(),
            pinned: self.pinned.clone(),
            access: self.access.clone(),
            noted: Arc::clone(&self.noted),
            // With other values it says something else.
            text: None,
            made: self.made,
            is_reusable: self.is_reusable,
            optimized: Arc::default(),
            lookup: Arc::default(),
            bound: None,
            row_lock: self.row_lock.clone(),
        }
    }
}

/// What a plan is held against.
pub(crate) struct Authorizer<'a> {
    /// The tables, and what the session may do with them.
    pub(crate) pinned: &'a Pinned,
    pub(crate) access: Access,
    /// Who is asked beside the rules, if anybody is.
    pub(crate) decider: Option<&'a dyn PolicyDecisionPoint>,
}

/// Checks every node of the plan, and what it changes against the rights. `recognised` is what the statement does beside
/// reading the plan's rows, whose tables were looked at where they were found.
///
/// # Errors
/// `Unsupported` for statements that Bowshot does not run, with what to do instead; `Denied` for changes without a right, and
/// for what whoever decides beside the rules denies; `Unavailable` without that decision.
pub(crate) async fn enforce(
    planned: Planned,
    recognised: Option<Action>,
    judge: Authorizer<'_>,
    scratch: bool,
) -> Result<AuthorizedPlan> {
    let Authorizer { pinned, access, decider } = judge;
    let began = Instant::now();
    let plan = permitted(planned, recognised, (pinned, access), scratch);
    decision::took("rules", began);
    let plan = plan?;
    if let Some(decider) = decider.filter(|_| !scratch) {
        Box::pin(decision::ask(decider, &plan)).await?;
    }
    Ok(plan)
}

/// The rules of this server.
fn permitted(
    planned: Planned,
    recognised: Option<Action>,
    (pinned, access): (&Pinned, Access),
    scratch: bool,
) -> Result<AuthorizedPlan> {
    let _span = tracing::info_span!(target: bowshot_api::TRACES, "authorise").entered();
    let action = match recognised {
        Some(action) => action,
        None => action_of(planned.plan(), scratch)?,
    };
    match &action {
        Action::Write(change) => {
            for step in change.before.iter() {
                changes::check_write(&step.write, step.returning.is_some(), pinned, &access)?;
            }
            changes::check_write(&change.write, change.returning.is_some(), pinned, &access)?;
        }
        Action::Cache(_) => changes::check_cache(&access)?,
        Action::Database(_) => changes::check_attach(&access)?,
        // What they read was looked at where its tables were found; the others are the session's own affair.
        Action::Query
        | Action::Set { .. }
        | Action::Reset { .. }
        | Action::Scratch
        | Action::Session(_)
        | Action::Cursor(_)
        | Action::Transaction(_) => {}
    }
    if !matches!(action, Action::Query) && is_endless(planned.plan()) {
        return Err(Error::unsupported(
            "changes that are followed have no end: they are read by queries alone",
        )
        .with_hint("leave out `follow => true`"));
    }
    check_nodes(planned.plan(), scratch)?;
    // As they are now: running it may look at others.
    let noted = Arc::new(pinned.noted());
    let (pinned, made) = (pinned.clone(), Instant::now());
    let optimized = Arc::default();
    Ok(AuthorizedPlan {
        planned,
        action,
        pinned,
        access,
        noted,
        text: None,
        made,
        is_reusable: true,
        optimized,
        lookup: Arc::default(),
        bound: None,
        row_lock: None,
    })
}

fn is_endless(plan: &LogicalPlan) -> bool {
    let mut follows = false;
    let _ = plan.apply_with_subqueries(|node| {
        follows |= matches!(node, LogicalPlan::TableScan(scan)
            if bowshot_sql::rewrite::changes(scan.table_name.table()).is_some_and(|changes| changes.follows));
        Ok(if follows { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    follows
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
