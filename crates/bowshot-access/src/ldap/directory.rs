//! One directory and its logins: find the entry, bind as it, read its groups.

use super::config::{Account, Groups, LdapConfig, PasswordSource, Users, read_password};
use crate::{Error, http_client};
use bowshot_api::{Claims, Principal, Secret};
use futures::FutureExt;
use futures::future::{Either, select};
use ldap3::{
    Ldap, LdapConnAsync, LdapConnSettings, LdapError, ResultEntry, Scope, SearchEntry, SearchOptions,
};
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use url::Url;

/// Groups of one user.
const MAX_GROUPS: i32 = 1_000;
/// A directory that gives no answers is complained about so often.
const COMPLAINT_PAUSE: Duration = Duration::from_secs(10);

/// How long a goodbye may take.
const FAREWELL: Duration = Duration::from_millis(200);

/// Codes of results (RFC 4511, 4.1.9).
const SUCCESS: u32 = 0;
const SIZE_LIMIT_EXCEEDED: u32 = 4;
const NO_SUCH_OBJECT: u32 = 32;
/// Result codes of a refused bind.
const REFUSALS: [u32; 7] = [
    19, // constraint violation: locked
    NO_SUCH_OBJECT,
    34, // invalid DN syntax
    48, // inappropriate authentication
    49, // invalid credentials
    50, // insufficient access rights
    53, // unwilling to perform: disabled
];

/// A directory's answer to a login.
#[derive(Debug)]
pub(super) enum Verdict {
    /// Unknown user, or not distinguished from a wrong password.
    Unknown,
    Wrong,
    Known(Box<Principal>),
}

pub(super) struct Directory {
    config: LdapConfig,
    url: Url,
    settings: LdapConnSettings,
    users: Users,
    groups: Option<Groups>,
    account: Option<Account>,
    places: Semaphore,
    complained: Mutex<Option<Instant>>,
}

impl std::fmt::Debug for Directory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Directory").field("url", &self.config.url).finish_non_exhaustive()
    }
}

impl Directory {
    pub(super) fn new(config: LdapConfig) -> Result<Self, Error> {
        config.check()?;
        let url = config.address()?;
        let mut settings = LdapConnSettings::new().set_starttls(config.starttls);
        if !config.insecure {
            let tls = http_client::tls(config.ca_file.as_deref());
            settings = settings.set_config(Arc::new(tls.map_err(|reason| super::bad(&config.url, reason))?));
        }
        let (users, groups, account) = (config.users()?, config.groups()?, config.account()?);
        let (places, complained) = (Semaphore::new(config.max_connections), Mutex::default());
        Ok(Self { config, url, settings, users, groups, account, places, complained })
    }

    pub(super) fn config(&self) -> &LdapConfig {
        &self.config
    }

    pub(super) fn name(&self) -> &str {
        &self.config.url
    }

    pub(super) fn remembers_until(&self, now: Instant) -> Instant {
        now + Duration::from_secs(self.config.cache_seconds)
    }

    /// Tells the operator that it gives no answers, now and then.
    pub(super) fn complain(&self, reason: &str) {
        let (mut complained, now) = (self.complained.lock(), Instant::now());
        if complained.is_none_or(|before| now.duration_since(before) >= COMPLAINT_PAUSE) {
            *complained = Some(now);
            tracing::warn!(directory = self.name(), reason, "a directory does not answer");
        }
    }

    /// Asks whether this is the user's password.
    ///
    /// # Errors
    /// The reason why there is no answer, for the log.
    pub(super) async fn verify(&self, user: &str, password: &Secret) -> Result<Verdict, String> {
        let patience = Duration::from_secs(self.config.timeout_seconds);
        let asked = async {
            let _place = self.places.acquire().await.map_err(|error| error.to_string())?;
            self.converse(user, password).await
        };
        // The library panics on malformed answers.
        let asked = AssertUnwindSafe(timeout(patience, Box::pin(asked))).catch_unwind().await;
        match asked {
            Ok(Ok(verdict)) => verdict,
            Ok(Err(_)) => Err(format!("no answer within {patience:?}")),
            Err(_) => Err("the answer is malformed".to_owned()),
        }
    }

    async fn converse(&self, user: &str, password: &Secret) -> Result<Verdict, String> {
        let connected = LdapConnAsync::from_url_with_settings(self.settings.clone(), &self.url).await;
        let (connection, ldap) = connected.map_err(|error| error.to_string())?;
        let talk = async move {
            let mut talk = Login { directory: self, ldap };
            let verdict = talk.login(user, password).await;
            // Politeness; the connection ends anyway.
            let _ = timeout(FAREWELL, talk.ldap.unbind()).await;
            verdict
        };
        match select(Box::pin(talk), Box::pin(connection.drive())).await {
            Either::Left((verdict, _)) => verdict,
            // Without the connection every further word fails.
            Either::Right((_, talk)) => talk.await,
        }
    }

    /// The principal, with the roles of its groups.
    fn principal(&self, user: &str, groups: &BTreeSet<String>) -> Principal {
        let admin = self.config.admin_group.as_ref().is_some_and(|group| groups.contains(group));
        let roles = match self.config.roles.is_empty() {
            true => groups.clone(),
            false => groups.iter().filter_map(|group| self.config.roles.get(group).cloned()).collect(),
        };
        let claims =
            Claims { issuer: self.config.url.clone(), roles, admin, local_users: self.config.local_users };
        let expires = SystemTime::now() + Duration::from_secs(self.config.session_seconds);
        Principal::claimed(user, claims, expires)
    }
}

/// One conversation.
struct Login<'a> {
    directory: &'a Directory,
    ldap: Ldap,
}

impl Login<'_> {
    async fn login(&mut self, user: &str, password: &Secret) -> Result<Verdict, String> {
        let dn = match &self.directory.users {
            Users::Named(name) => name.of(user),
            Users::Searched { base, filter } => {
                self.search_as_account().await?;
                let filter = filter.of(user, "");
                match self.entry(user, (base, Scope::Subtree, &filter)).await? {
                    Some(dn) => dn,
                    None => return Ok(Verdict::Unknown),
                }
            }
        };
        if !self.bind(&dn, password).await? {
            return Ok(match &self.directory.users {
                Users::Named(_) => Verdict::Unknown,
                Users::Searched { .. } => Verdict::Wrong,
            });
        }
        self.search_as_account().await?;
        if matches!(self.directory.users, Users::Named(_)) {
            // Directories take names for the same that differ in case or spaces; here they are two users.
            let found = self.entry(user, (&dn, Scope::Base, "(objectClass=*)")).await?;
            if found.is_none() {
                return Ok(Verdict::Wrong);
            }
        }
        let groups = self.groups(user, &dn).await?;
        Ok(Verdict::Known(Box::new(self.directory.principal(user, &groups))))
    }

    /// Whether the password is that of an entry.
    async fn bind(&mut self, dn: &str, password: &Secret) -> Result<bool, String> {
        if dn.is_empty() || password.expose().is_empty() {
            return Err("a bind without name or password proves nothing".to_owned());
        }
        let bound = self.ldap.simple_bind(dn, password.expose()).await.map_err(|error| error.to_string())?;
        match bound.rc {
            SUCCESS => Ok(true),
            code if REFUSALS.contains(&code) => Ok(false),
            code => Err(format!("the bind gives code {code}: {}", bound.text.escape_debug())),
        }
    }

    /// Binds as the search account, if there is one.
    async fn search_as_account(&mut self) -> Result<(), String> {
        let Some(account) = &self.directory.account else { return Ok(()) };
        let password = match &account.password {
            PasswordSource::Known(password) => password.clone(),
            // A short file of this machine.
            PasswordSource::File(file) => read_password(file)?,
        };
        match self.bind(&account.dn, &password).await? {
            true => Ok(()),
            false => Err(format!("the password of `{}` is not taken", account.dn)),
        }
    }

    /// The DN of the only entry with exactly the user's name.
    async fn entry(
        &mut self,
        user: &str,
        (base, scope, filter): (&str, Scope, &str),
    ) -> Result<Option<String>, String> {
        let attribute = self.directory.config.user_attribute.clone();
        // One more than may be there.
        let found = self.search((base, scope, filter), &attribute, 2).await?;
        let [entry] = found.as_slice() else {
            if found.len() > 1 {
                tracing::warn!(
                    directory = self.directory.name(),
                    filter,
                    "several directory entries match one user name, which is refused"
                );
            }
            return Ok(None);
        };
        let named = values(entry, &attribute).any(|name| name == user);
        if !named {
            tracing::debug!(dn = entry.dn, attribute, "an entry has the name in another form, or not at all");
        }
        Ok(named.then(|| entry.dn.clone()))
    }

    async fn groups(&mut self, user: &str, dn: &str) -> Result<BTreeSet<String>, String> {
        let Some(groups) = &self.directory.groups else { return Ok(BTreeSet::new()) };
        let attribute = self.directory.config.group_attribute.clone();
        let filter = groups.filter.of(user, dn);
        let found = self.search((&groups.base, Scope::Subtree, &filter), &attribute, MAX_GROUPS + 1).await?;
        if usize::try_from(MAX_GROUPS).is_ok_and(|most| found.len() > most) {
            return Err(format!("a user is in more than {MAX_GROUPS} groups"));
        }
        Ok(found.iter().flat_map(|entry| values(entry, &attribute)).map(str::to_owned).collect())
    }

    /// Entries with one attribute. More than `most` may be cut off.
    async fn search(
        &mut self,
        (base, scope, filter): (&str, Scope, &str),
        attribute: &str,
        most: i32,
    ) -> Result<Vec<SearchEntry>, String> {
        let told = |error: LdapError| error.to_string();
        let seconds = i32::try_from(self.directory.config.timeout_seconds).unwrap_or(i32::MAX);
        let options = SearchOptions::new().sizelimit(most).timelimit(seconds);
        let asked = self.ldap.with_search_options(options);
        let mut rows = asked.streaming_search(base, scope, filter, vec![attribute]).await.map_err(told)?;
        let mut found: Vec<ResultEntry> = Vec::new();
        while let Some(entry) = rows.next().await.map_err(told)? {
            if !entry.is_ref() && !entry.is_intermediate() {
                found.push(entry);
            }
            if i32::try_from(found.len()).is_ok_and(|count| count > most) {
                return Err("more entries came than were asked for".to_owned());
            }
        }
        let ended = rows.finish().await;
        match ended.rc {
            SUCCESS => {}
            SIZE_LIMIT_EXCEEDED if i32::try_from(found.len()).is_ok_and(|count| count >= most) => {}
            code => {
                return Err(format!(
                    "a search below `{base}` gives code {code}: {}",
                    ended.text.escape_debug()
                ));
            }
        }
        Ok(found.into_iter().map(SearchEntry::construct).collect())
    }
}

/// The values of an attribute, whose name ignores case.
fn values<'a>(entry: &'a SearchEntry, attribute: &str) -> impl Iterator<Item = &'a str> {
    let found = entry.attrs.iter().find(|(name, _)| name.eq_ignore_ascii_case(attribute));
    found.into_iter().flat_map(|(_, values)| values.iter().map(String::as_str))
}
