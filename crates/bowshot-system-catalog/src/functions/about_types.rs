//! What PostgreSQL's clients ask about types, users and encodings by their numbers.

use crate::enum_types;
use crate::functions::{Call, FunctionSpec, TEXT, relations, spec, text};
use crate::pg_catalog::oids;
use bowshot_types::names::POSTGRES_TYPES;
use datafusion::error::Result;
use datafusion::scalar::ScalarValue;

pub(crate) static FUNCTIONS: &[FunctionSpec] = &[
    spec("format_type", (2, 2), TEXT, format_type),
    spec("pg_get_userbyid", (1, 1), TEXT, user),
    spec("pg_encoding_to_char", (1, 1), TEXT, encoding),
];

/// Names of types as the standard has them, where they differ from PostgreSQL's own.
const STANDARD: &[(&str, &str)] = crate::pairs! {
    "any" "\"any\"", "bool" "boolean", "bpchar" "character", "char" "\"char\"", "float4" "real",
    "float8" "double precision", "int2" "smallint", "int4" "integer", "int8" "bigint",
    "time" "time without time zone", "timestamp" "timestamp without time zone",
    "timestamptz" "timestamp with time zone", "timetz" "time with time zone", "varchar" "character varying",
};

fn format_type(call: &Call<'_>) -> Result<ScalarValue> {
    match call.number(0) {
        Some(oid) => match shown(oid, call.number(1)) {
            unknown if unknown == "???" => {
                let name = enum_types::type_name(call, oid).or_else(|| relations::row_type_name(call, oid));
                text(name.unwrap_or(unknown))
            }
            known => text(known),
        },
        None => Ok(ScalarValue::Utf8(None)),
    }
}

/// A type as PostgreSQL shows it, with what its modifier packs.
pub(crate) fn shown(oid: i64, modifier: Option<i64>) -> String {
    let list = POSTGRES_TYPES.iter().find(|known| known.array == oid && oid != 0);
    let Some(known) = list.or_else(|| POSTGRES_TYPES.iter().find(|known| known.oid == oid)) else {
        return if oid == 0 { "-" } else { "???" }.to_owned();
    };
    let name = STANDARD.iter().find(|(name, _)| *name == known.name).map_or(known.name, |(_, name)| name);
    let modifier = modifier.filter(|modifier| *modifier >= 0);
    let name = match (known.name, modifier) {
        ("numeric", Some(modifier)) if modifier >= 4 => {
            format!("numeric({},{})", (modifier - 4) >> 16, (modifier - 4) & 0x7ff)
        }
        ("varchar" | "bpchar", Some(modifier)) if modifier >= 4 => format!("{name}({})", modifier - 4),
        ("time" | "timestamp" | "timestamptz", Some(modifier)) => {
            name.replacen(' ', &format!("({modifier}) "), 1)
        }
        _ => name.to_owned(),
    };
    if list.is_some() { format!("{name}[]") } else { name }
}

fn user(call: &Call<'_>) -> Result<ScalarValue> {
    match call.number(0) {
        Some(oids::OWNER) => text(&call.facts.principal.name),
        Some(other) => text(format!("unknown (OID={other})")),
        None => Ok(ScalarValue::Utf8(None)),
    }
}

fn encoding(call: &Call<'_>) -> Result<ScalarValue> {
    match call.number(0) {
        Some(6) => text("UTF8"),
        Some(_) => text(""),
        None => Ok(ScalarValue::Utf8(None)),
    }
}
