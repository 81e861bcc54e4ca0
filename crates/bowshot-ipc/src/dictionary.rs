//! Dictionary-encoded columns: where a schema has them.

use arrow::datatypes::{DataType, Field, Schema};

/// The first column that is dictionary-encoded or has a dictionary inside.
pub(crate) fn first_dictionary(schema: &Schema) -> Option<String> {
    let found = schema.fields().iter().find(|field| has_dictionary(field))?;
    Some(found.name().clone())
}

fn has_dictionary(field: &Field) -> bool {
    match field.data_type() {
        DataType::Dictionary(_, _) => true,
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _)
        | DataType::Map(item, _) => has_dictionary(item),
        DataType::RunEndEncoded(_, values) => has_dictionary(values),
        DataType::Struct(fields) => fields.iter().any(|field| has_dictionary(field)),
        DataType::Union(fields, _) => fields.iter().any(|(_, field)| has_dictionary(field)),
        _ => false,
    }
}
