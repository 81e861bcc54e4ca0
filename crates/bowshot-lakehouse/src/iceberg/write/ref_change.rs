//! Names of states, branches and tags, as a catalog is asked for them.

use super::table_state::TableState;
use bowshot_api::{Error, ErrorKind, Result};
use serde_json::{Value, json};

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
    pub(in super::super) fn new(
        state: &TableState,
        (namespace, table): (&[String], &str),
        change: &ReferenceChange,
    ) -> Result<Option<Self>> {
        state.target(table)?;
        let (ReferenceChange::Create { kind, name, .. } | ReferenceChange::Drop { kind, name, .. }) = change;
        if name == "main" {
            return Err(Error::unsupported(format!(
                "`main` is the table `{table}` itself and cannot be changed"
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

fn snapshot(state: &TableState, table: &str, version: Option<u64>) -> Result<i64> {
    let Some(version) = version else {
        return state.current().ok_or_else(|| {
            Error::invalid(format!("`{table}` has no snapshot yet")).with_hint("add rows to it first")
        });
    };
    let id = i64::try_from(version).ok().filter(|id| state.snapshot(*id).is_some());
    id.ok_or_else(|| Error::not_found(format!("`{table}` has no snapshot {version}")))
}
