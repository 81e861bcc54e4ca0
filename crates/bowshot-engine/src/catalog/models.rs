//! Which model a name means in one statement. Models belong to the snapshot of the statement as
//! its tables do; who may ask one is decided by the rights as they are now. One that may not be asked is not there.

use super::Visible;
use super::names::Names;
use crate::models::{self, FindModel, Found, Models};
use bowshot_api::{Error, ErrorKind, Result};
use bowshot_policy::Access;
use bowshot_policy::rules::{ModelNote, Rules, model_place};
use bowshot_system_catalog::system::models::may_ask;
use bowshot_tables::{EntryName, Snapshot};
use datafusion::execution::{FunctionRegistry, SessionState};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

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

impl FindModel for SeenModels {
    fn find(&self, name: &str) -> Result<Arc<Found>> {
        if let Some(found) = self.found.lock().get(name) {
            return Ok(Arc::clone(found));
        }
        let full = bowshot_sql::read_name(name).ok_or_else(|| {
            Error::invalid(format!("`{name}` is not a valid model name")).with_hint(
                "write it as in SQL: put names with capital letters or special characters in double quotes",
            )
        })?;
        let others = self.path.iter().filter(|_| full.0.len() == 1);
        let first = Names::model_within(&full, (&self.default_catalog, &self.default_schema))?;
        let others = others.map(|schema| EntryName::new(&self.default_catalog, schema, &first.name));
        let known = |full: EntryName| Some((seen(&self.snapshot, &self.access, &full)?, full));
        let found = std::iter::once(first.clone()).chain(others).find_map(known);
        let (note, full) = found.ok_or_else(|| not_there(&first))?;
        let model = self.models.get(&note.sha256)?;
        let found = Arc::new(Found { name: full.to_string(), sha256: note.sha256.clone(), model });
        self.found.lock().insert(name.to_owned(), Arc::clone(&found));
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

/// The error for a model that is not there, or that may not be asked.
pub(crate) fn not_there(name: &EntryName) -> Error {
    Error::new(ErrorKind::NotFound, format!("model `{name}` not found"))
        .with_hint("list the models with `SHOW MODELS`, or make it with `CREATE MODEL name FROM 'file'`")
}
