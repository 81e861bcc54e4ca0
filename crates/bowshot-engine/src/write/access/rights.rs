//! GRANT and REVOKE of rights on things: by their owners and admins, and by who holds a right with the option to hand it on.
//! What the owner or an admin takes away is gone, whoever gave it; others take back what they gave themselves.

use super::{Known, Notes};
use crate::catalog::Visible;
use crate::error::classify;
use bowshot_api::{Error, ErrorKind, Reason, Result};
use bowshot_policy::access::{Access, unseen};
use bowshot_policy::grants::{self, Grants};
use bowshot_policy::rules::{Key, PUBLIC, Place, Rules};
use bowshot_sql::Privilege;
use bowshot_storage::tables::EntryName;
use std::collections::BTreeSet;

/// What a statement gives or takes.
#[derive(Debug, Clone)]
pub(super) struct Rights {
    pub(super) give: bool,
    /// With columns where it is not all.
    pub(super) privileges: Vec<(Privilege, Vec<String>)>,
    pub(super) grantees: Vec<String>,
    /// With the option to hand them on; for REVOKE, that option alone.
    pub(super) option: bool,
    /// Whether what was handed on goes too.
    pub(super) cascade: bool,
}

/// Whether somebody who does not own a thing may say this about it: they hold each right with the option to hand it on.
pub(super) fn may_say(rights: &Rights, place: &Place, access: &Access) -> bool {
    let holds = |(privilege, named): &(Privilege, Vec<String>)| {
        // Who holds it for some columns may take back what they gave of it.
        let columns = if rights.give { columns(named) } else { Some(BTreeSet::new()) };
        holder(access, place, (*privilege, columns.as_ref())).is_some()
    };
    !rights.privileges.is_empty() && rights.privileges.iter().all(holds)
}

/// Whether the columns that are named are there: a right on one that comes later would be a surprise.
///
/// # Errors
/// `NotFound`, which names no other columns to who does not see all of them.
pub(super) async fn check_columns(
    privileges: &[(Privilege, Vec<String>)],
    table: &EntryName,
    visible: &Visible,
) -> Result<()> {
    let provider = visible.schema_provider(&table.catalog, &table.schema).ok_or_else(|| unseen(table))?;
    let found = provider.table(&table.name).await.map_err(classify)?.ok_or_else(|| unseen(table))?;
    let schema = found.schema();
    let mut named = privileges.iter().flat_map(|(_, columns)| columns);
    match named.find(|column| schema.column_with_name(column).is_none()) {
        None => Ok(()),
        Some(column) => {
            let error = Error::not_found(format!("column `{column}` of `{table}` does not exist"));
            Err(error
                .with_reason(Reason::UndefinedColumn)
                .with_hint("`information_schema.columns` lists those that you may read"))
        }
    }
}

/// The role by virtue of which somebody may hand a right on.
fn holder(
    access: &Access,
    place: &Place,
    (privilege, columns): (Privilege, Option<&BTreeSet<String>>),
) -> Option<String> {
    let rules = access.rules();
    let held = rules.options.get(place)?.iter().filter(|(name, _)| access.has_role(name));
    let mut fitting = held.filter(|(_, given)| grants::has(given, privilege, columns));
    fitting.next().map(|(name, _)| name.clone())
}

fn columns(named: &[String]) -> Option<BTreeSet<String>> {
    (!named.is_empty()).then(|| named.iter().cloned().collect())
}

/// The notes of a change.
///
/// # Errors
/// `Denied` for who may not say it; `Invalid` where rights that were handed on would lose their ground.
pub(super) fn changed(said: &Rights, place: &Place, known: &Known<'_>, access: &Access) -> Result<Notes> {
    known.check(&said.grantees)?;
    if said.give && said.option && said.grantees.iter().any(|name| name == PUBLIC) {
        return Err(Error::invalid("rights of everybody cannot be handed on: nobody would have given them")
            .with_hint("grant them to a role with WITH GRANT OPTION"));
    }
    let kept = known.rules.granted.get(place).cloned().unwrap_or_default();
    // What does not count any more does not come back by a later grant.
    let mut after = grants::effective(&kept);
    for grantee in &said.grantees {
        for (privilege, named) in &said.privileges {
            let columns = columns(named);
            let right = (*privilege, columns.as_ref());
            if said.give {
                give(&mut after, grantee, (right, said.option), (place, access))?;
            } else {
                take(&mut after, grantee, (right, said.option), (place, access));
            }
        }
    }
    let counting = grants::effective(&after);
    let lost = after.iter().find(|(of, granted)| counting.get(*of) != Some(*granted) && !is_nothing(granted));
    if let Some(((grantee, grantor), _)) = lost.filter(|_| !said.cascade) {
        let grantor = grantor.as_deref().unwrap_or_default();
        return Err(Error::invalid(format!(
            "`{grantor}` has handed rights on to `{grantee}`, which depend on these"
        ))
        .with_hint("write CASCADE behind it to take them away too"));
    }
    let mut notes = grants::changes(place, &kept, &counting);
    // Who is named is named in the trail, too, where nothing changes.
    let of_named = said.grantees.iter().map(|grantee| {
        let there = counting.get(&(grantee.clone(), None)).map(|granted| grants::given_text(&granted.rights));
        (Key::Grant { place, grantee, grantor: None }.text(), there.filter(|text| text != "{}"))
    });
    notes.extend(of_named);
    Ok(notes)
}

fn is_nothing(granted: &grants::Granted) -> bool {
    granted.rights.is_empty() && granted.options.is_empty()
}

type Right<'a> = (Privilege, Option<&'a BTreeSet<String>>);

fn give(
    all: &mut Grants,
    grantee: &str,
    ((privilege, columns), option): (Right<'_>, bool),
    (place, access): (&Place, &Access),
) -> Result<()> {
    let grantor = if access.owns(place) {
        None
    } else {
        if privilege == Privilege::Select {
            access.check_hand_on(place)?;
        }
        let holder = holder(access, place, (privilege, columns));
        Some(
            holder
                .ok_or_else(|| Error::new(ErrorKind::Denied, "this right is not held with GRANT OPTION"))?,
        )
    };
    let granted = all.entry((grantee.to_owned(), grantor)).or_default();
    grants::add(&mut granted.rights, privilege, columns);
    // Whose own it is may give all rights anyway.
    if option && privilege != Privilege::Own {
        grants::add(&mut granted.options, privilege, columns);
    }
    Ok(())
}

fn take(
    all: &mut Grants,
    grantee: &str,
    ((privilege, columns), option): (Right<'_>, bool),
    (place, access): (&Place, &Access),
) {
    let owns = access.owns(place);
    let theirs =
        |grantor: &Option<String>| owns || grantor.as_ref().is_some_and(|name| access.has_role(name));
    let of = all.iter_mut().filter(|((name, grantor), _)| name == grantee && theirs(grantor));
    for (_, granted) in of {
        grants::take(&mut granted.options, privilege, columns);
        if !option {
            grants::take(&mut granted.rights, privilege, columns);
        }
    }
}

/// What takes all rights out that somebody has, and those that they have given.
pub(super) fn all_of(name: &str, rules: &Rules) -> Notes {
    let mut notes = Notes::new();
    for (place, kept) in &rules.granted {
        let mut left = kept.clone();
        left.retain(|(grantee, grantor), _| grantee != name && grantor.as_deref() != Some(name));
        if left.len() < kept.len() {
            notes.extend(grants::changes(place, kept, &grants::effective(&left)));
        }
    }
    notes
}
