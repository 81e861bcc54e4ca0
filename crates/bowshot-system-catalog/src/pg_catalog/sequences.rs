//! Sequences. What they have given, functions alone know: `currval`, `lastval`.

use crate::CatalogView;
use crate::functions::sequences::of_table;
use crate::lazy_table::Make::Now;
use crate::lazy_table::{Cell, Defined, cells, tables};
use crate::listing::Listed;
use crate::pg_catalog::classes::sequences_here;
use bowshot_api::catalog_names::TEMPORARY_CATALOG;
use bowshot_tables::{EntryName, Identity};
use datafusion::arrow::datatypes::DataType;

pub(crate) static TABLES: &[Defined] = tables! {
    // Those of columns are here too, as in PostgreSQL.
    pg_sequence: seqrelid Long, seqtypid Long, seqstart Long, seqincrement Long, seqmax Long, seqmin Long,
        seqcache Long, seqcycle Bool
    => Now(|visible, _, rows| {
        let (current, _) = visible.default_names();
        let tables = visible.pinned.own().tables().chain(visible.pinned.shared().tables());
        let is_here = |name: &EntryName| name.catalog == current || name.catalog == TEMPORARY_CATALOG;
        for (name, table) in tables.filter(|(name, _)| is_here(name)) {
            for sequence in of_table(&name, table.definition()) {
                let Identity { start, step, column, .. } = &sequence.identity;
                let data_type = table.definition().position(column).and_then(|place| {
                    table.definition().columns.get(place).map(|column| column.field.data_type())
                });
                let (oid, least, greatest) = match data_type {
                    Some(DataType::Int16) => (21, i64::from(i16::MIN), i64::from(i16::MAX)),
                    Some(DataType::Int32) => (23, i64::from(i32::MIN), i64::from(i32::MAX)),
                    _ => (20, i64::MIN, i64::MAX),
                };
                let (least, greatest) = if *step > 0 { (1, greatest) } else { (least, -1) };
                rows.add(cells![sequence.oid(), oid, *start, *step, greatest, least, 1, false]);
            }
        }
    });

    pg_sequences: schemaname Text, sequencename Text, sequenceowner Text, data_type Text, start_value Long,
        min_value Long, max_value Long, increment_by Long, cycle Bool, cache_size Long, last_value Long
    => Now(|visible, _, rows| {
        for (listed, Identity { start, step, .. }) in sequences(visible) {
            let ((least, greatest), name, owner) = (bounds(step), &listed.name, &visible.principal.name);
            let first = cells![&name.schema, &name.name, owner, "bigint", start, least, greatest, step];
            rows.add(first.into_iter().chain(cells![false, 1]));
        }
    });
};

pub(crate) static STANDARD: &[Defined] = tables! {
    // The standard's table of them.
    sequences: sequence_catalog Text, sequence_schema Text, sequence_name Text, data_type Text,
        numeric_precision Int, numeric_precision_radix Int, numeric_scale Int, start_value Text,
        minimum_value Text, maximum_value Text, increment Text, cycle_option Text
    => Now(|visible, _, rows| {
        for (listed, Identity { start, step, .. }) in sequences(visible) {
            let ((least, greatest), name) = (bounds(step), &listed.name);
            let first = cells![&name.catalog, &name.schema, &name.name, "bigint", 64, 2, 0];
            let numbers = [start, least, greatest, step].map(|number| Cell::from(number.to_string()));
            rows.add(first.into_iter().chain(numbers).chain(["NO".into()]));
        }
    });
};

fn sequences(visible: &CatalogView) -> Vec<(Listed, Identity)> {
    let identity =
        |listed: &Listed| listed.definition().and_then(|definition| definition.sequence().cloned());
    let all = sequences_here(visible).into_iter();
    all.filter_map(|listed| identity(&listed).map(|identity| (listed, identity))).collect()
}

/// The least and the greatest number.
fn bounds(step: i64) -> (i64, i64) {
    if step > 0 { (1, i64::MAX) } else { (i64::MIN, -1) }
}
