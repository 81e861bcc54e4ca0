//! The access of one session: from the user, the settings and the state of the tables to what a statement may do.

use super::access::Access;
use super::rules::{PUBLIC, Place, Rules, closes, is_thing};
use crate::snapshot::Pinned;
use crate::snapshot::commit::SessionTables;
use bowshot_api::{Error, ErrorKind, Principal, Result, Secret};
use bowshot_tables::{Notes, Snapshot, TableStore};
use parking_lot::{Mutex, RwLock};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What the configuration says about access.
#[derive(Clone)]
pub struct AccessSettings {
    /// Whether rights are needed even before there is any rule.
    pub enforced: bool,
    /// All users of the configuration, those of fixed tokens too.
    pub users: BTreeMap<String, ConfiguredUser>,
    /// Makes the hash of a password that SQL gives a user.
    pub hash: fn(&Secret) -> Result<String>,
    /// Makes a token that SQL gives a user, and the hash of it that is kept.
    pub token: fn() -> Result<(Secret, String)>,
}

/// Who may log in by what the catalog says.
#[derive(Debug, Clone, Default)]
pub struct CatalogUsers {
    /// Users with the hashes of their passwords, if they have any.
    pub passwords: Vec<(String, Option<String>)>,
    /// Tokens: whose, their hashes, and when they expire.
    pub tokens: Vec<(String, String, Option<SystemTime>)>,
}

/// A user of the configuration.
#[derive(Debug, Clone, Default)]
pub struct ConfiguredUser {
    /// Roles that the user has beside those that SQL grants.
    pub roles: Vec<String>,
    /// Whether the user may do everything.
    pub admin: bool,
    /// What policies may ask about the user.
    pub attributes: BTreeMap<String, String>,
}

impl Default for AccessSettings {
    fn default() -> Self {
        fn no_users<T>() -> Result<T> {
            Err(Error::unsupported("this server has no users"))
        }
        Self { enforced: false, users: BTreeMap::new(), hash: |_| no_users(), token: no_users }
    }
}

bowshot_api::debug_fields!(AccessSettings { enforced, users });

/// The settings as they are now: the file of users may change while the server serves, and others may have rules.
#[derive(Debug)]
pub struct CurrentSettings {
    now: RwLock<Arc<AccessSettings>>,
    /// Whether the configuration itself says that rights are needed.
    enforced: bool,
}

impl CurrentSettings {
    pub fn new(settings: AccessSettings) -> Arc<Self> {
        let enforced = settings.enforced;
        Arc::new(Self { now: RwLock::new(Arc::new(settings)), enforced })
    }

    pub fn now(&self) -> Arc<AccessSettings> {
        Arc::clone(&self.now.read())
    }

    /// Whether rights are needed for a reason of this server: its configuration, or rules.
    pub fn has_reason(&self, notes: &Notes) -> bool {
        self.enforced || notes.read(Rules::of).any
    }

    /// From now on rights are needed, whether there is a rule or not. Whether that is new.
    pub fn enforce(&self) -> bool {
        let mut settings = self.now.write();
        let is_new = !settings.enforced;
        if is_new {
            *settings = Arc::new(AccessSettings { enforced: true, ..AccessSettings::clone(&settings) });
        }
        is_new
    }

    pub fn set_users(&self, users: BTreeMap<String, ConfiguredUser>) {
        let mut settings = self.now.write();
        *settings = Arc::new(AccessSettings { users, ..AccessSettings::clone(&settings) });
    }
}

/// The rights of one session.
#[derive(Debug)]
pub struct SessionAccess {
    settings: Arc<CurrentSettings>,
    principal: Principal,
    tables: Arc<SessionTables>,
    known: Mutex<Known>,
}

/// Rights, and what they came of: the rules, the tables of the statement, and the newest ones.
#[derive(Debug)]
struct Judged {
    notes: Arc<Notes>,
    tables: Arc<Snapshot>,
    newest: Arc<Snapshot>,
    settings: Arc<AccessSettings>,
    access: Access,
}

/// What rights were given by.
#[derive(Debug, Clone)]
pub struct Basis {
    notes: Arc<Notes>,
    settings: Arc<AccessSettings>,
}

/// What was found out for the last statement.
#[derive(Debug, Default)]
struct Known {
    access: Option<Judged>,
    seen: Option<Seen>,
}

/// The tables that are left, and what they came of.
#[derive(Debug)]
struct Seen {
    tables: Arc<Snapshot>,
    access: Access,
    left: Arc<Snapshot>,
}

impl SessionAccess {
    pub fn new(settings: &Arc<CurrentSettings>, principal: &Principal, tables: &Arc<SessionTables>) -> Self {
        Self {
            settings: Arc::clone(settings),
            principal: principal.clone(),
            tables: Arc::clone(tables),
            known: Mutex::default(),
        }
    }

    /// The store of the tables that everybody shares, which numbers the rows of all.
    pub fn store(&self) -> &Arc<TableStore> {
        &self.tables.shared
    }

    /// What the session may do now with tables in this state.
    pub fn access(&self, pinned: &Pinned) -> Access {
        let settings = self.settings.now();
        let Some(notes) = self.notes(pinned) else {
            // Others have changed the same rules as this transaction, which cannot be committed any more.
            return Access::nothing(&settings, &self.principal);
        };
        if !notes.read(Rules::of).any && !settings.enforced {
            return Access::everything(&settings, &self.principal);
        }
        let newest = self.tables.shared.snapshot();
        let mut known = self.known.lock();
        if let Some(last) = &known.access
            && Arc::ptr_eq(&last.notes, &notes)
            && Arc::ptr_eq(&last.tables, pinned.shared())
            && Arc::ptr_eq(&last.newest, &newest)
            && Arc::ptr_eq(&last.settings, &settings)
        {
            return last.access.clone();
        }
        let moved = moved(pinned.shared(), &newest);
        let access = Access::of(&settings, &self.principal, notes.read(Rules::of), moved);
        let tables = Arc::clone(pinned.shared());
        known.access = Some(Judged { notes, tables, newest, settings, access: access.clone() });
        access
    }

    /// Whether what a transaction has changed may be committed, with the rights as others have left them.
    ///
    /// # Errors
    /// `Conflict` when they are others than those that its statements were checked with.
    pub fn check_commit(&self, base: &Pinned) -> Result<()> {
        let newest = self.tables.shared.snapshot();
        let (before, now) = (base.first_rules(), newest.notes());
        if Arc::ptr_eq(before, now) || !takes_away(before.texts(), now.texts()) {
            return Ok(());
        }
        let rights = Access::of(&self.settings.now(), &self.principal, now.read(Rules::of), BTreeSet::new());
        if rights.is_admin() {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Conflict, "access rules have changed since the transaction began")
            .with_hint("run it again"))
    }

    /// The rules and the settings that hold now.
    pub fn basis(&self) -> Basis {
        Basis { notes: Arc::clone(self.tables.shared.snapshot().notes()), settings: self.settings.now() }
    }

    /// Whether rows may still be handed out that were read by the rules of `then`.
    ///
    /// # Errors
    /// `Denied` when rights have been taken away since, whosever they were.
    pub fn check_kept(&self, then: &Basis) -> Result<()> {
        let now = self.basis();
        let is_less = !Arc::ptr_eq(&then.settings, &now.settings)
            || !Arc::ptr_eq(&then.notes, &now.notes) && takes_away(then.notes.texts(), now.notes.texts());
        if !is_less {
            return Ok(());
        }
        let rights = self.newest();
        if rights.is_admin() || rights.is_off() {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Denied, "access rules have changed since the query ran")
            .with_hint("run it again"))
    }

    /// The rights as they are now, whatever a transaction sees.
    pub fn newest(&self) -> Access {
        self.access(&self.tables.pin())
    }

    /// The same of somebody else, by what this server knows; `None` for nobody.
    pub fn newest_of(&self, user: &str) -> Option<Access> {
        let (settings, store) = (self.settings.now(), &self.tables.shared);
        let principal = match user == PUBLIC {
            true => Principal::anonymous(),
            false if has_user(&settings, store, user) => Principal::user(user),
            false => return None,
        };
        let notes = Arc::clone(store.snapshot().notes());
        if !notes.read(Rules::of).any && !settings.enforced {
            return Some(Access::everything(&settings, &principal));
        }
        Some(Access::of(&settings, &principal, notes.read(Rules::of), BTreeSet::new()))
    }

    /// The newest tables as far as the session may see them.
    pub fn pin(&self) -> Pinned {
        let pinned = self.tables.pin();
        self.seen(&pinned, &self.access(&pinned))
    }

    /// The tables as far as the session may see them.
    pub fn seen(&self, pinned: &Pinned, access: &Access) -> Pinned {
        if access.is_everything() {
            return pinned.clone();
        }
        let mut known = self.known.lock();
        if let Some(seen) = &known.seen
            && Arc::ptr_eq(&seen.tables, pinned.shared())
            && seen.access.is_same(access)
        {
            return Pinned::new(Arc::clone(&seen.left), Arc::clone(pinned.own()));
        }
        let (tables, left) = (Arc::clone(pinned.shared()), Arc::new(access.seen(pinned.shared())));
        known.seen = Some(Seen { tables, access: access.clone(), left: Arc::clone(&left) });
        Pinned::new(left, Arc::clone(pinned.own()))
    }

    fn notes(&self, pinned: &Pinned) -> Option<Arc<Notes>> {
        let newest = self.tables.shared.snapshot();
        pinned.shared().notes().with_newest(newest.notes()).ok()
    }
}

/// Names under which there is something else now, or nothing any more.
fn moved(then: &Arc<Snapshot>, now: &Arc<Snapshot>) -> BTreeSet<Place> {
    if Arc::ptr_eq(then, now) {
        return BTreeSet::new();
    }
    let ids = now.names_and_ids();
    let other = then.names_and_ids().into_iter().filter(|(name, id)| ids.get(name) != Some(id));
    other.map(|(name, _)| name.into_iter().map(str::to_owned).collect()).collect()
}

/// Whether somebody may do less with the rules of `now` than with those before. What is only added gives rights, or owners to
/// new things, but for policies and for the first rule of all.
fn takes_away(before: &BTreeMap<String, String>, now: &BTreeMap<String, String>) -> bool {
    before.iter().any(|(key, text)| !is_thing(key) && now.get(key) != Some(text))
        || now.keys().any(|key| !before.contains_key(key) && closes(key))
}

/// The rules of which somebody has seen the users.
#[derive(Debug, Default)]
pub struct UsersSeen(Option<Arc<Notes>>);

impl UsersSeen {
    /// Who may log in; `None` if they are those that were seen.
    pub fn newer(&mut self, store: &TableStore) -> Option<CatalogUsers> {
        let snapshot = store.snapshot();
        if self.0.as_ref().is_some_and(|seen| Arc::ptr_eq(seen, snapshot.notes())) {
            return None;
        }
        self.0 = Some(Arc::clone(snapshot.notes()));
        let rules = snapshot.notes().read(Rules::of);
        let users = rules.users.iter().map(|(name, user)| (name.clone(), user.hash.clone()));
        let tokens = rules.tokens.iter().map(|((user, _), token)| {
            let expires = token.expires.map(|seconds| UNIX_EPOCH + Duration::from_secs(seconds));
            (user.clone(), token.sha256.clone(), expires)
        });
        Some(CatalogUsers { passwords: users.collect(), tokens: tokens.collect() })
    }
}

/// Whether anybody of this name may be connected.
pub fn is_known(settings: &AccessSettings, store: &TableStore, principal: &Principal) -> bool {
    if !principal.authenticated {
        return true;
    }
    let rules = store.snapshot().notes().read(Rules::of);
    if principal.claims.is_some() || settings.users.contains_key(&principal.name) {
        return may_be(settings, principal, &rules);
    }
    (!rules.any && settings.users.is_empty()) || rules.users.contains_key(&principal.name)
}

/// Whether the configuration or SQL has made a user of this name.
pub fn has_user(settings: &AccessSettings, store: &TableStore, name: &str) -> bool {
    settings.users.contains_key(name) || store.snapshot().notes().read(Rules::of).users.contains_key(name)
}

/// Whether somebody may have its name: whom an identity provider has sent is no user of ours, unless the operator says so, and
/// is never one of our roles, whose rights it would have.
pub(crate) fn may_be(settings: &AccessSettings, principal: &Principal, rules: &Rules) -> bool {
    let name = &principal.name;
    principal.claims.as_ref().is_none_or(|claims| {
        let is_user = settings.users.contains_key(name) || rules.users.contains_key(name);
        if is_user { claims.local_users } else { name != PUBLIC && !is_role(settings, rules, name) }
    })
}

/// Whether the configuration or SQL has a role of this name.
pub fn is_role(settings: &AccessSettings, rules: &Rules, name: &str) -> bool {
    rules.roles.contains(name)
        || settings.users.values().any(|user| user.roles.iter().any(|role| role == name))
}

/// All roles of a user, with those of their roles; `None` for nobody who is known. Whom an identity provider has sent is known.
pub(crate) fn grantees(
    settings: &AccessSettings,
    principal: &Principal,
    rules: &Rules,
) -> Option<BTreeSet<String>> {
    let mut found = BTreeSet::from([PUBLIC.to_owned()]);
    if !principal.authenticated {
        return Some(found);
    }
    let configured = settings.users.get(&principal.name);
    let is_user = |name: &str| settings.users.contains_key(name) || rules.users.contains_key(name);
    if principal.claims.is_none() && !is_user(&principal.name) || !may_be(settings, principal, rules) {
        return None;
    }
    let mut open = vec![principal.name.clone()];
    open.extend(configured.iter().flat_map(|user| user.roles.iter().cloned()));
    // What an identity provider calls a role must not make one user of another.
    let claimed = principal.claims.iter().flat_map(|claims| &claims.roles).filter(|role| !is_user(role));
    open.extend(claimed.cloned());
    while let Some(name) = open.pop() {
        open.extend(
            rules.members.get(&name).into_iter().flatten().filter(|role| !found.contains(*role)).cloned(),
        );
        found.insert(name);
    }
    Some(found)
}
