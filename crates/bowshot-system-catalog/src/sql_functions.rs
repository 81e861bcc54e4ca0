//! The functions that SQL has made and that a statement may know, and the rows of `system.functions`.

use crate::lazy_table::{Cell, cells, columns};
use crate::system::tables::batch;
use bowshot_api::Result;
use bowshot_api::catalog_names::TEMPORARY_CATALOG;
use bowshot_policy::rules::{Rules, function_place};
use bowshot_policy::snapshot::Pinned;
use bowshot_policy::{Access, FunctionNote};
use bowshot_sql::FunctionParameter;
use bowshot_tables::EntryName;
use datafusion::arrow::array::RecordBatch;
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
    let rows = all.iter().map(|(name, note)| {
        let parameters = |part: fn(&FunctionParameter) -> Option<String>| {
            Cell::Texts(note.parameters.iter().map(part).collect())
        };
        let named = cells![
            &name.catalog,
            &name.schema,
            &name.name,
            if note.gives_rows() { "table" } else { "scalar" },
            parameters(|parameter| Some(parameter.name.clone())),
            parameters(|parameter| parameter.data_type.clone()),
            parameters(|parameter| parameter.default.clone()),
        ];
        let owner = owners.get(&function_place(name));
        named.into_iter().chain(cells![
            note.result_type(),
            &note.body,
            note.dialect.as_str(),
            owner,
            note.made
        ])
    });
    let columns = columns![
        function_catalog Text, function_schema Text, function_name Text, kind Text, parameters Texts,
        parameter_types Texts, parameter_defaults Texts, return_type Text, definition Text, dialect Text,
        owner Text, created Time
    ];
    batch(columns, rows)
}
