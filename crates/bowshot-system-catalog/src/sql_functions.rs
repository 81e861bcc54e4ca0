//! The functions that SQL has made and that a statement may know, and the rows of `system.functions`.

use crate::system::tables::batch;
use bowshot_api::Result;
use bowshot_api::catalog_names::TEMPORARY_CATALOG;
use bowshot_policy::rules::{Rules, function_place};
use bowshot_policy::snapshot::Pinned;
use bowshot_policy::{Access, FunctionNote};
use bowshot_tables::EntryName;
use datafusion::arrow::array::{
    ArrayRef, ListBuilder, RecordBatch, StringArray, StringBuilder, TimestampMicrosecondArray,
};
use std::sync::Arc;

/// Who may know nothing that is in the schema of a function does not learn that it is there.
pub fn may_know(name: &EntryName, access: &Access) -> bool {
    name.catalog == TEMPORARY_CATALOG || access.sees_inside(&[name.catalog.clone(), name.schema.clone()])
}

/// Those that may be known, of the session first.
pub(crate) fn seen(pinned: &Pinned, access: &Access) -> Vec<(EntryName, Arc<FunctionNote>)> {
    let sides = [pinned.own(), pinned.shared()];
    let rules = sides.map(|side| side.notes().read(Rules::of));
    let all = rules.iter().flat_map(|rules| &rules.functions);
    let seen = all.filter(|(name, _)| may_know(name, access));
    seen.map(|(name, note)| (name.clone(), Arc::clone(note))).collect()
}

/// Name of the table in `system` that is made here.
pub(crate) const NAME: &str = "functions";

/// The rows of `system.functions`.
pub(crate) fn rows(pinned: &Pinned, access: &Access) -> Result<RecordBatch> {
    let all = seen(pinned, access);
    let now = access.rules();
    let owners = &now.owners;
    let text = |value: &dyn Fn(&EntryName, &FunctionNote) -> Option<String>| -> ArrayRef {
        Arc::new(all.iter().map(|(name, note)| value(name, note)).collect::<StringArray>())
    };
    let texts = |value: &dyn Fn(&FunctionNote) -> Vec<Option<String>>| -> ArrayRef {
        let mut lists = ListBuilder::new(StringBuilder::new());
        for (_, note) in &all {
            value(note).into_iter().for_each(|text| lists.values().append_option(text));
            lists.append(true);
        }
        Arc::new(lists.finish())
    };
    let parameters = |part: fn(&bowshot_sql::FunctionParameter) -> Option<String>| {
        texts(&move |note: &FunctionNote| note.parameters.iter().map(part).collect())
    };
    let kind = |note: &FunctionNote| if note.gives_rows() { "table" } else { "scalar" };
    let made = all.iter().map(|(_, note)| Some(note.made)).collect::<TimestampMicrosecondArray>();
    batch(vec![
        ("function_catalog", text(&|name, _| Some(name.catalog.clone()))),
        ("function_schema", text(&|name, _| Some(name.schema.clone()))),
        ("function_name", text(&|name, _| Some(name.name.clone()))),
        ("kind", text(&|_, note| Some(kind(note).to_owned()))),
        ("parameters", parameters(|parameter| Some(parameter.name.clone()))),
        ("parameter_types", parameters(|parameter| parameter.data_type.clone())),
        ("parameter_defaults", parameters(|parameter| parameter.default.clone())),
        ("return_type", text(&|_, note| note.result_type())),
        ("definition", text(&|_, note| Some(note.body.clone()))),
        ("dialect", text(&|_, note| Some(note.dialect.as_str().to_owned()))),
        ("owner", text(&|name, _| owners.get(&function_place(name)).cloned())),
        ("created", Arc::new(made.with_timezone("UTC"))),
    ])
}
