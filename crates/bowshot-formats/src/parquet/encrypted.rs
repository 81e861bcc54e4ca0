//! Which columns of a Parquet file are encrypted. A file may be encrypted as a whole, which its last bytes say, or only some of
//! its columns, below a footer that anybody can read. The reader passes over what such a footer says of that, so that the pages
//! of these columns look damaged. Here the footer is asked once more, when something of a file could not be decoded.
//!
//! The footer comes from outside: nothing in it is believed, and what does not fit says that no column is encrypted.

use crate::data_file::DataFile;
use crate::parquet::Chunks;
use bowshot_object_store::Error;
use parquet::file::reader::ChunkReader;
use std::collections::BTreeSet;
use std::sync::Arc;

/// What a Parquet file ends with, behind the length of its footer.
const MAGIC: &[u8] = b"PAR1";
/// That length and the magic.
const TAIL_BYTES: usize = 8;
/// How deep structures may lie in one another; those of a footer lie five deep.
const MAX_DEPTH: usize = 16;

/// The error of a file, or that columns of it are encrypted if so: then it is no damage that they cannot be decoded.
pub fn told(file: &Arc<DataFile>, error: Error) -> Error {
    if !matches!(error, Error::Corrupt { .. }) {
        return error;
    }
    match columns(&Chunks(Arc::clone(file))) {
        columns if columns.is_empty() => error,
        columns => Error::Encrypted { path: file.path().to_path_buf(), columns },
    }
}

/// The encrypted columns of a file whose footer can be read.
pub fn columns(file: &impl ChunkReader) -> Vec<String> {
    let footer = || {
        let end = file.len().checked_sub(TAIL_BYTES as u64)?;
        let tail = file.get_bytes(end, TAIL_BYTES).ok()?;
        let (length, magic) = tail.split_first_chunk::<4>()?;
        let length = u32::from_le_bytes(*length);
        let start = end.checked_sub(u64::from(length))?;
        if magic != MAGIC {
            return None;
        }
        file.get_bytes(start, usize::try_from(length).ok()?).ok()
    };
    footer().and_then(|footer| in_footer(&footer)).unwrap_or_default()
}

/// Of the structures of `parquet.thrift`: those columns of row groups that have `crypto_metadata`.
fn in_footer(bytes: &[u8]) -> Option<Vec<String>> {
    let mut found = BTreeSet::new();
    let mut thrift = Thrift { rest: bytes, depth: 0 };
    thrift.fields(&mut |thrift, field| match field {
        // `FileMetaData.row_groups`
        (4, LIST) => thrift.items(&mut |thrift, _| group(thrift, &mut found)),
        (_, kind) => thrift.skip(kind),
    })?;
    Some(found.into_iter().collect())
}

fn group(thrift: &mut Thrift<'_>, found: &mut BTreeSet<String>) -> Option<()> {
    thrift.fields(&mut |thrift, field| match field {
        // `RowGroup.columns`
        (1, LIST) => thrift.items(&mut |thrift, _| chunk(thrift, found)),
        (_, kind) => thrift.skip(kind),
    })
}

fn chunk(thrift: &mut Thrift<'_>, found: &mut BTreeSet<String>) -> Option<()> {
    let (mut path, mut encrypted) = (Vec::new(), false);
    thrift.fields(&mut |thrift, field| match field {
        // `ColumnChunk.meta_data`
        (3, STRUCT) => thrift.fields(&mut |thrift, field| match field {
            // `ColumnMetaData.path_in_schema`
            (3, LIST) => thrift.items(&mut |thrift, _| {
                path.push(String::from_utf8_lossy(thrift.binary()?).into_owned());
                Some(())
            }),
            (_, kind) => thrift.skip(kind),
        }),
        // `ColumnChunk.crypto_metadata`
        (8, STRUCT) => {
            encrypted = true;
            thrift.skip(STRUCT)
        }
        (_, kind) => thrift.skip(kind),
    })?;
    if encrypted {
        found.insert(path.join("."));
    }
    Some(())
}

const STOP: u8 = 0;
const TRUE: u8 = 1;
const FALSE: u8 = 2;
const BYTE: u8 = 3;
const I64: u8 = 6;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const SET: u8 = 10;
const MAP: u8 = 11;
const STRUCT: u8 = 12;
const UUID: u8 = 13;

/// Bytes of Thrift's compact protocol. Each step takes bytes away, so that no number in them costs more than they are long.
struct Thrift<'a> {
    rest: &'a [u8],
    depth: usize,
}

/// A field by its number and type, or an item by its type: reads its value.
type Read<'r, 'a, T> = &'r mut dyn FnMut(&mut Thrift<'a>, T) -> Option<()>;

impl<'a> Thrift<'a> {
    fn take(&mut self, length: u64) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(usize::try_from(length).ok()?)?;
        self.rest = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn binary(&mut self) -> Option<&'a [u8]> {
        let length = self.number()?;
        self.take(length)
    }

    fn fields(&mut self, read: Read<'_, 'a, (u64, u8)>) -> Option<()> {
        self.deeper(&mut |thrift, ()| {
            let mut last = 0;
            loop {
                let byte = thrift.byte()?;
                let (delta, kind) = (byte >> 4, byte & 0xf);
                if kind == STOP {
                    return Some(());
                }
                last = match delta {
                    // Written in full, and with its sign in the last bit.
                    0 => thrift.number()? >> 1,
                    delta => last + u64::from(delta),
                };
                read(thrift, (last, kind))?;
            }
        })
    }

    fn items(&mut self, read: Read<'_, 'a, u8>) -> Option<()> {
        self.deeper(&mut |thrift, ()| {
            let byte = thrift.byte()?;
            let count = match byte >> 4 {
                15 => thrift.number()?,
                few => u64::from(few),
            };
            (0..count).try_for_each(|_| {
                let before = thrift.rest.len();
                read(thrift, byte & 0xf)?;
                (thrift.rest.len() < before).then_some(())
            })
        })
    }

    fn deeper(&mut self, read: Read<'_, 'a, ()>) -> Option<()> {
        if self.depth == MAX_DEPTH {
            return None;
        }
        self.depth += 1;
        let done = read(self, ());
        self.depth -= 1;
        done
    }

    fn skip(&mut self, kind: u8) -> Option<()> {
        match kind {
            // Of fields, the type is the value.
            TRUE | FALSE => Some(()),
            BYTE => self.take(1).map(drop),
            4..=I64 => self.number().map(drop),
            DOUBLE => self.take(8).map(drop),
            BINARY => self.binary().map(drop),
            LIST | SET => self.items(&mut |thrift, kind| match kind {
                TRUE | FALSE => thrift.take(1).map(drop),
                kind => thrift.skip(kind),
            }),
            MAP => self.skip_map(),
            STRUCT => self.fields(&mut |thrift, (_, kind)| thrift.skip(kind)),
            UUID => self.take(16).map(drop),
            _ => None,
        }
    }

    fn skip_map(&mut self) -> Option<()> {
        let count = self.number()?;
        if count == 0 {
            return Some(());
        }
        let kinds = self.byte()?;
        self.deeper(&mut |thrift, ()| {
            (0..count).try_for_each(|_| {
                let before = thrift.rest.len();
                for kind in [kinds >> 4, kinds & 0xf] {
                    match kind {
                        TRUE | FALSE => thrift.take(1).map(drop),
                        kind => thrift.skip(kind),
                    }?;
                }
                (thrift.rest.len() < before).then_some(())
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{columns, in_footer};
    use bytes::Bytes;

    /// A field of the compact protocol.
    fn field(delta: u8, kind: u8, value: &[u8]) -> Vec<u8> {
        [&[delta << 4 | kind], value].concat()
    }

    fn list(kind: u8, items: &[Vec<u8>]) -> Vec<u8> {
        let length = u8::try_from(items.len()).unwrap();
        let head = if length < 15 { vec![length << 4 | kind] } else { vec![0xf0 | kind, length] };
        [head, items.concat()].concat()
    }

    fn structure(fields: &[Vec<u8>]) -> Vec<u8> {
        [fields.concat(), vec![0]].concat()
    }

    fn text(text: &str) -> Vec<u8> {
        [vec![u8::try_from(text.len()).unwrap()], text.as_bytes().to_vec()].concat()
    }

    fn chunk(path: &[&str], encrypted: bool) -> Vec<u8> {
        let path: Vec<Vec<u8>> = path.iter().map(|part| text(part)).collect();
        let metadata = structure(&[
            field(1, 5, &[4]),
            field(1, 9, &list(5, &vec![vec![0]; 17])),
            field(1, 9, &list(8, &path)),
            field(1, 1, &[]),
            field(4, 7, &[0; 8]),
        ]);
        let crypto = field(5, 12, &structure(&[field(1, 12, &structure(&[]))]));
        let fields =
            [field(2, 6, &[0x80, 1]), field(1, 12, &metadata), if encrypted { crypto } else { Vec::new() }];
        structure(&fields)
    }

    fn footer(chunks: &[Vec<u8>]) -> Vec<u8> {
        let group = structure(&[field(1, 9, &list(12, chunks)), field(1, 6, &[2])]);
        structure(&[
            field(1, 5, &[2]),
            // A map, and a number of a field that is written in full.
            field(1, 11, &[1, 0x85, 1, b'k', 3]),
            field(2, 9, &list(12, &[group.clone(), group])),
            field(0, 8, &[vec![28], text("made by hand")].concat()),
        ])
    }

    #[test]
    fn encrypted_columns_are_named() {
        let chunks = [chunk(&["a"], true), chunk(&["b"], false), chunk(&["s", "p"], true)];
        assert_eq!(in_footer(&footer(&chunks)).unwrap(), ["a", "s.p"]);
        // Behind a footer with encrypted columns there is a signature.
        assert_eq!(in_footer(&[footer(&chunks), vec![7; 28]].concat()).unwrap(), ["a", "s.p"]);
        assert_eq!(in_footer(&footer(&[chunk(&["a"], false)])).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn footers_are_where_files_end() {
        let file = |footer: &[u8], length: u32, magic: &[u8]| {
            Bytes::from([b"PAR1 rows", footer, &length.to_le_bytes(), magic].concat())
        };
        let footer = footer(&[chunk(&["a"], true)]);
        let length = u32::try_from(footer.len()).unwrap();
        assert_eq!(columns(&file(&footer, length, b"PAR1")), ["a"]);
        for (length, magic) in [(length, b"PARE"), (length + 100, b"PAR1"), (u32::MAX, b"PAR1"), (1, b"PAR1")]
        {
            assert_eq!(columns(&file(&footer, length, magic)), Vec::<String>::new());
        }
        assert_eq!(columns(&Bytes::from_static(b"PAR1")), Vec::<String>::new());
    }

    #[test]
    fn no_bytes_make_it_run_away() {
        let whole = footer(&[chunk(&["a"], true), chunk(&["b", "c"], false)]);
        for place in 0..whole.len() {
            in_footer(&whole[..place]);
            for byte in 0..=255 {
                let mut bytes = whole.clone();
                bytes[place] = byte;
                in_footer(&bytes);
            }
        }
        // Structures in structures, and lists of so many nothings.
        assert_eq!(in_footer(&vec![0x1c; 1_000_000]), None);
        assert_eq!(in_footer(&[&[0x19, 0xf1][..], &[0xff; 9], &[1]].concat()), None);
        assert_eq!(in_footer(&[&[0x1b][..], &[0xff; 9], &[1, 0x11]].concat()), None);
    }
}
