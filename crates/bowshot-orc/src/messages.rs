//! The metadata of a file: messages of `orc_proto.proto` (<https://github.com/apache/orc-format>), with the fields that are
//! read here.

use crate::Error;
use crate::error::corrupt;
use prost::Message;

#[derive(Clone, PartialEq, Message)]
pub(crate) struct PostScript {
    #[prost(uint64, tag = "1")]
    pub(crate) footer_length: u64,
    #[prost(uint64, tag = "2")]
    pub(crate) compression: u64,
    #[prost(uint64, optional, tag = "3")]
    pub(crate) compression_block_size: Option<u64>,
    #[prost(bytes = "vec", tag = "8000")]
    pub(crate) magic: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Footer {
    #[prost(message, repeated, tag = "3")]
    pub(crate) stripes: Vec<StripeInformation>,
    #[prost(message, repeated, tag = "4")]
    pub(crate) types: Vec<Type>,
    #[prost(uint64, tag = "6")]
    pub(crate) number_of_rows: u64,
    #[prost(message, repeated, tag = "7")]
    pub(crate) statistics: Vec<ColumnStatistics>,
    #[prost(message, optional, tag = "10")]
    pub(crate) encryption: Option<Encryption>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct StripeInformation {
    #[prost(uint64, tag = "1")]
    pub(crate) offset: u64,
    #[prost(uint64, tag = "2")]
    pub(crate) index_length: u64,
    #[prost(uint64, tag = "3")]
    pub(crate) data_length: u64,
    #[prost(uint64, tag = "4")]
    pub(crate) footer_length: u64,
    #[prost(uint64, tag = "5")]
    pub(crate) number_of_rows: u64,
}

/// Subtypes are numbers of other types.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Type {
    #[prost(uint64, tag = "1")]
    pub(crate) kind: u64,
    #[prost(uint64, repeated, tag = "2")]
    pub(crate) subtypes: Vec<u64>,
    #[prost(string, repeated, tag = "3")]
    pub(crate) field_names: Vec<String>,
    #[prost(uint64, tag = "5")]
    pub(crate) precision: u64,
    #[prost(uint64, tag = "6")]
    pub(crate) scale: u64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ColumnStatistics {
    #[prost(message, optional, tag = "9")]
    pub(crate) timestamp: Option<TimestampStatistics>,
}

/// In milliseconds.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct TimestampStatistics {
    #[prost(sint64, tag = "1")]
    pub(crate) minimum: i64,
    #[prost(sint64, tag = "2")]
    pub(crate) maximum: i64,
    #[prost(sint64, tag = "3")]
    pub(crate) minimum_utc: i64,
    #[prost(sint64, tag = "4")]
    pub(crate) maximum_utc: i64,
}

/// That it is there is all that counts.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Encryption {}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct StripeFooter {
    #[prost(message, repeated, tag = "1")]
    pub(crate) streams: Vec<Stream>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) columns: Vec<ColumnEncoding>,
    #[prost(string, tag = "3")]
    pub(crate) writer_timezone: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Stream {
    #[prost(uint64, tag = "1")]
    pub(crate) kind: u64,
    #[prost(uint64, tag = "2")]
    pub(crate) column: u64,
    #[prost(uint64, tag = "3")]
    pub(crate) length: u64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ColumnEncoding {
    #[prost(uint64, tag = "1")]
    pub(crate) kind: u64,
    #[prost(uint64, tag = "2")]
    pub(crate) dictionary_size: u64,
}

/// Decodes a message.
pub(crate) fn decode<M: Message + Default>(bytes: &[u8]) -> Result<M, Error> {
    M::decode(bytes).map_err(|error| corrupt(format!("its metadata cannot be decoded: {error}")))
}
