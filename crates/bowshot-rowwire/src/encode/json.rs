//! What has no type in a protocol comes as JSON: structs and maps as objects, unions as the value that they hold, lists as
//! arrays. Numbers and truth values are themselves; everything else is the text that it has as a column.

use super::{ColumnEncoder, ListItems, list_items, put_display, put_hex};
use arrow::array::{Array, ArrayRef, AsArray, UnionArray};
use arrow::datatypes::{DataType, Field};
use bowshot_api::variant::is_variant_type;
use bytes::{BufMut, BytesMut};
use std::sync::Arc;

/// How a protocol writes the scalars within JSON.
pub trait JsonScalars {
    /// The error of the protocol.
    type Error: 'static;

    /// The encoder of a column, of whose values the text is used.
    fn encoder(
        &self,
        array: &ArrayRef,
        field: &Field,
    ) -> Result<Box<dyn ColumnEncoder<Self::Error>>, Self::Error>;

    /// How a value that is neither a number nor a truth value stands in JSON.
    fn form(&self, field: &Field) -> JsonForm;

    /// The error of an array that is not what its type says.
    fn internal(&self, message: &str) -> Self::Error;
}

/// How the text of a value stands in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonForm {
    /// As it is.
    Plain,
    /// As a string.
    Quoted,
    /// The bytes of the text as a string of hexadecimal digits.
    Hex,
}

/// Writes the value of a row as JSON.
pub type JsonWriter<E> = Arc<dyn Fn(usize, &mut BytesMut) -> Result<(), E> + Send + Sync>;

/// The function that writes the values of a column as JSON.
pub fn json_writer<S: JsonScalars>(
    array: &ArrayRef,
    field: &Field,
    scalars: &S,
) -> Result<JsonWriter<S::Error>, S::Error> {
    let node = node(array, field, scalars)?;
    Ok(Arc::new(move |row: usize, out: &mut BytesMut| node.put(row, out)))
}

/// How the values of an array become JSON.
struct Node<E> {
    array: ArrayRef,
    form: Form<E>,
}

enum Form<E> {
    Scalar(JsonForm, Box<dyn ColumnEncoder<E>>),
    Boolean,
    /// The text as it is if it is a number, which NaN is not.
    Float(Box<dyn ColumnEncoder<E>>),
    List(ListItems, Box<Node<E>>),
    Object(Vec<(String, Node<E>)>),
    Map(Box<dyn ColumnEncoder<E>>, Box<Node<E>>),
    Union(UnionArray, Vec<(i8, Node<E>)>),
}

fn node<S: JsonScalars>(array: &ArrayRef, field: &Field, scalars: &S) -> Result<Node<S::Error>, S::Error> {
    let form = match array.data_type() {
        // JSON already.
        of if is_variant_type(of) => Form::Scalar(JsonForm::Plain, scalars.encoder(array, field)?),
        DataType::Struct(fields) => {
            let columns = array.as_struct().columns().iter().zip(fields);
            let members =
                columns.map(|(column, field)| Ok((field.name().clone(), node(column, field, scalars)?)));
            Form::Object(members.collect::<Result<_, S::Error>>()?)
        }
        DataType::Map(..) => map(array, scalars)?,
        DataType::Union(fields, _) => {
            let union = array.as_union().clone();
            let members = fields.iter().map(|(id, field)| Ok((id, node(union.child(id), field, scalars)?)));
            let members = members.collect::<Result<_, S::Error>>()?;
            Form::Union(union, members)
        }
        DataType::Boolean => Form::Boolean,
        data_type => match list_items(array) {
            Some(list) => {
                let items = node(&list.values, &list.field, scalars)?;
                Form::List(list, Box::new(items))
            }
            None => {
                let encoder = scalars.encoder(array, field)?;
                if data_type.is_floating() {
                    Form::Float(encoder)
                } else if data_type.is_numeric() {
                    Form::Scalar(JsonForm::Plain, encoder)
                } else {
                    Form::Scalar(scalars.form(field), encoder)
                }
            }
        },
    };
    Ok(Node { array: Arc::clone(array), form })
}

fn map<S: JsonScalars>(array: &ArrayRef, scalars: &S) -> Result<Form<S::Error>, S::Error> {
    let map = array.as_map();
    let [key, value] = map.entries().fields().as_ref() else {
        return Err(scalars.internal("the entries of a map are no pairs"));
    };
    let keys = scalars.encoder(map.keys(), key)?;
    let values = node(map.values(), value, scalars)?;
    Ok(Form::Map(keys, Box::new(values)))
}

impl<E> Node<E> {
    fn put(&self, row: usize, out: &mut BytesMut) -> Result<(), E> {
        if self.array.is_null(row) {
            out.put_slice(b"null");
            return Ok(());
        }
        match &self.form {
            Form::Scalar(_, encoder) if encoder.is_null(row) => out.put_slice(b"null"),
            Form::Scalar(JsonForm::Plain, encoder) => encoder.text(row, out)?,
            Form::Scalar(JsonForm::Quoted, encoder) => put_quoted(&text(encoder.as_ref(), row)?, out),
            Form::Scalar(JsonForm::Hex, encoder) => {
                out.put_u8(b'"');
                put_hex(&text(encoder.as_ref(), row)?, out);
                out.put_u8(b'"');
            }
            Form::Boolean => {
                let value = self.array.as_boolean().value(row);
                out.put_slice(if value { b"true" } else { b"false" });
            }
            Form::Float(encoder) => {
                let text = text(encoder.as_ref(), row)?;
                match text.first() {
                    Some(b'0'..=b'9') => out.put_slice(&text),
                    Some(b'-') if text.get(1) != Some(&b'I') => out.put_slice(&text),
                    _ => put_quoted(&text, out),
                }
            }
            Form::List(list, items) => {
                put_all(out, *b"[]", list.of_row(row), |item, out| items.put(item, out))?;
            }
            Form::Object(members) => put_all(out, *b"{}", members.iter(), |(name, member), out| {
                put_quoted(name.as_bytes(), out);
                out.put_u8(b':');
                member.put(row, out)
            })?,
            Form::Map(keys, values) => {
                let offsets = self.array.as_map().offsets();
                let at = |index: usize| {
                    offsets.get(index).map_or(0, |offset| usize::try_from(*offset).unwrap_or(0))
                };
                put_all(out, *b"{}", at(row)..at(row + 1), |entry, out| {
                    put_quoted(&text(keys.as_ref(), entry)?, out);
                    out.put_u8(b':');
                    values.put(entry, out)
                })?;
            }
            Form::Union(union, members) => {
                let id = union.type_id(row);
                match members.iter().find(|(member, _)| *member == id) {
                    Some((_, member)) => member.put(union.value_offset(row), out)?,
                    None => out.put_slice(b"null"),
                }
            }
        }
        Ok(())
    }
}

fn text<E>(encoder: &dyn ColumnEncoder<E>, row: usize) -> Result<BytesMut, E> {
    let mut text = BytesMut::new();
    encoder.text(row, &mut text)?;
    Ok(text)
}

fn put_all<T, E>(
    out: &mut BytesMut,
    brackets: [u8; 2],
    items: impl Iterator<Item = T>,
    mut each: impl FnMut(T, &mut BytesMut) -> Result<(), E>,
) -> Result<(), E> {
    let [open, close] = brackets;
    out.put_u8(open);
    for (index, item) in items.enumerate() {
        if index > 0 {
            out.put_u8(b',');
        }
        each(item, out)?;
    }
    out.put_u8(close);
    Ok(())
}

/// A text as a string of JSON (RFC 8259, section 7).
fn put_quoted(text: &[u8], out: &mut BytesMut) {
    out.put_u8(b'"');
    for byte in text {
        match byte {
            b'"' | b'\\' => out.put_slice(&[b'\\', *byte]),
            b'\n' => out.put_slice(br"\n"),
            b'\r' => out.put_slice(br"\r"),
            b'\t' => out.put_slice(br"\t"),
            0..=31 => put_display(out, format_args!("\\u{byte:04x}")),
            _ => out.put_u8(*byte),
        }
    }
    out.put_u8(b'"');
}
