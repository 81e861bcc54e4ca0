//! The metadata of a record batch message, taken apart: rows, nodes, buffers, and counts of view buffers. In this form
//! columns can be chosen and buffers moved, and the flatbuffer is written again. A message that no single batch lies behind
//! is described so from the start (`combined_message.rs`).

use crate::error::{Error, Result};
use arrow::datatypes::{DataType, Fields, UnionMode};
use arrow_ipc::{
    Buffer, CompressionType, FieldNode, MessageBuilder, MessageHeader, MetadataVersion, RecordBatchBuilder,
};
use flatbuffers::{FlatBufferBuilder, WIPOffset};
use std::ops::Range;

#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) rows: i64,
    /// Length and null count of each field, children after their parents.
    pub(crate) nodes: Vec<FieldNode>,
    pub(crate) buffers: Vec<Buffer>,
    /// For each view column the number of its data buffers.
    pub(crate) counts: Vec<i64>,
    pub(crate) codec: Option<CompressionType>,
}

impl Parts {
    pub(crate) fn of(batch: arrow_ipc::RecordBatch<'_>) -> Self {
        Self {
            rows: batch.length(),
            nodes: batch.nodes().into_iter().flatten().copied().collect(),
            buffers: batch.buffers().into_iter().flatten().copied().collect(),
            counts: batch.variadicBufferCounts().into_iter().flatten().collect(),
            codec: batch.compression().map(|compression| compression.codec()),
        }
    }

    /// The parts of the columns at these positions, in this order.
    pub(crate) fn choose(
        &self,
        fields: &Fields,
        version: MetadataVersion,
        columns: &[usize],
    ) -> Result<Self> {
        let mut places = Vec::with_capacity(fields.len());
        let mut start = WalkPosition::default();
        for field in fields {
            let mut end = start;
            self.pass(field.data_type(), version, &mut end)?;
            places.push(start..end);
            start = end;
        }
        let mut chosen = Self { nodes: vec![], buffers: vec![], counts: vec![], ..*self };
        for column in columns {
            let place = places.get(*column);
            let Range { start, end } =
                place.ok_or_else(|| Error::malformed(format!("no column {column} in {}", fields.len())))?;
            // Slices of what the sender gave: it may have given fewer nodes and buffers than its columns need.
            chosen.nodes.extend_from_slice(part(&self.nodes, start.node..end.node)?);
            chosen.buffers.extend_from_slice(part(&self.buffers, start.buffer..end.buffer)?);
            chosen.counts.extend_from_slice(part(&self.counts, start.count..end.count)?);
        }
        Ok(chosen)
    }

    /// Moves `place` behind a column of the type.
    fn pass(&self, data_type: &DataType, version: MetadataVersion, place: &mut WalkPosition) -> Result<()> {
        place.node += 1;
        place.buffer += match data_type {
            DataType::Null | DataType::RunEndEncoded(_, _) => 0,
            DataType::Union(_, mode) => {
                usize::from(version < MetadataVersion::V5) + 1 + usize::from(*mode == UnionMode::Dense)
            }
            DataType::Struct(_) | DataType::FixedSizeList(_, _) => 1,
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Binary | DataType::LargeBinary => 3,
            DataType::ListView(_) | DataType::LargeListView(_) => 3,
            DataType::Utf8View | DataType::BinaryView => {
                let count = self.counts.get(place.count).and_then(|count| usize::try_from(*count).ok());
                place.count += 1;
                let count = count.filter(|count| *count <= self.buffers.len());
                2 + count.ok_or_else(|| Error::malformed("a view column without buffer count"))?
            }
            _ => 2,
        };
        match data_type {
            DataType::List(item)
            | DataType::LargeList(item)
            | DataType::ListView(item)
            | DataType::LargeListView(item)
            | DataType::FixedSizeList(item, _)
            | DataType::Map(item, _) => self.pass(item.data_type(), version, place),
            DataType::RunEndEncoded(ends, values) => {
                self.pass(ends.data_type(), version, place)?;
                self.pass(values.data_type(), version, place)
            }
            DataType::Struct(fields) => {
                fields.iter().try_for_each(|field| self.pass(field.data_type(), version, place))
            }
            DataType::Union(fields, _) => {
                fields.iter().try_for_each(|(_, field)| self.pass(field.data_type(), version, place))
            }
            _ => Ok(()),
        }
    }

    /// The flatbuffer of a batch that is not compressed.
    pub(crate) fn flatbuffer(&self) -> Vec<u8> {
        let mut builder = FlatBufferBuilder::new();
        let root = self.write(&mut builder);
        builder.finish(root, None);
        builder.finished_data().to_vec()
    }

    /// The flatbuffer of a message of such a batch, whose body has `body_len` bytes.
    pub(crate) fn message(&self, body_len: usize) -> Vec<u8> {
        let mut builder = FlatBufferBuilder::new();
        let batch = self.write(&mut builder);
        let mut message = MessageBuilder::new(&mut builder);
        message.add_version(MetadataVersion::V5);
        message.add_header_type(MessageHeader::RecordBatch);
        message.add_bodyLength(body_len as i64);
        message.add_header(batch.as_union_value());
        let root = message.finish();
        builder.finish(root, None);
        builder.finished_data().to_vec()
    }

    fn write<'a>(&self, builder: &mut FlatBufferBuilder<'a>) -> WIPOffset<arrow_ipc::RecordBatch<'a>> {
        let nodes = builder.create_vector(&self.nodes);
        let buffers = builder.create_vector(&self.buffers);
        let counts = builder.create_vector(&self.counts);
        let mut table = RecordBatchBuilder::new(builder);
        table.add_length(self.rows);
        table.add_nodes(nodes);
        table.add_buffers(buffers);
        table.add_variadicBufferCounts(counts);
        table.finish()
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct WalkPosition {
    node: usize,
    buffer: usize,
    count: usize,
}

fn part<T>(whole: &[T], range: Range<usize>) -> Result<&[T]> {
    whole.get(range).ok_or_else(|| Error::malformed("fewer nodes or buffers than columns"))
}
