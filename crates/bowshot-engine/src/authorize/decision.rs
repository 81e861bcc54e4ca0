//! The question to whoever decides on statements beside the rules of this server ([`Decider`]): who does what, with which
//! tables and columns. What a plan names is told rather once too often than not at all.

use super::{Action, AuthorizedPlan};
use crate::catalog::input::is_input;
use crate::models::asks_model;
use crate::secured_scan::is_guarded;
use crate::write::Write;
use crate::write::alter::Alteration;
use crate::write::change::ADDRESS;
use crate::write::ddl::Ddl;
use bowshot_api::catalog_names::{CHANGE_SCHEMA, TARGET};
use bowshot_api::{Decider, Intent, Result, Thing, Touch, Undecided};
use bowshot_policy::Access;
use bowshot_query_task::QueryTask;
use bowshot_sql::{CacheStatement, CursorStatement, DatabaseStatement};
use bowshot_tables::EntryName;
use datafusion::common::TableReference;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Expr, LogicalPlan, TableScan, TableType};
use datafusion::optimizer::optimize_projections::OptimizeProjections;
use datafusion::optimizer::{OptimizerContext, OptimizerRule};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

/// Asks whether a plan may run. Statements that steer the session alone, or its transaction, are not asked about.
///
/// # Errors
/// `Denied`; `Unavailable` without a decision.
pub(crate) async fn ask(decider: &dyn Decider, plan: &AuthorizedPlan) -> Result<()> {
    let Some((action, mut things)) = doing(plan.action()) else { return Ok(()) };
    if let Action::Write(change) = plan.action() {
        // Each by its own action; what they read is told with what stands behind them.
        for (action, things) in change.before.iter().map(|step| writing(&step.write)) {
            asked(decider, &intent(&plan.access, action, things)).await?;
        }
    }
    let made = things.iter().filter(|thing| thing.kind == "table").map(|thing| thing.name.clone()).collect();
    things.extend(reading(plan, &made));
    asked(decider, &intent(&plan.access, action, things)).await
}

/// Asks about something that is no plan.
///
/// # Errors
/// As [`ask`].
pub(crate) async fn ask_about(
    decider: &dyn Decider,
    access: &Access,
    action: &'static str,
    things: Vec<Thing>,
) -> Result<()> {
    asked(decider, &intent(access, action, things)).await
}

/// Asks, and counts what comes of it: `bowshot_access_service_decisions_total` by outcome.
async fn asked(decider: &dyn Decider, intent: &Intent) -> Result<()> {
    let began = Instant::now();
    let decision = decider.decide(intent).await;
    took("service", began);
    let outcome = match &decision {
        Ok(()) => "allowed",
        Err(error) if Undecided::is_in(error) => "undecided",
        Err(_) => "denied",
    };
    metrics::counter!("bowshot_access_service_decisions_total", "outcome" => outcome).increment(1);
    decision
}

/// Notes how long a decision took, of the rules or of the service that is asked beside them.
pub(super) fn took(by: &'static str, began: Instant) {
    let seconds = began.elapsed().as_secs_f64();
    metrics::histogram!("bowshot_access_decision_seconds", "by" => by).record(seconds);
}

fn intent(access: &Access, action: &'static str, things: Vec<Thing>) -> Intent {
    let principal = access.principal();
    Intent {
        user: principal.name.clone(),
        admin: access.is_admin(),
        roles: access.roles(),
        client: principal.address,
        query: QueryTask::current().and_then(|job| job.query()),
        action,
        things,
    }
}

/// The table of a name, which is changed.
pub(crate) fn changed(name: &EntryName) -> Thing {
    Thing::table(parts(name), Touch::Changes)
}

fn parts(name: &EntryName) -> [&str; 3] {
    [&name.catalog, &name.schema, &name.name]
}

/// A thing that rules are about, of the kind that its place has.
fn at(place: &[String]) -> Thing {
    let kind = match place.len() {
        1 => "catalog",
        2 => "schema",
        3 => return Thing::table(place.iter().map(String::as_str), Touch::Changes),
        4 => "model",
        _ => "type",
    };
    let name: Vec<&str> = place.iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
    of_kind(kind, &name)
}

fn of_kind(kind: &'static str, name: &[&str]) -> Thing {
    Thing { kind, ..Thing::table(name.iter().copied(), Touch::Changes) }
}

/// What a statement does beside reading, in a word, and with what; `None` for what concerns its session alone.
fn doing(action: &Action) -> Option<(&'static str, Vec<Thing>)> {
    match action {
        Action::Query | Action::Cursor(CursorStatement::Declare { .. }) => Some(("query", Vec::new())),
        Action::Write(change) => Some(writing(&change.write)),
        Action::Cache(CacheStatement::Warm(_)) => Some(("warm", Vec::new())),
        Action::Cache(_) => Some(("cache", Vec::new())),
        Action::Database(DatabaseStatement::Attach(attachment)) => {
            Some(("attach", vec![of_kind("catalog", &[attachment.name.as_str()])]))
        }
        Action::Database(DatabaseStatement::Detach { name, .. }) => {
            Some(("attach", vec![of_kind("catalog", &[name.as_str()])]))
        }
        Action::Set { .. }
        | Action::Reset { .. }
        | Action::Scratch
        | Action::Session(_)
        | Action::Cursor(_)
        | Action::Transaction(_) => None,
    }
}

fn writing(write: &Write) -> (&'static str, Vec<Thing>) {
    match write {
        Write::Ddl(ddl) => defining(ddl),
        Write::CreateAs(new) => ("create", vec![changed(&new.name)]),
        Write::Insert(rows) => ("insert", vec![changed(&rows.name)]),
        Write::DatabaseInsert(insert) => ("insert", vec![changed(&insert.name)]),
        Write::Overwrite(name) => ("overwrite", vec![changed(name)]),
        Write::Delete(name) => ("delete", vec![changed(name)]),
        Write::Update(rows) => ("update", vec![changed(&rows.name)]),
        Write::Merge(rows) => ("merge", vec![changed(&rows.name)]),
        Write::CopyOut(_) => ("copy_to", Vec::new()),
        Write::Query => ("query", Vec::new()),
        Write::CopyIn(copy) => ("copy_from", vec![changed(copy.table())]),
    }
}

fn defining(ddl: &Ddl) -> (&'static str, Vec<Thing>) {
    match ddl {
        Ddl::CreateCatalog { name, .. } => ("create", vec![of_kind("catalog", &[name.as_str()])]),
        Ddl::CreateSchema { catalog, name, .. } => {
            ("create", vec![of_kind("schema", &[catalog.as_str(), name.as_str()])])
        }
        Ddl::CreateTable(new) => ("create", vec![changed(&new.name)]),
        Ddl::CreateView(new) => ("create", vec![changed(&new.name)]),
        Ddl::CreateExternal(new) => {
            let files = Thing::table([new.external.location.as_str()], Touch::Reads);
            ("create", vec![changed(&new.name), Thing { kind: "file", ..files }])
        }
        Ddl::CreateModel(new) => ("create", vec![of_kind("model", &parts(&new.name))]),
        Ddl::DropCatalog { name, .. } => ("drop", vec![of_kind("catalog", &[name.as_str()])]),
        Ddl::DropSchema { catalog, name, .. } => {
            ("drop", vec![of_kind("schema", &[catalog.as_str(), name.as_str()])])
        }
        Ddl::DropTable { name, .. } | Ddl::DropView { name, .. } | Ddl::DropMaterialized { name, .. } => {
            ("drop", vec![changed(name)])
        }
        Ddl::DropModel { name, .. } => ("drop", vec![of_kind("model", &parts(name))]),
        Ddl::Alter { name, changes, .. } => {
            let renamed = changes.iter().filter_map(|change| match change {
                Alteration::RenameTable { to } => Some(changed(to)),
                _ => None,
            });
            ("alter", std::iter::once(changed(name)).chain(renamed).collect())
        }
        Ddl::Comment { name, .. } => ("comment", vec![changed(name)]),
        Ddl::Truncate { names, .. } => ("truncate", names.iter().map(changed).collect()),
        Ddl::Optimize { name } => ("optimize", vec![changed(name)]),
        Ddl::Vacuum { name, .. } => ("vacuum", vec![changed(name)]),
        Ddl::Type(change) => (change.action(), vec![of_kind("type", &parts(&change.name))]),
        Ddl::Secret(change) => ("secret", vec![of_kind("secret", &[change.name()])]),
        Ddl::Access(change) => ("rights", change.places().iter().map(|place| at(place)).collect()),
        Ddl::Several(changes) => {
            let all: Vec<_> = changes.iter().map(defining).collect();
            let action = all.first().map_or("alter", |(action, _)| *action);
            (action, all.into_iter().flat_map(|(_, things)| things).collect())
        }
    }
}

/// What the plan reads: the tables that its names were found to mean, with the columns that are needed of them, and the tables
/// that the statement names otherwise, but for those that it changes (`changed`).
fn reading(plan: &AuthorizedPlan, changed: &BTreeSet<Vec<String>>) -> Vec<Thing> {
    let noted = &plan.noted;
    let mut found = Found::default();
    for (query, target) in plan.queries() {
        found.add(query, noted, target);
    }
    let Found { tables, models, behind_view } = found;
    let seen = tables.keys().map(|(_, name): &Named| name.clone()).collect::<BTreeSet<_>>();
    let read = |((kind, name), columns): (Named, BTreeSet<String>)| Thing {
        kind,
        ..Thing::table(name, Touch::Reads).with_columns(columns)
    };
    let mut things: Vec<Thing> = tables.into_iter().map(read).collect();
    // Views, whose queries are in the plan in their place, what an optimiser would leave out, and tables that are looked at without a
    // query (LIKE, SHOW CREATE, REFERENCES). What a statement changes may be what a view reads whose query is not in the plan.
    let is_other = |name: &Vec<String>| !seen.contains(name) && (behind_view || !changed.contains(name));
    let others = noted.iter().map(owned).filter(is_other);
    things.extend(others.map(|name| Thing::table(name, Touch::Reads)));
    things.extend(
        models.into_iter().map(|name| Thing { kind: "model", ..Thing::table(name.split('.'), Touch::Reads) }),
    );
    things
}

/// What plans read.
#[derive(Default)]
struct Found {
    tables: BTreeMap<Named, BTreeSet<String>>,
    models: BTreeSet<String>,
    /// Whether there is a view behind a guard, whose query is in no plan.
    behind_view: bool,
}

impl Found {
    fn add(&mut self, logical: &LogicalPlan, noted: &BTreeSet<EntryName>, target: Option<&EntryName>) {
        // Columns that nobody above needs are not read. Where the rule cannot tell, all are told.
        let needed = OptimizeProjections::new().rewrite(logical.clone(), &OptimizerContext::new());
        let needed = needed.map_or_else(|_| logical.clone(), |needed| needed.data);
        // A plan that was authorised has been walked before.
        let _ = needed.apply_with_subqueries(|node| {
            if let LogicalPlan::TableScan(scan) = node
                && !is_input(&scan.source)
            {
                self.behind_view |= is_guarded(&scan.source) && scan.source.table_type() == TableType::View;
                for name in meant(&scan.table_name, noted, target) {
                    self.tables.entry(name).or_default().extend(scanned(scan));
                }
            }
            node.apply_expressions(|expr| {
                expr.apply(|part| {
                    self.models.extend(model(part));
                    Ok(TreeNodeRecursion::Continue)
                })
            })
        });
    }
}

/// The kind of something, and the parts of its name.
type Named = (&'static str, Vec<String>);

fn owned(name: &EntryName) -> Vec<String> {
    parts(name).map(str::to_owned).to_vec()
}

/// The tables that a name in a plan may mean. It is as the statement or the view wrote it.
fn meant(written: &TableReference, noted: &BTreeSet<EntryName>, target: Option<&EntryName>) -> Vec<Named> {
    if written.schema() == Some(CHANGE_SCHEMA) {
        let target = target.filter(|_| written.table() == TARGET);
        return target.map(|name| ("table", owned(name))).into_iter().collect();
    }
    if let Some(files) = bowshot_sql::rewrite::files(written.table()) {
        return files.paths.into_iter().map(|path| ("file", vec![path])).collect();
    }
    let table = bowshot_sql::rewrite::plain(written.table());
    let is = |part: Option<&str>, name: &str| part.is_none_or(|part| part.eq_ignore_ascii_case(name));
    let fitting = noted.iter().filter(|name| {
        is(Some(table), &name.name)
            && is(written.schema(), &name.schema)
            && is(written.catalog(), &name.catalog)
    });
    let fitting: Vec<_> = fitting.map(|name| ("table", owned(name))).collect();
    if !fitting.is_empty() {
        return fitting;
    }
    let parts = [written.catalog(), written.schema(), Some(table)];
    vec![("table", parts.into_iter().flatten().map(str::to_owned).collect())]
}

fn scanned(scan: &TableScan) -> impl Iterator<Item = String> {
    let columns = scan.projected_schema.fields().iter().map(|field| field.name().clone());
    columns.filter(|name| name != ADDRESS)
}

/// The name of the model that an expression asks; one that is not told by a text has none.
fn model(expr: &Expr) -> Option<String> {
    let Expr::ScalarFunction(call) = expr else { return None };
    if !asks_model(&call.func) {
        return None;
    }
    match call.args.first() {
        Some(Expr::Literal(value, _)) => {
            value.try_as_str().flatten().map(str::to_owned).or(Some("?".to_owned()))
        }
        _ => Some("?".to_owned()),
    }
}
