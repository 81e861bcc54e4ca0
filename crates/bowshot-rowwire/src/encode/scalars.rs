//! Encoders of columns whose values are written by two functions: as text and in binary.

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray};
use bytes::{BufMut, BytesMut};
use std::fmt::{self, Write as _};

/// The values of one column of a batch, ready to be written; `E` is the error of a value that its protocol cannot hold.
pub trait ColumnEncoder<E>: Send + Sync {
    /// Whether the value of a row is null.
    fn is_null(&self, row: usize) -> bool;

    /// Writes the text of a value, without its length.
    fn text(&self, row: usize, out: &mut BytesMut) -> Result<(), E>;

    /// Writes the binary form of a value.
    fn binary(&self, row: usize, out: &mut BytesMut) -> Result<(), E>;
}

/// An array and two functions that write one of its values.
struct ArrayEncoder<A, T, B> {
    array: A,
    text: T,
    binary: B,
}

impl<E, A, T, B> ColumnEncoder<E> for ArrayEncoder<A, T, B>
where
    A: Array,
    T: Fn(&A, usize, &mut BytesMut) -> Result<(), E> + Send + Sync,
    B: Fn(&A, usize, &mut BytesMut) -> Result<(), E> + Send + Sync,
{
    fn is_null(&self, row: usize) -> bool {
        self.array.is_null(row)
    }

    fn text(&self, row: usize, out: &mut BytesMut) -> Result<(), E> {
        (self.text)(&self.array, row, out)
    }

    fn binary(&self, row: usize, out: &mut BytesMut) -> Result<(), E> {
        (self.binary)(&self.array, row, out)
    }
}

/// An encoder of values that may not fit.
pub fn fallible_encoder<E, A, T, B>(array: A, text: T, binary: B) -> Box<dyn ColumnEncoder<E>>
where
    A: Array + 'static,
    T: Fn(&A, usize, &mut BytesMut) -> Result<(), E> + Send + Sync + 'static,
    B: Fn(&A, usize, &mut BytesMut) -> Result<(), E> + Send + Sync + 'static,
{
    Box::new(ArrayEncoder { array, text, binary })
}

/// An encoder of values that all fit.
pub fn encoder<E, A, T, B>(array: A, text: T, binary: B) -> Box<dyn ColumnEncoder<E>>
where
    A: Array + 'static,
    T: Fn(&A, usize, &mut BytesMut) + Send + Sync + 'static,
    B: Fn(&A, usize, &mut BytesMut) + Send + Sync + 'static,
{
    fallible_encoder(
        array,
        move |array, row, out| {
            text(array, row, out);
            Ok(())
        },
        move |array, row, out| {
            binary(array, row, out);
            Ok(())
        },
    )
}

/// An encoder of whole numbers, whose binary form the protocol has.
pub fn integer_encoder<E, T: ArrowPrimitiveType>(
    array: &ArrayRef,
    binary: impl Fn(&mut BytesMut, T::Native) + Send + Sync + 'static,
) -> Box<dyn ColumnEncoder<E>>
where
    T::Native: fmt::Display,
{
    encoder(
        array.as_primitive::<T>().clone(),
        |array, row, out| put_display(out, format_args!("{}", array.value(row))),
        move |array, row, out| binary(out, array.value(row)),
    )
}

/// An encoder of a column of type `Null`, whose array has no bitmap of nulls.
pub fn null_encoder<E>() -> Box<dyn ColumnEncoder<E>> {
    Box::new(Nulls)
}

struct Nulls;

impl<E> ColumnEncoder<E> for Nulls {
    fn is_null(&self, _: usize) -> bool {
        true
    }

    fn text(&self, _: usize, _: &mut BytesMut) -> Result<(), E> {
        Ok(())
    }

    fn binary(&self, _: usize, _: &mut BytesMut) -> Result<(), E> {
        Ok(())
    }
}

/// Writes formatted text; a buffer in memory takes all of it.
#[inline]
pub fn put_display(out: &mut BytesMut, text: fmt::Arguments<'_>) {
    _ = out.write_fmt(text);
}

/// Two hexadecimal digits for each byte.
#[inline]
pub fn put_hex(bytes: &[u8], out: &mut BytesMut) {
    out.reserve(bytes.len().saturating_mul(2));
    bytes.iter().for_each(|byte| put_byte(*byte, out));
}

/// The text of a UUID.
#[inline]
pub fn put_uuid(bytes: &[u8], out: &mut BytesMut) {
    for (index, byte) in bytes.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            out.put_u8(b'-');
        }
        put_byte(*byte, out);
    }
}

fn put_byte(byte: u8, out: &mut BytesMut) {
    let digit = |half: u8| if half < 10 { b'0' + half } else { b'a' + half - 10 };
    out.put_slice(&[digit(byte >> 4), digit(byte & 15)]);
}
