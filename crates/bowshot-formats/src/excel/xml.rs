//! The tags and texts of an XML file in a workbook, one after the other, with a limit on each.

use quick_xml::Reader;
use quick_xml::escape;
use quick_xml::events::{BytesStart, Event};
use std::io::{self, BufRead, BufReader, Read};

/// Bytes of one tag or text. A cell has at most 32,767 characters.
const MAX_EVENT_BYTES: usize = 16 << 20;

/// What comes next.
#[derive(Debug)]
pub(super) enum Part {
    Open(Tag),
    /// The name of a tag.
    Close(Vec<u8>),
    Text(String),
    End,
}

#[derive(Debug)]
pub(super) struct Tag {
    pub(super) name: Vec<u8>,
    attributes: Vec<(Vec<u8>, String)>,
    /// Whether nothing is in it, so that it does not close.
    pub(super) empty: bool,
}

impl Tag {
    /// The value of an attribute, whatever its name space.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let found = self.attributes.iter().find(|(known, _)| known == name.as_bytes());
        found.map(|(_, value)| value.as_str())
    }

    fn of(start: &BytesStart<'_>, empty: bool) -> io::Result<Self> {
        let mut attributes = Vec::new();
        for attribute in start.attributes() {
            let attribute = attribute.map_err(io::Error::other)?;
            let value = std::str::from_utf8(&attribute.value).map_err(io::Error::other)?;
            let value = escape::unescape(value).map_err(io::Error::other)?.into_owned();
            attributes.push((attribute.key.local_name().as_ref().to_vec(), value));
        }
        Ok(Self { name: start.local_name().as_ref().to_vec(), attributes, empty })
    }
}

pub(super) struct Parts {
    reader: Reader<Bounded>,
    buffer: Vec<u8>,
}

impl Parts {
    pub(super) fn new(bytes: Box<dyn Read + Send>) -> Self {
        let bytes = BufReader::with_capacity(64 << 10, bytes);
        Self { reader: Reader::from_reader(Bounded { bytes, taken: 0 }), buffer: Vec::new() }
    }

    pub(super) fn next(&mut self) -> io::Result<Part> {
        loop {
            self.buffer.clear();
            self.reader.get_mut().taken = 0;
            let event = self.reader.read_event_into(&mut self.buffer).map_err(io::Error::other)?;
            return Ok(match event {
                Event::Start(start) => Part::Open(Tag::of(&start, false)?),
                Event::Empty(start) => Part::Open(Tag::of(&start, true)?),
                Event::End(end) => Part::Close(end.local_name().as_ref().to_vec()),
                Event::Text(text) => Part::Text(text.decode().map_err(io::Error::other)?.into_owned()),
                Event::CData(text) => Part::Text(text.decode().map_err(io::Error::other)?.into_owned()),
                Event::GeneralRef(reference) => {
                    let name = reference.decode().map_err(io::Error::other)?;
                    let text = match reference.resolve_char_ref().map_err(io::Error::other)? {
                        Some(character) => Some(character.to_string()),
                        None => escape::resolve_predefined_entity(&name).map(str::to_owned),
                    };
                    Part::Text(text.ok_or_else(|| io::Error::other(format!("`&{name};` is not known")))?)
                }
                Event::Eof => Part::End,
                Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => continue,
            });
        }
    }

    /// The texts up to the end of the tag that is open, all in one.
    pub(super) fn text_within(&mut self) -> io::Result<String> {
        let (mut text, mut depth) = (String::new(), 1);
        while depth > 0 {
            match self.next()? {
                Part::Text(more) => text.push_str(&more),
                Part::Open(tag) => depth += usize::from(!tag.empty),
                Part::Close(_) => depth -= 1,
                Part::End => return Err(io::ErrorKind::UnexpectedEof.into()),
            }
        }
        Ok(text)
    }
}

/// Gives up when one part has too many bytes: few packed bytes can be a text of any length.
struct Bounded {
    bytes: BufReader<Box<dyn Read + Send>>,
    taken: usize,
}

impl Read for Bounded {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.bytes.read(into)
    }
}

impl BufRead for Bounded {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.taken > MAX_EVENT_BYTES {
            return Err(io::Error::other("a part of the sheet is too long"));
        }
        self.bytes.fill_buf()
    }

    fn consume(&mut self, count: usize) {
        self.taken += count;
        self.bytes.consume(count);
    }
}
