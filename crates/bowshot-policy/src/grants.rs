//! Rights on one object, by who gave them to whom. What its owner or an admin gives, counts. Others give what they hold with the
//! grant option, and what they gave counts only while they hold it.

use super::rules::{Key, Place};
use bowshot_sql::Privilege;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Behind the name of a right to write single columns, where it is kept. A program that knows no such rights would take it for one
/// on the whole table, and cannot read this: it gives nobody rights.
const OF_COLUMNS: &str = " OF COLUMNS";

/// What one grantee may do with one thing; for SELECT, INSERT and UPDATE the columns, if it is not all.
pub type Given = BTreeMap<Privilege, Option<BTreeSet<String>>>;

/// Rights on one thing, by grantee and by who gave them; by nobody where the owner or an admin did.
pub type Grants = BTreeMap<(String, Option<String>), Granted>;

/// Rights that one has given another.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Granted {
    pub rights: Given,
    /// Those that may be handed on.
    pub options: Given,
}

impl Granted {
    fn is_empty(&self) -> bool {
        self.rights.is_empty() && self.options.is_empty()
    }
}

/// What counts: the part of each grant that who gave it holds with the option to hand it on.
pub fn effective(all: &Grants) -> Grants {
    let mut left = Grants::new();
    // From the owner on, one step further each time, until there is nothing new.
    loop {
        let options = options(&left);
        let counting = all.iter().filter_map(|((grantee, grantor), granted)| {
            let part = match grantor {
                None => Granted {
                    rights: granted.rights.clone(),
                    options: common(&granted.options, &granted.rights),
                },
                Some(grantor) => {
                    let held = options.get(grantor)?;
                    let rights = common(&granted.rights, held);
                    Granted { options: common(&granted.options, &rights), rights }
                }
            };
            (!part.is_empty()).then(|| ((grantee.clone(), grantor.clone()), part))
        });
        let next: Grants = counting.collect();
        if next == left {
            return left;
        }
        left = next;
    }
}

/// All rights, by grantee.
pub fn rights(all: &Grants) -> BTreeMap<String, Given> {
    united(all.iter().map(|((grantee, _), granted)| (grantee, &granted.rights)))
}

/// All rights that may be handed on, by grantee.
pub fn options(all: &Grants) -> BTreeMap<String, Given> {
    united(all.iter().map(|((grantee, _), granted)| (grantee, &granted.options)))
}

fn united<'a>(all: impl Iterator<Item = (&'a String, &'a Given)>) -> BTreeMap<String, Given> {
    let mut found: BTreeMap<String, Given> = BTreeMap::new();
    for (grantee, given) in all.filter(|(_, given)| !given.is_empty()) {
        let there = found.entry(grantee.clone()).or_default();
        for (privilege, columns) in given {
            add(there, *privilege, columns.as_ref());
        }
    }
    found
}

/// Adds a right. All columns are more than some.
pub fn add(given: &mut Given, privilege: Privilege, columns: Option<&BTreeSet<String>>) {
    let more = match (given.remove(&privilege), columns) {
        (Some(None), _) | (_, None) => None,
        (Some(Some(there)), Some(more)) => Some(&there | more),
        (None, Some(columns)) => Some(columns.clone()),
    };
    given.insert(privilege, more);
}

/// Takes a right away. There are no exceptions from all columns: without one of them, all are gone.
pub fn take(given: &mut Given, privilege: Privilege, columns: Option<&BTreeSet<String>>) {
    if let (Some(Some(there)), Some(less)) = (given.remove(&privilege), columns) {
        let left: BTreeSet<String> = &there - less;
        if !left.is_empty() {
            given.insert(privilege, Some(left));
        }
    }
}

/// Whether a right is among these, on all of the columns.
pub fn has(given: &Given, privilege: Privilege, columns: Option<&BTreeSet<String>>) -> bool {
    match (given.get(&privilege), columns) {
        (None, _) | (Some(Some(_)), None) => false,
        (Some(None), _) => true,
        (Some(Some(there)), Some(columns)) => columns.is_subset(there),
    }
}

fn common(one: &Given, other: &Given) -> Given {
    let both = one.iter().filter_map(|(privilege, columns)| {
        let columns = match (columns, other.get(privilege)?) {
            (None, columns) | (columns, None) => columns.clone(),
            (Some(one), Some(other)) => Some(one & other).filter(|both| !both.is_empty()).map(Some)?,
        };
        Some((*privilege, columns))
    });
    both.collect()
}

/// The notes that lead from these grants to those.
pub fn changes(place: &Place, from: &Grants, to: &Grants) -> Vec<(String, Option<String>)> {
    let (mut notes, none) = (Vec::new(), Granted::default());
    let all: BTreeSet<&(String, Option<String>)> = from.keys().chain(to.keys()).collect();
    for of in all {
        let (before, after) = (from.get(of).unwrap_or(&none), to.get(of).unwrap_or(&none));
        notes.extend(noted(place, of, (before, after)));
    }
    notes
}

fn noted(
    place: &Place,
    (grantee, grantor): &(String, Option<String>),
    (before, after): (&Granted, &Granted),
) -> Vec<(String, Option<String>)> {
    let grantor = grantor.as_deref();
    let text = |given: &Given| (!given.is_empty()).then(|| given_text(given));
    let mut notes = Vec::new();
    if before.rights != after.rights {
        notes.push((Key::Grant { place, grantee, grantor }.text(), text(&after.rights)));
    }
    if before.options != after.options {
        notes.push((Key::Options { place, grantee, grantor }.text(), text(&after.options)));
    }
    notes
}

pub(crate) fn given_from(value: &Value) -> Option<Given> {
    let given = value.as_object()?.iter().map(|(name, columns)| {
        let of_columns = name.strip_suffix(OF_COLUMNS);
        let right = of_columns.unwrap_or(name.as_str());
        let privilege = Privilege::ALL.into_iter().find(|privilege| privilege.as_str() == right)?;
        let columns = match columns {
            Value::Null if of_columns.is_some() => return None,
            Value::Null => None,
            Value::Array(columns) => {
                Some(columns.iter().map(|text| text.as_str().map(str::to_owned)).collect::<Option<_>>()?)
            }
            _ => return None,
        };
        Some((privilege, columns))
    });
    given.collect()
}

pub fn given_text(given: &Given) -> String {
    let given = given.iter().map(|(privilege, columns)| {
        let writes = matches!(privilege, Privilege::Insert | Privilege::Update);
        let kind = if writes && columns.is_some() { OF_COLUMNS } else { "" };
        (format!("{}{kind}", privilege.as_str()), json!(columns))
    });
    Value::Object(given.collect()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use Privilege::{Insert, Select, Update};

    fn columns(names: &[&str]) -> Option<BTreeSet<String>> {
        (!names.is_empty()).then(|| names.iter().map(|name| (*name).to_owned()).collect())
    }

    fn given(all: &[(Privilege, &[&str])]) -> Given {
        all.iter().map(|(privilege, names)| (*privilege, columns(names))).collect()
    }

    #[test]
    fn rights_add_up_and_are_taken_away_again() {
        let mut rights = Given::new();
        add(&mut rights, Select, columns(&["a"]).as_ref());
        add(&mut rights, Select, columns(&["b"]).as_ref());
        assert_eq!(rights, given(&[(Select, &["a", "b"])]));
        assert!(has(&rights, Select, columns(&["b"]).as_ref()) && !has(&rights, Select, None));
        let mut some = rights.clone();
        take(&mut some, Select, columns(&["a", "b"]).as_ref());
        assert_eq!(some, Given::new());
        add(&mut rights, Select, None);
        add(&mut rights, Select, columns(&["a"]).as_ref());
        assert_eq!(rights, given(&[(Select, &[])]));
        let mut all = rights.clone();
        take(&mut all, Select, columns(&["a"]).as_ref());
        assert_eq!(all, Given::new(), "no exceptions: all or some");
        take(&mut rights, Select, None);
        assert_eq!(rights, Given::new());
    }

    #[test]
    fn rights_to_write_columns_are_kept_so_that_older_programs_refuse_them() {
        let all = given(&[(Select, &["a"]), (Insert, &["a", "b"]), (Update, &[])]);
        let text = given_text(&all);
        let kept: Value = serde_json::from_str(&text).expect("it is JSON");
        assert_eq!(kept, json!({ "SELECT": ["a"], "INSERT OF COLUMNS": ["a", "b"], "UPDATE": null }));
        assert_eq!(given_from(&kept), Some(all));
        assert_eq!(given_from(&json!({ "INSERT": ["a"] })), Some(given(&[(Insert, &["a"])])));
        assert_eq!(given_from(&json!({ "INSERT OF COLUMNS": null })), None);
    }
}
