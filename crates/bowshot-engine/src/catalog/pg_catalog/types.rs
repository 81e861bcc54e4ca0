//! Types. Their functions are texts, which are compared as such.

use crate::catalog::lazy_table::{Cell, Defined, Kind};
use crate::catalog::pg_catalog::classes::ready;
use crate::catalog::pg_catalog::oids;
use crate::types::names::{POSTGRES_TYPES, PostgresType};
use Kind::{Bool, Int, Long, Short, Text, Texts};
use std::collections::BTreeSet;

/// Number of the schema that types are in.
const PG_CATALOG: i64 = 11;

pub(crate) static TYPE: Defined = Defined {
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
        ("typsubscript", Text),
        ("typelem", Long),
        ("typarray", Long),
        ("typinput", Text),
        ("typoutput", Text),
        ("typreceive", Text),
        ("typsend", Text),
        ("typmodin", Text),
        ("typmodout", Text),
        ("typanalyze", Text),
        ("typalign", Text),
        ("typstorage", Text),
        ("typnotnull", Bool),
        ("typbasetype", Long),
        ("typtypmod", Int),
        ("typndims", Int),
        ("typcollation", Long),
        ("typdefaultbin", Text),
        ("typdefault", Text),
        ("typacl", Texts),
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

/// A type as its row is made of.
struct Shape {
    oid: i64,
    name: String,
    length: i32,
    category: &'static str,
    element: i64,
    array: i64,
    /// What the names of its functions begin with.
    functions: String,
}

/// Names of the functions of all types, sorted.
pub(crate) fn functions() -> BTreeSet<String> {
    let plain = POSTGRES_TYPES.iter().map(|known| begin(*known));
    let all = plain.chain(["array_".to_owned()]);
    let whats = ["in", "out", "recv", "send"];
    all.flat_map(|begin| whats.map(|what| format!("{begin}{what}"))).collect()
}

/// What the names of a type's functions begin with.
fn begin(known: PostgresType) -> String {
    let separate = matches!(known.name, "date" | "time" | "timestamp" | "timestamptz" | "json" | "jsonb")
        || matches!(known.name, "uuid" | "numeric" | "interval" | "record" | "cstring" | "void")
        || known.name.ends_with("trigger")
        || known.name.starts_with("any");
    if separate { format!("{}_", known.name) } else { known.name.to_owned() }
}

fn of(known: PostgresType) -> impl Iterator<Item = Cell> {
    let shape = Shape {
        oid: known.oid,
        name: known.name.to_owned(),
        length: known.length,
        category: category(known.oid),
        element: match known.oid {
            22 => 21,
            30 => 26,
            _ => 0,
        },
        array: known.array,
        functions: begin(known),
    };
    cells(known, shape)
}

fn array_of(known: PostgresType) -> impl Iterator<Item = Cell> {
    let shape = Shape {
        oid: known.array,
        name: format!("_{}", known.name),
        length: -1,
        category: "A",
        element: known.oid,
        array: 0,
        functions: "array_".to_owned(),
    };
    cells(known, shape)
}

fn cells(known: PostgresType, shape: Shape) -> impl Iterator<Item = Cell> {
    let Shape { oid, name, length, category, element, array, functions } = shape;
    let is_text = matches!(known.oid, 19 | 25 | 1042 | 1043);
    let function = |what: &str| Cell::from(format!("{functions}{what}"));
    // What cannot be sent has no functions for it; `-` is PostgreSQL's name of none.
    let sent = |what: &str| if functions.starts_with("any") { "-".into() } else { function(what) };
    let none = || Cell::from("-");
    let first = [
        oid.into(),
        name.into(),
        PG_CATALOG.into(),
        oids::OWNER.into(),
        length.into(),
        (length > 0 && length <= 8).into(),
        if category == "P" { "p" } else { "b" }.into(),
        category.into(),
        matches!(known.oid, 16 | 25 | 701 | 1184 | 1186).into(),
        true.into(),
        ",".into(),
        0.into(),
        none(),
        element.into(),
        array.into(),
        function("in"),
        function("out"),
    ];
    let align = match length {
        8 => "d",
        2 => "s",
        1 | 16 | 64 => "c",
        _ => "i",
    };
    let storage = if length == -1 { "x" } else { "p" };
    let second = [sent("recv"), sent("send"), none(), none(), none(), align.into(), storage.into()];
    let collation = if is_text { 100 } else { 0 };
    let third: [Cell; 5] = [false.into(), 0.into(), (-1).into(), 0.into(), collation.into()];
    first.into_iter().chain(second).chain(third)
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
        2249 | 2275..=2279 | 2283 | 3838 => "P",
        22 | 30 => "A",
        24 | 2205 | 2206 | 4089 | 4096 => "N",
        _ => "U",
    }
}
