//! Numbers of things as names, and names as numbers: what casts to `regclass` and its kind become. For each kind one function
//! gives the number and another the name; each takes both.

use crate::enum_types;
use crate::functions::{BOOL, Call, FunctionSpec, LONG, TEXT, TEXTS, relations, text};
use crate::listing::external;
use crate::pg_catalog::oids;
use bowshot_api::{Error, Reason};
use bowshot_types::names::{POSTGRES_TYPES, PostgresType};
use datafusion::arrow::datatypes::DataType;
use datafusion::error::Result;
use datafusion::scalar::ScalarValue;

const fn told(
    name: &'static str,
    returns: fn() -> DataType,
    value: fn(&Call<'_>) -> Result<ScalarValue>,
) -> FunctionSpec {
    FunctionSpec { name, arguments: (1, 1), returns, value }
}

pub(crate) static FUNCTIONS: &[FunctionSpec] = &[
    told("regclass", LONG, |call| number(call, "table", relations::number)),
    told("regclass_name", TEXT, |call| name(call, "table", relations::number, relations::name)),
    told("regclass_names", TEXTS, |call| names(call, relations::name)),
    told("to_regclass", LONG, |call| looked_up(call, relations::number)),
    told("regtype", LONG, |call| number(call, "type", type_number)),
    told("regtype_name", TEXT, |call| {
        name(call, "type", type_number, |call, oid| Some(type_name(call, oid)))
    }),
    told("regtype_names", TEXTS, |call| names(call, |call, oid| Some(type_name(call, oid)))),
    told("to_regtype", LONG, |call| looked_up(call, type_number)),
    told("regnamespace", LONG, |call| number(call, "schema", schema_number)),
    told("regnamespace_name", TEXT, |call| name(call, "schema", schema_number, schema_name)),
    told("regnamespace_names", TEXTS, |call| names(call, schema_name)),
    told("to_regnamespace", LONG, |call| looked_up(call, schema_number)),
    told("regrole", LONG, |call| number(call, "role", role_number)),
    told("regrole_name", TEXT, |call| name(call, "role", role_number, role_name)),
    told("regrole_names", TEXTS, |call| names(call, role_name)),
    told("to_regrole", LONG, |call| looked_up(call, role_number)),
    told("regproc", LONG, function_number),
    told("regproc_name", TEXT, function_name),
    told("regproc_names", TEXTS, |call| names(call, |_, oid| Some(oid.to_string()))),
    told("to_regproc", LONG, function_number),
    told("pg_type_is_visible", BOOL, |call| {
        visible(call, |oid| known_type(oid).is_some() || unlisted_type(call, oid).is_some())
    }),
    told("pg_function_is_visible", BOOL, |call| visible(call, |_| true)),
    told("pg_collation_is_visible", BOOL, |call| visible(call, |_| true)),
    told("pg_conversion_is_visible", BOOL, |call| visible(call, |_| true)),
    told("pg_opclass_is_visible", BOOL, |call| visible(call, |_| true)),
    told("pg_operator_is_visible", BOOL, |call| visible(call, |_| true)),
    told("pg_opfamily_is_visible", BOOL, |call| visible(call, |_| true)),
    told("pg_statistics_obj_is_visible", BOOL, |call| visible(call, |_| true)),
    told("pg_ts_config_is_visible", BOOL, |call| visible(call, |_| true)),
    told("pg_ts_dict_is_visible", BOOL, |call| visible(call, |_| true)),
    told("pg_ts_parser_is_visible", BOOL, |call| visible(call, |_| true)),
    told("pg_ts_template_is_visible", BOOL, |call| visible(call, |_| true)),
];

type Number = fn(&Call<'_>, &str) -> Option<i64>;
type Name = fn(&Call<'_>, i64) -> Option<String>;

/// What was said, if it is no number.
fn said(call: &Call<'_>) -> Option<String> {
    match call.arguments.first() {
        Some(ScalarValue::Utf8(_) | ScalarValue::LargeUtf8(_) | ScalarValue::Utf8View(_)) => call.text(0),
        _ => None,
    }
}

/// The number of what a text names, which may be a number itself.
fn looked_up(call: &Call<'_>, find: Number) -> Result<ScalarValue> {
    Ok(ScalarValue::Int64(match said(call) {
        Some(text) => text.trim().parse().ok().or_else(|| find(call, text.trim())),
        None => call.number(0),
    }))
}

/// The same; what is not there is an error.
fn number(call: &Call<'_>, what: &str, find: Number) -> Result<ScalarValue> {
    match (looked_up(call, find)?, said(call)) {
        // The name of nothing, as it is shown.
        (ScalarValue::Int64(None), Some(text)) if text == "-" => Ok(ScalarValue::from(0_i64)),
        (ScalarValue::Int64(None), Some(text)) => Err(missing(what, &text)),
        (found, _) => Ok(found),
    }
}

fn missing(what: &str, name: &str) -> datafusion::error::DataFusionError {
    let error = Error::not_found(format!("{what} `{name}` not found"));
    let error = match what {
        "table" => error.with_reason(Reason::UndefinedTable),
        "schema" => error.with_reason(Reason::UndefinedSchema),
        "function" => error.with_reason(Reason::UndefinedFunction),
        _ => error,
    };
    external(match what {
        "table" => error.with_hint("list the tables with `SHOW ALL TABLES`"),
        "schema" => error.with_hint("list the schemas with `SHOW SCHEMAS`"),
        "type" => error.with_hint("list the types with `SELECT typname FROM pg_type`"),
        _ => error,
    })
}

/// The name of a thing by its number; a number that nothing has is shown as it is, and nothing as `-`.
fn name(call: &Call<'_>, what: &str, find: Number, name: Name) -> Result<ScalarValue> {
    match number(call, what, find)? {
        ScalarValue::Int64(Some(0)) => text("-"),
        ScalarValue::Int64(Some(oid)) => text(name(call, oid).unwrap_or_else(|| oid.to_string())),
        _ => Ok(ScalarValue::Utf8(None)),
    }
}

fn names(call: &Call<'_>, name: Name) -> Result<ScalarValue> {
    let Some(elements) = call.elements(0) else { return ScalarValue::try_from(&TEXTS()) };
    let named = elements.iter().map(|element| match element.cast_to(&DataType::Int64) {
        Ok(ScalarValue::Int64(Some(0))) => ScalarValue::from("-"),
        Ok(ScalarValue::Int64(Some(oid))) => {
            ScalarValue::from(name(call, oid).unwrap_or_else(|| oid.to_string()))
        }
        _ => ScalarValue::Utf8(None),
    });
    let named: Vec<ScalarValue> = named.collect();
    Ok(ScalarValue::List(ScalarValue::new_list_nullable(&named, &DataType::Utf8)))
}

fn visible(call: &Call<'_>, is_there: impl Fn(i64) -> bool) -> Result<ScalarValue> {
    Ok(ScalarValue::Boolean(call.number(0).map(is_there)))
}

/// Names of types that PostgreSQL reads, beside its own.
const SPELLINGS: &[(&str, &str)] = crate::pairs! {
    "bigint" "int8", "boolean" "bool", "char" "bpchar", "character" "bpchar", "character varying" "varchar",
    "dec" "numeric", "decimal" "numeric", "double precision" "float8", "float" "float8", "int" "int4",
    "integer" "int4", "real" "float4", "smallint" "int2", "string" "text", "time without time zone" "time",
    "timestamp with time zone" "timestamptz", "timestamp without time zone" "timestamp", "double" "float8",
    "blob" "bytea",
};

fn type_number(call: &Call<'_>, written: &str) -> Option<i64> {
    let (plain, is_array) = match written.split_once('[') {
        Some((element, _)) => (element.trim(), true),
        None => (written, false),
    };
    let plain = plain.strip_prefix("pg_catalog.").unwrap_or(plain);
    // A length in brackets, with words behind it: `timestamp(3) with time zone`.
    let plain = match (plain.split_once('('), plain.split_once(')')) {
        (Some((before, _)), Some((_, behind))) => format!("{}{behind}", before.trim_end()),
        _ => plain.to_owned(),
    };
    let quoted = plain.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    let name = quoted.map_or_else(|| plain.trim().to_lowercase(), str::to_owned);
    let spelled = SPELLINGS.iter().find(|(spelling, _)| quoted.is_none() && *spelling == name);
    let name = spelled.map_or(name.as_str(), |(_, name)| name);
    let known = |name: &str| POSTGRES_TYPES.iter().find(|known| known.name == name);
    match (known(name), name.strip_prefix('_').and_then(known)) {
        (Some(known), _) if is_array => Some(known.array).filter(|array| *array != 0),
        (Some(known), _) => Some(known.oid),
        (None, Some(element)) => Some(element.array).filter(|array| *array != 0),
        (None, None) => {
            let name = written.split('[').next().unwrap_or_default().trim();
            enum_types::type_oid(call, name, is_array).or_else(|| relations::row_type(call, name, is_array))
        }
    }
}

fn known_type(oid: i64) -> Option<&'static PostgresType> {
    POSTGRES_TYPES.iter().find(|known| known.oid == oid || known.array == oid && oid != 0)
}

fn type_name(call: &Call<'_>, oid: i64) -> String {
    match known_type(oid) {
        Some(_) => crate::functions::about_types::shown(oid, None),
        None => unlisted_type(call, oid).unwrap_or_else(|| oid.to_string()),
    }
}

/// The name of a type that somebody has made, or of the rows of a table.
fn unlisted_type(call: &Call<'_>, oid: i64) -> Option<String> {
    enum_types::type_name(call, oid).or_else(|| relations::row_type_name(call, oid))
}

/// The schemas of the catalog in force, those of the server about itself included.
fn schemas(call: &Call<'_>) -> Vec<String> {
    let own =
        ["information_schema", "pg_catalog", bowshot_api::catalog_names::SYSTEM_SCHEMA].map(str::to_owned);
    call.pinned().shared().schemas(call.catalog()).into_iter().chain(own).collect()
}

fn schema_number(call: &Call<'_>, written: &str) -> Option<i64> {
    let name = relations::parts(written)?.pop()?;
    schemas(call).contains(&name).then(|| oids::schema(call.catalog(), &name))
}

fn schema_name(call: &Call<'_>, oid: i64) -> Option<String> {
    let found = schemas(call).into_iter().find(|name| oids::schema(call.catalog(), name) == oid)?;
    Some(relations::quoted(&found))
}

fn role_number(call: &Call<'_>, written: &str) -> Option<i64> {
    let name = relations::parts(written)?.pop()?;
    (name == call.facts.principal.name).then_some(oids::OWNER)
}

fn role_name(call: &Call<'_>, oid: i64) -> Option<String> {
    (oid == oids::OWNER).then(|| relations::quoted(&call.facts.principal.name))
}

/// Functions are numbered by their names.
fn function_number(call: &Call<'_>) -> Result<ScalarValue> {
    Ok(ScalarValue::Int64(match said(call) {
        Some(name) if name == "-" => Some(0),
        Some(name) => name.parse().ok().or_else(|| Some(oids::function(&plain(&name)))),
        None => call.number(0),
    }))
}

fn function_name(call: &Call<'_>) -> Result<ScalarValue> {
    match (said(call), call.number(0)) {
        (Some(name), _) => text(plain(&name)),
        (None, Some(0)) => text("-"),
        (None, Some(oid)) => text(oid.to_string()),
        (None, None) => Ok(ScalarValue::Utf8(None)),
    }
}

/// A name without its schema and without the types behind it.
fn plain(name: &str) -> String {
    let name = name.strip_prefix("pg_catalog.").unwrap_or(name);
    name.split('(').next().unwrap_or_default().trim().to_owned()
}
