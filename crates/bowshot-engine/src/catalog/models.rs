//! Which model a name means in one statement, and what `system.models` tells. Models belong to the snapshot of the statement as
//! its tables do; who may ask one is decided by the rights as they are now. One that may not be asked is not there.

use super::Visible;
use super::names::Names;
use super::system::tables::batch;
use crate::models::{self, FindModel, Found, Models};
use crate::policy::Access;
use crate::policy::rules::{ModelNote, Place, Rules, model_place};
use crate::snapshot::Pinned;
use bowshot_api::{Error, ErrorKind, Result};
use bowshot_sql::Privilege;
use bowshot_storage::tables::{EntryName, Snapshot};
use datafusion::arrow::array::{
    ArrayRef, Int64Array, ListBuilder, RecordBatch, StringArray, StringBuilder, TimestampMicrosecondArray,
};
use datafusion::execution::{FunctionRegistry, SessionState};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Gives a state the functions that ask the models of a statement.
pub(super) fn register(state: &mut SessionState, visible: &Visible) {
    let (default_catalog, default_schema) = visible.default_names();
    let path = visible.other_schemas();
    let finder: Arc<dyn FindModel> = Arc::new(SeenModels {
        snapshot: Arc::clone(visible.raw.shared()),
        access: visible.access.clone(),
        models: Arc::clone(&visible.parts.models),
        default_catalog,
        default_schema,
        path,
        found: Mutex::default(),
    });
    put(state, models::functions(&finder));
}

/// Takes the models of a statement out of a state.
pub(super) fn forget(state: &mut SessionState) {
    put(state, models::functions_without_models());
}

fn put(state: &mut SessionState, functions: [Arc<datafusion::logical_expr::ScalarUDF>; 2]) {
    for function in functions {
        // Names are always taken: a state refuses none.
        let _ = state.register_udf(function);
    }
}

/// The models that one statement may ask.
#[derive(Debug)]
struct SeenModels {
    snapshot: Arc<Snapshot>,
    access: Access,
    models: Arc<Models>,
    default_catalog: String,
    default_schema: String,
    /// Schemas that are looked into after the default one.
    path: Vec<String>,
    /// By the names that were asked for: the planner asks several times for each.
    found: Mutex<HashMap<String, Arc<Found>>>,
}

impl SeenModels {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Found>>> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FindModel for SeenModels {
    fn find(&self, name: &str) -> Result<Arc<Found>> {
        if let Some(found) = self.lock().get(name) {
            return Ok(Arc::clone(found));
        }
        let full = bowshot_sql::read_name(name).ok_or_else(|| {
            Error::invalid(format!("`{name}` is no name of a model"))
                .with_hint("write it as in SQL: names of capital letters or signs stand in double quotes")
        })?;
        let others = self.path.iter().filter(|_| full.0.len() == 1);
        let first = Names::model_within(&full, (&self.default_catalog, &self.default_schema))?;
        let others = others.map(|schema| EntryName::new(&self.default_catalog, schema, &first.name));
        let known = |full: EntryName| Some((seen(&self.snapshot, &self.access, &full)?, full));
        let found = std::iter::once(first.clone()).chain(others).find_map(known);
        let (note, full) = found.ok_or_else(|| not_there(&first))?;
        let model = self.models.get(&note.sha256)?;
        let found = Arc::new(Found { name: full.to_string(), sha256: note.sha256.clone(), model });
        self.lock().insert(name.to_owned(), Arc::clone(&found));
        Ok(found)
    }
}

/// A model that a statement may ask.
pub(crate) fn seen(snapshot: &Snapshot, access: &Access, name: &EntryName) -> Option<Arc<ModelNote>> {
    let rules = snapshot.notes().read(Rules::of);
    let place = model_place(name);
    let note = rules.models.get(&place).filter(|_| snapshot.has_schema(&name.catalog, &name.schema))?;
    may_ask(access, &place, note).then(|| Arc::clone(note))
}

/// Rights are about what there is now: those on another model that has got the name since are none on this one.
fn may_ask(access: &Access, place: &Place, note: &ModelNote) -> bool {
    if access.is_everything() {
        return true;
    }
    let now = access.rules();
    now.models.get(place).is_some_and(|now| now.id == note.id) && access.may(Privilege::Select, place)
}

/// The error for a model that is not there, or that may not be asked.
pub(crate) fn not_there(name: &EntryName) -> Error {
    Error::new(ErrorKind::NotFound, format!("model `{name}` not found"))
        .with_hint("list the models with `SHOW MODELS`, or make it with `CREATE MODEL name FROM 'file'`")
}

/// Name of the table in `system` that is made here.
pub(crate) const NAME: &str = "models";

/// The rows of `system.models`.
pub(crate) fn rows(pinned: &Pinned, access: &Access) -> Result<RecordBatch> {
    let rules = pinned.shared().notes().read(Rules::of);
    let seen = |(place, note): &(&Place, &Arc<ModelNote>)| {
        may_ask(access, place, note)
            && matches!(place.as_slice(), [catalog, schema, ..] if pinned.shared().has_schema(catalog, schema))
    };
    let all: Vec<(&Place, &Arc<ModelNote>)> = rules.models.iter().filter(seen).collect();
    let now = access.rules();
    let owners = &now.owners;
    let text = |value: &dyn Fn(&Place, &ModelNote) -> Option<String>| -> ArrayRef {
        Arc::new(all.iter().map(|(place, note)| value(place, note)).collect::<StringArray>())
    };
    let number = |value: &dyn Fn(&ModelNote) -> Option<i64>| -> ArrayRef {
        Arc::new(all.iter().map(|(_, note)| value(note)).collect::<Int64Array>())
    };
    let fact = |name: &'static str| text(&|_, note| note.facts.get(name)?.as_str().map(str::to_owned));
    let count = |name: &'static str| number(&|note| note.facts.get(name)?.as_i64());
    let texts = |name: &'static str| -> ArrayRef {
        let mut lists = ListBuilder::new(StringBuilder::new());
        for (_, note) in &all {
            let values = note.facts.get(name).and_then(Value::as_array);
            for value in values.into_iter().flatten() {
                lists.values().append_option(value.as_str());
            }
            lists.append(values.is_some());
        }
        Arc::new(lists.finish())
    };
    let made = all.iter().map(|(_, note)| Some(note.made)).collect::<TimestampMicrosecondArray>();
    batch(vec![
        ("model_catalog", text(&|place, _| place.first().cloned())),
        ("model_schema", text(&|place, _| place.get(1).cloned())),
        ("model_name", text(&|place, _| place.last().cloned())),
        ("version", number(&|note| i64::try_from(note.version).ok())),
        ("format", fact("format")),
        ("objective", fact("objective")),
        ("feature_count", count("feature_count")),
        ("features", texts("features")),
        ("feature_type", fact("feature_type")),
        ("prediction_type", fact("prediction_type")),
        ("classes", texts("classes")),
        ("trees", count("trees")),
        ("nodes", count("nodes")),
        ("bytes", number(&|note| i64::try_from(note.bytes).ok())),
        ("sha256", text(&|_, note| Some(note.sha256.clone()))),
        ("owner", text(&|place, _| owners.get(place).cloned())),
        ("created", Arc::new(made.with_timezone("UTC"))),
    ])
}
