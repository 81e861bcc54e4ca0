//! Names of states, branches and tags, as a catalog is asked for them.

use super::table_state::TableState;
use bowshot_api::{Error, ErrorKind, Result};
use serde_json::{Value, json};

/// One change of a name.
#[derive(Debug, Clone)]
pub enum ReferenceChange {
    /// For the current state, or that of a number.
    Create {
        kind: &'static str,
        name: String,
        version: Option<u64>,
        if_not_exists: bool,
    },
    Drop {
        kind: &'static str,
        name: String,
        if_exists: bool,
    },
}

/// What a catalog is asked for, and the state that the name has then.
#[derive(Debug)]
pub(in super::super) struct RefChange {
    pub(in super::super) request: Value,
    name: String,
    snapshot: Option<i64>,
}

impl RefChange {
    /// `None` where all is as it is to be.
    ///
    /// # Errors
    /// `NotFound` for a state or a name that is not there; `AlreadyExists` for a name that is; `Unsupported` for the main branch.
    pub(in super::super) fn new(
        state: &TableState,
        (namespace, table): (&[String], &str),
        change: &ReferenceChange,
    ) -> Result<Option<Self>> {
        state.target(table)?;
        let (ReferenceChange::Create { kind, name, .. } | ReferenceChange::Drop { kind, name, .. }) = change;
        if name == "main" {
            return Err(Error::unsupported(format!(
                "`main` is what the table `{table}` is, and stays its name"
            )));
        }
        let known = state.refs().find(|(known, _)| *known == name).map(|(_, known)| known);
        let of = |known: &Value, key: &str| known.get(key).cloned().unwrap_or(Value::Null);
        let snapshot = match (change, known) {
            (ReferenceChange::Create { if_not_exists: true, .. }, Some(_))
            | (ReferenceChange::Drop { if_exists: true, .. }, None) => return Ok(None),
            (ReferenceChange::Create { .. }, Some(_)) => {
                let message = format!("`{table}` already has a branch or a tag `{name}`");
                return Err(Error::new(ErrorKind::AlreadyExists, message));
            }
            (ReferenceChange::Create { version, .. }, None) => Some(snapshot(state, table, *version)?),
            (ReferenceChange::Drop { .. }, Some(known)) if of(known, "type") == *kind => None,
            (ReferenceChange::Drop { .. }, _) => {
                return Err(Error::not_found(format!("`{table}` has no {kind} `{name}`")));
            }
        };
        let update = match snapshot {
            Some(snapshot) => {
                json!({"action": "set-snapshot-ref", "ref-name": name, "type": kind, "snapshot-id": snapshot})
            }
            None => json!({"action": "remove-snapshot-ref", "ref-name": name}),
        };
        let before = known.map_or(Value::Null, |known| of(known, "snapshot-id"));
        let request = json!({
            "identifier": {"namespace": namespace, "name": table},
            "requirements": [
                {"type": "assert-table-uuid", "uuid": state.uuid()},
                {"type": "assert-ref-snapshot-id", "ref": name, "snapshot-id": before},
            ],
            "updates": [update],
        });
        Ok(Some(Self { request, name: name.clone(), snapshot }))
    }

    /// Whether a state has it, whoever has made it.
    pub(in super::super) fn is_in(&self, state: &TableState) -> bool {
        let known = state.refs().find(|(known, _)| **known == self.name);
        known.and_then(|(_, known)| known.get("snapshot-id")?.as_i64()) == self.snapshot
    }
}

/// The state that is to get a name.
fn snapshot(state: &TableState, table: &str, version: Option<u64>) -> Result<i64> {
    let Some(version) = version else {
        return state.current().ok_or_else(|| {
            Error::invalid(format!("`{table}` has no state that could have a name"))
                .with_hint("add rows to it first")
        });
    };
    let id = i64::try_from(version).ok().filter(|id| state.snapshot(*id).is_some());
    id.ok_or_else(|| Error::not_found(format!("`{table}` has no snapshot {version}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn state(refs: Value) -> TableState {
        let whole = json!({
            "format-version": 2, "location": "s3://b/t", "table-uuid": "u", "current-schema-id": 0, "default-spec-id": 0,
            "schemas": [{"schema-id": 0, "type": "struct", "fields": []}], "partition-specs": [{"spec-id": 0, "fields": []}],
            "current-snapshot-id": 7, "snapshots": [{"snapshot-id": 5}, {"snapshot-id": 7}], "refs": refs,
        });
        TableState::new(whole, Path::new("t")).unwrap()
    }

    #[test]
    fn names_come_and_go() {
        let tagged = || {
            state(
                json!({"main": {"snapshot-id": 7, "type": "branch"}, "v1": {"snapshot-id": 5, "type": "tag"}}),
            )
        };
        let made = |state: &TableState, change| RefChange::new(state, (&["db".to_owned()], "t"), &change);
        let create = |name: &str, version, if_not_exists| ReferenceChange::Create {
            kind: "tag",
            name: name.to_owned(),
            version,
            if_not_exists,
        };
        let drop = |kind, if_exists| ReferenceChange::Drop { kind, name: "v1".to_owned(), if_exists };
        let new = made(&state(json!({})), create("v1", Some(5), false)).unwrap().unwrap();
        assert!(new.is_in(&tagged()) && !new.is_in(&state(json!({}))));
        let current = made(&tagged(), create("v2", None, true)).unwrap().unwrap();
        assert_eq!(current.request["updates"][0]["snapshot-id"], 7);
        assert_eq!(current.request["requirements"][1]["snapshot-id"], Value::Null);
        let gone = made(&tagged(), drop("tag", false)).unwrap().unwrap();
        assert_eq!(gone.request["requirements"][1]["snapshot-id"], 5);
        assert!(gone.is_in(&state(json!({}))) && !gone.is_in(&tagged()));
        assert!(made(&tagged(), create("v1", None, true)).unwrap().is_none());
        assert!(made(&state(json!({})), drop("tag", true)).unwrap().is_none());
        for odd in [
            create("v1", None, false),
            create("main", None, true),
            create("v3", Some(9), false),
            drop("branch", false),
        ] {
            assert!(made(&tagged(), odd.clone()).is_err(), "{odd:?}");
        }
        assert!(made(&state(json!({})), drop("tag", false)).is_err());
    }
}
