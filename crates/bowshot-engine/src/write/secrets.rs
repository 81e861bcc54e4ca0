//! `CREATE [OR REPLACE] SECRET [IF NOT EXISTS] s (…)` and `DROP SECRET [IF EXISTS] s`: credentials of sources, which are notes of the
//! snapshot as models are, sealed by `bowshot-storage`. They are in force when they are committed, for all who ask the sources.
//!
//! Values are in the statement and in [`NewSecret`], which does not print them, and nowhere else.

use crate::catalog::names::Names;
use crate::write::WhenThere;
use crate::write::ddl::Ddl;
use bowshot_api::catalog_names::DEFAULT_CATALOG;
use bowshot_api::{Error, ErrorKind, Result};
use bowshot_policy::access::{Access, denied};
use bowshot_policy::snapshot::Pinned;
use bowshot_sql::SecretStatement;
use bowshot_storage::secrets::{MAX_SECRETS, NewSecret, Secrets, not_there};
use chrono::Utc;
use datafusion::sql::sqlparser::dialect::Dialect;
use std::sync::Arc;

/// What a statement does with a secret.
#[derive(Debug, Clone)]
pub(crate) enum SecretChange {
    Create { new: Arc<NewSecret>, when_there: WhenThere },
    Drop { name: String, if_exists: bool },
}

impl SecretChange {
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Create { new, .. } => &new.name,
            Self::Drop { name, .. } => name,
        }
    }

    /// The state with the secret, or without it.
    ///
    /// # Errors
    /// `AlreadyExists`, `NotFound`, `LimitReached`; when there is no key to seal it with.
    pub(crate) fn apply(&self, names: &Names) -> Result<Pinned> {
        let pinned = &names.pinned;
        let notes = pinned.shared().notes();
        let key = Secrets::note(self.name());
        let there = notes.texts().contains_key(&key);
        let note = match self {
            Self::Create { when_there: WhenThere::Keep, .. } if there => return Ok(pinned.clone()),
            Self::Create { new, when_there: WhenThere::Fail } if there => {
                let message = format!("secret `{}` already exists", new.name);
                return Err(Error::new(ErrorKind::AlreadyExists, message).with_hint(
                    "use IF NOT EXISTS to keep it, OR REPLACE to give it other values, or another name",
                ));
            }
            Self::Create { .. } if !there && Secrets::count(notes) >= MAX_SECRETS => {
                let message = format!("there are {MAX_SECRETS} secrets, which is the limit");
                return Err(
                    Error::new(ErrorKind::LimitReached, message).with_hint("drop those that are not needed")
                );
            }
            Self::Create { new, .. } => {
                let made = Utc::now().timestamp_micros();
                let (key, text) = secrets(names)?.sealed(new, names.access.user(), made)?;
                (key, Some(text))
            }
            Self::Drop { if_exists: true, .. } if !there => return Ok(pinned.clone()),
            Self::Drop { name, .. } if !there => return Err(not_there(name)),
            Self::Drop { .. } => (key, None),
        };
        pinned.changed(DEFAULT_CATALOG, |snapshot| snapshot.with_notes([note]))
    }
}

/// With whose credentials the server goes for rows, admins say alone, also where everybody may do everything else.
///
/// # Errors
/// `Denied`.
pub(crate) fn check(access: &Access) -> Result<()> {
    if access.is_admin() {
        return Ok(());
    }
    Err(denied(&format!("`{}` may not make or drop secrets", access.user()))
        .with_hint("an admin may: `admin = true` under `[[access.users]]`"))
}

/// The statement, if the text is one of these. Who may not say it learns nothing of what is wrong with it.
///
/// # Errors
/// `Syntax` for one that is not complete, `Denied`, and what cannot be used of it, never with a value.
pub(crate) fn recognise(sql: &str, dialect: &dyn Dialect, names: &Names) -> Result<Option<Ddl>> {
    let Some(statement) = bowshot_sql::secret_statement(sql, dialect)? else { return Ok(None) };
    check(&names.access)?;
    Ok(Some(Ddl::Secret(match statement {
        SecretStatement::Create { name, replace, keep, options } => {
            let when_there = match (replace, keep) {
                (true, _) => WhenThere::Replace,
                (false, true) => WhenThere::Keep,
                (false, false) => WhenThere::Fail,
            };
            SecretChange::Create { new: Arc::new(secrets(names)?.checked(name, options)?), when_there }
        }
        SecretStatement::Drop { name, if_exists } => SecretChange::Drop { name, if_exists },
    })))
}

/// The error, or one without words of the statement where it repeats a secret: the parser and the planner quote what they do not
/// understand. Statements that are read here are none of theirs, and what is said of them has no value in it.
pub(crate) fn untold(error: Error, sql: &str, dialect: bowshot_sql::Dialect) -> Error {
    let is_read_here = || {
        !matches!(bowshot_sql::secret_statement(sql, &dialect), Ok(None))
            || !matches!(bowshot_sql::database_statement(sql, &dialect), Ok(None))
            || matches!(bowshot_sql::access(sql, dialect), Ok(Some(_)))
    };
    if !bowshot_sql::repeats_secrets(&error.chain(), sql, dialect) || is_read_here() {
        return error;
    }
    let message =
        "the statement cannot be run, and is not repeated, since it may have values of a secret in it";
    Error::new(error.kind(), message).with_hint("send `CREATE SECRET name (…)` by itself")
}

fn secrets(names: &Names) -> Result<&Secrets> {
    names.parts.secrets.as_deref().ok_or_else(|| Error::unsupported("this server has no secrets"))
}
