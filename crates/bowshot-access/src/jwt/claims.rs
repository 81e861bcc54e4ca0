//! Checks the claims of a token with a valid signature: audience, times, user, roles.

use super::config::JwtConfig;
use crate::authenticator::check_name;
use bowshot_api::{Claims, Principal};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Roles of one token.
const MAX_ROLES: usize = 1_000;

/// Reads the claims.
///
/// # Errors
/// The reason why they let nobody in, for whoever got the token of the issuer.
pub(super) fn read(
    config: &JwtConfig,
    claims: &Map<String, Value>,
    now: SystemTime,
) -> Result<Principal, String> {
    let expires = check_time(config, claims, now)?;
    check_audience(config, claims)?;
    let user = nested(claims, &config.user_claim).and_then(Value::as_str).filter(|name| !name.is_empty());
    let user = user.ok_or_else(|| format!("it has no text in the claim `{}`", config.user_claim))?;
    let name = format!("{}{user}", config.user_prefix);
    check_name(&name).map_err(|error| error.to_string())?;
    let said = roles(config, claims)?;
    let admin = config.admin_role.as_ref().is_some_and(|admin| said.contains(admin));
    let roles = match config.roles.is_empty() {
        true => said,
        false => said.iter().filter_map(|role| config.roles.get(role).cloned()).collect(),
    };
    let claims = Claims { issuer: config.issuer.clone(), roles, admin, local_users: config.local_users };
    Ok(Principal::claimed(name, claims, expires))
}

/// Gives the time from which the token is refused.
fn check_time(
    config: &JwtConfig,
    claims: &Map<String, Value>,
    now: SystemTime,
) -> Result<SystemTime, String> {
    let skew = Duration::from_secs(config.clock_skew_seconds);
    let expires = time(claims, "exp")?.ok_or("it has no `exp`, so it would never expire")?;
    let expires = expires.checked_add(skew).ok_or("its `exp` is not a time")?;
    if expires <= now {
        return Err("it has expired".to_owned());
    }
    for name in ["nbf", "iat"] {
        if time(claims, name)?.is_some_and(|from| from > now + skew) {
            return Err(format!("it is not valid yet, by its `{name}`"));
        }
    }
    Ok(expires)
}

fn time(claims: &Map<String, Value>, name: &str) -> Result<Option<SystemTime>, String> {
    let Some(value) = claims.get(name) else { return Ok(None) };
    let seconds = value.as_f64().filter(|seconds| seconds.is_finite() && *seconds >= 0.0);
    let since = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let time = since.and_then(|since| UNIX_EPOCH.checked_add(since));
    time.map(Some).ok_or_else(|| format!("its `{name}` is not a time"))
}

fn check_audience(config: &JwtConfig, claims: &Map<String, Value>) -> Result<(), String> {
    let ours = |value: &Value| value.as_str().is_some_and(|text| config.audiences.iter().any(|a| a == text));
    let fits = match claims.get("aud") {
        Some(Value::Array(values)) => values.iter().any(ours),
        Some(value) => ours(value),
        None => false,
    };
    if !fits {
        return Err("it is for another audience".to_owned());
    }
    if config.authorized_parties.is_empty() {
        return Ok(());
    }
    let party = claims.get("azp").and_then(Value::as_str);
    if party.is_some_and(|party| config.authorized_parties.iter().any(|known| known == party)) {
        return Ok(());
    }
    Err("it was issued to another client".to_owned())
}

/// The claim of a name; dots lead into nested ones where no claim has the whole name.
fn nested<'a>(claims: &'a Map<String, Value>, path: &str) -> Option<&'a Value> {
    if let Some(value) = claims.get(path) {
        return Some(value);
    }
    let mut parts = path.split('.');
    let first = claims.get(parts.next()?)?;
    parts.try_fold(first, |value, part| value.get(part))
}

/// The roles claim; without it there are no roles, and a malformed one is an error.
fn roles(config: &JwtConfig, claims: &Map<String, Value>) -> Result<BTreeSet<String>, String> {
    let Some(path) = &config.roles_claim else { return Ok(BTreeSet::new()) };
    let said: Option<BTreeSet<String>> = match nested(claims, path) {
        None | Some(Value::Null) => Some(BTreeSet::new()),
        Some(Value::String(text)) => Some(text.split_whitespace().map(str::to_owned).collect()),
        Some(Value::Array(values)) => values.iter().map(|value| value.as_str().map(str::to_owned)).collect(),
        Some(_) => None,
    };
    match said {
        Some(said) if said.len() <= MAX_ROLES => Ok(said),
        Some(_) => Err(format!("it has more than {MAX_ROLES} roles")),
        None => Err(format!("its claim `{path}` is not a list of strings")),
    }
}
