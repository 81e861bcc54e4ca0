//! What has no type in PostgreSQL comes as JSON: structs and maps as objects, unions as the value that they hold, lists of
//! lists as arrays. Numbers and truth values are themselves; everything else is the text that it has as a column.

use super::{Cell, Done, Kind, PgType, cells, lists};
use crate::status::Failure;
use arrow::array::{Array, ArrayRef, AsArray, UnionArray};
use arrow::datatypes::{DataType, Field};
use bytes::{BufMut, BytesMut};
use std::ops::Range;
use std::sync::Arc;

/// The cell of a column that comes as JSON.
pub(super) fn cell(array: &ArrayRef, field: &Field) -> Result<Box<dyn Cell>, Failure> {
    Ok(Box::new(Json { array: Arc::clone(array), node: node(array, field)? }))
}

struct Json {
    array: ArrayRef,
    node: Node,
}

impl Cell for Json {
    fn is_null(&self, row: usize) -> bool {
        self.array.is_null(row)
    }

    fn text(&self, row: usize, out: &mut BytesMut) -> Done {
        self.node.put(row, out)
    }

    fn binary(&self, row: usize, out: &mut BytesMut) -> Done {
        self.node.put(row, out)
    }
}

/// How the values of an array become JSON.
struct Node {
    array: ArrayRef,
    form: Form,
}

enum Form {
    /// The text as it is.
    Bare(Box<dyn Cell>),
    /// The text as it is if it is a number, which NaN is not.
    Float(Box<dyn Cell>),
    /// The text in quotes.
    Quoted(Box<dyn Cell>),
    List(Box<dyn Fn(usize) -> Range<usize> + Send + Sync>, Box<Node>),
    Object(Vec<(String, Node)>),
    Map(Box<dyn Cell>, Box<Node>),
    Union(UnionArray, Vec<(i8, Node)>),
}

fn node(array: &ArrayRef, field: &Field) -> Result<Node, Failure> {
    let form = match array.data_type() {
        DataType::Struct(fields) => {
            let columns = array.as_struct().columns().iter().zip(fields);
            let members = columns.map(|(column, field)| Ok((field.name().clone(), node(column, field)?)));
            Form::Object(members.collect::<Result<_, Failure>>()?)
        }
        DataType::Map(..) => map(array)?,
        DataType::Union(fields, _) => {
            let union = array.as_union().clone();
            let members = fields.iter().map(|(id, field)| Ok((id, node(union.child(id), field)?)));
            let members = members.collect::<Result<_, Failure>>()?;
            Form::Union(union, members)
        }
        DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..) => {
            let (place, values, item) = lists::parts(array)?;
            Form::List(place, Box::new(node(&values, &item)?))
        }
        data_type => {
            let cell = cells::cell(array, field)?;
            if data_type.is_floating() {
                Form::Float(cell)
            } else if data_type.is_numeric() || matches!(PgType::of(field).kind, Kind::Json | Kind::Jsonb) {
                Form::Bare(cell)
            } else if data_type == &DataType::Boolean {
                Form::Bare(truth(array))
            } else {
                Form::Quoted(cell)
            }
        }
    };
    Ok(Node { array: Arc::clone(array), form })
}

fn map(array: &ArrayRef) -> Result<Form, Failure> {
    let map = array.as_map();
    let [key, value] = map.entries().fields().as_ref() else {
        return Err(Failure::new("XX000", "the entries of a map are no pairs"));
    };
    let keys = cells::cell(map.keys(), key)?;
    let values = node(map.values(), value)?;
    Ok(Form::Map(keys, Box::new(values)))
}

fn truth(array: &ArrayRef) -> Box<dyn Cell> {
    let put = |array: &arrow::array::BooleanArray, row: usize, out: &mut BytesMut| {
        out.put_slice(if array.value(row) { b"true" } else { b"false" });
    };
    cells::sure(array.as_boolean().clone(), put, put)
}

impl Node {
    fn put(&self, row: usize, out: &mut BytesMut) -> Done {
        if self.array.is_null(row) {
            out.put_slice(b"null");
            return Ok(());
        }
        match &self.form {
            Form::Bare(cell) if cell.is_null(row) => out.put_slice(b"null"),
            Form::Bare(cell) => cell.text(row, out)?,
            Form::Float(cell) => {
                let text = text(cell.as_ref(), row)?;
                match text.first() {
                    Some(b'0'..=b'9') => out.put_slice(&text),
                    Some(b'-') if text.get(1) != Some(&b'I') => out.put_slice(&text),
                    _ => put_quoted(&text, out),
                }
            }
            Form::Quoted(cell) if cell.is_null(row) => out.put_slice(b"null"),
            Form::Quoted(cell) => put_quoted(&text(cell.as_ref(), row)?, out),
            Form::List(place, items) => {
                put_all(out, *b"[]", place(row), |item, out| items.put(item, out))?;
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

fn text(cell: &dyn Cell, row: usize) -> Result<BytesMut, Failure> {
    let mut text = BytesMut::new();
    cell.text(row, &mut text)?;
    Ok(text)
}

fn put_all<T>(
    out: &mut BytesMut,
    brackets: [u8; 2],
    items: impl Iterator<Item = T>,
    mut each: impl FnMut(T, &mut BytesMut) -> Done,
) -> Done {
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
            0..=31 => cells::put(out, format_args!("\\u{byte:04x}")),
            _ => out.put_u8(*byte),
        }
    }
    out.put_u8(b'"');
}
