//! Tokens that users make for their programs: the catalog has their hashes, and their makers see them once.

use super::{AccessChange, Notes};
use crate::write::returning::Returning;
use bowshot_api::{Error, ErrorKind, Result, Secret};
use bowshot_policy::access::Access;
use bowshot_policy::rules::{Key, Rules, Token, token_text};
use bowshot_sql::Expiry;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::lit;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How long a token is good that does not say it.
const USUAL: Duration = Duration::from_secs(90 * 24 * 60 * 60);
/// Tokens of one user.
const MAX_TOKENS: usize = 1_000;

/// What the statement that makes a token answers.
#[derive(Debug, Clone)]
pub(super) struct Told {
    name: String,
    token: Secret,
    /// In seconds since 1970.
    expires: Option<u64>,
}

impl AccessChange {
    /// Whether the statement answers with a row.
    pub(crate) fn tells(&self) -> bool {
        self.told.is_some()
    }
}

/// The row that a statement answers with.
///
/// # Errors
/// None.
pub(crate) fn told(change: &AccessChange) -> Result<Option<Returning>> {
    let Some(Told { name, token, expires }) = &change.told else { return Ok(None) };
    let micros = expires.and_then(|seconds| i64::try_from(seconds).ok()?.checked_mul(1_000_000));
    let row = Returning::row(vec![
        ("token_name", lit(name.as_str())),
        ("token", lit(token.expose())),
        ("expires", lit(ScalarValue::TimestampMicrosecond(micros, Some("UTC".into())))),
    ]);
    row.map(Some)
}

/// The note of a new token, and what its maker is told.
///
/// # Errors
/// `NotFound` without such a user, `AlreadyExists`, `LimitReached`.
pub(super) fn made(
    (user, name): (String, String),
    expires: Expiry,
    access: &Access,
) -> Result<((String, Option<String>), Told)> {
    let (rules, settings) = (access.rules(), access.settings());
    if !rules.users.contains_key(&user) && !settings.users.contains_key(&user) {
        return Err(Error::not_found(format!("user `{user}` not found")));
    }
    if rules.tokens.contains_key(&(user.clone(), name.clone())) {
        return Err(Error::new(ErrorKind::AlreadyExists, format!("`{user}` has a token `{name}` already"))
            .with_hint(format!("drop it with `DROP TOKEN {name}`, or choose another name")));
    }
    if all_of(&user, &rules).count() >= MAX_TOKENS {
        return Err(Error::new(ErrorKind::LimitReached, format!("`{user}` has {MAX_TOKENS} tokens"))
            .with_hint("drop those that nobody needs any more"));
    }
    let (token, sha256) = (settings.token)()?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let expires = match expires {
        Expiry::Never => None,
        Expiry::Usual => Some((now + USUAL).as_secs()),
        Expiry::After(time) => Some(now.saturating_add(time).as_secs()),
    };
    let note = token_text(&Token { sha256, made: now.as_secs(), expires });
    let key = Key::Token { user: &user, name: &name }.text();
    Ok(((key, Some(note)), Told { name, token, expires }))
}

/// # Errors
/// `NotFound`.
pub(super) fn dropped((user, name): (String, String), if_exists: bool, rules: &Rules) -> Result<Notes> {
    if rules.tokens.contains_key(&(user.clone(), name.clone())) {
        return Ok(vec![(Key::Token { user: &user, name: &name }.text(), None)]);
    }
    if if_exists {
        Ok(Notes::new())
    } else {
        Err(Error::not_found(format!("`{user}` has no token `{name}`")))
    }
}

/// What takes all tokens of a user out.
pub(super) fn all_of<'a>(
    user: &'a str,
    rules: &'a Rules,
) -> impl Iterator<Item = (String, Option<String>)> + 'a {
    let own = rules.tokens.keys().filter(move |(of, _)| of == user);
    own.map(|(user, name)| (Key::Token { user, name }.text(), None))
}
