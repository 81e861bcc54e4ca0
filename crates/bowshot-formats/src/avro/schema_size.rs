//! The size of an Avro schema with all named types expanded: a schema of 3 KB can have 16 million fields. Checked before parsing.

use serde_json::Value;
use std::collections::HashMap;

/// Types, each counted wherever its name stands.
const MAX_TYPES: u64 = 10_000;
const MAX_LEVELS: u64 = 64;
/// Bytes of names, descriptions and the like, counted as often.
const MAX_TEXT_BYTES: u64 = 16 << 20;

const PRIMITIVES: [&str; 8] = ["null", "boolean", "int", "long", "float", "double", "bytes", "string"];
/// Properties that have types, and are counted as such.
const TYPES_WITHIN: [&str; 4] = ["type", "fields", "items", "values"];

/// What values of a schema may take.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Weight {
    types: u64,
    levels: u64,
    text_bytes: u64,
    /// Bytes that a row takes even where it has no value, because all values have one length.
    pub(super) row_bytes: u64,
    /// The same of an element of an array or a map.
    pub(super) element_bytes: u64,
    /// Whether a value takes bytes in the file.
    has_content: bool,
}

impl Weight {
    fn of_content() -> Self {
        Self { types: 1, levels: 1, has_content: true, ..Self::default() }
    }

    /// One that has the other within.
    fn and(self, inner: Self) -> Self {
        Self {
            types: self.types.saturating_add(inner.types),
            levels: self.levels.max(inner.levels.saturating_add(1)),
            text_bytes: self.text_bytes.saturating_add(inner.text_bytes),
            row_bytes: self.row_bytes.saturating_add(inner.row_bytes),
            element_bytes: self.element_bytes.saturating_add(inner.element_bytes),
            has_content: self.has_content | inner.has_content,
        }
    }

    /// The larger of two in all things.
    fn or(self, other: Self) -> Self {
        Self {
            types: self.types.max(other.types),
            levels: self.levels.max(other.levels),
            text_bytes: self.text_bytes.max(other.text_bytes),
            row_bytes: self.row_bytes.max(other.row_bytes),
            element_bytes: self.element_bytes.max(other.element_bytes),
            has_content: self.has_content & other.has_content,
        }
    }

    fn check(self) -> Result<Self, String> {
        match (self.types > MAX_TYPES, self.levels > MAX_LEVELS, self.text_bytes > MAX_TEXT_BYTES) {
            (true, ..) => Err(format!("its schema has more than {MAX_TYPES} types")),
            (_, true, _) => Err(format!("its schema has more than {MAX_LEVELS} levels")),
            (_, _, true) => Err(format!("its schema has more than {MAX_TEXT_BYTES} bytes of names")),
            _ => Ok(self),
        }
    }
}

/// The weight of a schema.
///
/// # Errors
/// Says what is too much, or no schema.
pub(super) fn weigh(schema: &Value) -> Result<Weight, String> {
    Scales::default().weigh(schema)?.check()
}

/// Types that have a name by what it ends with: of those that differ in their namespaces alone, the heaviest.
#[derive(Default)]
struct Scales<'a> {
    named: HashMap<&'a str, Weight>,
}

impl<'a> Scales<'a> {
    /// Goes as deep as the parser of JSON does.
    fn weigh(&mut self, schema: &'a Value) -> Result<Weight, String> {
        match schema {
            Value::String(name) => self.of_name(name),
            // One byte at least says which of them a value has.
            Value::Array(parts) => parts
                .iter()
                .try_fold(Weight::of_content(), |sum, part| Ok::<_, String>(sum.and(self.weigh(part)?)))?
                .check(),
            Value::Object(_) => self.of_object(schema)?.check(),
            other => Err(format!("its schema has the unknown type {other}")),
        }
    }

    fn of_name(&self, name: &str) -> Result<Weight, String> {
        if PRIMITIVES.contains(&name) {
            return Ok(Weight { has_content: name != "null", ..Weight::of_content() });
        }
        let known = self.named.get(last(name)).copied();
        known
            .ok_or_else(|| format!("its schema uses the type `{name}` before its definition, or recursively"))
    }

    fn of_object(&mut self, schema: &'a Value) -> Result<Weight, String> {
        let part = |name: &str| schema.get(name).unwrap_or(&Value::Null);
        let own = Weight { text_bytes: text_bytes(schema), ..Weight::of_content() };
        let kind = match part("type") {
            Value::String(kind) => kind.as_str(),
            inner => return Ok(Weight { has_content: false, ..own }.and(self.weigh(inner)?)),
        };
        match kind {
            "record" | "error" => {
                let fields = part("fields").as_array().ok_or("its schema has a record without fields")?;
                let mut sum = Weight { has_content: false, ..own };
                for field in fields {
                    let inner = self.weigh(field.get("type").unwrap_or(&Value::Null))?;
                    let field = Weight { text_bytes: text_bytes(field), ..Weight::default() };
                    sum = sum.and(inner).and(field).check()?;
                }
                Ok(self.known(schema, sum))
            }
            "enum" => Ok(self.known(schema, own)),
            "fixed" => {
                let row_bytes = part("size").as_u64().ok_or("its schema has a type of size 0")?;
                Ok(self.known(schema, Weight { row_bytes, has_content: row_bytes > 0, ..own }))
            }
            "array" | "map" => {
                let inner = self.weigh(part(if kind == "array" { "items" } else { "values" }))?;
                if kind == "array" && !inner.has_content {
                    // Any number of them takes no byte.
                    return Err("its schema has an array of values of size 0".to_owned());
                }
                let element_bytes = inner.element_bytes.saturating_add(inner.row_bytes);
                Ok(own.and(Weight { row_bytes: 0, element_bytes, ..inner }))
            }
            name => Ok(Weight { text_bytes: own.text_bytes, ..Weight::default() }.and(self.of_name(name)?)),
        }
    }

    fn known(&mut self, schema: &'a Value, weight: Weight) -> Weight {
        let name = schema.get("name").and_then(Value::as_str).map(last).unwrap_or_default();
        self.named.entry(name).and_modify(|known| *known = known.or(weight)).or_insert(weight);
        weight
    }
}

fn last(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

fn text_bytes(schema: &Value) -> u64 {
    let length = |text: &str| text.len() as u64;
    match schema {
        Value::String(text) => length(text),
        Value::Array(parts) => parts.iter().map(|part| text_bytes(part).saturating_add(8)).sum(),
        Value::Object(parts) => {
            let said = parts.iter().filter(|(name, _)| !TYPES_WITHIN.contains(&name.as_str()));
            said.map(|(name, part)| text_bytes(part).saturating_add(length(name))).sum()
        }
        _ => 8,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn record(name: &str, fields: &[Value]) -> Value {
        let named = fields.iter().enumerate();
        let fields: Vec<_> = named.map(|(n, kind)| json!({"name": format!("f{n}"), "type": kind})).collect();
        json!({"type": "record", "name": name, "fields": fields})
    }

    fn refused(schema: &Value) -> String {
        weigh(schema).unwrap_err()
    }

    #[test]
    fn names_count_as_what_they_stand_for() {
        let doubling = |count: usize| {
            let mut fields = vec![record("r0", &[json!("long")])];
            fields.extend((1..count).map(|n| {
                let before = json!(format!("r{}", n - 1));
                record(&format!("r{n}"), &[before.clone(), before])
            }));
            record("m", &fields)
        };
        assert!(weigh(&doubling(8)).is_ok());
        assert!(refused(&doubling(24)).contains("more than 10000 types"));
        assert!(refused(&doubling(200)).contains("more than"));
        let long = json!({"type": "enum", "name": "e", "symbols": ["x".repeat(1 << 20)]});
        let uses = vec![json!("ns.e"); 50];
        assert!(refused(&record("m", &[vec![long], uses].concat())).contains("bytes of names"));
    }

    #[test]
    fn what_has_no_end_is_refused() {
        let list = record("m", &[json!("long"), json!(["null", "m"])]);
        assert!(refused(&list).contains("recursively"));
        let mut deep = json!("string");
        for _ in 0..70 {
            deep = json!({"type": "array", "items": deep});
        }
        assert!(refused(&deep).contains("levels"));
        for nothing in [json!("null"), record("e", &[json!("null")]), record("e", &[])] {
            let schema = json!({"type": "array", "items": nothing});
            assert!(refused(&schema).contains("of size 0"), "{schema}");
        }
        assert!(weigh(&json!({"type": "array", "items": ["null", "long"]})).is_ok());
        for noise in [json!(7), json!({}), json!({"type": "record", "name": "x"}), json!("other")] {
            assert!(weigh(&noise).is_err(), "{noise}");
        }
    }

    #[test]
    fn values_of_one_length_take_room_without_a_value() {
        let fixed = json!({"type": "fixed", "name": "f", "size": 16});
        let list = json!({"type": "array", "items": ["null", "f"]});
        let weight = weigh(&record("m", &[json!(["null", fixed]), json!("f"), list])).unwrap();
        assert_eq!((weight.row_bytes, weight.element_bytes), (32, 16));
    }
}
