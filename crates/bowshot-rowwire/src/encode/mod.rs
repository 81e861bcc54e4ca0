//! Values from Arrow to text and binary. The branches over types are taken once per batch; per value there is one call of a
//! [`ColumnEncoder`], which writes straight to the buffer of the socket.

pub mod float;
pub mod interval;
mod json;
mod lists;
mod scalars;
pub mod time;
mod types;

pub use json::{JsonForm, JsonScalars, JsonWriter, json_writer};
pub use lists::{ListItems, list_items};
pub use scalars::{
    ColumnEncoder, encoder, fallible_encoder, integer_encoder, null_encoder, put_display, put_hex, put_uuid,
};
pub use types::{convert, has_type, plain_type};
