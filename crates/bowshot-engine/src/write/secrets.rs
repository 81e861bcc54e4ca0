//! `CREATE [OR REPLACE] SECRET [IF NOT EXISTS] s (…)` and `DROP SECRET [IF EXISTS] s`: credentials of sources, which are notes of the
//! snapshot as models are, encrypted by `bowshot-object-store`. They are in force when they are committed, for all who ask the sources.
//!
//! Values are in the statement and in [`NewSecret`], which does not print them, and nowhere else.

use crate::catalog::names::Names;
use crate::write::WhenThere;
use crate::write::ddl::Ddl;
use bowshot_api::catalog_names::DEFAULT_CATALOG;
use bowshot_api::{Error, ErrorKind, Result};
use bowshot_object_store::secrets::{MAX_SECRETS, NewSecret, Secrets, not_there};
use bowshot_policy::access::{Access, denied};
use bowshot_policy::snapshot::Pinned;
use bowshot_sql::SecretStatement;
use chrono::Utc;
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
            Self::Create { .. } if !there && Secrets::count(notes.texts()) >= MAX_SECRETS => {
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

/// What a statement changes. Who may not say it learns nothing of what is wrong with it.
///
/// # Errors
/// `Denied`, and what cannot be used of it, never with a value.
pub(crate) fn change(statement: SecretStatement, names: &Names) -> Result<Ddl> {
    check(&names.access)?;
    Ok(Ddl::Secret(match statement {
        SecretStatement::Create { name, replace, if_not_exists, options } => {
            let when_there = WhenThere::new(replace, if_not_exists);
            SecretChange::Create { new: Arc::new(secrets(names)?.checked(name, options)?), when_there }
        }
        SecretStatement::Drop { name, if_exists } => SecretChange::Drop { name, if_exists },
    }))
}

/// The error, or one without words of the statement where it repeats a secret: the parser and the planner quote what they do not
/// understand.
pub(crate) fn untold(error: Error, sql: &str, dialect: bowshot_sql::Dialect) -> Error {
    if !bowshot_sql::repeats_secrets(&error.chain(), sql, dialect) {
        return error;
    }
    let message =
        "the statement cannot be run, and is not repeated, since it may have values of a secret in it";
    Error::new(error.kind(), message).with_hint("send `CREATE SECRET name (…)` by itself")
}

fn secrets(names: &Names) -> Result<&Secrets> {
    names.parts.secrets.as_deref().ok_or_else(|| Error::unsupported("this server has no secrets"))
}
