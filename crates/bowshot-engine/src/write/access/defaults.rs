//! Rights on tables that users will make (ALTER DEFAULT PRIVILEGES): given with each of them when it is made, and of no
//! meaning for those that are there.

use super::{Known, Notes};
use bowshot_api::{Error, Result};
use bowshot_policy::grants::{self, given_text};
use bowshot_policy::rules::{Key, Place, Rules};
use bowshot_sql::Privilege;

/// The notes of a change. No place is all of them.
///
/// # Errors
/// `Invalid` for roles in the place of users: tables belong to who makes them, so that none ever would to a role.
pub(super) fn defaults(
    give: bool,
    privileges: &[Privilege],
    (users, places, grantees): (&[String], Vec<Place>, &[String]),
    known: &Known<'_>,
) -> Result<Notes> {
    if let Some(role) = users.iter().find(|name| known.is_role(name)) {
        let message = format!("`{role}` is a role, and tables belong to the users who make them");
        return Err(Error::invalid(message).with_hint("name the users after FOR"));
    }
    let places = if places.is_empty() { vec![Place::new()] } else { places };
    let mut notes = Notes::new();
    for user in users {
        for place in &places {
            let there = known.rules.defaults.get(&(user.clone(), place.clone()));
            for grantee in grantees {
                let mut given = there.and_then(|grants| grants.get(grantee)).cloned().unwrap_or_default();
                for privilege in privileges {
                    let change = if give { grants::add } else { grants::take };
                    change(&mut given, *privilege, None);
                }
                let text = (!given.is_empty()).then(|| given_text(&given));
                notes.push((Key::Default { user, place, grantee }.text(), text));
            }
        }
    }
    Ok(notes)
}

/// What takes all of them out that somebody has given or got.
pub(super) fn all_of(name: &str, rules: &Rules) -> Notes {
    let mut notes = Notes::new();
    for ((user, place), grants) in &rules.defaults {
        let gone = grants.keys().filter(|grantee| user == name || *grantee == name);
        notes.extend(gone.map(|grantee| (Key::Default { user, place, grantee }.text(), None)));
    }
    notes
}
