//! Avro object container files, written row by row (Avro specification, "Object Container Files").

use uuid::Uuid;

const MAGIC: &[u8] = b"Obj\x01";
const BLOCK_BYTES: usize = 1 << 20;

/// Values in the order of a schema.
#[derive(Debug, Default)]
pub(super) struct Encoder(Vec<u8>);

impl Encoder {
    pub(super) fn boolean(&mut self, value: bool) {
        self.0.push(u8::from(value));
    }

    /// An `int` or a `long`.
    pub(super) fn long(&mut self, value: i64) {
        let mut rest = ((value << 1) ^ (value >> 63)).cast_unsigned();
        while rest >= 0x80 {
            self.0.push(rest.to_le_bytes()[0] | 0x80);
            rest >>= 7;
        }
        self.0.push(rest.to_le_bytes()[0]);
    }

    /// A `fixed`, `float` or `double`, whose length the schema says.
    pub(super) fn raw(&mut self, value: &[u8]) {
        self.0.extend_from_slice(value);
    }

    pub(super) fn bytes(&mut self, value: &[u8]) {
        self.long(i64::try_from(value.len()).unwrap_or(i64::MAX));
        self.raw(value);
    }

    pub(super) fn text(&mut self, value: &str) {
        self.bytes(value.as_bytes());
    }

    /// A union of `null` and another type.
    pub(super) fn optional<T>(&mut self, value: Option<T>, write: impl FnOnce(&mut Self, T)) {
        self.long(i64::from(value.is_some()));
        if let Some(value) = value {
            write(self, value);
        }
    }

    pub(super) fn array<T>(
        &mut self,
        values: impl ExactSizeIterator<Item = T>,
        write: impl Fn(&mut Self, T),
    ) {
        if values.len() > 0 {
            self.long(i64::try_from(values.len()).unwrap_or(i64::MAX));
            values.for_each(|value| write(self, value));
        }
        self.long(0);
    }
}

#[derive(Debug)]
pub(super) struct Container {
    bytes: Vec<u8>,
    mark: [u8; 16],
    block: Encoder,
    rows: i64,
}

impl Container {
    pub(super) fn new(schema: &str, properties: &[(&str, &str)]) -> Self {
        let own = [("avro.schema", schema), ("avro.codec", "null")];
        let mut header = Encoder::default();
        header.raw(MAGIC);
        header.array(own.iter().chain(properties).collect::<Vec<_>>().into_iter(), |header, (key, value)| {
            header.text(key);
            header.text(value);
        });
        let mark = Uuid::new_v4().into_bytes();
        header.raw(&mark);
        Self { bytes: header.0, mark, block: Encoder::default(), rows: 0 }
    }

    pub(super) fn row(&mut self, write: impl FnOnce(&mut Encoder)) {
        write(&mut self.block);
        self.rows += 1;
        if self.block.0.len() >= BLOCK_BYTES {
            self.close_block();
        }
    }

    pub(super) fn finish(mut self) -> Vec<u8> {
        self.close_block();
        self.bytes
    }

    fn close_block(&mut self) {
        if self.rows == 0 {
            return;
        }
        let mut head = Encoder::default();
        head.long(self.rows);
        head.bytes(&self.block.0);
        head.raw(&self.mark);
        self.bytes.append(&mut head.0);
        (self.block, self.rows) = (Encoder::default(), 0);
    }
}
