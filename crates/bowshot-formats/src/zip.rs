//! Zip archives: which files they hold, and their bytes. What an archive says of itself is checked before it is believed.

use crate::data_file::DataFile;
use bowshot_object_store::Error;
use flate2::read::DeflateDecoder;
use std::io::{BufReader, Read};
use std::sync::{Arc, OnceLock};

/// Bytes of the record at the end, with the longest comment.
const MAX_END_BYTES: u64 = 22 + 65_535;
/// Bytes of the list of files.
const MAX_LIST_BYTES: u64 = 64 << 20;

const END_MARK: &[u8] = b"PK\x05\x06";
const LISTED_MARK: &[u8] = b"PK\x01\x02";
const FILE_MARK: &[u8] = b"PK\x03\x04";

#[derive(Debug, Clone)]
pub(crate) struct Member {
    pub name: String,
    deflated: bool,
    packed_bytes: u64,
    begins: u64,
}

/// The bytes of a member, and the error of the archive's file if reading it failed.
pub(crate) type Opened = (Box<dyn Read + Send>, Arc<OnceLock<Error>>);

/// The files of an archive, without folders.
pub(crate) fn members(file: &Arc<DataFile>) -> Result<Vec<Member>, Error> {
    let broken = |what: &str| Error::corrupt(file.path(), format!("incomplete zip archive: {what}"));
    let tail = file.read(file.size().saturating_sub(MAX_END_BYTES)..file.size())?;
    let end =
        memchr::memmem::rfind(&tail, END_MARK).ok_or_else(|| broken("its central directory is missing"))?;
    let end = tail.get(end..).unwrap_or_default();
    let (count, bytes, begins) = (short(end, 10), long(end, 12), long(end, 16));
    let (Some(count), Some(bytes), Some(begins)) = (count, bytes, begins) else {
        return Err(broken("its central directory is truncated"));
    };
    if begins == u64::from(u32::MAX) || count == u16::MAX {
        let (path, detail) = (file.path().to_path_buf(), "a zip archive of more than 4 GiB".to_owned());
        return Err(Error::Unsupported { path, detail });
    }
    if bytes > MAX_LIST_BYTES || begins + bytes > file.size() {
        return Err(broken("its central directory is out of range"));
    }
    let list = file.read(begins..begins + bytes)?;
    let (mut members, mut at) = (Vec::new(), 0);
    for _ in 0..count {
        let entry = list.get(at..).unwrap_or_default();
        let (member, length) =
            member(file, entry)?.ok_or_else(|| broken("its central directory is truncated"))?;
        at += length;
        if !member.name.ends_with('/') {
            members.push(member);
        }
    }
    Ok(members)
}

/// An entry of the list, and its length.
fn member(file: &DataFile, entry: &[u8]) -> Result<Option<(Member, usize)>, Error> {
    let Some(listed) = Listed::new(entry) else { return Ok(None) };
    let path = file.path().to_path_buf();
    if listed.flags & 1 != 0 {
        return Err(Error::Encrypted { path, columns: Vec::new() });
    }
    let deflated = match listed.method {
        0 => false,
        8 => true,
        other => {
            return Err(Error::Unsupported {
                path,
                detail: format!("unsupported compression method {other}"),
            });
        }
    };
    let (packed_bytes, begins) = (listed.packed_bytes, listed.begins);
    Ok(Some((Member { name: listed.name, deflated, packed_bytes, begins }, listed.length)))
}

struct Listed {
    flags: u16,
    method: u16,
    packed_bytes: u64,
    begins: u64,
    name: String,
    length: usize,
}

impl Listed {
    fn new(entry: &[u8]) -> Option<Self> {
        entry.starts_with(LISTED_MARK).then_some(())?;
        let lengths = [short(entry, 28)?, short(entry, 30)?, short(entry, 32)?].map(usize::from);
        let name = entry.get(46..46 + lengths[0])?;
        Some(Self {
            flags: short(entry, 8)?,
            method: short(entry, 10)?,
            packed_bytes: long(entry, 20)?,
            begins: long(entry, 42)?,
            name: String::from_utf8_lossy(name).into_owned(),
            length: 46 + lengths.iter().sum::<usize>(),
        })
    }
}

pub(crate) fn open(file: &Arc<DataFile>, member: &Member) -> Result<Opened, Error> {
    let broken = || Error::corrupt(file.path(), format!("`{}` in it is truncated", member.name));
    let head_end = member.begins + 30;
    if head_end > file.size() {
        return Err(broken());
    }
    let head = file.read(member.begins..head_end)?;
    let (Some(name), Some(extra)) = (short(&head, 26), short(&head, 28)) else { return Err(broken()) };
    let start = head_end + u64::from(name) + u64::from(extra);
    if !head.starts_with(FILE_MARK) || start + member.packed_bytes > file.size() {
        return Err(broken());
    }
    let reader = file.reader(start);
    let fault = reader.fault();
    let packed = BufReader::with_capacity(64 << 10, reader.take(member.packed_bytes));
    let bytes: Box<dyn Read + Send> =
        if member.deflated { Box::new(DeflateDecoder::new(packed)) } else { Box::new(packed) };
    Ok((bytes, fault))
}

/// The only file of an archive.
pub(crate) fn open_only(file: &Arc<DataFile>) -> Result<Opened, Error> {
    let members = members(file)?;
    let told = members.iter().filter(|member| !member.name.starts_with("__MACOSX/")).collect::<Vec<_>>();
    match told.as_slice() {
        [one] => open(file, one),
        others => Err(Error::corrupt(
            file.path(),
            format!("expected an archive with one file, got {} files", others.len()),
        )),
    }
}

fn short(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|bytes| u16::from_le_bytes(*bytes))
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|bytes| u64::from(u32::from_le_bytes(*bytes)))
}
