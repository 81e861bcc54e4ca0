//! Types.

use super::classes::ready;
use super::oids;
use crate::introspect::lazy::{Cell, Defined, Kind};
use crate::types::names::{POSTGRES_TYPES, PostgresType};
use Kind::{Bool, Int, Long, Short, Text};

/// Number of the schema that types are in.
const PG_CATALOG: i64 = 11;

pub(super) static TYPE: Defined = Defined {
    name: "pg_type",
    columns: &[
        ("oid", Long),
        ("typname", Text),
        ("typnamespace", Long),
        ("typowner", Long),
        ("typlen", Short),
        ("typbyval", Bool),
        ("typtype", Text),
        ("typcategory", Text),
        ("typispreferred", Bool),
        ("typisdefined", Bool),
        ("typdelim", Text),
        ("typrelid", Long),
        ("typelem", Long),
        ("typarray", Long),
        ("typinput", Text),
        ("typoutput", Text),
        ("typnotnull", Bool),
        ("typbasetype", Long),
        ("typtypmod", Int),
        ("typndims", Int),
        ("typcollation", Long),
        ("typdefault", Text),
    ],
    rows: |_, _, rows| {
        for known in POSTGRES_TYPES {
            rows.add(of(known));
            if known.array != 0 {
                rows.add(array_of(known));
            }
        }
        ready()
    },
};

fn of(known: PostgresType) -> [Cell; 21] {
    let input = match known.name {
        "date" | "time" | "timestamp" | "timestamptz" | "json" | "uuid" | "numeric" | "interval" => "_in",
        _ => "in",
    };
    let (input, output) =
        (format!("{}{input}", known.name), format!("{}{}", known.name, input.replace("in", "out")));
    cells(
        known,
        (known.oid, known.name.to_owned(), known.length),
        (category(known.oid), 0, known.array),
        [input, output],
    )
}

fn array_of(known: PostgresType) -> [Cell; 21] {
    let names = ["array_in".to_owned(), "array_out".to_owned()];
    cells(known, (known.array, format!("_{}", known.name), -1), ("A", known.oid, 0), names)
}

fn cells(
    known: PostgresType,
    (oid, name, length): (i64, String, i32),
    (category, element, array): (&str, i64, i64),
    [input, output]: [String; 2],
) -> [Cell; 21] {
    let is_text = matches!(known.oid, 19 | 25 | 1042 | 1043);
    [
        oid.into(),
        name.into(),
        PG_CATALOG.into(),
        oids::OWNER.into(),
        length.into(),
        (length > 0 && length <= 8).into(),
        if known.oid == 705 { "p" } else { "b" }.into(),
        category.into(),
        matches!(known.oid, 16 | 25 | 701 | 1184 | 1186).into(),
        true.into(),
        ",".into(),
        0.into(),
        element.into(),
        array.into(),
        input.into(),
        output.into(),
        false.into(),
        0.into(),
        (-1).into(),
        0.into(),
        if is_text { 100 } else { 0 }.into(),
    ]
}

/// PostgreSQL's letter for a kind of type.
fn category(oid: i64) -> &'static str {
    match oid {
        16 => "B",
        18 | 19 | 25 | 1042 | 1043 => "S",
        20 | 21 | 23 | 26 | 700 | 701 | 1700 => "N",
        1082 | 1083 | 1114 | 1184 => "D",
        1186 => "T",
        705 => "X",
        _ => "U",
    }
}
