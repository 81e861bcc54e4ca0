//! Roles of roles and of users: whom they are given, and that none is given to itself.

use super::{Known, Notes};
use bowshot_api::{Error, Result};
use bowshot_policy::rules::{Key, PUBLIC};
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn membership(
    give: bool,
    roles: &[String],
    members: &[String],
    known: &Known<'_>,
) -> Result<Notes> {
    let mut notes = Notes::new();
    for role in roles {
        if role == PUBLIC || !known.is_role(role) {
            return Err(Error::invalid(format!(
                "`{role}` cannot be granted: it is no role that some have and others not"
            )));
        }
        for member in members {
            if give && (member == PUBLIC || reaches(role, member, &known.rules.members)) {
                return Err(Error::invalid(format!("`{role}` cannot be granted to `{member}`"))
                    .with_hint("a role is no member of itself, by whatever way, and nobody's rights are everybody's: grant rights to `public` instead"));
            }
            notes.push((Key::Member { role, member }.text(), give.then(|| "true".to_owned())));
        }
    }
    Ok(notes)
}

/// Whether `to` is `from`, or one of the roles that it has.
fn reaches(from: &str, to: &str, members: &BTreeMap<String, BTreeSet<String>>) -> bool {
    let (mut open, mut seen) = (vec![from.to_owned()], BTreeSet::new());
    while let Some(name) = open.pop() {
        if name == to {
            return true;
        }
        if seen.insert(name.clone()) {
            open.extend(members.get(&name).into_iter().flatten().cloned());
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn circles_of_roles_are_found() {
        let members = BTreeMap::from([
            ("a".to_owned(), BTreeSet::from(["b".to_owned()])),
            ("b".to_owned(), BTreeSet::from(["c".to_owned()])),
        ]);
        assert!(reaches("a", "c", &members) && reaches("a", "a", &members));
        assert!(!reaches("c", "a", &members));
    }
}
