//! Types that PostgreSQL's catalog is made of, and those that are named with its schema.

use sqlparser::ast::{ArrayElemTypeDef, DataType, ObjectName};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::parser::Parser;

/// Types whose values are the numbers of things and are shown as their names: name, and the function that knows them.
const OBJECTS: [(&str, &str); 11] = [
    ("regclass", "regclass"),
    ("regcollation", "regproc"),
    ("regconfig", "regproc"),
    ("regdictionary", "regproc"),
    ("regnamespace", "regnamespace"),
    ("regoper", "regproc"),
    ("regoperator", "regproc"),
    ("regproc", "regproc"),
    ("regprocedure", "regproc"),
    ("regrole", "regrole"),
    ("regtype", "regtype"),
];

/// The function that knows the things of such a type; `None` for any other type.
pub(super) fn of_objects(data_type: &DataType) -> Option<&'static str> {
    let name = match data_type {
        DataType::Regclass => "regclass".to_owned(),
        DataType::Custom(name, modifiers) if modifiers.is_empty() => last(name)?,
        _ => return None,
    };
    OBJECTS.iter().find(|(known, _)| *known == name).map(|(_, function)| *function)
}

/// The element of an array of them.
pub(super) fn element(data_type: &DataType) -> Option<&DataType> {
    match data_type {
        DataType::Array(
            ArrayElemTypeDef::SquareBracket(element, None) | ArrayElemTypeDef::AngleBracket(element),
        ) => Some(element),
        _ => None,
    }
}

/// Whether it holds numbers of things, or whole numbers at all.
pub(super) fn is_number(data_type: &DataType) -> bool {
    match data_type {
        DataType::BigInt(_) | DataType::Int8(_) | DataType::Integer(_) | DataType::Int(_) => true,
        DataType::Custom(name, _) => last(name).as_deref() == Some("oid"),
        _ => false,
    }
}

pub(super) fn is_text(data_type: &DataType) -> bool {
    match data_type {
        DataType::Text | DataType::Varchar(_) | DataType::CharacterVarying(_) => true,
        DataType::Custom(name, _) => last(name).as_deref() == Some("name"),
        _ => false,
    }
}

/// A type by its plain name: `pg_catalog.int4` is `int4`, `"char"` a text and `int2vector` an array.
pub(super) fn rename(data_type: &mut DataType) {
    match data_type {
        DataType::Array(
            ArrayElemTypeDef::SquareBracket(element, _)
            | ArrayElemTypeDef::AngleBracket(element)
            | ArrayElemTypeDef::Parenthesis(element),
        ) => rename(element),
        DataType::Custom(name, modifiers) => {
            if let Some(plain) = plain(name, modifiers) {
                *data_type = plain;
            }
        }
        _ => {}
    }
}

fn plain(name: &ObjectName, modifiers: &[String]) -> Option<DataType> {
    let quoted = name.0.last()?.as_ident()?.quote_style.is_some();
    let array = |element| Some(DataType::Array(ArrayElemTypeDef::SquareBracket(Box::new(element), None)));
    match last(name)?.as_str() {
        "char" if quoted => return Some(DataType::Text),
        "int2vector" => return array(DataType::SmallInt(None)),
        "oidvector" => return array(DataType::BigInt(None)),
        "xid" | "cid" | "xid8" => return Some(DataType::BigInt(None)),
        "cstring" | "aclitem" | "pg_node_tree" | "tid" => return Some(DataType::Text),
        _ => {}
    }
    if name.0.len() != 2 {
        return None;
    }
    let word = last(name)?;
    let text = if modifiers.is_empty() { word } else { format!("{word}({})", modifiers.join(", ")) };
    Parser::new(&PostgreSqlDialect {}).try_with_sql(&text).ok()?.parse_data_type().ok()
}

/// The last part of a name of `pg_catalog`, in lower case.
fn last(name: &ObjectName) -> Option<String> {
    let part = |at: usize| name.0.get(at).and_then(|part| part.as_ident());
    match name.0.len() {
        1 => {}
        2 if part(0)?.value.eq_ignore_ascii_case("pg_catalog") => {}
        _ => return None,
    }
    Some(part(name.0.len() - 1)?.value.to_ascii_lowercase())
}
