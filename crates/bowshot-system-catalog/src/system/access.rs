//! What `system` and SHOW GRANTS tell about access: everything to admins, to others what concerns them.

use crate::lazy_table::{cells, columns};
use crate::system::tables::batch;
use bowshot_api::Result;
use bowshot_policy::access::Access;
use bowshot_policy::grants::{self, Given};
use bowshot_policy::rules::{Place, Policy, object_type};
use bowshot_sql::Privilege;
use datafusion::arrow::array::RecordBatch;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// The tables of `system` that are made here.
pub(crate) const NAMES: [&str; 5] = ["default_privileges", "grants", "policies", "roles", "tokens"];

/// Those of them that only admins have.
pub(crate) const ADMIN_NAMES: [&str; 1] = ["access_rules"];

/// The rows of one of [`NAMES`] and [`ADMIN_NAMES`].
pub(crate) fn rows(name: &str, access: &Access) -> Option<Result<RecordBatch>> {
    match name {
        "access_rules" if access.is_admin() => Some(rules(access)),
        "default_privileges" => Some(defaults(access)),
        "grants" => Some(grants(access)),
        "policies" => Some(policies(access)),
        "roles" => Some(roles(access)),
        "tokens" => Some(tokens(access)),
        _ => None,
    }
}

/// One right of somebody.
pub(crate) struct Right {
    pub(crate) grantee: String,
    pub(crate) place: Place,
    pub(crate) privilege: Privilege,
    /// `None` for all.
    pub(crate) columns: Option<BTreeSet<String>>,
    pub(crate) owner: bool,
    /// Whether it may be handed on.
    pub(crate) grantable: bool,
    /// Who has handed it on; nobody where the owner or an admin gave it.
    pub(crate) grantor: Option<String>,
}

/// All rights that somebody may know of: their own, and those on what is theirs.
pub(crate) fn rights(access: &Access) -> Vec<Right> {
    let rules = access.rules();
    let mut rights = Vec::new();
    for (place, owner) in &rules.owners {
        let (grantee, place, privilege) = (owner.clone(), place.clone(), Privilege::Own);
        let (columns, grantor) = (None, None);
        rights.push(Right { grantee, place, privilege, columns, owner: true, grantable: true, grantor });
    }
    for (place, granted) in &rules.granted {
        for ((grantee, grantor), granted) in grants::effective(granted) {
            for (privilege, columns) in &granted.rights {
                let parts = parts(*privilege, columns, granted.options.get(privilege));
                rights.extend(parts.into_iter().map(|(columns, grantable)| Right {
                    grantee: grantee.clone(),
                    place: place.clone(),
                    privilege: *privilege,
                    columns,
                    owner: false,
                    grantable,
                    grantor: grantor.clone(),
                }));
            }
        }
    }
    rights.retain(|right| access.has_role(&right.grantee) || (!access.is_off() && access.owns(&right.place)));
    rights
}

type Columns = Option<BTreeSet<String>>;

/// A right of which some columns may be handed on and others not, as two.
fn parts(privilege: Privilege, columns: &Columns, option: Option<&Columns>) -> Vec<(Columns, bool)> {
    match option {
        None => vec![(columns.clone(), privilege == Privilege::Own)],
        Some(option) if option == columns => vec![(columns.clone(), true)],
        Some(option) => {
            let rest = match (columns, option) {
                (Some(columns), Some(option)) => Some(columns - option),
                _ => None,
            };
            vec![(rest, false), (option.clone(), true)]
        }
    }
}

fn list(columns: &Columns) -> Option<String> {
    columns.as_ref().map(|names| names.iter().cloned().collect::<Vec<_>>().join(", "))
}

fn part(place: &Place, n: usize) -> Option<String> {
    place.get(n).cloned()
}

/// The name of a table, a model or a type.
fn named(place: &Place) -> Option<String> {
    if place.len() > 2 { place.last().cloned() } else { None }
}

fn grants(access: &Access) -> Result<RecordBatch> {
    let rights = rights(access);
    let rows = rights.iter().map(|right| {
        let (place, privilege) = (&right.place, right.privilege.as_str());
        let object = cells![object_type(place), part(place, 0), part(place, 1), named(place), privilege];
        let rest = cells![list(&right.columns), right.owner, right.grantable, right.grantor.as_ref()];
        cells![&right.grantee].into_iter().chain(object).chain(rest)
    });
    let columns = columns![
        grantee Text, object_type Text, table_catalog Text, table_schema Text, table_name Text, privilege Text,
        columns Text, is_owner Bool, is_grantable Bool, grantor Text
    ];
    batch(columns, rows)
}

/// Rights on tables to come, as far as the user gives or gets them.
fn defaults(access: &Access) -> Result<RecordBatch> {
    let rules = access.rules();
    let mut all: Vec<(&String, &Place, &String, Privilege)> = Vec::new();
    for ((user, place), grants) in &rules.defaults {
        let seen = |grantee: &String| access.is_admin() || access.user() == user || access.has_role(grantee);
        for (grantee, given) in grants.iter().filter(|(grantee, _)| seen(grantee)) {
            all.extend(given.keys().map(|privilege| (user, place, grantee, *privilege)));
        }
    }
    let rows = all.into_iter().map(|(user, place, grantee, privilege)| {
        cells![user, part(place, 0), part(place, 1), grantee, privilege.as_str()]
    });
    let columns = columns![
        user_name Text, table_catalog Text, table_schema Text, grantee Text, privilege Text
    ];
    batch(columns, rows)
}

fn by_name(given: &Given) -> Map<String, Value> {
    given.iter().map(|(privilege, columns)| (privilege.as_str().to_owned(), json!(columns))).collect()
}

/// All rules that can be said in a file, each as a JSON object, so that no name is taken for two. What proves who somebody is,
/// is not among them.
fn rules(access: &Access) -> Result<RecordBatch> {
    let rules = access.rules();
    let mut all: Vec<(&str, Value)> = Vec::new();
    all.extend(rules.roles.iter().map(|name| ("role", json!({ "name": name }))));
    all.extend(rules.users.iter().map(|(name, user)| {
        let has_password = user.hash.is_some();
        let attributes = &user.attributes;
        ("user", json!({ "name": name, "admin": user.admin, "attributes": attributes, "has_password": has_password }))
    }));
    for (member, roles) in &rules.members {
        all.extend(roles.iter().map(|role| ("membership", json!({ "role": role, "member": member }))));
    }
    for (place, granted) in &rules.granted {
        for ((grantee, grantor), granted) in grants::effective(granted) {
            let (rights, options) = (by_name(&granted.rights), by_name(&granted.options));
            let mut grant = json!({ "place": place, "grantee": grantee, "rights": rights });
            if let Some(grant) = grant.as_object_mut() {
                grant.extend((!granted.options.is_empty()).then(|| ("options".to_owned(), options.into())));
                grant.extend(grantor.map(|grantor| ("grantor".to_owned(), grantor.into())));
            }
            all.push(("grant", grant));
        }
    }
    for (place, policies) in &rules.policies {
        all.extend(policies.iter().map(|policy| {
            let Policy { name, column, roles, using } = policy;
            (
                "policy",
                json!({ "place": place, "name": name, "column": column, "roles": roles, "using": using }),
            )
        }));
    }
    let rows = all.into_iter().map(|(kind, definition)| cells![kind, definition.to_string()]);
    batch(columns![kind Text, definition Text], rows)
}

fn policies(access: &Access) -> Result<RecordBatch> {
    let rules = access.rules();
    let seen = rules.policies.iter().filter(|(place, _)| !access.is_off() && access.owns(place));
    let all = seen.flat_map(|(place, policies)| policies.iter().map(move |policy| (place, policy)));
    let roles = |roles: &BTreeSet<String>| {
        (!roles.is_empty()).then(|| roles.iter().cloned().collect::<Vec<_>>().join(", "))
    };
    let rows = all.map(|(place, Policy { name, column, roles: of, using })| {
        let kind = if column.is_some() { "MASK" } else { "ROW POLICY" };
        let [catalog, schema, table] = [0, 1, 2].map(|n| part(place, n));
        cells![catalog, schema, table, name, kind, column.as_ref(), roles(of), using]
    });
    let columns = columns![
        table_catalog Text, table_schema Text, table_name Text, policy_name Text, kind Text, column_name Text,
        roles Text, expression Text
    ];
    batch(columns, rows)
}

fn roles(access: &Access) -> Result<RecordBatch> {
    let (rules, settings) = (access.rules(), access.settings());
    let mut all: Vec<(String, &str, &str, bool)> = Vec::new();
    all.extend(rules.roles.iter().map(|name| (name.clone(), "ROLE", "catalog", false)));
    all.extend(rules.users.iter().map(|(name, user)| (name.clone(), "USER", "catalog", user.admin)));
    all.extend(settings.users.iter().map(|(name, user)| (name.clone(), "USER", "configuration", user.admin)));
    all.retain(|(name, ..)| access.is_admin() || access.has_role(name) || name == access.user());
    let member_of = |name: &String| {
        let configured = settings.users.get(name).into_iter().flat_map(|user| user.roles.iter());
        let all: Vec<&str> =
            rules.members.get(name).into_iter().flatten().chain(configured).map(String::as_str).collect();
        (!all.is_empty()).then(|| all.join(", "))
    };
    let rows =
        all.iter().map(|(name, kind, place, admin)| cells![name, *kind, *place, *admin, member_of(name)]);
    batch(columns![name Text, kind Text, defined_in Text, is_admin Bool, member_of Text], rows)
}

fn tokens(access: &Access) -> Result<RecordBatch> {
    let rules = access.rules();
    let seen = rules.tokens.iter().filter(|((user, _), _)| access.is_admin() || access.is_login_of(user));
    let micros = |seconds: u64| i64::try_from(seconds).ok()?.checked_mul(1_000_000);
    let rows = seen
        .map(|((user, name), token)| cells![user, name, micros(token.made), token.expires.and_then(micros)]);
    batch(columns![user_name Text, token_name Text, created Time, expires Time], rows)
}

/// The lines of SHOW GRANTS for one who is asked about; those alone that the caller may see.
pub fn grants_of(access: &Access, name: &str) -> Vec<String> {
    let rules = access.rules();
    let mut lines = Vec::new();
    if name == access.user() && access.is_admin() {
        lines.push(format!("GRANT ALL ON EVERYTHING TO {name} AS ADMIN"));
    }
    let mine = |grantee: &str| grantee == name || (name == access.user() && access.has_role(grantee));
    for right in rights(access).iter().filter(|right| mine(&right.grantee)) {
        let columns = list(&right.columns).map(|columns| format!(" ({columns})")).unwrap_or_default();
        let (privilege, kind) = (right.privilege.as_str(), object_type(&right.place));
        let place: Vec<&str> =
            right.place.iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
        let place = place.join(".");
        let option =
            if right.grantable && right.privilege != Privilege::Own { " WITH GRANT OPTION" } else { "" };
        lines.push(format!("GRANT {privilege}{columns} ON {kind} {place} TO {}{option}", right.grantee));
    }
    if access.is_admin() || name == access.user() {
        let granted = rules.members.get(name).into_iter().flatten();
        lines.extend(granted.map(|role| format!("GRANT {role} TO {name}")));
    }
    lines
}
