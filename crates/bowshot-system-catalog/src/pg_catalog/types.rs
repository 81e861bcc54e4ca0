//! Types, those of the rows of tables and enumerated ones included. Their functions are texts, which are compared as such.

use crate::lazy_table::Make::Now;
use crate::lazy_table::{Cell, Defined, cells, tables};
use crate::listing::Listed;
use crate::pg_catalog::classes::here;
use crate::pg_catalog::oids;
use bowshot_tables::EntryName;
use bowshot_types::enums::EnumType;
use bowshot_types::names::{POSTGRES_TYPES, PostgresType};
use std::collections::BTreeSet;

/// Number of the schema that types are in.
const PG_CATALOG: i64 = 11;

pub(crate) static TABLES: &[Defined] = tables! {
    pg_type: oid Long, typname Text, typnamespace Long, typowner Long, typlen Short, typbyval Bool,
        typtype Text, typcategory Text, typispreferred Bool, typisdefined Bool, typdelim Text,
        typrelid Long, typsubscript Text, typelem Long, typarray Long, typinput Text, typoutput Text,
        typreceive Text, typsend Text, typmodin Text, typmodout Text, typanalyze Text, typalign Text,
        typstorage Text, typnotnull Bool, typbasetype Long, typtypmod Int, typndims Int, typcollation Long,
        typdefaultbin Text, typdefault Text, typacl Texts
    => Now(|visible, about, rows| {
        for known in POSTGRES_TYPES {
            rows.add(of(known));
            if known.array != 0 {
                rows.add(array_of(known));
            }
        }
        for listed in here(visible, about).iter().filter(|listed| !listed.is_internal()) {
            let [row, array] = of_rows(listed);
            rows.add(row);
            rows.add(array);
        }
        for name in visible.enum_types().iter().filter_map(|of| of.name.as_ref()) {
            let [row, array] = of_enum(name);
            rows.add(row);
            rows.add(array);
        }
    });

    pg_enum: oid Long, enumtypid Long, enumsortorder Long, enumlabel Text
    => Now(|visible, _, rows| {
        for EnumType { name, labels } in visible.enum_types() {
            let Some(name) = name else { continue };
            let oid = oids::enum_type(&name);
            for (place, label) in labels.iter().enumerate() {
                let own = oids::enum_label(&name, label);
                rows.add(cells![own, oid, place + 1, label]);
            }
        }
    });
};

/// An enumerated type, and that of arrays of it.
fn of_enum(name: &EntryName) -> [impl Iterator<Item = Cell>; 2] {
    let (oid, array) = (oids::enum_type(name), oids::enum_array(name));
    let known = PostgresType { oid, name: "enum", length: 4, array };
    let namespace = oids::schema(&name.catalog, &name.schema);
    let value = Shape {
        namespace,
        category: "E",
        array,
        functions: "enum_".to_owned(),
        ..Shape::plain(known, name.name.clone(), oid)
    };
    let arrays = Shape {
        namespace,
        length: -1,
        category: "A",
        element: oid,
        functions: "array_".to_owned(),
        ..Shape::plain(known, format!("_{}", name.name), array)
    };
    [cells(known, value), cells(known, arrays)]
}

/// The type of the rows of a table or view, and that of arrays of them.
fn of_rows(listed: &Listed) -> [impl Iterator<Item = Cell>; 2] {
    let (oid, array) = (oids::row_type(&listed.name), oids::row_array(&listed.name));
    let row = PostgresType { oid, name: "record", length: -1, array };
    let shape = |name: String, oid: i64| Shape {
        namespace: oids::schema(&listed.name.catalog, &listed.name.schema),
        ..Shape::plain(row, name, oid)
    };
    let rows = Shape {
        category: "C",
        relation: oids::table(&listed.name),
        array,
        functions: begin(row),
        ..shape(listed.name.name.clone(), oid)
    };
    let arrays = Shape {
        category: "A",
        element: oid,
        functions: "array_".to_owned(),
        ..shape(format!("_{}", listed.name.name), array)
    };
    [cells(row, rows), cells(row, arrays)]
}

/// A type as its row is made of.
struct Shape {
    oid: i64,
    name: String,
    namespace: i64,
    length: i32,
    category: &'static str,
    /// The table that it is the type of the rows of.
    relation: i64,
    element: i64,
    array: i64,
    /// What the names of its functions begin with.
    functions: String,
}

impl Shape {
    /// A type that has nothing to do with others.
    fn plain(known: PostgresType, name: String, oid: i64) -> Self {
        Self {
            oid,
            name,
            namespace: PG_CATALOG,
            length: known.length,
            category: category(oid),
            relation: 0,
            element: 0,
            array: 0,
            functions: String::new(),
        }
    }
}

/// Names of the functions of all types, sorted.
pub(crate) fn functions() -> BTreeSet<String> {
    let plain = POSTGRES_TYPES.iter().map(|known| begin(*known));
    let all = plain.chain(["array_", "enum_"].map(str::to_owned));
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
        element: match known.oid {
            22 => 21,
            30 => 26,
            _ => 0,
        },
        array: known.array,
        functions: begin(known),
        ..Shape::plain(known, known.name.to_owned(), known.oid)
    };
    cells(known, shape)
}

fn array_of(known: PostgresType) -> impl Iterator<Item = Cell> {
    let shape = Shape {
        length: -1,
        category: "A",
        element: known.oid,
        functions: "array_".to_owned(),
        ..Shape::plain(known, format!("_{}", known.name), known.array)
    };
    cells(known, shape)
}

fn cells(known: PostgresType, shape: Shape) -> impl Iterator<Item = Cell> {
    let Shape { oid, name, namespace, length, category, relation, element, array, functions } = shape;
    let function = |what: &str| format!("{functions}{what}");
    // What cannot be sent has no functions for it; `-` is PostgreSQL's name of none.
    let sent = |what: &str| if functions.starts_with("any") { "-".to_owned() } else { function(what) };
    let is_short = length > 0 && length <= 8;
    let kind = match category {
        "P" => "p",
        "C" => "c",
        "E" => "e",
        _ => "b",
    };
    let is_preferred = matches!(known.oid, 16 | 25 | 701 | 1184 | 1186);
    let align = match length {
        8 => "d",
        _ if known.name == "record" => "d",
        2 => "s",
        1 | 16 | 64 => "c",
        _ => "i",
    };
    let storage = if length == -1 { "x" } else { "p" };
    let collation = if matches!(known.oid, 19 | 25 | 1042 | 1043) { 100 } else { 0 };
    let first = cells![oid, name, namespace, oids::OWNER, length, is_short, kind, category, is_preferred];
    let related = cells![true, ",", relation, "-", element, array];
    let called = cells![function("in"), function("out"), sent("recv"), sent("send"), "-", "-", "-"];
    let rest = cells![align, storage, false, 0, -1, 0, collation];
    first.into_iter().chain(related).chain(called).chain(rest)
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
