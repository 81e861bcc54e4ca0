//! `has_table_privilege` and its like: what the rights say. Whoever may connect may run all functions and use all types.

use crate::functions::about_tables::written;
use crate::functions::{BOOL, Call, FunctionSpec, sequences};
use crate::listing::external;
use crate::pg_catalog::{self, oids};
use bowshot_api::catalog_names::{PG_CATALOG, SYSTEM_SCHEMA};
use bowshot_api::{Error, Reason};
use bowshot_policy::access::{Reading, denied, unseen};
use bowshot_policy::{Access, rules};
use bowshot_sql::Privilege;
use bowshot_tables::{Entry, EntryName};
use datafusion::catalog::information_schema::INFORMATION_SCHEMA;
use datafusion::error::Result;
use datafusion::scalar::ScalarValue;
use std::collections::BTreeSet;

const fn privilege(
    name: &'static str,
    arguments: (usize, usize),
    value: fn(&Call<'_>) -> Result<ScalarValue>,
) -> FunctionSpec {
    FunctionSpec { name, arguments, returns: BOOL, value }
}

pub(crate) static FUNCTIONS: &[FunctionSpec] = &[
    privilege("has_any_column_privilege", (2, 3), |call| answer(call, 2, any_column)),
    privilege("has_column_privilege", (3, 4), |call| answer(call, 3, column)),
    privilege("has_database_privilege", (2, 3), |call| answer(call, 2, database)),
    privilege("has_function_privilege", (2, 3), |call| answer(call, 2, |_| Ok(Some(true)))),
    privilege("has_schema_privilege", (2, 3), |call| answer(call, 2, schema)),
    privilege("has_sequence_privilege", (2, 3), |call| answer(call, 2, sequence)),
    privilege("has_table_privilege", (2, 3), |call| answer(call, 2, table)),
    privilege("has_tablespace_privilege", (2, 3), |call| {
        answer(call, 2, |asked| Ok(Some(asked.access.is_everything())))
    }),
    privilege("has_type_privilege", (2, 3), |call| answer(call, 2, |_| Ok(Some(true)))),
    privilege("pg_has_role", (2, 3), |call| answer(call, 2, role)),
];

/// What is asked for.
struct Asked<'a> {
    call: &'a Call<'a>,
    /// Of whom.
    access: Access,
    /// Where the arguments begin that are behind the user.
    from: usize,
    /// What is to be done with it.
    privileges: Vec<String>,
}

/// Answers for the user who is named, or who asks. `None` for what is not known by its number.
fn answer(call: &Call<'_>, least: usize, has: fn(&Asked<'_>) -> Result<Option<bool>>) -> Result<ScalarValue> {
    if call.arguments.iter().any(ScalarValue::is_null) {
        return Ok(ScalarValue::Boolean(None));
    }
    let from = call.arguments.len().saturating_sub(least);
    let own = call.access();
    let access = match call.text(0).filter(|_| from > 0) {
        Some(user) if user != own.user() => of_other(call, &own, &user)?,
        _ => own,
    };
    let text = call.text(call.arguments.len().saturating_sub(1)).unwrap_or_default();
    let privileges = text.split(',').map(|one| one.trim().to_ascii_uppercase()).collect();
    Ok(ScalarValue::Boolean(has(&Asked { call, access, from, privileges })?))
}

fn of_other(call: &Call<'_>, own: &Access, user: &str) -> Result<Access> {
    if !own.is_everything() && user != rules::PUBLIC {
        return Err(external(
            denied(&format!("`{}` may not ask for the rights of others", own.user()))
                .with_hint("leave the user out, or write `current_user`"),
        ));
    }
    call.facts.session_access.newest_of(user).ok_or_else(|| {
        external(
            Error::not_found(format!("user `{user}` does not exist")).with_hint("`system.users` lists them"),
        )
    })
}

impl Asked<'_> {
    /// Whether one of the privileges is there.
    fn any(&self, known: &[&str], has: impl Fn(&str, bool) -> bool) -> Result<Option<bool>> {
        let mut any = false;
        for privilege in &self.privileges {
            let handed_on = privilege.strip_suffix(" WITH GRANT OPTION");
            let name = handed_on.unwrap_or(privilege);
            if !known.contains(&name) {
                return Err(external(
                    Error::invalid(format!("unrecognized privilege type: `{name}`"))
                        .with_hint(format!("the privileges are {}", known.join(", "))),
                ));
            }
            any |= has(name, handed_on.is_some());
        }
        Ok(Some(any))
    }

    /// The table or view, as rights name it; `None` for a number of none.
    fn relation(&self) -> Result<Option<EntryName>> {
        let (call, tables) = (self.call, &self.call.facts.tables);
        if let Some(oid) = call.number(self.from) {
            return Ok(call.table(oid).cloned());
        }
        let text = call.text(self.from).unwrap_or_default();
        let Some(mut name) = written(call, &text) else {
            return Err(external(unseen(&EntryName::new(call.catalog(), call.schema(), text))));
        };
        if tables.is_file_table(&name) {
            return Ok(Some(tables.file_table(&name)));
        }
        if is_own(&name.schema) || tables.has(&name, &call.pinned(), &call.facts.principal) {
            return Ok(Some(name));
        }
        if !text.contains('.') && pg_catalog::find(&name.name).is_some() {
            PG_CATALOG.clone_into(&mut name.schema);
            return Ok(Some(name));
        }
        Err(external(unseen(&name)))
    }

    /// Whether this may be done with all of a table, or with some columns of it.
    fn may(&self, name: &EntryName, right: &str, option: bool, columns: Option<&BTreeSet<String>>) -> bool {
        let access = &self.access;
        if access.is_everything() {
            return true;
        }
        let right = match right {
            "SELECT" => Privilege::Select,
            "INSERT" => Privilege::Insert,
            "UPDATE" => Privilege::Update,
            "DELETE" | "TRUNCATE" => Privilege::Delete,
            _ => Privilege::Own,
        };
        if option {
            return access.may_hand_on(right, name, columns);
        }
        match (right, columns) {
            (Privilege::Select, columns) => match access.reading(name) {
                Reading::All => true,
                Reading::Limited(limits) => match (&limits.columns, columns) {
                    (None, _) => true,
                    (Some(_), None) => false,
                    // None at all: any of them.
                    (Some(seen), Some(columns)) => columns.is_subset(seen),
                },
                Reading::Denied | Reading::Unseen => false,
            },
            (Privilege::Insert | Privilege::Update, Some(columns)) => {
                access.check_columns(right, name, columns).is_ok()
            }
            (right, _) => access.may_table(right, name),
        }
    }
}

const OF_TABLES: [&str; 8] =
    ["SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER", "MAINTAIN"];
const OF_COLUMNS: [&str; 4] = ["SELECT", "INSERT", "UPDATE", "REFERENCES"];

fn is_own(schema: &str) -> bool {
    [PG_CATALOG, INFORMATION_SCHEMA, SYSTEM_SCHEMA].contains(&schema)
}

fn table(asked: &Asked<'_>) -> Result<Option<bool>> {
    let Some(name) = asked.relation()? else { return Ok(None) };
    asked.any(&OF_TABLES, |right, option| asked.may(&name, right, option, None))
}

/// The rights are those of the table, which the sequence is or belongs to.
fn sequence(asked: &Asked<'_>) -> Result<Option<bool>> {
    let (call, text) = (asked.call, asked.call.text(asked.from).unwrap_or_default());
    let found = match call.number(asked.from) {
        Some(oid) => match sequences::by_number(call, oid) {
            Some(found) => found,
            None => return Ok(None),
        },
        None => sequences::by_name(call, &text)
            .ok_or_else(|| external(unseen(&EntryName::new(call.catalog(), call.schema(), text.clone()))))?,
    };
    asked.any(&["USAGE", "SELECT", "UPDATE"], |right, option| {
        let right = if right == "USAGE" { "INSERT" } else { right };
        asked.may(&found.table, right, option, None)
    })
}

fn any_column(asked: &Asked<'_>) -> Result<Option<bool>> {
    let Some(name) = asked.relation()? else { return Ok(None) };
    let none = BTreeSet::new();
    asked.any(&OF_COLUMNS, |right, option| asked.may(&name, right, option, Some(&none)))
}

fn column(asked: &Asked<'_>) -> Result<Option<bool>> {
    let (call, at) = (asked.call, asked.from + 1);
    let Some(name) = asked.relation()? else { return Ok(None) };
    let pinned = call.pinned();
    let columns: Option<Vec<&String>> = match pinned.entry(&name) {
        Some(Entry::Table(table)) => {
            Some(table.definition().columns.iter().map(|column| column.field.name()).collect())
        }
        _ => None,
    };
    let column = match call.number(at) {
        // By its place, which is counted from one.
        Some(place) => {
            let place = usize::try_from(place).ok().and_then(|place| place.checked_sub(1));
            match place.and_then(|place| columns.as_ref()?.get(place).copied()) {
                Some(column) => column.clone(),
                None => return Ok(None),
            }
        }
        None => call.text(at).unwrap_or_default(),
    };
    if columns.is_some_and(|columns| !columns.contains(&&column)) {
        // Who does not see all columns is not told which there are.
        if !asked.access.is_everything() {
            return Ok(Some(false));
        }
        let message = format!("column `{column}` of `{name}` does not exist");
        return Err(external(Error::not_found(message).with_reason(Reason::UndefinedColumn)));
    }
    let one = BTreeSet::from([column]);
    asked.any(&OF_COLUMNS, |right, option| asked.may(&name, right, option, Some(&one)))
}

fn schema(asked: &Asked<'_>) -> Result<Option<bool>> {
    let (call, access, catalog) = (asked.call, &asked.access, asked.call.catalog());
    let pinned = call.pinned();
    let own = [PG_CATALOG, INFORMATION_SCHEMA, SYSTEM_SCHEMA];
    let name = match call.number(asked.from) {
        Some(oid) => {
            let mut all = pinned.shared().schemas(catalog);
            all.extend(own.map(str::to_owned));
            match all.into_iter().find(|name| oids::schema(catalog, name) == oid) {
                Some(name) => name,
                None => return Ok(None),
            }
        }
        None => call.text(asked.from).unwrap_or_default(),
    };
    if !is_own(&name) && !pinned.has_schema(catalog, &name) {
        let message = format!("schema `{name}` does not exist");
        return Err(external(Error::not_found(message).with_reason(Reason::UndefinedSchema)));
    }
    let place = [catalog.to_owned(), name.clone()];
    asked.any(&["USAGE", "CREATE"], |right, option| match right {
        _ if access.is_everything() => true,
        _ if option => access.owns(&place),
        "USAGE" => is_own(&name) || access.sees_schema(catalog, &name),
        _ => !is_own(&name) && access.may(Privilege::Create, &place),
    })
}

fn database(asked: &Asked<'_>) -> Result<Option<bool>> {
    let catalog = match asked.call.number(asked.from) {
        Some(_) => asked.call.catalog().to_owned(),
        None => asked.call.text(asked.from).unwrap_or_default(),
    };
    let place = [catalog];
    asked.any(&["CREATE", "CONNECT", "TEMPORARY", "TEMP"], |right, option| match right {
        _ if option => asked.access.owns(&place),
        "CREATE" => asked.access.may(Privilege::Create, &place),
        _ => true,
    })
}

fn role(asked: &Asked<'_>) -> Result<Option<bool>> {
    let Some(role) = asked.call.text(asked.from) else { return Ok(None) };
    let access = &asked.access;
    asked.any(&["MEMBER", "USAGE", "SET"], |_, option| {
        access.is_everything() || !option && (access.user() == role || access.has_role(&role))
    })
}
