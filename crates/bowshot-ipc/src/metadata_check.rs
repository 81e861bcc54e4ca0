//! Checks of flatbuffer metadata before Arrow reads it. Arrow's reader trusts lengths, counts and type parameters and
//! panics on wrong ones; everything it takes for granted is checked here first.

use crate::batch_metadata::Parts;
use crate::error::{Error, Result};
use arrow::datatypes::{DataType, Field, FieldRef, Fields, UnionMode};
use arrow_ipc::{Endianness, MetadataVersion, Type};
use std::collections::HashSet;

/// Rows of one batch. A batch may claim rows without bytes behind them (null columns, no columns), so the size of the
/// message does not bound them.
const MAX_ROWS: i64 = i32::MAX as i64;

/// Checks that every field of the schema has a type that Arrow can name.
pub(crate) fn check_schema(schema: arrow_ipc::Schema<'_>) -> Result<()> {
    if schema.endianness() != Endianness::Little {
        return Err(Error::Unsupported("big-endian buffers".to_owned()));
    }
    let fields = schema.fields().ok_or_else(|| Error::malformed("a schema without fields"))?;
    fields.iter().try_for_each(check_field)
}

fn check_field(field: arrow_ipc::Field<'_>) -> Result<()> {
    let children: Vec<_> = field.children().into_iter().flatten().collect();
    children.iter().try_for_each(|child| check_field(*child))?;
    if let Some(dictionary) = field.dictionary() {
        let index = dictionary.indexType().ok_or_else(|| wrong(&field, "a dictionary without index type"))?;
        need(matches!(index.bitWidth(), 8 | 16 | 32 | 64), &field, "a dictionary index of odd width")?;
    }
    check_type(&field, &children)
}

fn check_type(field: &arrow_ipc::Field<'_>, children: &[arrow_ipc::Field<'_>]) -> Result<()> {
    let ok = match field.type_type() {
        Type::Null | Type::Bool | Type::Binary | Type::BinaryView | Type::LargeBinary => true,
        Type::Utf8 | Type::Utf8View | Type::LargeUtf8 => true,
        Type::Struct_ => field.type_as_struct_().is_some(),
        Type::Int => field.type_as_int().is_some_and(|int| matches!(int.bitWidth(), 8 | 16 | 32 | 64)),
        Type::FixedSizeBinary => {
            field.type_as_fixed_size_binary().is_some_and(|binary| binary.byteWidth() >= 0)
        }
        Type::FloatingPoint => {
            field.type_as_floating_point().is_some_and(|float| float.precision().variant_name().is_some())
        }
        Type::Date => field.type_as_date().is_some_and(|date| date.unit().variant_name().is_some()),
        Type::Time => field.type_as_time().is_some_and(|time| match time.bitWidth() {
            32 => matches!(time.unit().0, 0 | 1),
            64 => matches!(time.unit().0, 2 | 3),
            _ => false,
        }),
        Type::Timestamp => {
            field.type_as_timestamp().is_some_and(|timestamp| timestamp.unit().variant_name().is_some())
        }
        Type::Interval => {
            field.type_as_interval().is_some_and(|interval| interval.unit().variant_name().is_some())
        }
        Type::Duration => {
            field.type_as_duration().is_some_and(|duration| duration.unit().variant_name().is_some())
        }
        Type::Decimal => field.type_as_decimal().is_some_and(is_decimal),
        Type::List | Type::LargeList | Type::ListView | Type::LargeListView => children.len() == 1,
        Type::FixedSizeList => {
            children.len() == 1 && field.type_as_fixed_size_list().is_some_and(|list| list.listSize() >= 0)
        }
        Type::Map => field.type_as_map().is_some() && is_map_entries(children),
        Type::RunEndEncoded => is_run(children),
        Type::Union => field.type_as_union().is_some_and(|union| is_union(union, children.len())),
        _ => false,
    };
    need(ok, field, "a type that does not exist or has wrong parameters")
}

fn is_decimal(decimal: arrow_ipc::Decimal<'_>) -> bool {
    let digits = match decimal.bitWidth() {
        32 => 9,
        64 => 18,
        128 => 38,
        256 => 76,
        _ => return false,
    };
    (1..=digits).contains(&decimal.precision()) && (-digits..=digits).contains(&decimal.scale())
}

/// A map has one child, a struct of two fields: key and value.
fn is_map_entries(children: &[arrow_ipc::Field<'_>]) -> bool {
    let [entries] = children else { return false };
    entries.type_type() == Type::Struct_
        && entries.dictionary().is_none()
        && entries.children().is_some_and(|fields| fields.len() == 2)
}

/// Run ends are signed integers of 16, 32 or 64 bits and never null.
fn is_run(children: &[arrow_ipc::Field<'_>]) -> bool {
    let [ends, _] = children else { return false };
    ends.dictionary().is_none()
        && ends.type_as_int().is_some_and(|int| int.is_signed() && matches!(int.bitWidth(), 16 | 32 | 64))
}

/// Type ids are distinct and between 0 and 127, one for each child.
fn is_union(union: arrow_ipc::Union<'_>, children: usize) -> bool {
    if union.mode().variant_name().is_none() || children > 128 {
        return false;
    }
    let Some(ids) = union.typeIds() else { return true };
    let distinct: HashSet<i32> = ids.iter().filter(|id| (0..128).contains(id)).collect();
    ids.len() == children && distinct.len() == children
}

fn need(ok: bool, field: &arrow_ipc::Field<'_>, what: &str) -> Result<()> {
    if ok { Ok(()) } else { Err(wrong(field, what)) }
}

fn wrong(field: &arrow_ipc::Field<'_>, what: &str) -> Error {
    Error::malformed(format!("field `{}` has {what}", field.name().unwrap_or_default()))
}

/// Checks nodes, buffers and counts of an uncompressed batch where Arrow's reader would panic; contents are Arrow's own checks.
pub(crate) fn check_batch(
    parts: &Parts,
    fields: &Fields,
    version: MetadataVersion,
    body_len: usize,
) -> Result<()> {
    rows(parts.rows)?;
    let mut walk = Walk { parts, next: Next::default(), version, body_len };
    fields.iter().try_for_each(|field| walk.field(field))?;
    if walk.next.count != parts.counts.len() {
        return Err(Error::malformed("more counts of view buffers than view columns"));
    }
    Ok(())
}

fn rows(length: i64) -> Result<usize> {
    match length {
        0..=MAX_ROWS => Ok(length as usize),
        _ if length < 0 => Err(Error::malformed("a negative number of rows")),
        _ => Err(Error::TooLarge { what: "rows of a batch", found: length as u64, limit: MAX_ROWS as u64 }),
    }
}

/// A walk over nodes and buffers in the order in which the fields use them.
struct Walk<'a> {
    parts: &'a Parts,
    next: Next,
    version: MetadataVersion,
    body_len: usize,
}

#[derive(Default)]
struct Next {
    node: usize,
    buffer: usize,
    count: usize,
}

impl Walk<'_> {
    fn field(&mut self, field: &Field) -> Result<()> {
        let (len, nulls) = self.node(field)?;
        match field.data_type() {
            DataType::Null => Ok(()),
            DataType::RunEndEncoded(_, _) if self.version < MetadataVersion::V5 => {
                Err(Error::Unsupported("runs in metadata version 4".to_owned()))
            }
            DataType::RunEndEncoded(ends, values) => {
                self.field(ends)?;
                self.field(values)
            }
            DataType::Union(fields, mode) => {
                if self.version < MetadataVersion::V5 {
                    self.bytes(0)?;
                }
                self.bytes(len)?;
                if *mode == UnionMode::Dense {
                    // The one buffer that Arrow's reader does not copy when it is not aligned.
                    self.numbers(len, 4, 8)?;
                }
                fields.iter().try_for_each(|(_, field)| self.field(field))
            }
            data_type => {
                self.bytes(if nulls > 0 { len.div_ceil(8) } else { 0 })?;
                self.values(data_type, len)
            }
        }
    }

    /// The buffers after the validity bitmap, and the children.
    fn values(&mut self, data_type: &DataType, len: usize) -> Result<()> {
        // Offsets of an array without rows may be missing altogether.
        let offsets = if len == 0 { 0 } else { len + 1 };
        match data_type {
            DataType::Boolean => self.bytes(len.div_ceil(8)),
            DataType::Utf8 | DataType::Binary => {
                self.numbers(offsets, 4, 1)?;
                self.bytes(0)
            }
            DataType::LargeUtf8 | DataType::LargeBinary => {
                self.numbers(offsets, 8, 1)?;
                self.bytes(0)
            }
            DataType::Utf8View | DataType::BinaryView => {
                self.numbers(len, 16, 1)?;
                let count =
                    self.parts.counts.get(self.next.count).copied().and_then(|n| usize::try_from(n).ok());
                let count = count.ok_or_else(|| Error::malformed("a view column without buffer count"))?;
                self.next.count += 1;
                if count > self.parts.buffers.len() {
                    return Err(Error::malformed("more view buffers than buffers"));
                }
                (0..count).try_for_each(|_| self.bytes(0))
            }
            DataType::FixedSizeBinary(width) => self.bytes(product(len, *width)?),
            DataType::List(item) => self.list(offsets, 4, item),
            DataType::Map(entries, _) => self.list(offsets, 4, entries),
            DataType::LargeList(item) => self.list(offsets, 8, item),
            DataType::ListView(item) => {
                self.numbers(len, 4, 1)?;
                self.list(len, 4, item)
            }
            DataType::LargeListView(item) => {
                self.numbers(len, 8, 1)?;
                self.list(len, 8, item)
            }
            DataType::FixedSizeList(item, size) => {
                // A list size that Arrow would overflow on is refused before the product is formed there.
                product(len, *size)?;
                self.field(item)
            }
            DataType::Struct(fields) => fields.iter().try_for_each(|field| self.field(field)),
            DataType::Dictionary(key, _) => self.numbers(len, key.primitive_width().unwrap_or(8), 1),
            fixed => self.numbers(len, fixed.primitive_width().unwrap_or(16), 1),
        }
    }

    fn list(&mut self, offsets: usize, width: usize, item: &FieldRef) -> Result<()> {
        self.numbers(offsets, width, 1)?;
        self.field(item)
    }

    /// Length and null count of the next node.
    fn node(&mut self, field: &Field) -> Result<(usize, usize)> {
        let node = self
            .parts
            .nodes
            .get(self.next.node)
            .ok_or_else(|| Error::malformed("fewer nodes than columns"))?;
        self.next.node += 1;
        let len = rows(node.length())?;
        match usize::try_from(node.null_count()) {
            Ok(nulls) if nulls <= len => Ok((len, nulls)),
            _ => Err(Error::malformed(format!(
                "column `{}` has {} nulls in {len} rows",
                field.name(),
                node.null_count()
            ))),
        }
    }

    /// The next buffer, with at least `least` bytes.
    fn bytes(&mut self, least: usize) -> Result<()> {
        self.numbers(least, 1, 1)
    }

    /// The next buffer: at least `count` numbers of `width` bytes, no part of a number at the end, at a multiple of
    /// `alignment` in the body.
    fn numbers(&mut self, count: usize, width: usize, alignment: usize) -> Result<()> {
        let buffer = self
            .parts
            .buffers
            .get(self.next.buffer)
            .ok_or_else(|| Error::malformed("fewer buffers than columns"))?;
        self.next.buffer += 1;
        let range = usize::try_from(buffer.offset()).ok().zip(usize::try_from(buffer.length()).ok());
        let inside =
            range.filter(|(offset, len)| offset.checked_add(*len).is_some_and(|end| end <= self.body_len));
        let (offset, len) = inside.ok_or_else(|| {
            Error::malformed(format!(
                "a buffer of {} bytes at {} in a body of {}",
                buffer.length(),
                buffer.offset(),
                self.body_len
            ))
        })?;
        let least = count * width;
        if len < least || !len.is_multiple_of(width) || !offset.is_multiple_of(alignment) {
            return Err(Error::malformed(format!(
                "a buffer of {len} bytes at {offset} that must hold {least}, in whole numbers of {width}"
            )));
        }
        Ok(())
    }
}

fn product(len: usize, size: i32) -> Result<usize> {
    usize::try_from(size)
        .ok()
        .and_then(|size| len.checked_mul(size))
        .filter(|product| *product <= isize::MAX as usize)
        .ok_or_else(|| Error::malformed("a fixed size that overflows"))
}
