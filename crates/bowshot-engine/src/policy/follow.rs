//! Rules follow what they are about: what is made belongs to whom made it, what is renamed keeps its rules, and with what
//! is dropped they go, so that a later thing of the same name begins without any.

use super::access::Access;
use super::rules::{Key, Place, Rules, given_text, policy_text};
use crate::snapshot::Pinned;
use crate::snapshot::names::DEFAULT_CATALOG;
use bowshot_api::Result;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use uuid::Uuid;

type Changes = Vec<(String, Option<String>)>;

/// The state after a change with the rules that go with it. Without rules there is nothing to do.
///
/// # Errors
/// `LimitReached` for too many rules.
pub(crate) fn follow(before: &Pinned, after: Pinned, access: &Access) -> Result<Pinned> {
    if access.is_off() || Arc::ptr_eq(before.shared(), after.shared()) {
        return Ok(after);
    }
    let (old, new) = (before.shared().names_and_ids(), after.shared().names_and_ids());
    let rules = after.shared().notes().read(Rules::of);
    let gone: Vec<(&Vec<&str>, &Uuid)> = old.iter().filter(|(name, _)| !new.contains_key(*name)).collect();
    let come: BTreeMap<Uuid, &Vec<&str>> =
        new.iter().filter(|(name, _)| !old.contains_key(*name)).map(|(name, id)| (*id, name)).collect();
    let mut changes = Changes::new();
    let mut moved = Vec::new();
    for (name, id) in gone {
        let from = owned(name);
        let to = come.get(id).map(|name| owned(name));
        moved.extend(to.is_some().then_some(*id));
        carry(&rules, &from, to.as_ref(), &mut changes);
    }
    for (id, name) in come {
        if !moved.contains(&id) {
            changes.push((Key::Owner(&owned(name)).text(), Some(json!(access.user()).to_string())));
        }
    }
    if changes.is_empty() {
        return Ok(after);
    }
    after.changed(DEFAULT_CATALOG, |snapshot| snapshot.with_notes(changes))
}

fn owned(name: &[&str]) -> Place {
    name.iter().map(|part| (*part).to_owned()).collect()
}

/// Takes the rules of a place away, and gives them to another one.
fn carry(rules: &Rules, from: &Place, to: Option<&Place>, changes: &mut Changes) {
    if let Some(owner) = rules.owners.get(from) {
        changes.push((Key::Owner(from).text(), None));
        changes.extend(to.map(|to| (Key::Owner(to).text(), Some(json!(owner).to_string()))));
    }
    for (grantee, given) in rules.grants.get(from).into_iter().flatten() {
        changes.push((Key::Grant { place: from, grantee }.text(), None));
        changes.extend(to.map(|to| (Key::Grant { place: to, grantee }.text(), Some(given_text(given)))));
    }
    for policy in rules.policies.get(from).into_iter().flatten() {
        let (mask, name) = (policy.column.is_some(), policy.name.as_str());
        changes.push((Key::Policy { place: from, mask, name }.text(), None));
        changes
            .extend(to.map(|to| (Key::Policy { place: to, mask, name }.text(), Some(policy_text(policy)))));
    }
}
