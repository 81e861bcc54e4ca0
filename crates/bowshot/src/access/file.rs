//! The file of access rules. Unknown keys, invalid names, impossible rights and invalid conditions are refused.

use super::diff::{creation, rights_of};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// The name of a catalog, schema, table or model, in parts. A model's has an empty part, which no table has.
pub(super) type ObjectPath = Vec<String>;

/// The suffix of a right with grant option.
pub(super) const OPTION: &str = " WITH GRANT OPTION";

/// Rights by name; for SELECT, INSERT and UPDATE with the columns, unless all.
pub(super) type Rights = BTreeMap<String, Option<BTreeSet<String>>>;

/// Sections that the file does not have are `None`.
#[derive(Debug, Default, PartialEq)]
pub(super) struct RulesFile {
    pub(super) roles: Option<BTreeSet<String>>,
    pub(super) users: Option<BTreeMap<String, User>>,
    pub(super) memberships: Option<BTreeSet<(String, String)>>,
    pub(super) grants: Option<BTreeMap<(ObjectPath, String), Rights>>,
    pub(super) policies: Option<BTreeMap<(ObjectPath, String), Policy>>,
    pub(super) masks: Option<BTreeMap<(ObjectPath, String), Policy>>,
}

/// A user without credentials.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct User {
    #[serde(default)]
    pub(super) admin: bool,
    #[serde(default)]
    pub(super) attributes: BTreeMap<String, String>,
}

/// A filter of rows, or a mask of a column.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Policy {
    pub(super) column: Option<String>,
    pub(super) roles: BTreeSet<String>,
    pub(super) using: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    roles: Option<Vec<String>>,
    users: Option<Vec<UserEntry>>,
    memberships: Option<Vec<Membership>>,
    grants: Option<Vec<Grant>>,
    policies: Option<Vec<PolicyEntry>>,
    masks: Option<Vec<MaskEntry>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UserEntry {
    name: String,
    #[serde(default)]
    admin: bool,
    #[serde(default)]
    attributes: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Membership {
    role: String,
    members: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Grant {
    table: Option<String>,
    schema: Option<String>,
    catalog: Option<String>,
    model: Option<String>,
    rights: Vec<String>,
    columns: Option<Vec<String>>,
    #[serde(default)]
    grantable: bool,
    to: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PolicyEntry {
    name: String,
    table: String,
    #[serde(rename = "for")]
    roles: Option<Vec<String>>,
    using: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MaskEntry {
    name: String,
    table: String,
    column: String,
    #[serde(rename = "for")]
    roles: Option<Vec<String>>,
    using: String,
}

impl RulesFile {
    /// Reads a file; unqualified names are in the catalog and schema of `place`.
    pub(super) fn read(text: &str, place: &[String; 2]) -> Result<Self, String> {
        let file: File = toml::from_str(text).map_err(|error| error.to_string())?;
        Ok(Self {
            roles: file.roles.map(|names| names.into_iter().map(checked).collect()).transpose()?,
            users: file.users.map(users).transpose()?,
            memberships: file.memberships.map(memberships).transpose()?,
            grants: file.grants.map(|grants| rights(grants, place)).transpose()?,
            policies: file.policies.map(|entries| policies(entries, place)).transpose()?,
            masks: file.masks.map(|entries| masks(entries, place)).transpose()?,
        })
    }
}

fn users(entries: Vec<UserEntry>) -> Result<BTreeMap<String, User>, String> {
    let mut users = BTreeMap::new();
    for UserEntry { name, admin, attributes } in entries {
        if users.insert(checked(name.clone())?, User { admin, attributes }).is_some() {
            return Err(format!("user `{name}` is defined twice"));
        }
    }
    Ok(users)
}

fn memberships(entries: Vec<Membership>) -> Result<BTreeSet<(String, String)>, String> {
    let mut all = BTreeSet::new();
    for Membership { role, members } in entries {
        for member in members {
            all.insert((checked(role.clone())?, checked(member)?));
        }
    }
    Ok(all)
}

fn rights(
    entries: Vec<Grant>,
    place: &[String; 2],
) -> Result<BTreeMap<(ObjectPath, String), Rights>, String> {
    let mut all: BTreeMap<(ObjectPath, String), Rights> = BTreeMap::new();
    for Grant { table, schema, catalog, model, rights, columns, grantable, to } in entries {
        let at = match (table, schema, catalog, model) {
            (Some(table), None, None, None) => full(&table, place, 3)?,
            (None, Some(schema), None, None) => full(&schema, place, 2)?,
            (None, None, Some(catalog), None) => full(&catalog, place, 1)?,
            (None, None, None, Some(model)) => {
                let mut at = full(&model, place, 3)?;
                at.insert(2, String::new());
                at
            }
            _ => {
                return Err(
                    "a grant needs exactly one of `table`, `schema`, `catalog` and `model`".to_owned()
                );
            }
        };
        if rights.is_empty() || to.is_empty() || columns.as_ref().is_some_and(Vec::is_empty) {
            return Err(format!("the grant on `{}` has no rights or no grantees", at.join(".")));
        }
        let given = if at.len() > 3 { of_model(&rights)? } else { rights_of(&rights)? };
        let of_columns = |right: &String| ["SELECT", "INSERT", "UPDATE"].contains(&right.as_str());
        if columns.is_some() && (at.len() != 3 || !given.iter().all(of_columns)) {
            return Err("`columns` is for SELECT, INSERT and UPDATE on a table only".to_owned());
        }
        if grantable && to.iter().any(|grantee| grantee == "public") {
            return Err("`grantable` cannot be set for `public`".to_owned());
        }
        let columns: Option<BTreeSet<String>> = columns.map(|names| names.into_iter().collect());
        for grantee in to {
            let there = all.entry((at.clone(), checked(grantee)?)).or_default();
            for right in &given {
                add(there, right.clone(), columns.clone());
                if grantable && right != "OWN" {
                    add(there, format!("{right}{OPTION}"), columns.clone());
                }
            }
        }
    }
    Ok(all)
}

/// Adds a right; all columns include some.
pub(super) fn add(rights: &mut Rights, right: String, columns: Option<BTreeSet<String>>) {
    let more = match (rights.get(&right), columns) {
        (Some(None), _) | (_, None) => None,
        (Some(Some(some)), Some(more)) => Some(some | &more),
        (None, Some(columns)) => Some(columns),
    };
    rights.insert(right, more);
}

/// Rights on a model: to use it, under any name, and all rights of its owner.
fn of_model(rights: &[String]) -> Result<BTreeSet<String>, String> {
    let mut found = BTreeSet::new();
    for right in rights {
        let (ask, own) = match right.to_ascii_uppercase().as_str() {
            "EXECUTE" | "SELECT" | "USAGE" => (true, false),
            "OWN" => (false, true),
            "ALL" => (true, true),
            other => return Err(format!("unknown right `{other}` on a model: expected EXECUTE, OWN or ALL")),
        };
        found.extend(ask.then(|| "SELECT".to_owned()));
        found.extend(own.then(|| "OWN".to_owned()));
    }
    Ok(found)
}

fn policies(
    entries: Vec<PolicyEntry>,
    place: &[String; 2],
) -> Result<BTreeMap<(ObjectPath, String), Policy>, String> {
    let entries = entries.into_iter().map(|PolicyEntry { name, table, roles, using }| {
        Ok(((full(&table, place, 3)?, name), policy(None, roles, using)?))
    });
    checked_policies(entries.collect::<Result<_, String>>()?)
}

fn masks(
    entries: Vec<MaskEntry>,
    place: &[String; 2],
) -> Result<BTreeMap<(ObjectPath, String), Policy>, String> {
    let entries = entries.into_iter().map(|MaskEntry { name, table, column, roles, using }| {
        Ok(((full(&table, place, 3)?, name), policy(Some(column), roles, using)?))
    });
    checked_policies(entries.collect::<Result<_, String>>()?)
}

/// An empty list would mean everybody, which is written by omitting the list.
fn policy(column: Option<String>, roles: Option<Vec<String>>, using: String) -> Result<Policy, String> {
    if roles.as_ref().is_some_and(Vec::is_empty) {
        return Err("a policy has an empty `for`; leave `for` out to apply it to everybody".to_owned());
    }
    let roles = roles.unwrap_or_default().into_iter().map(checked).collect::<Result<_, _>>()?;
    Ok(Policy { column, roles, using })
}

fn checked_policies(
    entries: Vec<((ObjectPath, String), Policy)>,
) -> Result<BTreeMap<(ObjectPath, String), Policy>, String> {
    let mut all = BTreeMap::new();
    for ((place, name), policy) in entries {
        // The text of a condition becomes a part of a statement: it must be exactly one condition.
        creation(&place, &name, &policy).map_err(|reason| format!("policy `{name}`: {reason}"))?;
        if all.insert((place, checked(name.clone())?), policy).is_some() {
            return Err(format!("policy `{name}` is defined twice"));
        }
    }
    Ok(all)
}

fn checked(name: String) -> Result<String, String> {
    let fits = !name.is_empty() && !name.chars().any(|c| c == ':' || c.is_control());
    if fits { Ok(name) } else { Err(format!("`{}` is not a name", name.escape_default())) }
}

/// A quoted qualified name.
fn full(text: &str, [catalog, schema]: &[String; 2], parts: usize) -> Result<ObjectPath, String> {
    let mut named = split(text).ok_or_else(|| format!("`{text}` is not a name"))?;
    let missing = parts.checked_sub(named.len()).ok_or_else(|| format!("`{text}` has too many parts"))?;
    let around: Vec<String> = [catalog, schema].into_iter().take(parts - 1).cloned().collect();
    let mut place: ObjectPath = around.into_iter().take(missing).collect();
    place.append(&mut named);
    Ok(place)
}

/// The parts of a name; unquoted ones in lower case.
fn split(text: &str) -> Option<Vec<String>> {
    let mut parts = Vec::new();
    let mut rest = text.trim();
    loop {
        let (part, behind) = match rest.strip_prefix('"') {
            Some(quoted) => {
                let mut part = String::new();
                let mut behind = quoted;
                loop {
                    let (piece, next) = behind.split_once('"')?;
                    part.push_str(piece);
                    behind = next;
                    match behind.strip_prefix('"') {
                        Some(more) => {
                            part.push('"');
                            behind = more;
                        }
                        None => break,
                    }
                }
                (part, behind)
            }
            None => {
                let end = rest.find(['.', '"']).unwrap_or(rest.len());
                let (part, behind) = rest.split_at(end);
                (part.to_lowercase(), behind)
            }
        };
        if part.is_empty() || part.chars().any(char::is_control) {
            return None;
        }
        parts.push(part);
        match behind.strip_prefix('.') {
            Some(more) => rest = more,
            None if behind.is_empty() => return Some(parts),
            None => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn here() -> [String; 2] {
        ["c".to_owned(), "s".to_owned()]
    }

    #[test]
    fn names_have_all_their_parts() {
        let full = |text, parts| full(text, &here(), parts).map(|place| place.join("|"));
        assert_eq!(full("T", 3), Ok("c|s|t".to_owned()));
        assert_eq!(full("a.\"B.\"\"x\"", 3), Ok("c|a|B.\"x".to_owned()));
        assert_eq!(full("x.y.z", 3), Ok("x|y|z".to_owned()));
        assert_eq!(full("S", 2), Ok("c|s".to_owned()));
        assert_eq!(full("k", 1), Ok("k".to_owned()));
        for (bad, parts) in
            [("", 3), ("a.", 3), ("a..b", 3), ("\"a", 3), ("\"a\"b", 3), ("a.b.c.d", 3), ("a.b", 1)]
        {
            assert!(full(bad, parts).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for (bad, reason) in [
            ("role = []", "unknown field"),
            ("[[users]]\nname = 'a'\npassword = 'x'", "unknown field"),
            ("[[users]]\nname = 'a:b'", "not a name"),
            ("[[users]]\nname = 'a'\n[[users]]\nname = 'a'", "twice"),
            ("[[grants]]\ntable = 't'\nrights = ['FLY']\nto = ['r']", "FLY"),
            ("[[grants]]\ntable = 't'\nrights = ['SELECT']\nto = []", "no grantees"),
            ("[[grants]]\ntable = 't'\nschema = 's'\nrights = ['SELECT']\nto = ['r']", "one of `table`"),
            (
                "[[grants]]\ntable = 't'\nrights = ['DELETE']\ncolumns = ['a']\nto = ['r']",
                "UPDATE on a table",
            ),
            ("[[grants]]\ntable = 't'\nrights = ['SELECT']\ncolumns = []\nto = ['r']", "no grantees"),
            (
                "[[grants]]\ntable = 't'\nrights = ['SELECT']\ngrantable = true\nto = ['public']",
                "`grantable` cannot be set",
            ),
            ("[[policies]]\nname = 'p'\ntable = 't'\nfor = []\nusing = 'true'", "leave `for` out"),
            ("[[policies]]\nname = 'p'\ntable = 't'\nusing = 'true) USING (false'", "policy `p`"),
            ("[[policies]]\nname = 'p'\ntable = 't'\nusing = 'true); DROP ROLE r; --'", "policy `p`"),
            ("[[policies]]\nname = 'p'\ntable = 't'\nusing = 'true) --'", "policy `p`"),
            ("[[policies]]\nname = 'p'\ntable = 't'\nusing = ''", "policy `p`"),
            ("[[masks]]\nname = 'm'\ntable = 't'\nusing = 'null'", "missing field"),
        ] {
            let error = RulesFile::read(bad, &here()).expect_err(bad);
            assert!(error.contains(reason), "{bad}: {error}");
        }
    }

    #[test]
    fn sections_that_are_not_there_are_not_empty_ones() {
        let wanted = RulesFile::read("roles = []", &here()).expect("reads");
        assert_eq!(wanted, RulesFile { roles: Some(BTreeSet::new()), ..RulesFile::default() });
    }
}
