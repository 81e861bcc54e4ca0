//! The configuration file: TOML whose tables are the sections of the settings. Only the shape is read here; what a key
//! means, and whether it exists, the table of settings says.

use super::settings::SETTINGS;
use super::slot::Raw;
use crate::usage::Usage;
use bowshot_access::AccessConfig;
use bowshot_databases::{DatabaseSettings, LakeSettings};
use bowshot_lakehouse::iceberg::IcebergSettings;
use bowshot_object_store::PlaceSettings;
use std::path::Path;
use toml::{Table, Value};

#[derive(Debug)]
pub(super) struct Content {
    /// Setting names with values, in the order of the file's keys.
    pub(super) values: Vec<(String, Raw)>,
    /// `[[access.users]]`, `[[access.tokens]]`, `[[access.jwt]]` and `[[access.ldap]]`.
    pub(super) access: AccessConfig,
    /// `[[object_store.places]]`.
    pub(super) places: Vec<PlaceSettings>,
    /// `[[databases]]`.
    pub(super) databases: Vec<DatabaseSettings>,
    /// Those of them that are lakes.
    pub(super) lakes: Vec<LakeSettings>,
    /// Those of them that are catalogs of Iceberg tables.
    pub(super) catalogs: Vec<IcebergSettings>,
}

pub(super) fn read(path: &Path) -> Result<Content, Usage> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        Usage::new(format!("cannot read the configuration file `{}`: {error}", path.display()))
            .with_hint("check the path given by `--config` or `BOWSHOT_CONFIG`")
    })?;
    let mut content = parse(&text, path.parent()).map_err(|reason| {
        Usage::new(format!("the configuration file `{}` is not valid: {reason}", path.display()))
    })?;
    if let Some(folder) = path.parent() {
        content.access.place(folder);
    }
    Ok(content)
}

fn parse(text: &str, folder: Option<&Path>) -> Result<Content, String> {
    let mut table: Table = toml::from_str(text).map_err(|error| describe(text, &error))?;
    let access = take_access(&mut table)?;
    let places = take_places(&mut table)?;
    let Databases { databases, lakes, catalogs } = take_databases(&mut table, folder)?;
    let mut values = Vec::new();
    for (key, value) in table {
        match value {
            Value::Table(section) => take_section(&key, section, &mut values)?,
            value => values.push((key.clone(), raw(&key, value)?)),
        }
    }
    Ok(Content { values, access, places, databases, lakes, catalogs })
}

/// The keys of a section, and of those below it that settings have.
fn take_section(name: &str, section: Table, values: &mut Vec<(String, Raw)>) -> Result<(), String> {
    for (inner, value) in section {
        let name = format!("{name}.{inner}");
        let below = format!("{name}.");
        match value {
            Value::Table(section) if SETTINGS.iter().any(|setting| setting.name.starts_with(&below)) => {
                take_section(&name, section, values)?;
            }
            value => values.push((name.clone(), raw(&name, value)?)),
        }
    }
    Ok(())
}

/// Users, tokens, issuers and directories are lists of tables and no settings, so they are taken out before the settings are read.
fn take_access(table: &mut Table) -> Result<AccessConfig, String> {
    let Some(Value::Table(section)) = table.get_mut("access") else { return Ok(AccessConfig::default()) };
    let mut lists = Table::new();
    for name in ["users", "tokens", "jwt", "ldap"] {
        if let Some(list) = section.remove(name) {
            lists.insert(name.to_owned(), list);
        }
    }
    lists.try_into().map_err(|error: toml::de::Error| format!("in `access`: {}", error.message()))
}

/// What is to be known of single buckets is a list of tables too. Which keys there are, the stores know.
fn take_places(table: &mut Table) -> Result<Vec<PlaceSettings>, String> {
    let Some(Value::Table(section)) = table.get_mut("object_store") else { return Ok(Vec::new()) };
    let Some(list) = section.remove("places") else { return Ok(Vec::new()) };
    let Value::Array(entries) = list else {
        return Err(
            "`object_store.places` is a list of tables, each begun with `[[object_store.places]]`".to_owned()
        );
    };
    entries.into_iter().map(place).collect()
}

#[derive(Debug, Default)]
struct Databases {
    databases: Vec<DatabaseSettings>,
    lakes: Vec<LakeSettings>,
    catalogs: Vec<IcebergSettings>,
}

/// Other databases are a list of tables. Which keys there are, they know.
fn take_databases(table: &mut Table, folder: Option<&Path>) -> Result<Databases, String> {
    let mut taken = Databases::default();
    let entries = match table.remove("databases") {
        None => return Ok(taken),
        Some(Value::Array(entries)) => entries,
        Some(_) => return Err("`databases` is a list of tables, each begun with `[[databases]]`".to_owned()),
    };
    for entry in entries {
        let Value::Table(entry) = entry else {
            return Err("an entry of `databases` is not a table".to_owned());
        };
        let value = |(key, value): (String, Value)| match raw(&format!("databases.{key}"), value)? {
            Raw::One(text) => Ok((key, vec![text])),
            Raw::Many(texts) => Ok((key, texts)),
        };
        let values = entry.into_iter().map(value).collect::<Result<_, String>>()?;
        if LakeSettings::is_meant(&values) {
            taken.lakes.push(LakeSettings::read(&values, folder).map_err(|error| error.to_string())?);
        } else if IcebergSettings::is_meant(&values) {
            taken.catalogs.push(IcebergSettings::read(&values, folder).map_err(|error| error.to_string())?);
        } else {
            taken.databases.push(DatabaseSettings::read(&values, folder).map_err(|error| error.to_string())?);
        }
    }
    Ok(taken)
}

fn place(entry: Value) -> Result<PlaceSettings, String> {
    let Value::Table(entry) = entry else {
        return Err("an entry of `object_store.places` is not a table".to_owned());
    };
    let mut place = PlaceSettings::default();
    for (key, value) in entry {
        match raw(&format!("object_store.places.{key}"), value)? {
            Raw::One(text) if key == "url" => place.url = text,
            Raw::One(text) => drop(place.values.insert(key, text)),
            Raw::Many(_) => return Err(format!("`object_store.places.{key}` must be one value")),
        }
    }
    if place.url.is_empty() {
        return Err("an entry of `object_store.places` has no `url`".to_owned());
    }
    Ok(place)
}

fn raw(name: &str, value: Value) -> Result<Raw, String> {
    match value {
        Value::String(text) => Ok(Raw::One(text)),
        Value::Integer(number) => Ok(Raw::One(number.to_string())),
        Value::Boolean(truth) => Ok(Raw::One(truth.to_string())),
        Value::Array(items) => {
            let texts = items.into_iter().map(|item| match item {
                Value::String(text) => Ok(text),
                _ => Err(format!("`{name}` is not a list of strings")),
            });
            Ok(Raw::Many(texts.collect::<Result<_, _>>()?))
        }
        Value::Float(number) if SETTINGS.iter().any(|setting| setting.name == name && setting.is_share()) => {
            Ok(Raw::One(number.to_string()))
        }
        Value::Float(_) | Value::Datetime(_) | Value::Table(_) => {
            Err(format!("`{name}` is {}, which no setting takes", value.type_str()))
        }
    }
}

/// Line and reason, without the line itself: it may hold a secret.
fn describe(text: &str, error: &toml::de::Error) -> String {
    let start = error.span().map_or(0, |span| span.start);
    let line = 1 + text.bytes().take(start).filter(|byte| *byte == b'\n').count();
    format!("line {line}: {}", error.message().lines().collect::<Vec<_>>().join(", "))
}
