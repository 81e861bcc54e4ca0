//! What one statement may do: the answers to all questions about rights.

mod columns;
mod visible_objects;

use super::rules::{PUBLIC, Place, Policy, Rules, User, place_of};
use super::session_access::{AccessSettings, grantees};
use bowshot_api::catalog_names::{
    CHANGE_SCHEMA, DEFAULT_CATALOG, DEFAULT_SCHEMA, PG_CATALOG, SERVER_VIEWS, SYSTEM_SCHEMA,
    TEMPORARY_CATALOG,
};
use bowshot_api::{Error, ErrorKind, Principal, Result};
use bowshot_sql::Privilege;
use bowshot_tables::{EntryName, Pipe};
use datafusion::catalog::information_schema::INFORMATION_SCHEMA;
use datafusion::error::DataFusionError;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub use self::columns::Touched;

/// The rights of one statement. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Access(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    settings: Arc<AccessSettings>,
    principal: Principal,
    /// `None` where there are no rules, and everybody may do everything.
    rules: Option<Arc<Rules>>,
    /// The user and all roles of theirs.
    grantees: BTreeSet<String>,
    admin: bool,
    /// Names under which the statement finds something else than there is now: rules are about what there is now.
    moved: BTreeSet<Place>,
}

/// How a table or view is read.
#[derive(Debug, Clone, PartialEq)]
pub enum Reading {
    /// As it is.
    All,
    /// In part.
    Limited(Limits),
    /// Not at all, though its name may be known.
    Denied,
    /// As if it were not there.
    Unseen,
}

/// What is left of a table for a user.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Limits {
    /// The columns; `None` for all.
    pub columns: Option<BTreeSet<String>>,
    /// Conditions of which one must hold; `None` for all rows.
    pub filters: Option<Vec<String>>,
    /// What stands in the place of a column.
    pub masks: BTreeMap<String, String>,
    pub salt: String,
}

/// Whether the configuration makes somebody an admin, by name or by a role of an identity provider.
fn is_configured_admin(settings: &AccessSettings, principal: &Principal) -> bool {
    let by_name = settings.users.get(&principal.name);
    match &principal.claims {
        Some(claims) if by_name.is_some() && !claims.local_users => false,
        Some(claims) if claims.admin => true,
        _ => by_name.is_some_and(|user| user.admin),
    }
}

impl Limits {
    /// Whether values are hidden, so that who writes back a whole row would lose some.
    pub(crate) fn hides_values(&self) -> bool {
        self.columns.is_some() || !self.masks.is_empty()
    }
}

impl Access {
    pub fn everything(settings: &Arc<AccessSettings>, principal: &Principal) -> Self {
        let configured = is_configured_admin(settings, principal);
        Self(Arc::new(Inner {
            settings: Arc::clone(settings),
            principal: principal.clone(),
            rules: None,
            grantees: BTreeSet::new(),
            admin: configured && principal.authenticated,
            moved: BTreeSet::new(),
        }))
    }

    pub fn nothing(settings: &Arc<AccessSettings>, principal: &Principal) -> Self {
        Self(Arc::new(Inner {
            settings: Arc::clone(settings),
            principal: principal.clone(),
            rules: Some(Arc::default()),
            grantees: BTreeSet::new(),
            admin: false,
            moved: BTreeSet::new(),
        }))
    }

    pub fn of(
        settings: &Arc<AccessSettings>,
        principal: &Principal,
        rules: Arc<Rules>,
        moved: BTreeSet<Place>,
    ) -> Self {
        let (name, proven) = (&principal.name, principal.authenticated);
        let configured = is_configured_admin(settings, principal);
        let grantees = grantees(settings, principal, &rules);
        let by_rule = grantees.is_some() && rules.users.get(name).is_some_and(|user| user.admin);
        let (admin, grantees) = (proven && (configured || by_rule), grantees.unwrap_or_default());
        let (settings, principal) = (Arc::clone(settings), principal.clone());
        Self(Arc::new(Inner { settings, principal, rules: Some(rules), grantees, admin, moved }))
    }

    /// Whether there are no rules, or none for this user.
    pub fn is_everything(&self) -> bool {
        self.0.rules.is_none() || self.0.admin
    }

    /// Whether there are no rules at all.
    pub fn is_off(&self) -> bool {
        self.0.rules.is_none()
    }

    /// Whether the user may make rules.
    pub fn is_admin(&self) -> bool {
        self.0.admin
    }

    /// Whether both are the same answer to all questions.
    pub fn is_same(&self, other: &Self) -> bool {
        match (&self.0.rules, &other.0.rules) {
            _ if !Arc::ptr_eq(&self.0.settings, &other.0.settings) => false,
            (None, None) => true,
            // Rules are read anew with every change of notes, such as each load of a pipe.
            (Some(one), Some(two)) => (Arc::ptr_eq(one, two) || one == two) && self.0.moved == other.0.moved,
            _ => false,
        }
    }

    /// Whether somebody of this name has logged in, by what this server knows of them.
    pub fn is_login_of(&self, name: &str) -> bool {
        let principal = &self.0.principal;
        principal.authenticated && principal.claims.is_none() && principal.name == name
    }

    /// Whether somebody may know of a pipe, and change it: its owner, and who may do everything.
    pub fn may_know(&self, pipe: &Pipe) -> bool {
        self.is_everything() || pipe.owner.as_deref().is_some_and(|owner| self.is_login_of(owner))
    }

    pub fn user(&self) -> &str {
        &self.0.principal.name
    }

    pub fn principal(&self) -> &Principal {
        &self.0.principal
    }

    /// All roles of the user, whether there are rules or not.
    pub fn roles(&self) -> BTreeSet<String> {
        let none = Arc::<Rules>::default();
        let rules = self.0.rules.as_ref().unwrap_or(&none);
        let mut roles = grantees(&self.0.settings, &self.0.principal, rules).unwrap_or_default();
        roles.retain(|role| role != PUBLIC && role != self.user());
        roles
    }

    pub fn rules(&self) -> Arc<Rules> {
        self.0.rules.clone().unwrap_or_default()
    }

    pub fn settings(&self) -> &Arc<AccessSettings> {
        &self.0.settings
    }

    /// An attribute of the user: what SQL says, else what the configuration says.
    pub fn attribute(&self, name: &str) -> Option<String> {
        let user = self.user();
        let proven = self.0.principal.authenticated;
        let rules = self.0.rules.as_ref().filter(|_| proven);
        let told =
            rules.and_then(|rules| rules.users.get(user)).and_then(|user: &User| user.attributes.get(name));
        let configured = self.0.settings.users.get(user).filter(|_| proven);
        told.or_else(|| configured.and_then(|user| user.attributes.get(name))).cloned()
    }

    /// Whether the user has a role.
    pub fn has_role(&self, role: &str) -> bool {
        self.0.grantees.contains(role)
    }

    /// Whether the user may do this with a thing, by a right on it or on what it is in. A right to write single columns of it is
    /// none on all of it.
    pub fn may(&self, privilege: Privilege, place: &[String]) -> bool {
        if self.is_everything() || place.first().is_some_and(|catalog| catalog == TEMPORARY_CATALOG) {
            return true;
        }
        let of_all = matches!(privilege, Privilege::Insert | Privilege::Update);
        self.owns(place) || self.given(privilege, place).is_some_and(|columns| !of_all || columns.is_none())
    }

    /// # Errors
    /// `Denied` for who does not see all of a table, whose definition tells of the rest.
    pub fn check_whole(&self, name: &EntryName) -> Result<()> {
        match self.reading(name) {
            Reading::All => Ok(()),
            Reading::Limited(_) => Err(denied(&format!("`{}` sees a part of `{name}`", self.user()))
                .with_hint("name the columns and their types")),
            Reading::Denied | Reading::Unseen => Err(self.refused(Privilege::Select, name)),
        }
    }

    /// # Errors
    /// `Denied` for who may not make anything in a schema, whether it is there or not.
    pub fn check_make(&self, catalog: &str, schema: &str) -> Result<()> {
        if self.may(Privilege::Create, &[catalog.to_owned(), schema.to_owned()]) {
            return Ok(());
        }
        let name = format!("{catalog}.{schema}");
        Err(denied(&format!("`{}` may not create anything in schema `{name}`", self.user()))
            .with_hint(format!("its owner or an admin can run `GRANT CREATE ON SCHEMA {name} TO …`")))
    }

    /// Whether the user may do this with a table or view.
    pub fn may_table(&self, privilege: Privilege, name: &EntryName) -> bool {
        self.may(privilege, &place_of(name))
    }

    /// Whether a thing, or what it is in, is the user's own.
    pub fn owns(&self, place: &[String]) -> bool {
        if self.is_everything() {
            return true;
        }
        let Some(rules) = self.0.rules.as_ref().filter(|_| !is_of_server(place)) else { return false };
        let owned =
            |place: &[String]| rules.owners.get(place).is_some_and(|owner| self.0.grantees.contains(owner));
        prefixes(place).any(owned) || self.given(Privilege::Own, place).is_some()
    }

    /// The columns for which the user has a privilege; `Some(None)` for all, `None` without it.
    fn given(&self, privilege: Privilege, place: &[String]) -> Option<Option<BTreeSet<String>>> {
        let rules = self.0.rules.as_ref().filter(|_| !is_of_server(place))?;
        let mut found: Option<BTreeSet<String>> = None;
        for (at, grantees) in prefixes(place).filter_map(|at| Some((at, rules.grants.get(at)?))) {
            for given in
                grantees.iter().filter(|(name, _)| self.0.grantees.contains(*name)).map(|(_, given)| given)
            {
                match given.get(&privilege) {
                    Some(None) => return Some(None),
                    Some(Some(columns)) if at.len() == place.len() => {
                        found.get_or_insert_default().extend(columns.iter().cloned());
                    }
                    _ => {}
                }
            }
        }
        found.map(Some)
    }

    /// Whether the user may know that a table or view is there.
    pub fn sees(&self, name: &EntryName) -> bool {
        self.is_everything() || self.is_always_seen(name) || self.sees_place(&place_of(name))
    }

    fn sees_place(&self, place: &[String]) -> bool {
        use Privilege::{Delete, Insert, Select, Update};
        let rules = self.0.rules.as_ref().filter(|_| !is_of_server(place));
        self.owns(place)
            || [Select, Insert, Update, Delete]
                .into_iter()
                .any(|privilege| self.given(privilege, place).is_some())
            || rules
                .and_then(|rules| rules.grants.get(place))
                .is_some_and(|grants| grants.keys().any(|grantee| self.0.grantees.contains(grantee)))
    }

    /// What belongs to the session or to the server itself, which shows everybody their own.
    fn is_always_seen(&self, name: &EntryName) -> bool {
        name.catalog == TEMPORARY_CATALOG
            || [INFORMATION_SCHEMA, PG_CATALOG, SYSTEM_SCHEMA, CHANGE_SCHEMA].contains(&name.schema.as_str())
    }

    /// Whether the user may know that a schema is there, though there may be nothing in it.
    pub fn sees_schema(&self, catalog: &str, schema: &str) -> bool {
        let place = [catalog.to_owned(), schema.to_owned()];
        if (catalog, schema) == (DEFAULT_CATALOG, DEFAULT_SCHEMA) || self.owns(&place) {
            return true;
        }
        let Some(rules) = self.0.rules.as_ref().filter(|_| !is_of_server(&place)) else { return false };
        let mut grants = prefixes(&place).filter_map(|at| rules.grants.get(at));
        grants.any(|grants| grants.keys().any(|grantee| self.0.grantees.contains(grantee)))
    }

    /// Whether the user may know that a catalog or schema of another database is there: what owns it or is given on it, on
    /// what it is in, or on anything in it.
    pub fn sees_inside(&self, place: &[String]) -> bool {
        if self.owns(place) {
            return true;
        }
        let Some(rules) = &self.0.rules else { return true };
        let mut grants = rules.grants.iter().filter(|(at, _)| at.starts_with(place) || place.starts_with(at));
        let mut owners = rules.owners.iter().filter(|(at, _)| at.starts_with(place));
        grants.any(|(_, grants)| grants.keys().any(|grantee| self.0.grantees.contains(grantee)))
            || owners.any(|(_, owner)| self.0.grantees.contains(owner))
    }

    /// How the user reads a table or view.
    pub fn reading(&self, name: &EntryName) -> Reading {
        if self.is_everything() || self.is_always_seen(name) {
            return Reading::All;
        }
        let place = place_of(name);
        if self.owns(&place) {
            return Reading::All;
        }
        if self.0.moved.contains(&place) {
            return if self.sees_place(&place) { Reading::Denied } else { Reading::Unseen };
        }
        match self.given(Privilege::Select, &place) {
            None if self.sees_place(&place) => Reading::Denied,
            None => Reading::Unseen,
            Some(columns) => self.limits(&place, columns),
        }
    }

    fn limits(&self, place: &Place, columns: Option<BTreeSet<String>>) -> Reading {
        let Some(rules) = &self.0.rules else { return Reading::All };
        let policies = rules.policies.get(place).map_or(&[][..], Vec::as_slice);
        let mut limits = Limits { columns, salt: rules.salt.clone(), ..Limits::default() };
        limits.filters = self.filters_among(policies);
        for policy in policies.iter().filter(|policy| self.is_mine(policy)) {
            let Some(column) = &policy.column else { continue };
            // Of several masks nobody can say which hides more.
            let mask = limits.masks.entry(column.clone()).or_insert_with(|| policy.using.clone());
            if *mask != policy.using {
                "null".clone_into(mask);
            }
        }
        if limits.columns.is_none() && limits.filters.is_none() && limits.masks.is_empty() {
            return Reading::All;
        }
        Reading::Limited(limits)
    }

    fn is_mine(&self, policy: &Policy) -> bool {
        policy.roles.is_empty() || policy.roles.iter().any(|role| self.0.grantees.contains(role))
    }

    /// The conditions for rows; policies of which none is for the user leave no rows.
    fn filters_among(&self, policies: &[Policy]) -> Option<Vec<String>> {
        let mut of_rows = policies.iter().filter(|policy| policy.column.is_none()).peekable();
        of_rows.peek()?;
        Some(of_rows.filter(|policy| self.is_mine(policy)).map(|policy| policy.using.clone()).collect())
    }

    /// Conditions of which one must hold for rows that the user writes, whether the user may read any or not; `None` for all
    /// rows.
    pub fn written(&self, name: &EntryName) -> Option<Vec<String>> {
        let place = place_of(name);
        if self.is_everything() || self.is_always_seen(name) || self.owns(&place) {
            return None;
        }
        self.filters_among(self.0.rules.as_ref()?.policies.get(&place)?)
    }

    /// Whether there are rules that name columns of a table.
    pub fn has_rules_of_columns(&self, name: &EntryName) -> bool {
        let Some(rules) = &self.0.rules else { return false };
        let place = place_of(name);
        let of_columns =
            |given: &BTreeMap<Privilege, Option<BTreeSet<String>>>| given.values().any(Option::is_some);
        rules.policies.get(&place).is_some_and(|policies| !policies.is_empty())
            || rules.grants.get(&place).is_some_and(|grants| grants.values().any(of_columns))
    }

    /// A materialized view has the rows that whoever refreshes it may read, and shows them to all who may read it.
    ///
    /// # Errors
    /// `Denied` for all but its owner; of one that nobody owns, for all but admins.
    pub fn check_refresh(&self, name: &EntryName) -> Result<()> {
        let owner = self.0.rules.as_ref().and_then(|rules| rules.owners.get(&place_of(name)));
        match owner {
            Some(owner) if !self.0.grantees.contains(owner) => {
                self.check(Privilege::Own, name)?;
                Err(denied(&format!("only its owner `{owner}` may refresh `{name}`"))
                    .with_hint("its rows are those that its owner may read"))
            }
            _ => self.check(Privilege::Own, name),
        }
    }

    /// The error for something that the user may not do with a table or view.
    pub fn refused(&self, privilege: Privilege, name: &EntryName) -> Error {
        if !self.sees(name) {
            return unseen(name);
        }
        denied(&format!("`{}` may not {} `{name}`", self.user(), verb(privilege)))
            .with_hint(format!("its owner or an admin can run `GRANT {} ON {name} TO …`", privilege.as_str()))
    }

    /// An error of a view's query as it may be told: it names tables and columns that only its owner knows.
    pub fn inside_view(&self, name: &EntryName, error: DataFusionError) -> DataFusionError {
        if self.may_table(Privilege::Own, name) {
            return error;
        }
        let message = format!("view `{name}` cannot be read by `{}`", self.user());
        let hint = "a view reads its tables with the rights of its reader: ask the owner of the view for \
            rights on them";
        DataFusionError::External(Box::new(denied(&message).with_hint(hint)))
    }

    /// What a change of rows needs before it is planned: its rows are read too.
    ///
    /// # Errors
    /// As [`Self::check`].
    pub fn check_rows(&self, name: &EntryName, privileges: &[Privilege]) -> Result<()> {
        for privilege in privileges {
            self.check(*privilege, name)?;
        }
        match self.reading(name) {
            Reading::All | Reading::Limited(_) => Ok(()),
            Reading::Denied | Reading::Unseen => Err(self.refused(Privilege::Select, name)),
        }
    }

    /// # Errors
    /// `Denied`, or `NotFound` for what the user may not even know.
    pub fn check(&self, privilege: Privilege, name: &EntryName) -> Result<()> {
        if self.may_table(privilege, name) { Ok(()) } else { Err(self.refused(privilege, name)) }
    }
}

/// The error for what is there and is not seen: the same as for what is not there.
pub fn unseen(name: &EntryName) -> Error {
    Error::not_found(format!("table `{name}` not found"))
        .with_hint("list the tables with `SELECT * FROM information_schema.tables`")
}

pub fn denied(message: &str) -> Error {
    Error::new(ErrorKind::Denied, message)
}

fn verb(privilege: Privilege) -> &'static str {
    match privilege {
        Privilege::Usage => "use",
        Privilege::Select => "read",
        Privilege::Insert => "insert rows into",
        Privilege::Update => "update rows of",
        Privilege::Delete => "delete rows from",
        Privilege::Create => "create objects in",
        Privilege::Own => "alter or drop",
    }
}

/// Whether a place is the schema of the server's views, or in it. Their rows are those of tables as they are, whatever rules hide of
/// these, so that only who may do everything has rights there.
fn is_of_server(place: &[String]) -> bool {
    matches!(place, [catalog, schema, ..] if catalog == DEFAULT_CATALOG && schema == SERVER_VIEWS)
}

/// A thing and what it is in.
fn prefixes(place: &[String]) -> impl Iterator<Item = &[String]> {
    (1..=place.len()).rev().filter_map(|length| place.get(..length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_around_the_views_of_the_server_are_none_on_them() {
        let mut rules = Rules { any: true, ..Rules::default() };
        let given = BTreeMap::from([(Privilege::Select, None), (Privilege::Own, None)]);
        let catalog = vec![DEFAULT_CATALOG.to_owned()];
        for place in [catalog.clone(), vec![DEFAULT_CATALOG.to_owned(), SERVER_VIEWS.to_owned()]] {
            rules.grants.insert(place.clone(), BTreeMap::from([(PUBLIC.to_owned(), given.clone())]));
            rules.owners.insert(place, PUBLIC.to_owned());
        }
        let settings = Arc::<AccessSettings>::default();
        let access = Access::of(&settings, &Principal::anonymous(), Arc::new(rules), BTreeSet::new());
        assert!(access.owns(&catalog));
        for (schema, is_given) in [(DEFAULT_SCHEMA, true), (SERVER_VIEWS, false)] {
            let name = EntryName::new(DEFAULT_CATALOG, schema, "v");
            assert_eq!(access.reading(&name) == Reading::All, is_given, "{schema}");
            assert_eq!(access.sees(&name) && access.sees_schema(DEFAULT_CATALOG, schema), is_given);
            assert_eq!(access.may_table(Privilege::Own, &name), is_given, "{schema}");
            assert_eq!(access.check_make(DEFAULT_CATALOG, schema).is_ok(), is_given, "{schema}");
        }
    }
}
