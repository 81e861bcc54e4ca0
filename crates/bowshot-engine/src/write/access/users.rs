//! Users that SQL makes and changes.

use super::{Known, Notes};
use bowshot_api::{Error, ErrorKind, Result, Secret};
use bowshot_policy::rules::{Key, user_text};
use bowshot_sql::UserChange;

/// What is said of a user: password, whether it is an admin, and attributes that are set or taken away.
type Said = (Option<Secret>, Option<bool>, Vec<(String, Option<String>)>);

/// The note of a user. One without a password logs in by certificate or token alone.
///
/// # Errors
/// `NotFound`, `AlreadyExists`.
pub(super) fn changed(
    (name, change): (String, UserChange),
    (password, admin, attributes): Said,
    known: &Known<'_>,
) -> Result<Notes> {
    let there = known.rules.users.get(&name);
    match (change, there) {
        (UserChange::CreateIfMissing, Some(_)) => return Ok(Vec::new()),
        (UserChange::Alter, None) => return Err(no_user(&name, known)),
        (UserChange::Create, Some(_)) | (UserChange::Create | UserChange::CreateIfMissing, None)
            if there.is_some() || known.has(&name) =>
        {
            return Err(Error::new(ErrorKind::AlreadyExists, format!("`{name}` is there already")));
        }
        _ => {}
    }
    let mut user = there.cloned().unwrap_or_default();
    if let Some(password) = password {
        user.hash = Some((known.settings.hash)(&password)?);
    }
    user.admin = admin.unwrap_or(user.admin);
    for (attribute, value) in attributes {
        match value {
            Some(value) => drop(user.attributes.insert(attribute, value)),
            None => drop(user.attributes.remove(&attribute)),
        }
    }
    Ok(vec![(Key::User(&name).text(), Some(user_text(&user)))])
}

fn no_user(name: &str, known: &Known<'_>) -> Error {
    if known.settings.users.contains_key(name) {
        return Error::invalid(format!("`{name}` is a user of the configuration"))
            .with_hint("change the file of users, which the server reads again");
    }
    Error::not_found(format!("user `{name}` not found"))
}
