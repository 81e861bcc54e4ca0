//! The statements that change existing rules into wanted ones. Order: policies that go, new users, memberships, rights, new policies, and last
//! users that go.

use super::file::{OPTION, ObjectPath, Policy, Rights, RulesFile, User};
use super::state::State;
use bowshot_policy::rules::object_type;
use bowshot_sql::{
    AccessStatement, Dialect, DialectName, Privilege, Statement, parse, parse_expression, rewrite,
};
use std::collections::{BTreeMap, BTreeSet};

/// How deep a condition may nest, as in a session.
const RECURSION_LIMIT: usize = 50;

/// The statements; none if there is nothing to do.
pub(super) fn diff(wanted: &RulesFile, state: &State) -> Vec<String> {
    let mut statements = Vec::new();
    let gone = Removals::of(wanted, state);
    for (wanted, there, kind) in
        [(&wanted.policies, &state.policies, "ROW POLICY"), (&wanted.masks, &state.masks, "MASK")]
    {
        let Some(wanted) = wanted else { continue };
        let others = there
            .iter()
            .filter(|(name, policy)| wanted.get(*name).is_none_or(|wanted| !is_same(name, wanted, policy)));
        statements.extend(
            others.map(|((place, name), _)| format!("DROP {kind} {} ON {}", quoted(name), whole(place))),
        );
    }
    if let Some(roles) = &wanted.roles {
        statements.extend(roles.difference(&state.roles).map(|name| format!("CREATE ROLE {}", quoted(name))));
    }
    if let Some(users) = &wanted.users {
        statements
            .extend(users.iter().filter_map(|(name, user)| user_change(name, user, state.users.get(name))));
    }
    if let Some(memberships) = &wanted.memberships {
        let word = |(role, member): &(String, String), verb, to| {
            format!("{verb} ROLE {} {to} {}", quoted(role), quoted(member))
        };
        statements.extend(memberships.difference(&state.memberships).map(|one| word(one, "GRANT", "TO")));
        let others = state.memberships.difference(memberships);
        let others = others.filter(|(role, member)| !gone.has(role) && !gone.has(member));
        statements.extend(others.map(|one| word(one, "REVOKE", "FROM")));
    }
    if let Some(grants) = &wanted.grants {
        statements.extend(granted(grants, state, &gone));
    }
    for (wanted, there) in [(&wanted.policies, &state.policies), (&wanted.masks, &state.masks)] {
        for (at, policy) in wanted.iter().flatten() {
            if there.get(at).is_none_or(|there| !is_same(at, policy, there)) {
                statements.push(create(&at.0, &at.1, policy));
            }
        }
    }
    statements.extend(gone.users.iter().map(|name| format!("DROP USER {}", quoted(name))));
    statements.extend(gone.roles.iter().map(|name| format!("DROP ROLE {}", quoted(name))));
    statements
}

/// Removed users and roles, with their rights and memberships.
struct Removals<'a> {
    users: Vec<&'a String>,
    roles: Vec<&'a String>,
}

impl<'a> Removals<'a> {
    fn of(wanted: &RulesFile, state: &'a State) -> Self {
        let users = wanted.users.as_ref();
        let roles = wanted.roles.as_ref();
        Self {
            users: state
                .users
                .keys()
                .filter(|name| users.is_some_and(|users| !users.contains_key(*name)))
                .collect(),
            roles: state
                .roles
                .iter()
                .filter(|name| roles.is_some_and(|roles| !roles.contains(*name)))
                .collect(),
        }
    }

    fn has(&self, name: &String) -> bool {
        self.users.contains(&name) || self.roles.contains(&name)
    }
}

fn user_change(name: &str, wanted: &User, there: Option<&User>) -> Option<String> {
    let none = BTreeMap::new();
    let before = there.map_or(&none, |user| &user.attributes);
    let set: Vec<String> = wanted
        .attributes
        .iter()
        .filter(|(name, value)| before.get(*name) != Some(*value))
        .map(|(name, value)| format!("{} = {}", quoted(name), literal(value)))
        .collect();
    let reset: Vec<String> = before
        .keys()
        .filter(|name| !wanted.attributes.contains_key(*name))
        .map(|name| quoted(name))
        .collect();
    let mut sql = format!("{} USER {}", if there.is_some() { "ALTER" } else { "CREATE" }, quoted(name));
    if wanted.admin != there.is_some_and(|user| user.admin) {
        sql.push_str(if wanted.admin { " ADMIN" } else { " NOADMIN" });
    } else if there.is_some() && set.is_empty() && reset.is_empty() {
        return None;
    }
    for (word, parts) in [("SET", set), ("RESET", reset)] {
        if !parts.is_empty() {
            sql.push_str(&format!(" {word} {}", parts.join(", ")));
        }
    }
    Some(sql)
}

/// New rights come first: a revoked right takes along what was granted with it, except for what has been
/// granted by then.
fn granted(
    wanted: &BTreeMap<(ObjectPath, String), Rights>,
    state: &State,
    gone: &Removals<'_>,
) -> Vec<String> {
    let none = Rights::new();
    let all = wanted.keys().chain(state.grants.keys()).chain(state.handed_on.keys());
    let all: BTreeSet<&(ObjectPath, String)> = all.filter(|(_, grantee)| !gone.has(grantee)).collect();
    let (mut come, mut change) = (Vec::new(), Vec::new());
    for at in all {
        let of =
            |rights: &'_ BTreeMap<(ObjectPath, String), Rights>| rights.get(at).cloned().unwrap_or_default();
        let (there, handed_on) = (of(&state.grants), of(&state.handed_on));
        let cascade = state.handed_on.keys().any(|(place, _)| *place == at.0);
        let rights = rights(at, wanted.get(at).unwrap_or(&none), (&there, &handed_on), cascade);
        let takes = rights.iter().any(|sql| sql.starts_with("REVOKE"));
        let to = if takes { &mut change } else { &mut come };
        to.extend(rights);
    }
    come.append(&mut change);
    come
}

/// First what is revoked, then what is granted. Rights granted by others may stay if they are wanted.
fn rights(
    (place, grantee): &(ObjectPath, String),
    wanted: &Rights,
    (there, handed_on): (&Rights, &Rights),
    cascade: bool,
) -> Vec<String> {
    let (mut give, mut take) = (Vec::new(), Vec::new());
    let of = |right: &str, columns: &BTreeSet<String>| {
        let columns: Vec<String> = columns.iter().map(|name| quoted(name)).collect();
        format!("{right} ({})", columns.join(", "))
    };
    // Revoking a right revokes its grant option.
    let mut gone = BTreeSet::new();
    let all: BTreeSet<&String> = wanted.keys().chain(there.keys()).chain(handed_on.keys()).collect();
    for name in all {
        let (right, option) = name.strip_suffix(OPTION).map_or((name.as_str(), false), |right| (right, true));
        let is_more = match (wanted.get(name), handed_on.get(name)) {
            (_, None) | (Some(None), _) => false,
            (Some(Some(columns)), Some(Some(handed_on))) => !handed_on.is_subset(columns),
            (None, Some(_)) | (Some(Some(_)), Some(None)) => true,
        };
        let lost = gone.contains(right);
        let there = there.get(name).filter(|_| !lost);
        let mut taken = |columns: Option<&BTreeSet<String>>| {
            // The grant option of other columns stays.
            if !option && columns.is_none() {
                gone.insert(right.to_owned());
            }
            take.push((option, columns.map_or_else(|| right.to_owned(), |columns| of(right, columns))));
        };
        let mut given = |columns: Option<&BTreeSet<String>>| {
            give.push((option, columns.map_or_else(|| right.to_owned(), |columns| of(right, columns))));
        };
        match (wanted.get(name), there) {
            (wanted, _) if is_more && !lost => {
                taken(None);
                wanted.into_iter().for_each(|columns| given(columns.as_ref()));
            }
            (wanted, there) if wanted == there => {}
            (None, _) => taken(None),
            (Some(None), _) => given(None),
            (Some(Some(columns)), Some(None)) => {
                taken(None);
                given(Some(columns));
            }
            (Some(Some(columns)), None) => given(Some(columns)),
            (Some(Some(columns)), Some(Some(before))) => {
                let (more, less) = (columns - before, before - columns);
                if !less.is_empty() {
                    taken(Some(&less));
                }
                if !more.is_empty() {
                    given(Some(&more));
                }
            }
        }
    }
    said((place, grantee), (&take, &give), cascade)
}

/// Rights, each with whether it is a grant option.
type Named<'a> = &'a [(bool, String)];

/// Rights as statements.
fn said(
    (place, grantee): (&ObjectPath, &str),
    (take, give): (Named<'_>, Named<'_>),
    cascade: bool,
) -> Vec<String> {
    let on = format!("ON {} {}", object_type(place), whole(place));
    let grantee = quoted(grantee);
    let behind = if cascade { " CASCADE" } else { "" };
    let mut statements = Vec::new();
    for option in [true, false] {
        let (what, alone) = (of_kind(take, option), if option { "GRANT OPTION FOR " } else { "" });
        statements.extend(what.map(|rights| format!("REVOKE {alone}{rights} {on} FROM {grantee}{behind}")));
    }
    for option in [false, true] {
        let (what, with) = (of_kind(give, option), if option { OPTION } else { "" });
        statements.extend(what.map(|rights| format!("GRANT {rights} {on} TO {grantee}{with}")));
    }
    statements
}

fn of_kind(rights: &[(bool, String)], option: bool) -> Option<String> {
    let these: Vec<&str> =
        rights.iter().filter(|(of, _)| *of == option).map(|(_, right)| right.as_str()).collect();
    (!these.is_empty()).then(|| these.join(", "))
}

/// The names of rights; ALL if all are there.
pub(super) fn rights_of(rights: &[String]) -> Result<BTreeSet<String>, String> {
    let known = || Privilege::ALL.into_iter().map(Privilege::as_str);
    let mut found = BTreeSet::new();
    for right in rights {
        let right = right.to_ascii_uppercase();
        match known().find(|known| *known == right) {
            Some(known) => drop(found.insert(known.to_owned())),
            None if right == "ALL" => found.extend(known().map(str::to_owned)),
            None => {
                return Err(format!(
                    "unknown right `{right}`: expected ALL, {}",
                    known().collect::<Vec<_>>().join(", ")
                ));
            }
        }
    }
    Ok(found)
}

/// The statement that creates a policy, after a check that its text is exactly that policy. Also returns the
/// condition in the forms that a server may store.
pub(super) fn creation(place: &ObjectPath, name: &str, policy: &Policy) -> Result<Vec<String>, String> {
    let (sql, dialect) = (create(place, name, policy), Dialect::new(DialectName::Ansi));
    // Parsed alone, so that it cannot close the surrounding brackets.
    parse_expression(&policy.using, dialect).map_err(|error| error.message().to_owned())?;
    let mut read = parse(&sql, dialect, RECURSION_LIMIT).map_err(|error| error.message().to_owned())?;
    let (Some(Statement::Access(read)), None) = (read.pop(), read.pop()) else {
        return Err("it is not one condition".to_owned());
    };
    let AccessStatement::CreatePolicy { using, roles, column, .. } = *read else {
        return Err("it is not one condition".to_owned());
    };
    if column != policy.column || roles.into_iter().collect::<BTreeSet<_>>() != policy.roles {
        return Err("it is not one condition".to_owned());
    }
    let mut forms = vec![using.to_string()];
    let mut rewritten = using;
    if rewrite::expression(&mut rewritten, DialectName::Ansi).is_ok() {
        forms.push(rewritten.to_string());
    }
    Ok(forms)
}

/// Whether an existing policy is the wanted one, in any spelling of its condition.
fn is_same((place, name): &(ObjectPath, String), wanted: &Policy, there: &Policy) -> bool {
    wanted.column == there.column
        && wanted.roles == there.roles
        && creation(place, name, wanted).is_ok_and(|forms| forms.contains(&there.using))
}

fn create(place: &ObjectPath, name: &str, policy: &Policy) -> String {
    let roles: Vec<String> = policy.roles.iter().map(|role| quoted(role)).collect();
    let roles = if roles.is_empty() { String::new() } else { format!(" FOR {}", roles.join(", ")) };
    let (kind, column) = match &policy.column {
        None => ("ROW POLICY", String::new()),
        Some(column) => ("MASK", format!(" ({})", quoted(column))),
    };
    let (name, table, using) = (quoted(name), whole(place), policy.using.trim());
    format!("CREATE {kind} {name} ON {table}{column}{roles} USING ({using})")
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn whole(place: &ObjectPath) -> String {
    let parts = place.iter().filter(|part| !part.is_empty());
    parts.map(|part| quoted(part)).collect::<Vec<_>>().join(".")
}

fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(text: &str) -> RulesFile {
        RulesFile::read(text, &["c".to_owned(), "s".to_owned()]).expect(text)
    }

    /// A server with the rules of a file.
    fn state(text: &str) -> State {
        let RulesFile { roles, users, memberships, grants, policies, masks } = wanted(text);
        State {
            roles: roles.unwrap_or_default(),
            users: users.unwrap_or_default(),
            memberships: memberships.unwrap_or_default(),
            grants: grants.unwrap_or_default(),
            policies: policies.unwrap_or_default(),
            masks: masks.unwrap_or_default(),
            ..State::default()
        }
    }

    #[test]
    fn rights_change_by_what_is_different() {
        let of = |rights: &str| format!("[[grants]]\ntable = 't'\nto = ['r']\n{rights}");
        let change = |to: &str, from: &str| diff(&wanted(&of(to)), &state(&of(from))).join("; ");
        let table = "ON TABLE \"c\".\"s\".\"t\"";
        let (all, some) = ("rights = ['SELECT']", "rights = ['SELECT']\ncolumns = ['a', 'b']");
        let other = "rights = ['SELECT']\ncolumns = ['b', 'c']";
        assert_eq!(change(all, some), format!("GRANT SELECT {table} TO \"r\""));
        assert_eq!(
            change(some, all),
            format!("REVOKE SELECT {table} FROM \"r\"; GRANT SELECT (\"a\", \"b\") {table} TO \"r\"")
        );
        assert_eq!(
            change(other, some),
            format!("REVOKE SELECT (\"a\") {table} FROM \"r\"; GRANT SELECT (\"c\") {table} TO \"r\"")
        );
        let one = "rights = ['SELECT']\ncolumns = ['a']";
        assert_eq!(
            change(one, &format!("{some}\ngrantable = true")),
            format!(
                "REVOKE GRANT OPTION FOR SELECT {table} FROM \"r\"; REVOKE SELECT (\"b\") {table} FROM \"r\""
            )
        );
        assert_eq!(
            change("rights = ['UPDATE']", "rights = ['DELETE']"),
            format!("REVOKE DELETE {table} FROM \"r\"; GRANT UPDATE {table} TO \"r\"")
        );
    }

    #[test]
    fn users_change_by_what_is_different() {
        let there = state("users = [{ name = 'a', admin = true, attributes = { x = '1', y = '2' } }]");
        let to = "users = [{ name = 'a', attributes = { x = '1', z = '3' } }]";
        assert_eq!(diff(&wanted(to), &there), ["ALTER USER \"a\" NOADMIN SET \"z\" = '3' RESET \"y\""]);
    }
}
