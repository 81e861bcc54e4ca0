//! Numbers of things, as PostgreSQL's clients want them. They are made of the names, so that they stay the same over
//! restarts without being kept anywhere: of a hundred thousand things two have the same number in one case of four hundred.

use bowshot_tables::EntryName;

/// The first number that is not PostgreSQL's own.
const FIRST: u64 = 16_384;

/// Numbers of PostgreSQL's own schemas.
const PG_CATALOG: i64 = 11;
/// Number of its superuser, who owns all.
pub(crate) const OWNER: i64 = 10;
/// Numbers of its own tables, which clients compare with.
const OWN: &[(&str, i64)] = crate::pairs! {
    "pg_aggregate" 2600, "pg_am" 2601, "pg_amop" 2602, "pg_amproc" 2603, "pg_attrdef" 2604,
    "pg_attribute" 1249, "pg_auth_members" 1261, "pg_authid" 1260, "pg_cast" 2605, "pg_class" 1259,
    "pg_collation" 3456, "pg_constraint" 2606, "pg_conversion" 2607, "pg_database" 1262,
    "pg_default_acl" 826, "pg_depend" 2608, "pg_description" 2609, "pg_enum" 3501, "pg_event_trigger" 3466,
    "pg_extension" 3079, "pg_foreign_data_wrapper" 2328, "pg_foreign_server" 1417, "pg_foreign_table" 3118,
    "pg_index" 2610, "pg_inherits" 2611, "pg_init_privs" 3394, "pg_language" 2612, "pg_largeobject" 2613,
    "pg_namespace" 2615, "pg_opclass" 2616, "pg_operator" 2617, "pg_opfamily" 2753, "pg_policy" 3256,
    "pg_proc" 1255, "pg_publication" 6104, "pg_publication_rel" 6106, "pg_range" 3541, "pg_rewrite" 2618,
    "pg_sequence" 2224, "pg_statistic_ext" 3381, "pg_subscription" 6100, "pg_tablespace" 1213,
    "pg_transform" 3576, "pg_trigger" 2620, "pg_ts_config" 3602, "pg_ts_dict" 3600, "pg_ts_parser" 3601,
    "pg_ts_template" 3764, "pg_type" 1247, "pg_user_mapping" 1418,
};

/// The number of a schema.
pub(crate) fn schema(catalog: &str, name: &str) -> i64 {
    if name == bowshot_api::catalog_names::PG_CATALOG {
        PG_CATALOG
    } else {
        number(&["schema", catalog, name])
    }
}

pub(crate) fn catalog(name: &str) -> i64 {
    number(&["catalog", name])
}

/// The number of a table or view.
pub fn table(name: &EntryName) -> i64 {
    let own = OWN
        .iter()
        .find(|(own, _)| name.schema == bowshot_api::catalog_names::PG_CATALOG && name.name == *own);
    own.map_or_else(|| number(&["table", &name.catalog, &name.schema, &name.name]), |(_, oid)| *oid)
}

pub(crate) fn row_type(table: &EntryName) -> i64 {
    number(&["type", &table.catalog, &table.schema, &table.name])
}

pub(crate) fn row_array(table: &EntryName) -> i64 {
    number(&["array", &table.catalog, &table.schema, &table.name])
}

pub(crate) fn enum_type(name: &EntryName) -> i64 {
    number(&["enum", &name.catalog, &name.schema, &name.name])
}

pub(crate) fn enum_array(name: &EntryName) -> i64 {
    number(&["enum array", &name.catalog, &name.schema, &name.name])
}

pub(crate) fn enum_label(name: &EntryName, label: &str) -> i64 {
    number(&["enum label", &name.catalog, &name.schema, &name.name, label])
}

/// The number of a constraint, and of the index that stands for it.
pub(crate) fn constraint(table: &EntryName, name: &str) -> i64 {
    number(&["constraint", &table.catalog, &table.schema, &table.name, name])
}

pub(crate) fn function(name: &str) -> i64 {
    number(&["function", name])
}

pub(crate) fn sql_function(name: &EntryName) -> i64 {
    number(&["sql function", &name.catalog, &name.schema, &name.name])
}

/// FNV-1a over the parts, which end where no name can go on.
fn number(parts: &[&str]) -> i64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in parts.iter().flat_map(|part| part.bytes().chain([0])) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    let range = (1_u64 << 31) - FIRST;
    (FIRST + (hash ^ (hash >> 32)) % range).cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_name_and_fit() {
        let name = |name: &str| EntryName::new("bowshot", "main", name);
        assert_eq!(table(&name("t")), table(&name("t")));
        assert_ne!(table(&name("t")), table(&name("u")));
        assert_ne!(table(&name("t")), schema("bowshot", "t"));
        for n in 0..1_000 {
            let oid = table(&name(&n.to_string()));
            assert!((16_384..1 << 31).contains(&oid), "{oid}");
        }
        assert_eq!(table(&EntryName::new("bowshot", "pg_catalog", "pg_class")), 1259);
    }
}
