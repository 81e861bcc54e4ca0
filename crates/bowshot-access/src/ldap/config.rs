//! Configuration of a directory, and its validation.

use super::bad;
use super::template::{DistinguishedName, Filter};
use crate::Error;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use url::Url;

/// Longest cache time of a bind.
const MAX_TIMEOUT_SECONDS: u64 = 60;
/// Longest time that a password is taken as right without asking.
const MAX_CACHE_SECONDS: u64 = 600;
/// Shortest and longest time that a login is good.
const SESSION_SECONDS: std::ops::RangeInclusive<u64> = 1..=7 * 24 * 60 * 60;
/// Most conversations at once.
const MAX_CONNECTIONS: usize = 1_000;

/// A directory of users.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LdapConfig {
    /// `ldaps://host` or `ldap://host`, with an optional port.
    pub url: String,
    /// Whether `ldap://` uses StartTLS.
    #[serde(default)]
    pub starttls: bool,
    /// Whether passwords may go over a connection that is not encrypted.
    #[serde(default)]
    pub insecure: bool,
    /// Trusted authorities (PEM) instead of the system's.
    pub ca_file: Option<PathBuf>,
    /// The DN of a user, with `{user}` in it. Either this or `user_base`.
    pub user_dn: Option<String>,
    /// Base of the search for users.
    pub user_base: Option<String>,
    /// Filter of the search for users, with `{user}`.
    pub user_filter: Option<String>,
    /// The attribute that has the user's name, to the letter.
    #[serde(default = "user_attribute")]
    pub user_attribute: String,
    /// The search account. Without it users cannot be searched, and groups are searched as the user.
    pub bind_dn: Option<String>,
    /// A file with the password of that account; read anew at each login.
    pub bind_password_file: Option<PathBuf>,
    /// A variable of the environment with that password.
    pub bind_password_env: Option<String>,
    /// Base of the search for groups; without it users have none.
    pub group_base: Option<String>,
    /// Filter of the search for groups, with `{dn}` or `{user}`.
    #[serde(default = "group_filter")]
    pub group_filter: String,
    /// The attribute that is a group's name.
    #[serde(default = "group_attribute")]
    pub group_attribute: String,
    /// Roles by group names; other groups are ignored. Empty: group names are role names.
    #[serde(default)]
    pub roles: BTreeMap<String, String>,
    /// The group of administrators.
    pub admin_group: Option<String>,
    /// Whether users that the server has of its own, without a password, log in with that of the directory.
    #[serde(default)]
    pub local_users: bool,
    /// Timeout of a login.
    #[serde(default = "timeout_seconds")]
    pub timeout_seconds: u64,
    /// Conversations that go on at once.
    #[serde(default = "max_connections")]
    pub max_connections: usize,
    /// Seconds for which a password that was right is not asked about again.
    #[serde(default = "cache_seconds")]
    pub cache_seconds: u64,
    /// Seconds until users must log in again.
    #[serde(default = "session_seconds")]
    pub session_seconds: u64,
}

fn user_attribute() -> String {
    "uid".to_owned()
}

fn group_filter() -> String {
    "(member={dn})".to_owned()
}

fn group_attribute() -> String {
    "cn".to_owned()
}

fn timeout_seconds() -> u64 {
    5
}

fn max_connections() -> usize {
    8
}

fn cache_seconds() -> u64 {
    30
}

fn session_seconds() -> u64 {
    10 * 60 * 60
}

/// How the entry of a user is found.
#[derive(Debug)]
pub(super) enum Users {
    /// By its name alone.
    Named(DistinguishedName),
    /// By a search below an entry.
    Searched { base: String, filter: Filter },
}

/// Where groups are.
#[derive(Debug)]
pub(super) struct Groups {
    pub(super) base: String,
    pub(super) filter: Filter,
}

/// The account that searches.
#[derive(Debug)]
pub(super) struct Account {
    pub(super) dn: String,
    pub(super) password: PasswordSource,
}

#[derive(Debug)]
pub(super) enum PasswordSource {
    File(PathBuf),
    Known(bowshot_api::Secret),
}

impl LdapConfig {
    pub(crate) fn place(&mut self, folder: &Path) {
        for file in [&mut self.ca_file, &mut self.bind_password_file].into_iter().flatten() {
            *file = folder.join(&*file);
        }
    }

    fn refuse(&self, reason: impl Into<String>) -> Error {
        bad(&self.url, reason)
    }

    /// The address, encrypted unless the operator explicitly allows cleartext.
    pub(super) fn address(&self) -> Result<Url, Error> {
        let url = Url::parse(&self.url).map_err(|error| self.refuse(error.to_string()))?;
        let extra = !matches!(url.path(), "" | "/") || url.query().is_some() || !url.username().is_empty();
        if extra || url.password().is_some() || url.host_str().is_none_or(str::is_empty) {
            return Err(self.refuse("an address has a host and perhaps a port, and nothing else"));
        }
        match (url.scheme(), self.starttls, self.insecure) {
            ("ldaps", false, false) | ("ldap", true, false) | ("ldap", false, true) => Ok(url),
            ("ldaps", ..) => Err(self.refuse("`ldaps` is encrypted; leave `starttls` and `insecure` out")),
            ("ldap", true, true) => Err(self.refuse("`starttls` and `insecure` exclude each other")),
            ("ldap", false, false) => Err(self.refuse(
                "passwords would be sent in cleartext: use `ldaps://` or `starttls = true`, or say `insecure = true`",
            )),
            _ => Err(self.refuse("an address begins with `ldaps://` or `ldap://`")),
        }
    }

    pub(super) fn users(&self) -> Result<Users, Error> {
        let refuse = |reason: String| self.refuse(reason);
        match (&self.user_dn, &self.user_base) {
            (Some(_), None) if self.user_filter.is_some() => {
                Err(self.refuse("`user_filter` is for a search below `user_base`"))
            }
            (Some(template), None) => Ok(Users::Named(DistinguishedName::parse(template).map_err(refuse)?)),
            (None, Some(base)) => {
                let filter = match &self.user_filter {
                    Some(filter) => filter.clone(),
                    None => format!("({}={{user}})", self.user_attribute),
                };
                Ok(Users::Searched {
                    base: base.clone(),
                    filter: Filter::parse_user(&filter).map_err(refuse)?,
                })
            }
            (Some(_), Some(_)) => Err(self.refuse("`user_dn` and `user_base` exclude each other")),
            (None, None) => Err(self.refuse("`user_dn` or `user_base` is needed")),
        }
    }

    pub(super) fn groups(&self) -> Result<Option<Groups>, Error> {
        let Some(base) = &self.group_base else {
            if self.admin_group.is_some() || !self.roles.is_empty() {
                return Err(self.refuse("`roles` and `admin_group` need `group_base`"));
            }
            return Ok(None);
        };
        let filter = Filter::parse_groups(&self.group_filter).map_err(|reason| self.refuse(reason))?;
        Ok(Some(Groups { base: base.clone(), filter }))
    }

    pub(super) fn account(&self) -> Result<Option<Account>, Error> {
        let password = match (&self.bind_password_file, &self.bind_password_env) {
            (Some(_), Some(_)) => {
                return Err(self.refuse("`bind_password_file` and `bind_password_env` exclude each other"));
            }
            (Some(file), None) => {
                // Shows at the start that it is there.
                read_password(file).map_err(|reason| self.refuse(reason))?;
                Some(PasswordSource::File(file.clone()))
            }
            (None, Some(variable)) => {
                let password = std::env::var(variable).ok().filter(|password| !password.is_empty());
                let password =
                    password.ok_or_else(|| self.refuse(format!("the variable `{variable}` has no text")))?;
                Some(PasswordSource::Known(bowshot_api::Secret::new(password)))
            }
            (None, None) => None,
        };
        match (&self.bind_dn, password) {
            (None, None) => Ok(None),
            (Some(dn), Some(password)) if !dn.is_empty() => Ok(Some(Account { dn: dn.clone(), password })),
            _ => Err(self.refuse(
                "`bind_dn` and its password (`bind_password_file` or `bind_password_env`) belong together",
            )),
        }
    }

    /// Checks across fields.
    pub(super) fn check(&self) -> Result<(), Error> {
        if self.user_attribute.is_empty() || self.group_attribute.is_empty() {
            return Err(self.refuse("`user_attribute` and `group_attribute` are names"));
        }
        if !(1..=MAX_TIMEOUT_SECONDS).contains(&self.timeout_seconds) {
            return Err(self.refuse(format!("`timeout_seconds` is 1 to {MAX_TIMEOUT_SECONDS}")));
        }
        if self.cache_seconds > MAX_CACHE_SECONDS {
            return Err(self.refuse(format!("`cache_seconds` is at most {MAX_CACHE_SECONDS}")));
        }
        if !SESSION_SECONDS.contains(&self.session_seconds) {
            return Err(self.refuse("`session_seconds` is 1 to 604800, a week"));
        }
        if !(1..=MAX_CONNECTIONS).contains(&self.max_connections) {
            return Err(self.refuse(format!("`max_connections` is 1 to {MAX_CONNECTIONS}")));
        }
        Ok(())
    }
}

/// The password in a file, without the end of its line.
///
/// # Errors
/// The reason why there is none.
pub(super) fn read_password(file: &Path) -> Result<bowshot_api::Secret, String> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("`{}`: {error}", file.display()))?;
    match text.trim_end_matches(['\r', '\n']) {
        "" => Err(format!("`{}` contains no password", file.display())),
        password => Ok(bowshot_api::Secret::new(password)),
    }
}
