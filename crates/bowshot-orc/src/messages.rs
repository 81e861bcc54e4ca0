//! The metadata of a file: messages of `orc_proto.proto` (<https://github.com/apache/orc-format>), with the fields that are
//! read here.

use crate::Error;
use crate::error::corrupt;
use prost::Message;

/// Messages: the fields that are read, each with its encoding and its number.
macro_rules! messages {
    ($($(#[$about:meta])* $name:ident { $($field:ident: $value:ty = ($($encoding:tt)*),)* })*) => {$(
        $(#[$about])*
        #[derive(Clone, PartialEq, Message)]
        pub(crate) struct $name {
            $(#[prost($($encoding)*)] pub(crate) $field: $value,)*
        }
    )*};
}

messages! {
    PostScript {
        footer_length: u64 = (uint64, tag = "1"),
        compression: u64 = (uint64, tag = "2"),
        compression_block_size: Option<u64> = (uint64, optional, tag = "3"),
        magic: Vec<u8> = (bytes = "vec", tag = "8000"),
    }

    Footer {
        stripes: Vec<StripeInformation> = (message, repeated, tag = "3"),
        types: Vec<Type> = (message, repeated, tag = "4"),
        number_of_rows: u64 = (uint64, tag = "6"),
        statistics: Vec<ColumnStatistics> = (message, repeated, tag = "7"),
        encryption: Option<Encryption> = (message, optional, tag = "10"),
    }

    StripeInformation {
        offset: u64 = (uint64, tag = "1"),
        index_length: u64 = (uint64, tag = "2"),
        data_length: u64 = (uint64, tag = "3"),
        footer_length: u64 = (uint64, tag = "4"),
        number_of_rows: u64 = (uint64, tag = "5"),
    }

    /// Subtypes are numbers of other types.
    Type {
        kind: u64 = (uint64, tag = "1"),
        subtypes: Vec<u64> = (uint64, repeated, tag = "2"),
        field_names: Vec<String> = (string, repeated, tag = "3"),
        precision: u64 = (uint64, tag = "5"),
        scale: u64 = (uint64, tag = "6"),
    }

    ColumnStatistics {
        timestamp: Option<TimestampStatistics> = (message, optional, tag = "9"),
    }

    /// In milliseconds.
    TimestampStatistics {
        minimum: i64 = (sint64, tag = "1"),
        maximum: i64 = (sint64, tag = "2"),
        minimum_utc: i64 = (sint64, tag = "3"),
        maximum_utc: i64 = (sint64, tag = "4"),
    }

    /// That it is there is all that counts.
    Encryption {}

    StripeFooter {
        streams: Vec<Stream> = (message, repeated, tag = "1"),
        columns: Vec<ColumnEncoding> = (message, repeated, tag = "2"),
        writer_timezone: String = (string, tag = "3"),
    }

    Stream {
        kind: u64 = (uint64, tag = "1"),
        column: u64 = (uint64, tag = "2"),
        length: u64 = (uint64, tag = "3"),
    }

    ColumnEncoding {
        kind: u64 = (uint64, tag = "1"),
        dictionary_size: u64 = (uint64, tag = "2"),
    }
}

pub(crate) fn decode<M: Message + Default>(bytes: &[u8]) -> Result<M, Error> {
    M::decode(bytes).map_err(|error| corrupt(format!("its metadata cannot be decoded: {error}")))
}
