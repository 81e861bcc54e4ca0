//! `system.models`: the models that the caller may ask.

use super::tables::batch;
use bowshot_api::Result;
use bowshot_policy::Access;
use bowshot_policy::rules::{ModelNote, Place, Rules};
use bowshot_policy::snapshot::Pinned;
use bowshot_sql::Privilege;
use datafusion::arrow::array::{
    ArrayRef, Int64Array, ListBuilder, RecordBatch, StringArray, StringBuilder, TimestampMicrosecondArray,
};
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

/// Rights are about what there is now: those on another model that has got the name since are none on this one.
pub fn may_ask(access: &Access, place: &Place, note: &ModelNote) -> bool {
    if access.is_everything() {
        return true;
    }
    let now = access.rules();
    now.models.get(place).is_some_and(|now| now.id == note.id) && access.may(Privilege::Select, place)
}
