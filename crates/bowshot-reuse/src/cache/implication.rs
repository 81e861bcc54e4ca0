//! Whether one comparison of a column with a constant implies another one.

use std::cmp::Ordering;

/// A parsed `column op constant`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Constant<'a> {
    operator: &'a str,
    column: &'a str,
    pub(crate) data_type: String,
    pub(crate) value: String,
}

#[derive(Debug, PartialEq, PartialOrd)]
enum Value {
    Whole(i128),
    Text(String),
}

/// Whether every row that satisfies `narrow` satisfies `wide`. Supports comparisons of one column with constants of one type:
/// integers, dates, times and texts; false for all others.
pub(crate) fn implies(narrow: &str, wide: &str) -> bool {
    let (Some(narrow), Some(wide)) = (constant(narrow), constant(wide)) else { return false };
    if narrow.column != wide.column || narrow.data_type != wide.data_type {
        return false;
    }
    let (Some(less), Some(more)) = (narrow.known(), wide.known()) else { return false };
    let Some(order) = less.partial_cmp(&more) else { return false };
    match (narrow.operator, wide.operator) {
        ("<", "<") | ("<=", "<=") | ("<", "<=") => order != Ordering::Greater,
        ("<=" | "=", "<") => order == Ordering::Less,
        (">", ">") | (">=", ">=") | (">", ">=") => order != Ordering::Less,
        (">=" | "=", ">") => order == Ordering::Greater,
        ("=", "<=") => order != Ordering::Greater,
        ("=", ">=") => order != Ordering::Less,
        ("=", "!=") => order != Ordering::Equal,
        _ => false,
    }
}

impl Constant<'_> {
    /// Whether it compares the same column in the same way.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        (self.operator, self.column, &self.data_type) == (other.operator, other.column, &other.data_type)
    }

    /// The condition with another constant.
    pub(crate) fn with(&self, value: &str) -> String {
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        let (operator, column) = (self.operator, self.column);
        format!("(bin \"{operator}\" {column} (lit {} {}))", quoted(&self.data_type), quoted(value))
    }

    /// The constant, if its type has an order here.
    fn known(&self) -> Option<Value> {
        if is_whole(&self.data_type) {
            self.value.parse().ok().map(Value::Whole)
        } else {
            (self.data_type == "Utf8").then(|| Value::Text(self.value.clone()))
        }
    }
}

/// A condition that compares a column with a constant.
pub(crate) fn constant(text: &str) -> Option<Constant<'_>> {
    let rest = text.strip_prefix("(bin \"")?.strip_suffix("))")?;
    let (operator, rest) = rest.split_once("\" ")?;
    let (column, rest) = rest.split_once(" (lit ")?;
    if !column.starts_with('#') || column.contains(' ') || column.contains('(') {
        return None;
    }
    let mut parts = serde_json::Deserializer::from_str(rest).into_iter::<String>();
    let (data_type, value) = (parts.next()?.ok()?, parts.next()?.ok()?);
    parts.next().is_none().then_some(Constant { operator, column, data_type, value })
}

/// Types whose constants are written as whole numbers. Decimals have their scale in the type.
fn is_whole(data_type: &str) -> bool {
    ["Int", "UInt", "Date", "Time", "Decimal"].iter().any(|start| data_type.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::implies;

    fn compare(operator: &str, data_type: &str, value: &str) -> String {
        format!("(bin \"{operator}\" #0:\"x\" (lit \"{data_type}\" \"{value}\"))")
    }

    #[test]
    fn narrower_comparisons_imply_wider_ones() {
        let whole = |narrow: (&str, &str), wide: (&str, &str)| {
            implies(&compare(narrow.0, "Int64", narrow.1), &compare(wide.0, "Int64", wide.1))
        };
        assert!(whole(("<", "5"), ("<", "10")));
        assert!(whole(("=", "5"), ("<=", "5")));
        assert!(whole(("<", "5"), ("<=", "5")));
        assert!(!whole(("<=", "5"), ("<", "5")));
        assert!(!whole(("<", "10"), ("<", "5")));
        assert!(!whole(("<", "5"), (">", "1")));
        assert!(whole(("=", "-7"), ("!=", "3")));
        assert!(!whole(("<", "9"), ("<", "10a")));
    }

    #[test]
    fn other_columns_types_and_forms_imply_nothing() {
        let five = compare("<", "Int64", "5");
        assert!(!implies(&five, &compare("<", "Int32", "10")));
        assert!(!implies(&five, &five.replace("#0", "#1")));
        assert!(!implies(&compare("<", "Float64", "5.0"), &compare("<", "Float64", "10.0")));
        assert!(implies(&compare("<", "Utf8", "a"), &compare("<", "Utf8", "b")));
    }
}
