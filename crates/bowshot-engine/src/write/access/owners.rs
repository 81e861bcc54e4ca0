//! ALTER … OWNER TO: a thing goes over to another role. Rights and policies stay, and what the owner has granted counts as granted
//! by the new one.

use super::{Known, Notes, place};
use crate::catalog::names::Names;
use bowshot_api::{Error, ErrorKind, Result};
use bowshot_policy::access::Access;
use bowshot_policy::rules::{Key, PUBLIC, Place};
use bowshot_sql::Object;

/// What is to have another owner; `None` for what may be missing and is.
///
/// # Errors
/// `NotFound`, also for what the user may not know of.
pub(super) fn place_of(
    object: &Object,
    if_exists: bool,
    (access, names): (&Access, &Names),
) -> Result<Option<Place>> {
    match place(object, (access, names)) {
        Err(error) if if_exists && error.kind() == ErrorKind::NotFound => Ok(None),
        found => found.map(Some),
    }
}

/// The note of the new owner.
///
/// # Errors
/// `NotFound` without such a role or user; `Invalid` for everybody.
pub(super) fn changed(
    (object, if_exists): (&Object, bool),
    owner: String,
    known: &Known<'_>,
    (access, names): (&Access, &Names),
) -> Result<Notes> {
    let Some(place) = place_of(object, if_exists, (access, names))? else { return Ok(Notes::new()) };
    known.check(std::slice::from_ref(&owner))?;
    if owner == PUBLIC {
        return Err(
            Error::invalid("what everybody owned, anybody could drop").with_hint("name a role or a user")
        );
    }
    Ok(vec![(Key::Owner(&place).text(), Some(serde_json::Value::String(owner).to_string()))])
}
