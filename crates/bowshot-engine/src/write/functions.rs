//! `CREATE FUNCTION`, `CREATE MACRO` and `DROP FUNCTION`. Functions are notes of the snapshot, as types are; those of one session are
//! notes of its own snapshot. A function is called once when it is made, so that one that cannot work is refused.

use crate::catalog::Visible;
use crate::catalog::functions::{Expanded, SeenFunctions};
use crate::catalog::names::Names;
use crate::catalog::search_path;
use crate::error::classify;
use crate::plan::{self, allowed};
use crate::write::WhenThere;
use crate::write::ddl::{Ddl, full};
use bowshot_api::catalog_names::{DEFAULT_CATALOG, DEFAULT_SCHEMA, PG_TEMP, TEMPORARY_CATALOG};
use bowshot_api::{Error, ErrorKind, Reason, Result};
use bowshot_policy::access::{Access, denied};
use bowshot_policy::rules::{Key, Rules, function_place};
use bowshot_policy::snapshot::Pinned;
use bowshot_policy::{FunctionNote, without_function};
use bowshot_sql::rewrite::Source;
use bowshot_sql::{FunctionStatement, NewFunction};
use bowshot_system_catalog::sql_functions::may_know;
use bowshot_tables::EntryName;
use chrono::Utc;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    self, Expr, FunctionArg, FunctionArgExpr, ObjectName, Query, SelectItem, SetExpr, Value,
};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::json;
use std::sync::Arc;

/// Functions in all schemas: every snapshot holds their notes.
const MAX_FUNCTIONS: usize = 10_000;
/// Longest name, in bytes, as PostgreSQL has it.
const MAX_NAME_BYTES: usize = 63;

/// A change of one function.
#[derive(Debug, Clone)]
pub(crate) struct FunctionChange {
    pub(crate) name: EntryName,
    change: Change,
}

#[derive(Debug, Clone)]
enum Change {
    Create { note: Arc<FunctionNote>, when_there: WhenThere },
    Drop { if_exists: bool },
}

/// What a statement changes.
///
/// # Errors
/// From names, and what is wrong with the body of a function.
pub(crate) fn change<'a>(
    statement: FunctionStatement,
    (visible, names): (&'a Visible, &'a Names),
    source: Source<'a>,
) -> BoxFuture<'a, Result<Ddl>> {
    async move {
        match statement {
            FunctionStatement::Drop { name, if_exists } => {
                let has_schema = name.0.len() > 1;
                let name = full_name(&name, false, names)?;
                let own = EntryName::new(TEMPORARY_CATALOG, DEFAULT_SCHEMA, &name.name);
                let is_own = !has_schema && rules(&own, &names.pinned).functions.contains_key(&own);
                let name = if is_own { own } else { name };
                Ok(Ddl::Function(FunctionChange { name, change: Change::Drop { if_exists } }))
            }
            FunctionStatement::Create(new) => create(*new, (visible, names), source).await,
        }
    }
    .boxed()
}

async fn create(new: NewFunction, (visible, names): (&Visible, &Names), source: Source<'_>) -> Result<Ddl> {
    let name = full_name(&new.name, new.temporary, names)?;
    check_name(&name, visible)?;
    let when_there = WhenThere::new(new.replace, new.if_not_exists);
    let note = Arc::new(FunctionNote {
        parameters: new.parameters,
        returns: new.returns,
        body: search_path::qualify_view(new.body, source.dialect, names, visible)?,
        dialect: source.dialect,
        default_catalog: names.default_catalog.clone(),
        default_schema: names.default_schema.clone(),
        volatility: new.volatility,
        made: Utc::now().timestamp_micros(),
    });
    check_call((&name, &note), names, visible).await?;
    Ok(Ddl::Function(FunctionChange { name, change: Change::Create { note, when_there } }))
}

/// The full name of a function that is there or will be.
fn full_name(name: &ObjectName, is_temporary: bool, names: &Names) -> Result<EntryName> {
    let full = names.types().full_name(name);
    let full = full.ok_or_else(|| Error::invalid(format!("`{name}` is no name of a function")))?;
    let names_temporary = [TEMPORARY_CATALOG, PG_TEMP].contains(&full.schema.as_str());
    if names_temporary || full.catalog == TEMPORARY_CATALOG || is_temporary && name.0.len() == 1 {
        return Ok(EntryName::new(TEMPORARY_CATALOG, DEFAULT_SCHEMA, full.name));
    }
    if is_temporary {
        return Err(Error::invalid(format!("the temporary function `{name}` cannot be in another schema"))
            .with_hint("leave the schema out"));
    }
    if names.parts.databases.has(&full.catalog) {
        return Err(Error::unsupported("functions cannot be made in other databases"));
    }
    Ok(full)
}

/// Names of built-in functions are theirs in all schemas: some are other forms than calls.
fn check_name(name: &EntryName, visible: &Visible) -> Result<()> {
    let written = name.name.as_str();
    if written.is_empty() || written.len() > MAX_NAME_BYTES {
        return Err(Error::invalid(format!("the name of a function has 1 to {MAX_NAME_BYTES} bytes")));
    }
    let lower = written.to_lowercase();
    let state = visible.context.state_ref();
    let state = state.read();
    let is_built_in = state.scalar_functions().contains_key(&lower)
        || state.aggregate_functions().contains_key(&lower)
        || state.window_functions().contains_key(&lower)
        || state.table_functions().contains_key(&lower)
        || lower.starts_with("__bowshot");
    if is_built_in {
        return Err(Error::new(ErrorKind::AlreadyExists, format!("`{written}` is a built-in function"))
            .with_hint("choose another name; the functions are listed by `SHOW FUNCTIONS`"));
    }
    Ok(())
}

/// Calls the function with NULL for all that has no default. Without types of its parameters there may be none that fits, so that its
/// names alone are looked at.
async fn check_call(
    (name, note): (&EntryName, &Arc<FunctionNote>),
    names: &Names,
    visible: &Visible,
) -> Result<()> {
    let is_temporary = name.catalog == TEMPORARY_CATALOG;
    // What everybody sees is not made of the tables of one session.
    let shared = visible.without_own();
    let visible = if is_temporary { visible } else { &shared };
    let functions = SeenFunctions::of_statement(visible, names).with_new(name, Arc::clone(note));
    let needed = note.parameters.iter().filter(|parameter| parameter.default.is_none());
    let null = |_| FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::value(Value::Null)));
    let query = match functions.expand_new(needed.map(null).collect())? {
        Expanded::Rows(query, _) => query,
        Expanded::Value(value) => selecting(value)?,
    };
    if note.parameters.iter().any(|parameter| parameter.data_type.is_none()) {
        return Ok(());
    }
    let query = Statement::Statement(Box::new(ast::Statement::Query(query)));
    let plan = plan::logical(&visible.state(), query).await.map_err(classify)?;
    allowed::check_readable(&plan)
}

/// The query that gives one value.
fn selecting(value: Expr) -> Result<Box<Query>> {
    let mut query = bowshot_sql::read_query("SELECT 1")?;
    if let SetExpr::Select(select) = query.body.as_mut() {
        select.projection = vec![SelectItem::UnnamedExpr(value)];
    }
    Ok(query)
}

/// The notes that the function is one of.
fn rules(name: &EntryName, pinned: &Pinned) -> Arc<Rules> {
    let side = if name.catalog == TEMPORARY_CATALOG { pinned.own() } else { pinned.shared() };
    side.notes().read(Rules::of)
}

impl FunctionChange {
    /// What is done, for who decides about it.
    pub(crate) fn action(&self) -> &'static str {
        match self.change {
            Change::Create { .. } => "create",
            Change::Drop { .. } => "drop",
        }
    }

    /// # Errors
    /// `Denied`, and `NotFound` for who may not know the function.
    pub(crate) fn check(&self, pinned: &Pinned, access: &Access) -> Result<()> {
        let name = &self.name;
        if name.catalog == TEMPORARY_CATALOG {
            return Ok(());
        }
        let is_there = rules(name, pinned).functions.contains_key(name);
        let owns = access.owns(&function_place(name));
        match self.change {
            Change::Create { when_there, .. } => {
                access.check_make(&name.catalog, &name.schema)?;
                if when_there == WhenThere::Replace && is_there && !owns {
                    return Err(denied(&format!("`{name}` cannot be made: the name is taken"))
                        .with_hint("choose another name"));
                }
                Ok(())
            }
            // Whether one is there is found out later.
            Change::Drop { .. } if owns || !is_there => Ok(()),
            Change::Drop { if_exists } if !may_know(name, access) => {
                if if_exists {
                    Ok(())
                } else {
                    Err(not_there(name))
                }
            }
            Change::Drop { .. } => {
                Err(denied(&format!("`{}` may not drop function `{name}`", access.user()))
                    .with_hint("its owner and the owner of its schema may"))
            }
        }
    }

    /// The state after the change.
    ///
    /// # Errors
    /// `AlreadyExists`, `NotFound`, `LimitReached`.
    pub(crate) fn apply(&self, names: &Names) -> Result<Pinned> {
        let (name, pinned) = (&self.name, &names.pinned);
        let rules = rules(name, pinned);
        let is_there = rules.functions.contains_key(name);
        let changes = match &self.change {
            Change::Drop { if_exists } if !is_there || !may_know(name, &names.access) => {
                return if *if_exists { Ok(pinned.clone()) } else { Err(not_there(name)) };
            }
            Change::Drop { .. } => without_function(&rules, name),
            Change::Create { when_there: WhenThere::Keep, .. } if is_there => return Ok(pinned.clone()),
            Change::Create { when_there: WhenThere::Fail, .. } if is_there => return Err(taken(name)),
            Change::Create { note, .. } => {
                names.check_schema(name)?;
                check_room(rules.functions.len(), is_there)?;
                let mut changes = vec![(Key::Function(name).text(), Some(note.text()))];
                if !is_there && name.catalog != TEMPORARY_CATALOG && !names.access.is_off() {
                    let owner = Key::Owner(&function_place(name)).text();
                    changes.push((owner, Some(json!(names.access.user()).to_string())));
                }
                changes
            }
        };
        let side = if name.catalog == TEMPORARY_CATALOG { TEMPORARY_CATALOG } else { DEFAULT_CATALOG };
        pinned.changed(side, |snapshot| snapshot.with_notes(changes))
    }

    /// The name of a function that is to be dropped if it is there, and is not.
    pub(crate) fn missing(&self, pinned: &Pinned) -> Option<&str> {
        let is_there = rules(&self.name, pinned).functions.contains_key(&self.name);
        let is_optional = matches!(self.change, Change::Drop { if_exists: true });
        (is_optional && !is_there).then_some(self.name.name.as_str())
    }
}

/// The state without the functions of the session alone.
///
/// # Errors
/// None: notes are taken out.
pub(crate) fn without_temporary(pinned: &Pinned) -> Result<Pinned> {
    let rules = pinned.own().notes().read(Rules::of);
    if rules.functions.is_empty() {
        return Ok(pinned.clone());
    }
    let changes = rules.functions.keys().flat_map(|name| without_function(&rules, name)).collect::<Vec<_>>();
    pinned.changed(TEMPORARY_CATALOG, |snapshot| snapshot.with_notes(changes))
}

fn check_room(count: usize, is_there: bool) -> Result<()> {
    if count >= MAX_FUNCTIONS && !is_there {
        return Err(full(MAX_FUNCTIONS, "functions"));
    }
    Ok(())
}

fn taken(name: &EntryName) -> Error {
    Error::new(ErrorKind::AlreadyExists, format!("function `{name}` already exists"))
        .with_hint("use IF NOT EXISTS to keep it, OR REPLACE to make it anew, or another name")
}

fn not_there(name: &EntryName) -> Error {
    Error::not_found(format!("function `{name}` does not exist"))
        .with_reason(Reason::UndefinedFunction)
        .with_hint("list the functions with `SELECT * FROM system.functions`")
}
