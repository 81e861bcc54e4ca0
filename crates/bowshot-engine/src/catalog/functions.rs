//! Which function of SQL a name means in one statement, and the query of the function in the place of its calls. Functions belong to the
//! snapshot of the statement as its tables do. They are expanded before anything is planned, so that what they read is read with the
//! rights of who calls, and a plan, a cached result and a policy never know of them. Names of a body are never those of the statement.

use super::Visible;
use super::enum_types::SeenTypes;
use super::names::{Names, ident};
use super::public::{self, Schemas};
use super::search_path;
use crate::error::classify;
use crate::plan;
use bowshot_api::catalog_names::{DEFAULT_SCHEMA, PG_TEMP, PUBLIC, TEMPORARY_CATALOG};
use bowshot_api::{Error, ErrorKind, Reason, Result};
use bowshot_policy::FunctionNote;
use bowshot_policy::rules::Rules;
use bowshot_sql::rewrite::{Source, files, plain, qualify_bare_tables};
use bowshot_sql::{Call, ExpansionBudget, Tree};
use bowshot_system_catalog::pg_catalog;
use bowshot_system_catalog::sql_functions::may_know;
use bowshot_tables::EntryName;
use datafusion::logical_expr::Volatility;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    self, Expr, Function, FunctionArg, FunctionArguments, Ident, ObjectName, ObjectNamePart, Query,
    TableAlias, TableFactor, VisitorMut,
};
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Functions that call one another: as deep as views over views.
const MAX_FUNCTION_DEPTH: usize = 32;

/// The functions that one statement may call.
pub(crate) struct SeenFunctions<'a> {
    visible: &'a Visible,
    shared: Arc<Rules>,
    own: Arc<Rules>,
    scope: Scope<'a>,
    /// A function that is being made.
    new: Option<(&'a EntryName, Arc<FunctionNote>)>,
}

/// Where names are looked for that do not say it.
#[derive(Clone, Copy)]
pub(crate) struct Scope<'a> {
    pub(crate) catalog: &'a str,
    pub(crate) schema: &'a str,
    /// Schemas that names are looked for in after that one.
    pub(crate) path: &'a [String],
    /// Whether functions of the session alone come first.
    pub(crate) own: bool,
}

/// A call with the query of its function in its place.
pub(crate) enum Expanded {
    Value(Expr),
    /// Rows, and whether they depend on tables beside the call.
    Rows(Box<Query>, bool),
}

/// The queries of the functions that a statement calls, each by itself.
pub(crate) type Bodies = BTreeMap<EntryName, Statement>;

/// Puts the queries of functions in the place of their calls.
///
/// # Errors
/// As [`SeenFunctions::expand`] and [`check`].
pub(crate) async fn expand(statement: &mut Statement, (visible, names): (&Visible, &Names)) -> Result<()> {
    let mut bodies = SeenFunctions::of_statement(visible, names).expand(statement)?;
    bodies.values_mut().for_each(|body| search_path::resolve(body, names, visible));
    check(bodies, visible).await
}

/// Refuses functions with names of columns that their tables do not have any more: in the place of a call, such a name could be that
/// of a column of the statement.
///
/// # Errors
/// `Invalid` for such a function.
pub(crate) async fn check(bodies: Bodies, visible: &Visible) -> Result<()> {
    if bodies.is_empty() {
        return Ok(());
    }
    let state = visible.state();
    for (name, body) in bodies {
        let Err(error) = plan::logical(&state, body).await.map_err(classify) else { continue };
        // NULL is no argument of all functions: what else is wrong is told where the statement is planned.
        if error.reason() == Some(Reason::UndefinedColumn) {
            let message = format!("function `{}` cannot be called: {}", name.name, error.message());
            return Err(Error::invalid(message).with_reason(Reason::UndefinedColumn).with_hint(
                "create it again with `CREATE OR REPLACE`, for the current columns of its tables",
            ));
        }
    }
    Ok(())
}

impl<'a> SeenFunctions<'a> {
    pub(crate) fn new(visible: &'a Visible, scope: Scope<'a>) -> Self {
        let shared = visible.pinned.shared().notes().read(Rules::of);
        let own = visible.pinned.own().notes().read(Rules::of);
        Self { visible, shared, own, scope, new: None }
    }

    pub(crate) fn of_statement(visible: &'a Visible, names: &'a Names) -> Self {
        let Names { default_catalog: catalog, default_schema: schema, path, .. } = names;
        Self::new(visible, Scope { catalog, schema, path, own: true })
    }

    /// The same with a function that is being made.
    pub(crate) fn with_new(self, name: &'a EntryName, note: Arc<FunctionNote>) -> Self {
        Self { new: Some((name, note)), ..self }
    }

    /// Puts the queries of functions in the place of their calls. Whoever plans the statement [checks](check) these queries before.
    ///
    /// # Errors
    /// `Invalid` for arguments that do not fit and for functions that call themselves, `LimitReached`, and what is wrong with a body.
    pub(crate) fn expand(&self, statement: &mut Statement) -> Result<Bodies> {
        if self.shared.functions.is_empty() && self.own.functions.is_empty() {
            return Ok(Bodies::new());
        }
        match statement {
            Statement::Statement(statement) => {
                let mut progress = Progress::default();
                let expansion = &mut Expansion { seen: self, scope: self.scope, progress: &mut progress };
                statement.try_walk(expansion)?;
                Ok(progress.bodies)
            }
            Statement::Explain(explain) => self.expand(&mut explain.statement),
            _ => Ok(Bodies::new()),
        }
    }

    /// What a call of the function that is being made becomes.
    ///
    /// # Errors
    /// As [`SeenFunctions::expand`].
    pub(crate) fn expand_new(&self, arguments: Vec<FunctionArg>) -> Result<Expanded> {
        let Some((name, note)) = &self.new else { return Err(Error::internal("no function is being made")) };
        let mut progress = Progress::default();
        Expansion { seen: self, scope: self.scope, progress: &mut progress }.expanded(name, note, arguments)
    }

    fn find(&self, name: &ObjectName, scope: Scope<'_>) -> Option<(EntryName, Arc<FunctionNote>)> {
        let parts: Option<Vec<String>> = name.0.iter().map(|part| part.as_ident().map(ident)).collect();
        let own = |name: &str| EntryName::new(TEMPORARY_CATALOG, DEFAULT_SCHEMA, name);
        let within = |catalog: &str, schema: &str, name: &str| {
            let is_alias = schema == PUBLIC && self.schemas(catalog).has_alias(catalog);
            EntryName::new(catalog, if is_alias { DEFAULT_SCHEMA } else { schema }, name)
        };
        match parts?.as_slice() {
            [name] => {
                let schemas = std::iter::once(scope.schema).chain(scope.path.iter().map(String::as_str));
                let shared = schemas.map(|schema| EntryName::new(scope.catalog, schema, name));
                let own = scope.own.then(|| own(name));
                own.into_iter().chain(shared).find_map(|name| self.note(name))
            }
            [schema, name] if schema == TEMPORARY_CATALOG || schema == PG_TEMP => self.note(own(name)),
            [schema, name] => self.note(within(scope.catalog, schema, name)),
            [catalog, schema, name] => self.note(within(catalog, schema, name)),
            _ => None,
        }
    }

    fn schemas<'s>(&'s self, default_catalog: &'s str) -> Schemas<'s> {
        let (pinned, databases) = (&self.visible.pinned, &self.visible.parts.databases);
        Schemas { pinned, databases, default_catalog }
    }

    fn note(&self, name: EntryName) -> Option<(EntryName, Arc<FunctionNote>)> {
        if let Some((new, note)) = &self.new
            && **new == name
        {
            return Some((name, Arc::clone(note)));
        }
        let rules = if name.catalog == TEMPORARY_CATALOG { &self.own } else { &self.shared };
        let note = rules.functions.get(&name).filter(|_| may_know(&name, &self.visible.access))?;
        Some((name, Arc::clone(note)))
    }

    /// Whether a function gives another value each time.
    fn is_volatile(&self, name: &ObjectName) -> bool {
        let Some(name) = name.0.last().and_then(ObjectNamePart::as_ident).map(ident) else { return false };
        let state = self.visible.context.state_ref();
        let state = state.read();
        let function = state.scalar_functions().get(&name);
        function.is_some_and(|function| function.signature().volatility == Volatility::Volatile)
    }

    /// Names the schema of each table that a body names without: that where the function was made, and for a function of the session
    /// that of the session's own tables before.
    fn qualify(&self, statement: &mut ast::Statement, (function, note): (&EntryName, &FunctionNote)) {
        let (catalog, schema) = (note.default_catalog.as_str(), note.default_schema.as_str());
        let is_own = function.catalog == TEMPORARY_CATALOG;
        qualify_bare_tables(statement, |table| {
            let written = ident(table);
            let own = EntryName::new(TEMPORARY_CATALOG, DEFAULT_SCHEMA, plain(&written));
            if is_own && self.visible.pinned.entry(&own).is_some() {
                return Some(PG_TEMP.to_owned());
            }
            let table = EntryName::new(catalog, schema, plain(&written));
            let is_everywhere = pg_catalog::find(&table.name).is_some() && !self.visible.has(&table);
            (!is_everywhere && files(&written).is_none()).then(|| schema.to_owned())
        });
        if catalog != self.scope.catalog {
            // Tables that are named with a schema alone.
            statement.change_tables(|factor| {
                if let TableFactor::Table { name, args: None, .. } = factor
                    && let [ObjectNamePart::Identifier(schema), _] = name.0.as_slice()
                    && ident(schema) != PG_TEMP
                {
                    name.0.insert(0, ObjectNamePart::Identifier(Ident::with_quote('"', catalog)));
                }
            });
        }
    }
}

/// The number of a call: calls that are written alike have the same, so that one in GROUP BY is that of the select list.
fn number(name: &EntryName, arguments: &[Expr]) -> u64 {
    let mut hasher = DefaultHasher::new();
    (name, arguments).hash(&mut hasher);
    hasher.finish()
}

/// What has been expanded of one statement.
#[derive(Default)]
struct Progress {
    budget: ExpansionBudget,
    /// The functions whose bodies are being expanded, the outermost first.
    around: Vec<EntryName>,
    bodies: Bodies,
}

/// Expands the calls in one part of a statement, the innermost first.
struct Expansion<'s, 'a> {
    seen: &'s SeenFunctions<'a>,
    scope: Scope<'s>,
    progress: &'s mut Progress,
}

impl Expansion<'_, '_> {
    fn expanded(
        &mut self,
        name: &EntryName,
        note: &FunctionNote,
        given: Vec<FunctionArg>,
    ) -> Result<Expanded> {
        let query = self.body(name, note)?;
        let function = note.body(&name.name);
        let is_new = !self.progress.bodies.contains_key(name);
        if let Some(query) = is_new.then(|| function.by_itself(&query)).flatten() {
            let body = Statement::Statement(Box::new(ast::Statement::Query(query)));
            self.progress.bodies.insert(name.clone(), body);
        }
        let arguments = function.bind(given)?;
        let (number, budget) = (number(name, &arguments), &mut self.progress.budget);
        let call = Call { query, arguments, number, budget };
        let is_volatile = |name: &ObjectName| self.seen.is_volatile(name);
        if note.gives_rows() {
            call.into_rows(&is_volatile).map(|(query, is_lateral)| Expanded::Rows(query, is_lateral))
        } else {
            call.into_value(&is_volatile).map(Expanded::Value)
        }
    }

    /// The query of a function, in forms that the planner knows, with all that it calls itself.
    fn body(&mut self, name: &EntryName, note: &FunctionNote) -> Result<Box<Query>> {
        self.check_depth(name)?;
        let mut options = self.seen.visible.options().as_ref().clone();
        options.catalog.default_catalog.clone_from(&note.default_catalog);
        options.catalog.default_schema.clone_from(&note.default_schema);
        let statement = note.body(&name.name).read(options.sql_parser.recursion_limit.get())?;
        let source = Source { text: &note.body, dialect: note.dialect };
        let mut statement = plan::known(&options, statement, source)?;
        self.seen.qualify(&mut statement, (name, note));
        let mut statement = Statement::Statement(statement);
        public::resolve(&mut statement, &self.seen.schemas(&note.default_catalog));
        let schemas = self.seen.schemas(&note.default_catalog);
        SeenTypes::new(schemas, (&note.default_schema, &[]), &self.seen.visible.access)
            .resolve(&mut statement);
        let Statement::Statement(mut statement) = statement else {
            return Err(Error::internal("the body of a function became something else"));
        };
        self.progress.around.push(name.clone());
        let (catalog, schema) = (&note.default_catalog, &note.default_schema);
        let scope = Scope { catalog, schema, path: &[], own: name.catalog == TEMPORARY_CATALOG };
        let mut inner = Expansion { seen: self.seen, scope, progress: &mut *self.progress };
        statement.try_walk(&mut inner)?;
        self.progress.around.pop();
        match *statement {
            ast::Statement::Query(query) => Ok(query),
            _ => Err(Error::internal("the body of a function became something else")),
        }
    }

    fn check_depth(&self, name: &EntryName) -> Result<()> {
        let around = &self.progress.around;
        if let Some(first) = around.iter().position(|other| other == name) {
            let cycle = around.iter().skip(first).chain([name]).map(|name| format!("`{}`", name.name));
            let cycle = cycle.collect::<Vec<_>>().join(" calls ");
            return Err(Error::invalid(format!("functions cannot call themselves: {cycle}"))
                .with_hint("write a query with `WITH RECURSIVE` in a table function"));
        }
        if around.len() >= MAX_FUNCTION_DEPTH {
            let message = format!("functions call one another deeper than {MAX_FUNCTION_DEPTH}");
            return Err(Error::new(ErrorKind::LimitReached, message));
        }
        Ok(())
    }

    fn value(&mut self, name: &EntryName, note: &FunctionNote, call: &Function) -> Result<Expr> {
        let given = match &call.args {
            FunctionArguments::None => Vec::new(),
            FunctionArguments::List(list)
                if list.duplicate_treatment.is_none() && list.clauses.is_empty() =>
            {
                list.args.clone()
            }
            _ => return Err(not_plain(name)),
        };
        if call.over.is_some()
            || call.filter.is_some()
            || call.null_treatment.is_some()
            || !call.within_group.is_empty()
        {
            return Err(not_plain(name));
        }
        match self.expanded(name, note, given)? {
            Expanded::Value(value) => Ok(value),
            Expanded::Rows(..) => Err(Error::invalid(format!("function `{}` gives rows", name.name))
                .with_hint(format!("call it in FROM: `SELECT * FROM {}(…)`", name.name))),
        }
    }

    fn rows(&mut self, factor: &TableFactor) -> Result<Option<TableFactor>> {
        let (function, given, alias, is_marked) = match factor {
            TableFactor::Table { name, args: Some(args), alias, with_ordinality: false, .. } => {
                (name, &args.args, alias, false)
            }
            TableFactor::Function { lateral, name, args, alias, with_ordinality: false } => {
                (name, args, alias, *lateral)
            }
            _ => return Ok(None),
        };
        let Some((name, note)) = self.seen.find(function, self.scope) else { return Ok(None) };
        match self.expanded(&name, &note, given.clone())? {
            Expanded::Rows(subquery, is_lateral) => {
                let alias = alias.clone().or_else(|| Some(named(&name.name)));
                Ok(Some(TableFactor::Derived {
                    lateral: is_marked || is_lateral,
                    subquery,
                    alias,
                    sample: None,
                }))
            }
            Expanded::Value(_) => Err(Error::invalid(format!("function `{}` gives one value", name.name))
                .with_hint(format!("call it where values stand: `SELECT {}(…)`", name.name))),
        }
    }

    /// Expressions that are kept with a table must not change with a function.
    fn check_definition(&self, statement: &mut ast::Statement) -> Result<()> {
        let query = match statement {
            ast::Statement::CreateTable(create) => create.query.take(),
            ast::Statement::AlterTable(_) => None,
            _ => return Ok(()),
        };
        let calls = |expr: &Expr| matches!(expr, Expr::Function(call) if self.seen.find(&call.name, self.scope).is_some());
        let has_call = statement.has_expression(calls);
        if let ast::Statement::CreateTable(create) = statement {
            create.query = query;
        }
        if !has_call {
            return Ok(());
        }
        Err(Error::unsupported(
            "functions that SQL has made are no part of defaults, checks and generated columns",
        )
        .with_hint("write the expression of the function there"))
    }
}

fn not_plain(name: &EntryName) -> Error {
    Error::unsupported(format!("function `{}` takes arguments alone", name.name)).with_hint(
        "leave out DISTINCT, FILTER, OVER and ORDER BY; they can stand in the body of the function",
    )
}

/// The name of a table that has none of its own.
fn named(function: &str) -> TableAlias {
    TableAlias { explicit: true, name: Ident::with_quote('"', function), columns: Vec::new(), at: None }
}

impl VisitorMut for Expansion<'_, '_> {
    type Break = Error;

    fn pre_visit_statement(&mut self, statement: &mut ast::Statement) -> ControlFlow<Error> {
        self.check_definition(statement).map_or_else(ControlFlow::Break, ControlFlow::Continue)
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        let Expr::Function(call) = &*expr else { return ControlFlow::Continue(()) };
        let Some((name, note)) = self.seen.find(&call.name, self.scope) else {
            return ControlFlow::Continue(());
        };
        match self.value(&name, &note, call) {
            Ok(value) => *expr = value,
            Err(error) => return ControlFlow::Break(error),
        }
        ControlFlow::Continue(())
    }

    fn post_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Error> {
        match self.rows(factor) {
            Ok(Some(rows)) => *factor = rows,
            Ok(None) => {}
            Err(error) => return ControlFlow::Break(error),
        }
        ControlFlow::Continue(())
    }
}
