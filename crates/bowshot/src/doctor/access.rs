//! Checks of users and authentication.

use super::Line;
use super::folders::others_read;
use crate::config::{Config, DataFolder, Listen};
use crate::serve::authenticator;
use serde_json::Value;
use std::path::Path;

const VERIFIER: &str = "SCRAM-SHA-256$";

/// Users of the configuration and of the catalog.
pub(super) fn users(config: &Config) -> Vec<Line> {
    const CHECK: &str = "users";
    let found = match authenticator(config) {
        Ok(found) => found,
        Err(error) => return vec![Line::error(CHECK, &error, "correct the users in the configuration")],
    };
    let mut lines = Vec::new();
    let made_by_sql = made_by_sql(config);
    if !found.requires_credentials() && made_by_sql.is_empty() {
        return vec![Line::good(CHECK, "none: every caller is anonymous and may do everything")];
    }
    let access = &config.access;
    let has_admin =
        access.users.iter().any(|user| user.admin) || access.tokens.iter().any(|token| token.admin);
    let others: usize = made_by_sql.iter().filter(|user| user.admin).count();
    if !has_admin && others == 0 && access.jwt.is_empty() {
        let remedy = "give one user `admin = true`: otherwise nobody can change access rules";
        lines.push(Line::doubtful(CHECK, "no user is an admin", remedy));
    }
    let count = access.users.len() + made_by_sql.len();
    lines.push(Line::good(
        CHECK,
        format!("{count} users, {} tokens, {} issuers", access.tokens.len(), access.jwt.len()),
    ));
    lines.extend(verifiers(config, &made_by_sql));
    if let Some(file) = config.users_file.as_deref().filter(|file| others_read(file)) {
        let finding = format!("other users of this machine can read the hashes in `{}`", file.display());
        lines.push(Line::doubtful("users-file", finding, format!("chmod 640 {}", file.display())));
    }
    lines
}

/// Users without a SCRAM verifier for PostgreSQL's clients.
fn verifiers(config: &Config, made_by_sql: &[SqlUser]) -> Option<Line> {
    const CHECK: &str = "scram";
    if config.pg == Listen::Off {
        return None;
    }
    let configured =
        config.access.users.iter().filter_map(|user| Some((&user.name, user.password_hash.as_ref()?)));
    let made = made_by_sql.iter().filter_map(|user| Some((&user.name, user.hash.as_ref()?)));
    let without: Vec<&str> = configured
        .chain(made)
        .filter(|(_, hash)| !hash.contains(VERIFIER))
        .map(|(name, _)| name.as_str())
        .collect();
    if without.is_empty() {
        return Some(Line::good(CHECK, "every password can be proven by SCRAM-SHA-256"));
    }
    let shown = without.iter().take(5).map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let finding = format!(
        "{} users have no SCRAM verifier, so their PostgreSQL clients send the password itself: {shown}",
        without.len()
    );
    let remedy = "create their hashes again with `bowshot hash-password`, or ALTER USER … PASSWORD";
    Some(Line::doubtful(CHECK, finding, remedy))
}

struct SqlUser {
    name: String,
    hash: Option<String>,
    admin: bool,
}

fn made_by_sql(config: &Config) -> Vec<SqlUser> {
    let Some(DataFolder::At(path)) = &config.data else { return Vec::new() };
    // Errors of the catalog are another check.
    let notes = bowshot_tables::notes_in(Path::new(path)).unwrap_or_default();
    let user = |(key, text): (String, String)| {
        let (kind, name): (String, String) = serde_json::from_str(&key).ok()?;
        let value: Value = serde_json::from_str(&text).ok()?;
        let hash = value["hash"].as_str().map(str::to_owned);
        (kind == "user").then(|| SqlUser { name, hash, admin: value["admin"].as_bool().unwrap_or(false) })
    };
    notes.into_iter().filter_map(user).collect()
}
