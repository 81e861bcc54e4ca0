//! INSERT that knows what to do with rows whose key is there: ON CONFLICT, OR REPLACE, OR IGNORE, REPLACE INTO and ON
//! DUPLICATE KEY UPDATE, as a MERGE of the new rows into the table.

use crate::catalog::names::ident;
use crate::write::change::{self, ADDRESS, assigned, column};
use crate::write::merge::{ACT, PUT};
use bowshot_api::catalog_names::{CHANGE_SCHEMA, SOURCE};
use bowshot_api::{Error, ErrorKind, Result};
use bowshot_policy::Touched;
use bowshot_sql::{DialectName, Tree};
use bowshot_tables::{Definition, Key};
use bowshot_types::declared::Declared;
use datafusion::sql::sqlparser::ast::{
    Assignment, ConflictTarget, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, Insert,
    OnConflictAction, OnInsert, Query, SqliteOnConflict, Value, VisitorMut,
};
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// What the new rows are called in what a statement assigns.
const EXCLUDED: &str = "excluded";
/// Their order, and their place among those of the same key.
const ORDER: &str = "__bowshot_order";
const PLACE: &str = "__bowshot_place";

/// Keys by which the new rows are made different: each is two queries around those of the others, which the parser takes to a
/// depth of 50.
const MAX_KEYS: usize = 10;

/// What becomes of a row whose key is there.
enum Act {
    /// It is left out.
    Nothing,
    /// It takes the other one's place.
    Replace,
    /// The other one gets these values, where the condition holds.
    Update(Vec<Assignment>, Option<Box<Expr>>),
}

/// See the module.
pub(super) struct Conflict {
    act: Act,
    /// The keys that count.
    keys: Vec<Key>,
    /// What the statement calls the new rows.
    source: Ident,
}

impl Conflict {
    /// Takes it out of a statement. `None` for one that only adds rows, also because there is no key.
    ///
    /// # Errors
    /// `Invalid` when no key of the table is meant.
    pub(super) fn take(insert: &mut Insert, definition: &Definition) -> Result<Option<Self>> {
        let keys: Vec<Key> = definition.keys().cloned().collect();
        let mut source = Ident::new(EXCLUDED);
        if let Some(alias) = insert.insert_alias.take() {
            if alias.col_aliases.is_some_and(|columns| !columns.is_empty()) {
                return Err(Error::unsupported("names for the columns of the new rows are not supported"));
            }
            source = crate::catalog::names::last(&alias.row_alias)?;
        }
        let (or, on) = (insert.or.take(), insert.on.take());
        let replace =
            std::mem::take(&mut insert.replace_into) || matches!(or, Some(SqliteOnConflict::Replace));
        let ignore = std::mem::take(&mut insert.ignore) || matches!(or, Some(SqliteOnConflict::Ignore));
        let (act, keys) = match (on, replace, ignore) {
            (None, false, false) => return Ok(None),
            (None, true, false) => (Act::Replace, keys),
            (None, false, true) => (Act::Nothing, keys),
            (Some(OnInsert::DuplicateKeyUpdate(assignments)), false, false) => {
                (Act::Update(assignments, None), keys)
            }
            (Some(OnInsert::OnConflict(on)), false, false) => {
                let update = matches!(on.action, OnConflictAction::DoUpdate(_));
                let keys = match &on.conflict_target {
                    Some(target) => vec![meant(target, &keys)?],
                    None if update => {
                        return Err(Error::invalid("ON CONFLICT DO UPDATE needs the columns of a key")
                            .with_hint("write `ON CONFLICT (column, …) DO UPDATE SET …`"));
                    }
                    None => keys,
                };
                match on.action {
                    OnConflictAction::DoNothing => (Act::Nothing, keys),
                    OnConflictAction::DoUpdate(update) => {
                        (Act::Update(update.assignments, update.selection.map(Box::new)), keys)
                    }
                }
            }
            _ => {
                return Err(Error::invalid("an INSERT says in one way what becomes of rows that are there"));
            }
        };
        Ok((!keys.is_empty()).then_some(Self { act, keys, source }))
    }

    /// What the statement does to rows, of which new ones have values in these columns. A row that takes another one's place
    /// takes that out.
    pub(super) fn touched(&self, columns: BTreeSet<String>) -> Result<Touched> {
        let touched = Touched::inserting(columns);
        Ok(match &self.act {
            Act::Nothing => touched,
            Act::Replace => Touched { deletes: true, ..touched },
            Act::Update(assignments, _) => {
                Touched { updates: Some(change::assigned_names(assignments)?), ..touched }
            }
        })
    }

    /// The query that gives, for the new rows, the address that each meets, what to do, and what the row becomes.
    pub(super) fn query(
        &self,
        definition: &Definition,
        alias: &Ident,
        dialect: DialectName,
    ) -> Result<Box<Query>> {
        change::check_names(definition)?;
        let new = Ident::with_quote('"', ident(&self.source));
        let (target, address) = (change::target_name(), column(alias, ADDRESS));
        let met = self.keys.iter().map(|key| {
            let equal = key.columns.iter().map(|part| {
                let value = by_value(definition, part, column(&new, part).to_string());
                format!("{} = {value}", column(alias, part))
            });
            format!("({})", equal.collect::<Vec<_>>().join(" AND "))
        });
        let met = met.collect::<Vec<_>>().join(" OR ");
        let (values, condition) = self.values(definition, alias, &new)?;
        let columns = definition.columns.iter().zip(values).map(|(there, value)| {
            let name = there.field.name();
            let data_type = bowshot_types::names::sql_type(&bowshot_types::storage_type::logical(&there.field));
            let new = column(&new, name);
            let value = match value {
                Some(value) => format!(
                    "CASE WHEN {address} IS NULL THEN CAST({new} AS {data_type}) ELSE CAST({value} AS {data_type}) END"
                ),
                None => new.to_string(),
            };
            format!(", {value} AS {}", Ident::with_quote('"', name))
        });
        let columns: String = columns.collect();
        let mut query = bowshot_sql::read_query(&format!(
            "SELECT {address}, CAST({PUT} AS BIGINT) AS \"{ACT}\"{columns} FROM {} AS {new} \
             LEFT JOIN {target} AS {alias} ON {met} WHERE {condition}",
            self.rows(definition)?
        ))?;
        if dialect == DialectName::MySql {
            let former = match &self.act {
                Act::Nothing => BTreeSet::new(),
                Act::Replace => definition.columns.iter().map(|there| there.field.name().clone()).collect(),
                Act::Update(assignments, _) => change::assigned_names(assignments)?,
            };
            change::with_former(&mut query, &former, alias)?;
        }
        Ok(query)
    }

    /// What each column becomes where the row is there, and which rows count.
    fn values(
        &self,
        definition: &Definition,
        alias: &Ident,
        new: &Ident,
    ) -> Result<(Vec<Option<Expr>>, String)> {
        let address = column(alias, ADDRESS);
        let Act::Update(assignments, selection) = &self.act else {
            let condition = if matches!(self.act, Act::Nothing) {
                format!("{address} IS NULL")
            } else {
                "TRUE".to_owned()
            };
            return Ok((vec![None; definition.columns.len()], condition));
        };
        let mut scope = Scope { definition, alias, new, depth: 0 };
        let mut assigned = assigned(assignments, alias, definition)?;
        for (value, there) in assigned.iter_mut().zip(&definition.columns) {
            match value {
                Some(value) => {
                    let _ = value.walk(&mut scope);
                }
                None => *value = Some(column(alias, there.field.name())),
            }
        }
        let condition = match selection {
            None => "TRUE".to_owned(),
            Some(selection) => {
                let mut selection = selection.clone();
                let _ = selection.walk(&mut scope);
                format!("({address} IS NULL OR ({selection}))")
            }
        };
        Ok((assigned, condition))
    }

    /// The new rows. Of those with the same key the first one counts where the others do nothing, the last one where it
    /// replaces the others; nulls are nobody's equal.
    ///
    /// # Errors
    /// `LimitReached` for too many keys.
    fn rows(&self, definition: &Definition) -> Result<String> {
        let source = format!("\"{CHANGE_SCHEMA}\".\"{SOURCE}\"");
        let direction = match self.act {
            Act::Nothing => "ASC",
            Act::Replace => "DESC",
            Act::Update(..) => return Ok(source),
        };
        if self.keys.len() > MAX_KEYS {
            let message = format!(
                "the rows would be held against {} keys, and the limit is {MAX_KEYS}",
                self.keys.len()
            );
            return Err(Error::new(ErrorKind::LimitReached, message)
                .with_hint("name the key that counts: `ON CONFLICT (column, …) DO …`"));
        }
        let quote = |name: &str| Ident::with_quote('"', name).to_string();
        let columns =
            definition.columns.iter().map(|there| quote(there.field.name())).collect::<Vec<_>>().join(", ");
        let mut rows = format!("(SELECT {columns}, row_number() OVER () AS {ORDER} FROM {source})");
        for key in &self.keys {
            let parts: Vec<String> = key.columns.iter().map(|part| quote(part)).collect();
            let values = key.columns.iter().map(|part| by_value(definition, part, quote(part)));
            let values: Vec<String> = values.collect();
            let unknown = parts.iter().map(|part| format!("{part} IS NULL")).collect::<Vec<_>>().join(" OR ");
            rows = format!(
                "(SELECT {columns}, {ORDER} FROM (SELECT {columns}, {ORDER}, row_number() OVER \
                 (PARTITION BY {} ORDER BY {ORDER} {direction}) AS {PLACE} FROM {rows}) \
                 WHERE {PLACE} = 1 OR {unknown})",
                values.join(", ")
            );
        }
        Ok(rows)
    }
}

/// A new value of a column of a key in the form in which the table will have it: it is still as it was written.
fn by_value(definition: &Definition, part: &str, value: String) -> String {
    let there = definition.columns.iter().find(|there| there.field.name() == part);
    match there.and_then(|there| Declared::of(&there.field)) {
        // A cast would cut off what is too long, and find a key that the value is not.
        Some(Declared::Char(_)) => format!("rtrim({value}, ' ')"),
        Some(declared @ (Declared::Jsonb | Declared::Uuid)) => format!("CAST({value} AS {declared})"),
        _ => value,
    }
}

/// The key that ON CONFLICT names.
fn meant(target: &ConflictTarget, keys: &[Key]) -> Result<Key> {
    let found = match target {
        ConflictTarget::Columns(columns) => {
            let columns: Vec<String> = columns.iter().map(ident).collect();
            let same = |key: &&Key| {
                key.columns.len() == columns.len() && key.columns.iter().all(|part| columns.contains(part))
            };
            keys.iter().find(same)
        }
        ConflictTarget::OnConstraint(name) => {
            let name = ident(&crate::catalog::names::last(name)?);
            keys.iter().find(|key| key.name.as_deref() == Some(name.as_str()))
        }
    };
    found.cloned().ok_or_else(|| {
        Error::invalid("there is no unique constraint matching the ON CONFLICT specification")
            .with_hint("name the columns of the primary key, or of a UNIQUE constraint")
    })
}

/// A name alone is a column of the table, `VALUES(a)` one of the new row.
struct Scope<'a> {
    definition: &'a Definition,
    alias: &'a Ident,
    new: &'a Ident,
    depth: usize,
}

impl VisitorMut for Scope<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, _query: &mut Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &mut Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Value(value) = expr
            && let Value::DoubleQuotedString(text) = &value.value
        {
            // The query is read in a dialect in which this would be a name.
            value.value = Value::SingleQuotedString(text.clone());
            return ControlFlow::Continue(());
        }
        if let Some(name) = value_of(expr)
            && self.definition.position(&name).is_some()
        {
            *expr = column(self.new, &name);
        } else if let Expr::Identifier(name) = expr
            && self.depth == 0
            && self.definition.position(&ident(name)).is_some()
        {
            *expr = column(self.alias, &ident(name));
        }
        ControlFlow::Continue(())
    }
}

/// The column of MySQL's `VALUES(column)`.
fn value_of(expr: &Expr) -> Option<String> {
    let Expr::Function(function) = expr else { return None };
    let [name] = function.name.0.as_slice() else { return None };
    let FunctionArguments::List(list) = &function.args else { return None };
    let [FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Identifier(column)))] = list.args.as_slice() else {
        return None;
    };
    name.as_ident()?.value.eq_ignore_ascii_case("values").then(|| ident(column))
}
