//! Statements about access: who may say them, and the notes that they change.

mod defaults;
mod membership;
mod owners;
mod rights;
mod tokens;
mod users;

use self::membership::membership;
use self::rights::Rights;
use self::tokens::Told;
use crate::catalog::Visible;
use crate::catalog::models::not_there;
use crate::catalog::names::Names;
use crate::error::classify;
use crate::plan;
use crate::secured_scan;
use crate::secured_scan::mask::Mask;
use crate::write::models::may_know;
use bowshot_api::catalog_names::{DEFAULT_CATALOG, TEMPORARY_CATALOG};
use bowshot_api::{Error, ErrorKind, Result};
use bowshot_policy::AccessSettings;
use bowshot_policy::access::{Access, denied, unseen};
use bowshot_policy::rules::{
    Key, PUBLIC, Place, Policy, Rules, model_place, place_in, place_of, policy_text,
};
use bowshot_policy::snapshot::Pinned;
use bowshot_sql::rewrite;
use bowshot_sql::{AccessStatement, Object, UserChange};
use bowshot_tables::EntryName;
use datafusion::sql::sqlparser::ast::{Expr, ObjectName};
use futures::FutureExt;
use futures::future::BoxFuture;
use std::collections::BTreeSet;
use uuid::Uuid;

pub(crate) use self::tokens::told;

/// Longest name of a role, user or policy.
const MAX_NAME_CHARS: usize = 128;

/// What a statement changes, and who may say it.
#[derive(Clone)]
pub(crate) struct AccessChange {
    notes: Vec<(String, Option<String>)>,
    needs: Needs,
    /// What the statement answers, and nobody else is told.
    told: Option<Told>,
}

#[derive(Debug, Clone)]
enum Needs {
    Admin,
    /// Who logs in as the user, or an admin.
    Login(String),
    Owner(Place),
    /// The owner, or who holds these rights with the option to hand them on.
    Holder(Place, Rights),
    /// The owner, who has the role that is to be the new one.
    OwnerIn(Place, String),
    /// The user, or an admin.
    User(String),
    /// Nothing happens.
    Nobody,
}

// The notes may hold a hash.
bowshot_api::debug_fields!(AccessChange { needs });

impl AccessChange {
    /// # Errors
    /// `Denied`.
    pub(crate) fn check(&self, access: &Access) -> Result<()> {
        self.needs.check(access)
    }

    /// The catalogs, schemas, tables and models that the changed rules are about.
    pub(crate) fn places(&self) -> BTreeSet<Place> {
        self.notes.iter().filter_map(|(key, _)| place_in(key)).collect()
    }

    /// The state with the changed notes.
    ///
    /// # Errors
    /// `LimitReached` for too many.
    pub(crate) fn apply(&self, pinned: &Pinned) -> Result<Pinned> {
        // Tokens are no rules, and nothing is none either.
        let closes = !matches!(self.needs, Needs::Login(_) | Needs::Nobody);
        let closed = closes.then(|| (Key::Closed.text(), Some("true".to_owned())));
        let notes = self.notes.iter().cloned().chain(closed);
        pinned.changed(DEFAULT_CATALOG, |snapshot| snapshot.with_notes(notes))
    }
}

impl Needs {
    fn check(&self, access: &Access) -> Result<()> {
        let may = match self {
            _ if access.is_admin() => true,
            Self::Nobody => true,
            Self::Login(name) => access.is_login_of(name),
            // Who owns what is not known before there are rules.
            _ if access.is_off() => false,
            Self::Admin => false,
            Self::Owner(place) => access.owns(place),
            Self::Holder(place, rights) => access.owns(place) || rights::may_say(rights, place, access),
            Self::OwnerIn(place, owner) => access.owns(place) && access.has_role(owner),
            Self::User(name) => access.user() == name && access.has_role(name),
        };
        if may {
            return Ok(());
        }
        let error = denied(&format!("`{}` may not change access rules", access.user()));
        Err(if access.is_off() {
            error.with_hint(
                "make a user an admin in the configuration: `admin = true` under `[[access.users]]`",
            )
        } else {
            error.with_hint(match self {
                Self::OwnerIn(..) => "its owner may, in favour of a role of theirs, and admins",
                Self::Holder(..) => "admins may, the owner of it, and who has that right WITH GRANT OPTION",
                _ => {
                    "admins may, and the owner of a table or schema for that; tokens are made by their users"
                }
            })
        })
    }
}

/// What a statement changes. Nothing is told of what the user may not see.
///
/// # Errors
/// `Denied`, `NotFound`, `AlreadyExists`; `Invalid` for policies that do not fit.
pub(crate) fn resolve<'a>(
    statement: AccessStatement,
    (visible, names): (&'a Visible, &'a Names),
) -> BoxFuture<'a, Result<AccessChange>> {
    async move {
        if !names.parts.tables.has_folder() {
            return Err(Error::unsupported(
                "who may do what is kept in the data folder, and this server has none",
            )
            .with_hint("start the server with `--data FOLDER`"));
        }
        let access = &visible.access;
        let needs = needs(&statement, (access, names))?;
        needs.check(access)?;
        let rules = access.rules();
        if rules.broken && !matches!(statement, AccessStatement::DropPolicy { .. }) {
            return Err(Error::new(ErrorKind::Corrupt, "the rules about access cannot be read")
                .with_hint("put the data folder's catalog back from a backup"));
        }
        let mut told = None;
        let notes = match statement {
            AccessStatement::CreateToken { name, user, expires } => {
                let of = (user.unwrap_or_else(|| access.user().to_owned()), checked_name(name)?);
                let (note, secret) = tokens::made(of, expires, access)?;
                told = Some(secret);
                vec![note]
            }
            AccessStatement::DropToken { name, user, if_exists } => {
                tokens::dropped((user.unwrap_or_else(|| access.user().to_owned()), name), if_exists, &rules)?
            }
            AccessStatement::CreatePolicy { name, table, column, roles, using } => {
                let name = checked_name(name)?;
                let table = target(&table, (access, names))?;
                let new = NewPolicy { name, column, roles, using: *using };
                Box::pin(policy(new, &table, (visible, &rules))).await?
            }
            AccessStatement::Rights {
                give: true, ref privileges, object: Object::Table(ref table), ..
            } if privileges.iter().any(|(_, columns)| !columns.is_empty()) => {
                let table = target(table, (access, names))?;
                Box::pin(rights::check_columns(privileges, &table, visible)).await?;
                changes(statement, &rules, (access, names))?
            }
            other => changes(other, &rules, (access, names))?,
        };
        Ok(AccessChange { notes, needs, told })
    }
    .boxed()
}

fn needs(statement: &AccessStatement, (access, names): (&Access, &Names)) -> Result<Needs> {
    Ok(match statement {
        AccessStatement::CreateRole { .. }
        | AccessStatement::DropGrantee { .. }
        | AccessStatement::Membership { .. } => Needs::Admin,
        AccessStatement::User {
            name,
            change: UserChange::Alter,
            password: Some(_),
            admin: None,
            attributes,
        } if attributes.is_empty() => Needs::User(name.clone()),
        AccessStatement::User { .. } => Needs::Admin,
        AccessStatement::CreateToken { user, .. } | AccessStatement::DropToken { user, .. } => {
            Needs::Login(user.clone().unwrap_or_else(|| access.user().to_owned()))
        }
        AccessStatement::DefaultRights { users, .. } => match users.as_slice() {
            [] => Needs::User(access.user().to_owned()),
            [user] => Needs::User(user.clone()),
            _ => Needs::Admin,
        },
        AccessStatement::Rights { object: Object::Catalog(_), .. }
        | AccessStatement::Owner { object: Object::Catalog(_), .. } => Needs::Admin,
        AccessStatement::Rights { give, privileges, object, grantees, option, cascade } => {
            let (privileges, grantees) = (privileges.clone(), grantees.clone());
            let rights = Rights { give: *give, privileges, grantees, option: *option, cascade: *cascade };
            Needs::Holder(place(object, (access, names))?, rights)
        }
        AccessStatement::Owner { object, owner, if_exists } => {
            match owners::place_of(object, *if_exists, (access, names))? {
                Some(place) => Needs::OwnerIn(place, owner.clone()),
                None => Needs::Nobody,
            }
        }
        AccessStatement::CreatePolicy { table, .. } | AccessStatement::DropPolicy { table, .. } => {
            Needs::Owner(place_of(&target(table, (access, names))?))
        }
    })
}

/// The table or view that a rule is about.
fn target(name: &ObjectName, (access, names): (&Access, &Names)) -> Result<EntryName> {
    let name = names.resolve(name)?;
    if name.catalog == TEMPORARY_CATALOG {
        return Err(Error::invalid("a temporary table is its session's alone, and needs no rules"));
    }
    let own = names.pinned.entry(&name).is_some();
    let name = if !own && names.parts.is_file_table(&name) { names.parts.file_table(&name) } else { name };
    if access.sees(&name) && names.parts.has(&name, &names.pinned, access.principal()) {
        Ok(name)
    } else {
        Err(unseen(&name))
    }
}

fn place(object: &Object, (access, names): (&Access, &Names)) -> Result<Place> {
    match object {
        Object::Table(table) => Ok(place_of(&target(table, (access, names))?)),
        Object::Model(model) => {
            let name = names.known_model(model)?;
            let place = model_place(&name);
            let there = names.pinned.shared().notes().read(Rules::of).models.contains_key(&place);
            if there && may_know(&name, access) { Ok(place) } else { Err(not_there(&name)) }
        }
        Object::Schema(schema) => {
            let (catalog, schema) = names.schema(schema)?;
            if names.pinned.has_schema(&catalog, &schema)
                || names.parts.has_database_schema(&catalog, &schema)
            {
                return Ok(vec![catalog, schema]);
            }
            Err(Error::not_found(format!("schema `{catalog}.{schema}` not found")))
        }
        Object::Catalog(catalog) => {
            let catalog = names.catalog(catalog)?;
            if names.pinned.shared().has_catalog(&catalog) || names.parts.databases.has(&catalog) {
                return Ok(vec![catalog]);
            }
            Err(Error::not_found(format!("catalog `{catalog}` not found")))
        }
    }
}

type Notes = Vec<(String, Option<String>)>;

fn changes(statement: AccessStatement, rules: &Rules, (access, names): (&Access, &Names)) -> Result<Notes> {
    let known = Known { rules, settings: access.settings() };
    match statement {
        AccessStatement::CreateRole { name, if_not_exists } => {
            let name = checked_name(name)?;
            if known.has(&name) && !(if_not_exists && known.is_role(&name)) {
                return Err(Error::new(ErrorKind::AlreadyExists, format!("`{name}` is there already")));
            }
            Ok(vec![(Key::Role(&name).text(), Some("true".to_owned()))])
        }
        AccessStatement::DropGrantee { user, name, if_exists } => dropped(user, &name, if_exists, rules),
        AccessStatement::User { name, change, password, admin, attributes } => {
            users::changed((checked_name(name)?, change), (password, admin, attributes), &known)
        }
        AccessStatement::Rights { give, privileges, object, grantees, option, cascade } => {
            let rights = Rights { give, privileges, grantees, option, cascade };
            rights::changed(&rights, &place(&object, (access, names))?, &known, access)
        }
        AccessStatement::Owner { object, owner, if_exists } => {
            owners::changed((&object, if_exists), owner, &known, (access, names))
        }
        AccessStatement::DefaultRights { give, privileges, users, schemas, grantees } => {
            known.check(&grantees)?;
            let place = |schema| place(&Object::Schema(schema), (access, names));
            let places = schemas.into_iter().map(place).collect::<Result<Vec<Place>>>()?;
            known.check(&users)?;
            let users = if users.is_empty() { vec![access.user().to_owned()] } else { users };
            defaults::defaults(give, &privileges, (&users, places, &grantees), &known)
        }
        AccessStatement::Membership { give, roles, members } => {
            known.check(&roles)?;
            known.check(&members)?;
            membership(give, &roles, &members, &known)
        }
        AccessStatement::DropPolicy { mask, name, table, if_exists } => {
            let place = place_of(&target(&table, (access, names))?);
            let mut policies = rules.policies.get(&place).into_iter().flatten();
            if !rules.broken && !policies.any(|there| there.name == name && there.column.is_some() == mask) {
                if if_exists {
                    return Ok(Vec::new());
                }
                let what = if mask { "mask" } else { "row policy" };
                return Err(Error::not_found(format!("{what} `{name}` not found")));
            }
            Ok(vec![(Key::Policy { place: &place, mask, name: &name }.text(), None)])
        }
        AccessStatement::CreatePolicy { .. }
        | AccessStatement::CreateToken { .. }
        | AccessStatement::DropToken { .. } => Err(Error::internal("a statement was planned twice")),
    }
}

/// Who there is.
struct Known<'a> {
    rules: &'a Rules,
    settings: &'a AccessSettings,
}

impl Known<'_> {
    fn is_role(&self, name: &str) -> bool {
        name == PUBLIC
            || self.rules.roles.contains(name)
            || self.settings.users.values().any(|user| user.roles.iter().any(|role| role == name))
    }

    fn has(&self, name: &str) -> bool {
        self.is_role(name) || self.rules.users.contains_key(name) || self.settings.users.contains_key(name)
    }

    fn check(&self, names: &[String]) -> Result<()> {
        match names.iter().find(|name| !self.has(name)) {
            None => Ok(()),
            Some(name) => {
                Err(Error::not_found(format!("no role and no user is called `{name}`")).with_hint(format!(
                    "make one with `CREATE ROLE {name}`; names of capital letters stand in double quotes"
                )))
            }
        }
    }
}

fn checked_name(name: String) -> Result<String> {
    let fits = !name.is_empty()
        && name.chars().count() <= MAX_NAME_CHARS
        && !name.chars().any(|c| c == ':' || c.is_control());
    if fits {
        return Ok(name);
    }
    Err(Error::invalid(format!(
        "a name has 1 to {MAX_NAME_CHARS} characters, without colons and control characters"
    )))
}

/// Who is dropped takes along rights, memberships and ownership.
fn dropped(user: bool, name: &str, if_exists: bool, rules: &Rules) -> Result<Notes> {
    let there = if user { rules.users.contains_key(name) } else { rules.roles.contains(name) };
    if !there {
        let what = if user { "user" } else { "role" };
        return if if_exists {
            Ok(Vec::new())
        } else {
            Err(Error::not_found(format!("{what} `{name}` not found")))
        };
    }
    let named =
        rules.policies.iter().find(|(_, policies)| policies.iter().any(|policy| policy.roles.contains(name)));
    if let Some((place, _)) = named {
        return Err(Error::invalid(format!("`{name}` is named by a policy of `{}`", place.join(".")))
            .with_hint("drop the policy first: without it, those who had the role might see more"));
    }
    let mut notes = vec![(if user { Key::User(name) } else { Key::Role(name) }.text(), None)];
    if user {
        notes.extend(tokens::all_of(name, rules));
    }
    for (member, roles) in &rules.members {
        let gone = roles.iter().filter(|role| *role == name || member == name);
        notes.extend(gone.map(|role| (Key::Member { role, member }.text(), None)));
    }
    notes.extend(rights::all_of(name, rules));
    notes.extend(defaults::all_of(name, rules));
    for (place, _) in rules.owners.iter().filter(|(_, owner)| *owner == name) {
        notes.push((Key::Owner(place).text(), None));
    }
    Ok(notes)
}

struct NewPolicy {
    name: String,
    column: Option<String>,
    roles: Vec<String>,
    using: Expr,
}

async fn policy(new: NewPolicy, table: &EntryName, (visible, rules): (&Visible, &Rules)) -> Result<Notes> {
    let NewPolicy { name, column, roles, mut using } = new;
    Known { rules, settings: visible.access.settings() }.check(&roles)?;
    let place = place_of(table);
    let mask = column.is_some();
    let mut policies = rules.policies.get(&place).into_iter().flatten();
    if policies.any(|there| there.name == name && there.column.is_some() == mask) {
        return Err(Error::new(ErrorKind::AlreadyExists, format!("`{table}` has a policy `{name}` already")));
    }
    let kind = if mask { Mask::of(&using)? } else { Mask::Expression(String::new()) };
    if matches!(kind, Mask::Expression(_)) {
        rewrite::expression(&mut using, plan::dialect(&visible.options()).name())?;
    }
    let using = using.to_string();
    let provider = visible.schema_provider(&table.catalog, &table.schema);
    let Some(provider) = provider else { return Err(unseen(table)) };
    let found = provider.table(&table.name).await.map_err(classify)?.ok_or_else(|| unseen(table))?;
    secured_scan::check((column.as_deref(), &using), &found.schema(), &visible.state())?;
    let policy = Policy { name: name.clone(), column, roles: roles.into_iter().collect(), using };
    let mut notes =
        vec![(Key::Policy { place: &place, mask, name: &name }.text(), Some(policy_text(&policy)))];
    if kind == Mask::Hash && rules.salt.is_empty() {
        let salt = Uuid::new_v4().simple().to_string();
        notes.push((Key::Salt.text(), Some(serde_json::Value::String(salt).to_string())));
    }
    Ok(notes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bowshot_policy::grants::{Given, Granted, Grants};
    use bowshot_policy::rules::User;
    use bowshot_sql::Privilege;

    #[test]
    fn who_goes_takes_everything_along() {
        let place = vec!["c".to_owned(), "s".to_owned()];
        let mut rules = Rules::default();
        rules.users.insert("u".to_owned(), User::default());
        rules.members.insert("u".to_owned(), BTreeSet::from(["r".to_owned()]));
        let select = Granted { rights: Given::from([(Privilege::Select, None)]), ..Granted::default() };
        rules.granted.insert(place.clone(), Grants::from([(("u".to_owned(), None), select)]));
        rules.owners.insert(place.clone(), "u".to_owned());
        let notes = dropped(true, "u", false, &rules).expect("drops");
        assert_eq!(notes.len(), 4);
        assert!(notes.iter().all(|(_, text)| text.is_none()));
        let policy = Policy {
            name: "p".to_owned(),
            column: None,
            roles: BTreeSet::from(["u".to_owned()]),
            using: "true".to_owned(),
        };
        rules.policies.insert(place, vec![policy]);
        assert!(dropped(true, "u", false, &rules).is_err(), "a policy names the user");
    }
}
