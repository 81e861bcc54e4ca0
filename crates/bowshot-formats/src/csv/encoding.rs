//! Texts in other characters than UTF-8, made UTF-8 while they are read.

use bowshot_object_store::Error;
use encoding_rs::{CoderResult, Decoder, Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};
use std::io::{self, Read};
use std::path::Path;

const CHUNK_BYTES: usize = 64 << 10;

/// The characters of a text, by its first bytes, and how long the mark is that says so. `whole`: these are all its bytes.
fn detect(bytes: &[u8], whole: bool) -> (Option<&'static Encoding>, usize) {
    match Encoding::for_bom(bytes) {
        Some((encoding, mark)) if encoding == UTF_8 => return (None, mark),
        Some((encoding, _)) => return (Some(encoding), 0),
        None => {}
    }
    if let Some(wide) = without_mark(bytes) {
        return (Some(wide), 0);
    }
    match std::str::from_utf8(bytes) {
        Ok(_) => (None, 0),
        // The sample may end within a character.
        Err(error) if !whole && error.error_len().is_none() => (None, 0),
        Err(_) => (Some(WINDOWS_1252), 0),
    }
}

/// The characters of a text, by what was asked for and by its first bytes, and how long its mark is. `None` is UTF-8.
pub fn resolve(
    asked: Option<&'static Encoding>,
    (first, whole): (&[u8], bool),
    path: &Path,
) -> Result<(Option<&'static Encoding>, usize), Error> {
    let (found, mark) = detect(first, whole);
    let Some(asked) = asked else { return Ok((found, mark)) };
    if asked == UTF_8 {
        return Ok((None, mark));
    }
    let wide = [UTF_16LE, UTF_16BE];
    if !wide.contains(&asked) {
        return Ok((Some(asked), 0));
    }
    // UTF-16 is asked for without its order of bytes, which the text tells. Read as such, most other texts are characters too.
    match found {
        Some(found) if wide.contains(&found) => Ok((Some(found), 0)),
        None if !first.is_empty() && !first.contains(&0) => {
            Err(Error::Characters { path: path.to_path_buf(), asked: "UTF-16" })
        }
        _ => Ok((Some(asked), 0)),
    }
}

/// UTF-16 without a mark: of each pair of bytes one is zero nearly always.
fn without_mark(bytes: &[u8]) -> Option<&'static Encoding> {
    let pairs = bytes.get(..bytes.len().min(1 << 10))?.chunks_exact(2);
    let count = pairs.len();
    let zeros = |place: usize| pairs.clone().filter(|pair| pair[place] == 0 && pair[1 - place] != 0).count();
    let most = |zeros: usize| count >= 4 && zeros * 10 >= count * 7;
    if most(zeros(1)) {
        return Some(UTF_16LE);
    }
    most(zeros(0)).then_some(UTF_16BE)
}

/// Reads a text as UTF-8. What is none of its characters becomes a replacement character, as in every reader.
pub(crate) struct Transcoded<R> {
    inner: R,
    decoder: Decoder,
    raw: Vec<u8>,
    raw_at: usize,
    raw_end: usize,
    text: Vec<u8>,
    text_at: usize,
    last: bool,
    done: bool,
}

impl<R: Read> Transcoded<R> {
    pub(crate) fn new(inner: R, encoding: &'static Encoding) -> Self {
        let decoder = encoding.new_decoder();
        let (raw, text) = (vec![0; CHUNK_BYTES], Vec::with_capacity(3 * CHUNK_BYTES));
        Self { inner, decoder, raw, raw_at: 0, raw_end: 0, text, text_at: 0, last: false, done: false }
    }

    fn fill(&mut self) -> io::Result<()> {
        self.text.clear();
        self.text_at = 0;
        while self.text.is_empty() && !self.done {
            if self.raw_at == self.raw_end && !self.last {
                self.raw_end = self.inner.read(&mut self.raw)?;
                self.raw_at = 0;
                self.last = self.raw_end == 0;
            }
            self.text.resize(3 * CHUNK_BYTES, 0);
            let raw = self.raw.get(self.raw_at..self.raw_end).unwrap_or_default();
            let (result, read, written, _) = self.decoder.decode_to_utf8(raw, &mut self.text, self.last);
            self.raw_at += read;
            self.text.truncate(written);
            self.done = self.last && result == CoderResult::InputEmpty;
        }
        Ok(())
    }
}

impl<R: Read> Read for Transcoded<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.text_at == self.text.len() && !self.done {
            self.fill()?;
        }
        let rest = self.text.get(self.text_at..).unwrap_or_default();
        let count = rest.len().min(into.len());
        into[..count].copy_from_slice(&rest[..count]);
        self.text_at += count;
        Ok(count)
    }
}
