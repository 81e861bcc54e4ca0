//! Rules follow the objects that they are about: a new object belongs to its creator, a renamed one keeps its rules, and the rules of
//! a dropped one are dropped, so that a later object of the same name begins without any.

use super::access::Access;
use super::grants::{self, Given, Grants, given_text};
use super::rules::{Key, Place, Rules, function_place, policy_text, type_place};
use crate::snapshot::Pinned;
use bowshot_api::Result;
use bowshot_api::catalog_names::DEFAULT_CATALOG;
use bowshot_tables::EntryName;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use uuid::Uuid;

type Changes = Vec<(String, Option<String>)>;

/// The state after a change with the rules that go with it. Without rules there is nothing to do.
///
/// # Errors
/// `LimitReached` for too many rules.
pub fn propagate_rules(before: &Pinned, after: Pinned, access: &Access) -> Result<Pinned> {
    if Arc::ptr_eq(before.shared(), after.shared()) {
        return Ok(after);
    }
    let after = without_lost(after)?;
    if access.is_off() {
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
            let place = owned(name);
            changes.push((Key::Owner(&place).text(), Some(json!(access.user()).to_string())));
            changes.extend(given_to_new(&rules, access.user(), &place));
        }
    }
    if changes.is_empty() {
        return Ok(after);
    }
    after.changed(DEFAULT_CATALOG, |snapshot| snapshot.with_notes(changes))
}

/// Models, types and functions go with the schema that they are in.
fn without_lost(after: Pinned) -> Result<Pinned> {
    let rules = after.shared().notes().read(Rules::of);
    let lost = rules.models.keys().filter(|place| match place.as_slice() {
        [catalog, schema, ..] => !after.shared().has_schema(catalog, schema),
        _ => true,
    });
    let mut changes: Changes = lost.flat_map(|place| without_model(&rules, place)).collect();
    let lost = rules.types.keys().filter(|name| !after.shared().has_schema(&name.catalog, &name.schema));
    changes.extend(lost.flat_map(|name| without_type(&rules, name)));
    let lost = rules.functions.keys().filter(|name| !after.shared().has_schema(&name.catalog, &name.schema));
    changes.extend(lost.flat_map(|name| without_function(&rules, name)));
    if changes.is_empty() {
        return Ok(after);
    }
    after.changed(DEFAULT_CATALOG, |snapshot| snapshot.with_notes(changes))
}

/// What takes a model out, with the rules about it.
pub fn without_model(rules: &Rules, place: &Place) -> Changes {
    let mut changes = vec![(Key::Model(place).text(), None)];
    carry(rules, place, None, &mut changes);
    changes
}

/// What takes a type out, with the rules about it.
pub fn without_type(rules: &Rules, name: &EntryName) -> Changes {
    let mut changes = vec![(Key::Type(name).text(), None)];
    carry(rules, &type_place(name), None, &mut changes);
    changes
}

/// What takes a function out, with the rules about it.
pub fn without_function(rules: &Rules, name: &EntryName) -> Changes {
    let mut changes = vec![(Key::Function(name).text(), None)];
    carry(rules, &function_place(name), None, &mut changes);
    changes
}

/// The rights that a user has given beforehand on what it makes.
fn given_to_new(rules: &Rules, user: &str, place: &Place) -> Changes {
    let [catalog, schema, _] = place.as_slice() else { return Changes::new() };
    let mut all: BTreeMap<&String, Given> = BTreeMap::new();
    for of in [Place::new(), vec![catalog.clone(), schema.clone()]] {
        for (grantee, given) in rules.defaults.get(&(user.to_owned(), of)).into_iter().flatten() {
            all.entry(grantee).or_default().extend(given.clone());
        }
    }
    let note = |(grantee, given): (&String, Given)| {
        (Key::Grant { place, grantee, grantor: None }.text(), Some(given_text(&given)))
    };
    all.into_iter().map(note).collect()
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
    if let Some(granted) = rules.granted.get(from) {
        changes.extend(grants::changes(from, granted, &Grants::new()));
        changes.extend(to.iter().flat_map(|to| grants::changes(to, &Grants::new(), granted)));
    }
    for ((user, _), grants) in rules.defaults.iter().filter(|((_, place), _)| place == from) {
        for (grantee, given) in grants {
            changes.push((Key::Default { user, place: from, grantee }.text(), None));
            changes.extend(
                to.map(|to| (Key::Default { user, place: to, grantee }.text(), Some(given_text(given)))),
            );
        }
    }
    for policy in rules.policies.get(from).into_iter().flatten() {
        let (mask, name) = (policy.column.is_some(), policy.name.as_str());
        changes.push((Key::Policy { place: from, mask, name }.text(), None));
        changes
            .extend(to.map(|to| (Key::Policy { place: to, mask, name }.text(), Some(policy_text(policy)))));
    }
}
