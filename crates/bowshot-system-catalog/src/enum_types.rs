//! The enumerated types that a statement may know, by their names and numbers.

use crate::CatalogView;
use crate::functions::{Call, relations};
use crate::pg_catalog::oids;
use bowshot_api::catalog_names::{DEFAULT_SCHEMA, PUBLIC};
use bowshot_policy::Access;
use bowshot_policy::rules::{Rules, type_place};
use bowshot_policy::snapshot::Pinned;
use bowshot_sql::Privilege;
use bowshot_tables::EntryName;
use bowshot_types::enums::EnumType;

/// Who may neither read, change nor make anything in the schema of a type does not learn that it is there.
pub fn may_know(name: &EntryName, access: &Access) -> bool {
    access.may(Privilege::Select, &type_place(name))
        || access.may(Privilege::Create, &[name.catalog.clone(), name.schema.clone()])
}

impl CatalogView {
    /// The types of the catalog in force that may be known, by name.
    pub(crate) fn enum_types(&self) -> Vec<EnumType> {
        let (current, _) = self.default_names();
        visible_types(&current, &self.pinned, &self.access)
    }
}

fn visible_types(catalog: &str, pinned: &Pinned, access: &Access) -> Vec<EnumType> {
    let rules = pinned.shared().notes().read(Rules::of);
    let seen = rules.types.iter().filter(|(name, _)| name.catalog == catalog && may_know(name, access));
    seen.map(|(name, labels)| EnumType { name: Some(name.clone()), labels: labels.clone() }).collect()
}

fn visible_names(call: &Call<'_>) -> impl Iterator<Item = EntryName> {
    let pinned = call.pinned();
    let access = call.access();
    visible_types(call.catalog(), &pinned, &access).into_iter().filter_map(|of| of.name)
}

/// The number of a type, or of that of arrays of it.
pub(crate) fn type_oid(call: &Call<'_>, written: &str, is_array: bool) -> Option<i64> {
    let parts = relations::parts(written)?;
    let (schema, name) = match parts.as_slice() {
        [name] => (call.schema(), name.as_str()),
        [.., schema, name] => (schema.as_str(), name.as_str()),
        [] => return None,
    };
    let schema = if schema == PUBLIC { DEFAULT_SCHEMA } else { schema };
    let found = visible_names(call).find(|full| full.schema == schema && full.name == name)?;
    Some(if is_array { oids::enum_array(&found) } else { oids::enum_type(&found) })
}

/// The name of a type, or of that of arrays of it, with the schema where it is not found without.
pub(crate) fn type_name(call: &Call<'_>, oid: i64) -> Option<String> {
    visible_names(call).find_map(|full| {
        let suffix = match oid {
            oid if oid == oids::enum_type(&full) => "",
            oid if oid == oids::enum_array(&full) => "[]",
            _ => return None,
        };
        let name = relations::quoted(&full.name);
        Some(if full.schema == call.schema() {
            format!("{name}{suffix}")
        } else {
            format!("{}.{name}{suffix}", relations::quoted(&full.schema))
        })
    })
}
