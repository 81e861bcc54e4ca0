//! The question to whoever decides on statements beside the rules of this server ([`PolicyDecisionPoint`]): who does what, with which
//! tables and columns. What a plan names is told rather once too often than not at all.

use super::{Action, AuthorizedPlan};
use crate::catalog::input::is_input;
use crate::databases::DatabaseDefinition;
use crate::models::asks_model;
use crate::secured_scan::is_guarded;
use crate::write::Write;
use crate::write::alter::Alteration;
use crate::write::change::ADDRESS;
use crate::write::ddl::Ddl;
use bowshot_api::catalog_names::{CHANGE_SCHEMA, TARGET};
use bowshot_api::{AccessKind, AccessRequest, NoDecision, PolicyDecisionPoint, Resource, Result};
use bowshot_policy::{Access, Touched};
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
pub(crate) async fn ask(decider: &dyn PolicyDecisionPoint, plan: &AuthorizedPlan) -> Result<()> {
    let Some((action, mut resources)) = doing(plan.action()) else { return Ok(()) };
    if let Action::Write(change) = plan.action() {
        // Each by its own action; what they read is told with what stands behind them.
        for (action, resources) in change.before.iter().map(|step| writing(&step.write)) {
            asked(decider, &request(&plan.access, action, resources)).await?;
        }
    }
    let made = resources
        .iter()
        .filter(|resource| resource.kind == "table")
        .map(|resource| resource.name.clone())
        .collect();
    resources.extend(reading(plan, &made));
    asked(decider, &request(&plan.access, action, resources)).await
}

/// Asks about something that is no plan.
///
/// # Errors
/// As [`ask`].
pub(crate) async fn ask_about(
    decider: &dyn PolicyDecisionPoint,
    access: &Access,
    action: &'static str,
    resources: Vec<Resource>,
) -> Result<()> {
    asked(decider, &request(access, action, resources)).await
}

/// Asks, and counts what comes of it: `bowshot_access_service_decisions_total` by outcome.
async fn asked(decider: &dyn PolicyDecisionPoint, request: &AccessRequest) -> Result<()> {
    let began = Instant::now();
    let decision = decider.decide(request).await;
    took("service", began);
    let outcome = match &decision {
        Ok(()) => "allowed",
        Err(error) if NoDecision::is_in(error) => "undecided",
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

fn request(access: &Access, action: &'static str, resources: Vec<Resource>) -> AccessRequest {
    let principal = access.principal();
    AccessRequest {
        user: principal.name.clone(),
        admin: access.is_admin(),
        roles: access.roles(),
        client: principal.address,
        query: QueryTask::current().and_then(|job| job.query()),
        action,
        resources,
    }
}

/// The table of a name, which is changed.
pub(crate) fn changed(name: &EntryName) -> Resource {
    Resource::table(parts(name), AccessKind::Changes)
}

fn parts(name: &EntryName) -> [&str; 3] {
    [&name.catalog, &name.schema, &name.name]
}

/// A thing that rules are about, of the kind that its place has.
fn at(place: &[String]) -> Resource {
    let kind = match place.len() {
        1 => "catalog",
        2 => "schema",
        3 => return Resource::table(place.iter().map(String::as_str), AccessKind::Changes),
        4 => "model",
        5 => "type",
        _ => "function",
    };
    let name: Vec<&str> = place.iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
    of_kind(kind, &name)
}

fn of_kind(kind: &'static str, name: &[&str]) -> Resource {
    Resource { kind, ..Resource::table(name.iter().copied(), AccessKind::Changes) }
}

/// What a statement does beside reading, in a word, and with what; `None` for what concerns its session alone.
fn doing(action: &Action) -> Option<(&'static str, Vec<Resource>)> {
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

fn writing(write: &Write) -> (&'static str, Vec<Resource>) {
    match write {
        Write::Ddl(ddl) => defining(ddl),
        Write::CreateAs(new) => ("create", vec![changed(&new.name)]),
        Write::Insert(rows) => ("insert", vec![changed(&rows.name)]),
        Write::DatabaseInsert(insert) => ("insert", vec![changed(&insert.name)]),
        Write::DatabaseDefine(define) => defining_in_database(&define.definition),
        Write::DatabaseRewrite(rewrite) => {
            let Touched { inserts, updates, deletes } = &rewrite.touched;
            let action = match (inserts, updates, deletes) {
                (None, Some(_), false) => "update",
                (None, None, true) => "delete",
                _ => "merge",
            };
            (action, vec![changed(&rewrite.name)])
        }
        Write::Overwrite(name) => ("overwrite", vec![changed(name)]),
        Write::Refresh(refresh) => ("overwrite", vec![changed(&refresh.name)]),
        Write::Delete(name) => ("delete", vec![changed(name)]),
        Write::Update(rows) => ("update", vec![changed(&rows.name)]),
        Write::Merge(rows) => ("merge", vec![changed(&rows.name)]),
        Write::CopyOut(_) => ("copy_to", Vec::new()),
        Write::Query => ("query", Vec::new()),
        Write::Load(load) => ("copy_from", vec![changed(&load.table)]),
        Write::CopyIn(copy) => ("copy_from", vec![changed(copy.table())]),
    }
}

fn defining_in_database(definition: &DatabaseDefinition) -> (&'static str, Vec<Resource>) {
    let schema =
        |database: &String, schema: &String| vec![of_kind("schema", &[database.as_str(), schema.as_str()])];
    match definition {
        DatabaseDefinition::CreateSchema { database, schema: name, .. } => ("create", schema(database, name)),
        DatabaseDefinition::DropSchema { database, schema: name, .. } => ("drop", schema(database, name)),
        DatabaseDefinition::CreateTable(new) => ("create", vec![changed(&new.name)]),
        DatabaseDefinition::AlterTable { name, .. } | DatabaseDefinition::AlterLayout { name, .. } => {
            ("alter", vec![changed(name)])
        }
        DatabaseDefinition::DropTable { name, .. } => ("drop", vec![changed(name)]),
        DatabaseDefinition::Optimize { name } => ("optimize", vec![changed(name)]),
        DatabaseDefinition::Vacuum { name, .. } => ("vacuum", vec![changed(name)]),
    }
}

fn defining(ddl: &Ddl) -> (&'static str, Vec<Resource>) {
    match ddl {
        Ddl::CreateCatalog { name, .. } => ("create", vec![of_kind("catalog", &[name.as_str()])]),
        Ddl::CreateSchema { catalog, name, .. } => {
            ("create", vec![of_kind("schema", &[catalog.as_str(), name.as_str()])])
        }
        Ddl::CreateTable(new) => ("create", vec![changed(&new.name)]),
        Ddl::CreateView(new) => ("create", vec![changed(&new.name)]),
        Ddl::CreateExternal(new) => {
            let files = Resource::table([new.external.location.as_str()], AccessKind::Reads);
            ("create", vec![changed(&new.name), Resource { kind: "file", ..files }])
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
        Ddl::SetRefresh { name, .. } => ("alter", vec![changed(name)]),
        Ddl::Optimize { name } => ("optimize", vec![changed(name)]),
        Ddl::Vacuum { name, .. } => ("vacuum", vec![changed(name)]),
        Ddl::Type(change) => (change.action(), vec![of_kind("type", &parts(&change.name))]),
        Ddl::Function(change) => (change.action(), vec![of_kind("function", &parts(&change.name))]),
        Ddl::Secret(change) => ("secret", vec![of_kind("secret", &[change.name()])]),
        Ddl::Pipe(change) => (change.action(), vec![of_kind("pipe", &[change.name.as_str()])]),
        Ddl::Access(change) => ("rights", change.places().iter().map(|place| at(place)).collect()),
        Ddl::Several(changes) => {
            let all: Vec<_> = changes.iter().map(defining).collect();
            let action = all.first().map_or("alter", |(action, _)| *action);
            (action, all.into_iter().flat_map(|(_, resources)| resources).collect())
        }
    }
}

/// What the plan reads: the tables that its names were found to mean, with the columns that are needed of them, and the tables
/// that the statement names otherwise, but for those that it changes (`changed`).
fn reading(plan: &AuthorizedPlan, changed: &BTreeSet<Vec<String>>) -> Vec<Resource> {
    let noted = &plan.noted;
    let mut found = Found::default();
    for (query, target) in plan.queries() {
        found.add(query, noted, target);
    }
    let Found { tables, models, behind_view } = found;
    let seen = tables.keys().map(|(_, name): &Named| name.clone()).collect::<BTreeSet<_>>();
    let read = |((kind, name), columns): (Named, BTreeSet<String>)| Resource {
        kind,
        ..Resource::table(name, AccessKind::Reads).with_columns(columns)
    };
    let mut resources: Vec<Resource> = tables.into_iter().map(read).collect();
    // Views, whose queries are in the plan in their place, what an optimiser would leave out, and tables that are looked at without a
    // query (LIKE, SHOW CREATE, REFERENCES). What a statement changes may be what a view reads whose query is not in the plan.
    let is_other = |name: &Vec<String>| !seen.contains(name) && (behind_view || !changed.contains(name));
    let others = noted.iter().map(owned).filter(is_other);
    resources.extend(others.map(|name| Resource::table(name, AccessKind::Reads)));
    resources.extend(
        models
            .into_iter()
            .map(|name| Resource { kind: "model", ..Resource::table(name.split('.'), AccessKind::Reads) }),
    );
    resources
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
