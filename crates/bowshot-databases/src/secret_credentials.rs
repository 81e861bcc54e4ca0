//! Credentials of secrets (`CREATE SECRET`) for attached databases: of the secret that ATTACH names, or of the one with the longest matching
//! scope. A replaced secret counts from the next statement on; a dropped one leaves the database without credentials.

use crate::location::Location;
use crate::settings::DatabaseSettings;
use bowshot_api::{Error, ErrorKind, Result};
use bowshot_object_store::secrets::{KeptSecret, Secrets};
use std::sync::Arc;

/// The settings with the credentials of a matching secret.
///
/// # Errors
/// `NotFound` without the named secret; `Invalid` for one of another kind or scope, or that cannot be decrypted, and
/// without a required user.
pub(crate) fn resolve(settings: DatabaseSettings, secrets: Option<&Secrets>) -> Result<DatabaseSettings> {
    let secret = match (&settings.secret, secrets) {
        (None, None) => None,
        (None, Some(secrets)) => most_exact(&settings, secrets),
        (Some(name), Some(secrets)) => Some(secrets.named(name)?),
        (Some(_), None) => return Err(Error::unsupported("this server has no secrets")),
    };
    match secret {
        Some(secret) => with(settings, secret),
        None => settings.check_user().map(|()| settings),
    }
}

/// New settings if the secret was replaced.
///
/// # Errors
/// `Unavailable` if it was dropped or cannot be used any more.
pub(crate) fn refresh(
    settings: &DatabaseSettings,
    secrets: Option<&Secrets>,
) -> Result<Option<DatabaseSettings>> {
    let (Some(opened), Some(secrets)) = (&settings.opened_secret, secrets) else { return Ok(None) };
    let gone = |reason: &str| {
        let (database, name) = (&settings.name, opened.name());
        let message = format!("the database `{database}` has no credentials: its secret `{name}` {reason}");
        Error::new(ErrorKind::Unavailable, message)
            .with_hint("create the secret again with CREATE SECRET, or DETACH and ATTACH the database")
    };
    let now = secrets.named(opened.name()).map_err(|_| gone("was dropped"))?;
    if Arc::ptr_eq(&now, opened) {
        return Ok(None);
    }
    let renewed = with(settings.clone(), now);
    renewed.map(Some).map_err(|error| gone(&format!("was replaced, and {}", error.message())))
}

/// The most specific secret for a database without credentials.
fn most_exact(settings: &DatabaseSettings, secrets: &Secrets) -> Option<Arc<KeptSecret>> {
    if settings.user.is_some() || settings.password.is_some() || settings.forward_token {
        return None;
    }
    let about = |secret: &Arc<KeptSecret>| {
        let scope = secret.scope()?;
        let is_of_kind = secret.kind().is_some_and(|kind| kind.name() == settings.kind.name());
        (is_of_kind && covers(settings, scope))
            .then(|| (scope.trim_end_matches('/').len(), Arc::clone(secret)))
    };
    let about = secrets.all().into_iter().filter_map(|secret| about(&secret));
    about.reduce(|best, next| if next.0 > best.0 { next } else { best }).map(|(_, secret)| secret)
}

/// Whether a scope covers the location of a database.
fn covers(settings: &DatabaseSettings, scope: &str) -> bool {
    let scope = Location::parse(settings.kind, scope, None);
    scope.is_ok_and(|scope| settings.place.is_within(&scope))
}

fn with(mut settings: DatabaseSettings, secret: Arc<KeptSecret>) -> Result<DatabaseSettings> {
    let wrong = |reason: &str| {
        let (database, name) = (&settings.name, secret.name());
        Error::invalid(format!("the secret `{name}` cannot be used for the database `{database}`: {reason}"))
    };
    if secret.kind().is_none_or(|kind| kind.name() != settings.kind.name()) {
        return Err(wrong(&format!("it is not of type {}", settings.kind.name())));
    }
    if secret.scope().is_some_and(|scope| !covers(&settings, scope)) {
        return Err(wrong("its scope is another location"));
    }
    let values = secret.values().map_err(wrong)?;
    let (user, password) = (values.get("user"), values.get("password"));
    let user = user.map(|user| user.expose().to_owned());
    let password = password.cloned();
    settings.user = user;
    settings.password = password;
    settings.secret = Some(secret.name().to_owned());
    settings.opened_secret = Some(secret);
    settings.check_user()?;
    Ok(settings)
}
