//! `system.models`: the models that the caller may ask.

use super::tables::batch;
use crate::lazy_table::{Cell, cells, columns};
use bowshot_api::Result;
use bowshot_policy::Access;
use bowshot_policy::rules::{ModelNote, Place, Rules};
use bowshot_policy::snapshot::Pinned;
use bowshot_sql::Privilege;
use datafusion::arrow::array::RecordBatch;
use serde_json::Value;
use std::sync::Arc;

/// Name of the table in `system` that is made here.
pub(super) const NAME: &str = "models";

/// The rows of `system.models`.
pub(super) fn rows(pinned: &Pinned, access: &Access) -> Result<RecordBatch> {
    let rules = pinned.shared().notes().read(Rules::of);
    let seen = |(place, note): &(&Place, &Arc<ModelNote>)| {
        may_ask(access, place, note)
            && matches!(place.as_slice(), [catalog, schema, ..] if pinned.shared().has_schema(catalog, schema))
    };
    let all: Vec<(&Place, &Arc<ModelNote>)> = rules.models.iter().filter(seen).collect();
    let now = access.rules();
    let owners = &now.owners;
    let rows = all.into_iter().map(|(place, note)| {
        let fact = |name: &'static str| note.facts.get(name);
        let text = |name| fact(name).and_then(Value::as_str);
        let count = |name| fact(name).and_then(Value::as_i64);
        let texts =
            |name| fact(name).and_then(Value::as_array).map_or(Cell::Null, |values| text_list(values));
        let number = |number: u64| i64::try_from(number).ok();
        let names = cells![place.first(), place.get(1), place.last(), number(note.version)];
        let made_of = cells![text("format"), text("objective"), count("feature_count"), texts("features")];
        let gives = cells![text("feature_type"), text("prediction_type"), texts("classes")];
        let size = cells![count("trees"), count("nodes"), number(note.bytes)];
        let rest = cells![&note.sha256, owners.get(place), note.made];
        names.into_iter().chain(made_of).chain(gives).chain(size).chain(rest)
    });
    let columns = columns![
        model_catalog Text, model_schema Text, model_name Text, version Long, format Text, objective Text,
        feature_count Long, features Texts, feature_type Text, prediction_type Text, classes Texts, trees Long,
        nodes Long, bytes Long, sha256 Text, owner Text, created Time
    ];
    batch(columns, rows)
}

fn text_list(values: &[Value]) -> Cell {
    Cell::Texts(values.iter().map(|value| value.as_str().map(str::to_owned)).collect())
}

/// Rights are about what there is now: those on another model that has got the name since are none on this one.
pub fn may_ask(access: &Access, place: &Place, note: &ModelNote) -> bool {
    if access.is_everything() {
        return true;
    }
    let now = access.rules();
    now.models.get(place).is_some_and(|now| now.id == note.id) && access.may(Privilege::Select, place)
}
