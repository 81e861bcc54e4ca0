//! Keys and conditions, and the indexes that PostgreSQL would have for the keys.

use crate::catalog::information_schema::{KeyKind, keys_of};
use crate::catalog::lazy_table::{Cell, Defined, Kind};
use crate::catalog::listing::Listed;
use crate::catalog::pg_catalog::classes::{here, ready};
use crate::catalog::pg_catalog::oids;
use Kind::{Bool, Long, Longs, Short, Shorts, Text, Vector};
use bowshot_storage::tables::Key;

pub(crate) static CONSTRAINT: Defined = Defined {
    name: "pg_constraint",
    columns: &[
        ("oid", Long),
        ("conname", Text),
        ("connamespace", Long),
        ("contype", Text),
        ("condeferrable", Bool),
        ("condeferred", Bool),
        ("conenforced", Bool),
        ("convalidated", Bool),
        ("conrelid", Long),
        ("contypid", Long),
        ("conindid", Long),
        ("conparentid", Long),
        ("confrelid", Long),
        ("confupdtype", Text),
        ("confdeltype", Text),
        ("confmatchtype", Text),
        ("conislocal", Bool),
        ("coninhcount", Short),
        ("connoinherit", Bool),
        ("conperiod", Bool),
        ("conkey", Shorts),
        ("confkey", Shorts),
        ("conpfeqop", Longs),
        ("conppeqop", Longs),
        ("conffeqop", Longs),
        ("confdelsetcols", Shorts),
        ("conexclop", Longs),
        ("conbin", Text),
    ],
    rows: |visible, _, rows| {
        for listed in here(visible) {
            let Some(definition) = listed.definition() else { continue };
            for (name, key, kind) in keys_of(&listed) {
                let index = oids::constraint(&listed.name, &name);
                let letter = if kind == KeyKind::Primary { "p" } else { "u" };
                rows.add(constraint(&listed, (&name, letter), index, (positions(&listed, key), Cell::Null)));
            }
            for check in &definition.checks {
                let text = Cell::from(&check.sql);
                rows.add(constraint(&listed, (&check.name, "c"), 0, (Cell::Null, text)));
            }
        }
        ready()
    },
};

pub(crate) static INDEX: Defined = Defined {
    name: "pg_index",
    columns: &[
        ("indexrelid", Long),
        ("indrelid", Long),
        ("indnatts", Short),
        ("indnkeyatts", Short),
        ("indisunique", Bool),
        ("indnullsnotdistinct", Bool),
        ("indisprimary", Bool),
        ("indisexclusion", Bool),
        ("indimmediate", Bool),
        ("indisclustered", Bool),
        ("indisvalid", Bool),
        ("indcheckxmin", Bool),
        ("indisready", Bool),
        ("indislive", Bool),
        ("indisreplident", Bool),
        ("indkey", Vector),
        ("indcollation", Longs),
        ("indclass", Longs),
        ("indoption", Vector),
        ("indexprs", Text),
        ("indpred", Text),
    ],
    rows: |visible, _, rows| {
        for listed in here(visible) {
            for (name, key, kind) in keys_of(&listed) {
                rows.add(index(&listed, &name, key, kind));
            }
        }
        ready()
    },
};

pub(crate) static INDEXES: Defined = Defined {
    name: "pg_indexes",
    columns: &[
        ("schemaname", Text),
        ("tablename", Text),
        ("indexname", Text),
        ("tablespace", Text),
        ("indexdef", Text),
    ],
    rows: |visible, _, rows| {
        for listed in here(visible) {
            let (schema, table) = (&listed.name.schema, &listed.name.name);
            for (name, key, _) in keys_of(&listed) {
                let columns = key.columns.join(", ");
                let text = format!("CREATE UNIQUE INDEX {name} ON {schema}.{table} USING btree ({columns})");
                rows.add([schema.into(), table.into(), name.into(), Cell::Null, text.into()]);
            }
        }
        ready()
    },
};

/// The index that PostgreSQL would have for a key.
fn index(listed: &Listed, name: &str, key: &Key, kind: KeyKind) -> [Cell; 21] {
    let count = key.columns.len();
    [
        oids::constraint(&listed.name, name).into(),
        oids::table(&listed.name).into(),
        count.into(),
        count.into(),
        true.into(),
        false.into(),
        (kind == KeyKind::Primary).into(),
        false.into(),
        true.into(),
        false.into(),
        true.into(),
        false.into(),
        true.into(),
        true.into(),
        false.into(),
        positions(listed, key),
        // How texts are compared, and which orders values, is the same everywhere.
        Cell::Numbers(vec![0; count]),
        Cell::Numbers(vec![0; count]),
        Cell::Numbers(vec![0; count]),
        Cell::Null,
        Cell::Null,
    ]
}

/// Places of the columns of a key, from one.
fn positions(listed: &Listed, key: &Key) -> Cell {
    let Some(definition) = listed.definition() else { return Cell::Null };
    let positions = key.columns.iter().filter_map(|column| definition.position(column));
    Cell::Numbers(positions.map(|position| i64::try_from(position + 1).unwrap_or(i64::MAX)).collect())
}

fn constraint(
    listed: &Listed,
    (name, kind): (&str, &str),
    index: i64,
    (key, text): (Cell, Cell),
) -> [Cell; 28] {
    let schema = oids::schema(&listed.name.catalog, &listed.name.schema);
    [
        oids::constraint(&listed.name, name).into(),
        name.into(),
        schema.into(),
        kind.into(),
        false.into(),
        false.into(),
        true.into(),
        true.into(),
        oids::table(&listed.name).into(),
        0.into(),
        index.into(),
        0.into(),
        0.into(),
        " ".into(),
        " ".into(),
        " ".into(),
        true.into(),
        0.into(),
        true.into(),
        false.into(),
        key,
        Cell::Null,
        Cell::Null,
        Cell::Null,
        Cell::Null,
        Cell::Null,
        Cell::Null,
        text,
    ]
}
