//! Cuts bytes into records and values. It never guesses: what cannot be told is given back as [`Step::Broken`].
//!
//! A quote opens a value only at its start. What follows the closing quote of a value is part of the value, as most
//! readers have it, but not where the value spans lines: there the quote was most likely a character of its own, and
//! reading on would make one row of many.

use super::dialect::Dialect;

#[derive(Debug, Default)]
pub(super) struct Record {
    values: Vec<Span>,
    /// Values that are not in the text as they are meant.
    unescaped: Vec<u8>,
    /// Values with characters behind their closing quote.
    pub(crate) odd: usize,
    pub lines: u64,
}

#[derive(Debug, Clone, Copy)]
struct Span {
    start: usize,
    end: usize,
    unescaped: bool,
    quoted: bool,
}

impl Record {
    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    /// A value of the record that was cut from `bytes`; empty behind the last.
    pub(super) fn value<'a>(&'a self, bytes: &'a [u8], place: usize) -> &'a [u8] {
        let Some(span) = self.values.get(place) else { return &[] };
        let from = if span.unescaped { self.unescaped.as_slice() } else { bytes };
        from.get(span.start..span.end).unwrap_or_default()
    }

    pub(crate) fn is_quoted(&self, place: usize) -> bool {
        self.values.get(place).is_some_and(|span| span.quoted)
    }

    fn clear(&mut self) {
        self.values.clear();
        self.unescaped.clear();
        self.odd = 0;
        self.lines = 1;
    }
}

/// What was found at a place of the text; the number is where the next record begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Record(usize),
    /// A line without any character.
    Blank(usize),
    Comment(usize),
    /// The record goes on behind the bytes that are there.
    More,
    End,
    Broken(Fault),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// A quoted value has no closing quote.
    Unclosed,
    /// The quote that closes a value of several lines is followed by more of the value.
    Misquoted,
}

impl Fault {
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Unclosed => "a quoted value that begins here is never closed",
            Self::Misquoted => {
                "a quoted value that begins here spans lines, and text follows its closing quote"
            }
        }
    }
}

/// A text and how it is written. `last`: nothing follows the bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Text<'a> {
    pub bytes: &'a [u8],
    pub last: bool,
    pub dialect: &'a Dialect,
}

impl Text<'_> {
    /// Cuts the record at `start` out of the text.
    pub(super) fn record(&self, start: usize, record: &mut Record) -> Step {
        record.clear();
        let Some(first) = self.bytes.get(start) else {
            return if self.last { Step::End } else { Step::More };
        };
        if self.dialect.comment == Some(*first) {
            return self.line(start).map_or(Step::More, Step::Comment);
        }
        if let Some(next) = self.line_end(start) {
            return Step::Blank(next);
        }
        let mut at = start;
        loop {
            let end = match self.quote_at(at) {
                Some(quote) => self.quoted(quote, record),
                None => self.unquoted(at, record),
            };
            match end {
                Ok(End::Value(next)) => at = next,
                Ok(End::Record(next)) => return Step::Record(next),
                Err(step) => return step,
            }
        }
    }

    pub(super) fn line(&self, start: usize) -> Option<usize> {
        let rest = self.bytes.get(start..)?;
        match memchr::memchr(self.dialect.line_end, rest) {
            Some(found) => Some(start + found + 1),
            None => self.last.then_some(self.bytes.len()),
        }
    }

    /// If a line ends here: where the next one begins.
    fn line_end(&self, at: usize) -> Option<usize> {
        match self.bytes.get(at)? {
            byte if *byte == self.dialect.line_end => Some(at + 1),
            b'\r' if self.bytes.get(at + 1) == Some(&b'\n') && self.dialect.line_end == b'\n' => Some(at + 2),
            b'\r' if self.last && at + 1 == self.bytes.len() => Some(at + 1),
            _ => None,
        }
    }

    fn quote_at(&self, at: usize) -> Option<usize> {
        let quote = self.dialect.quote?;
        let mut at = at;
        if self.dialect.skip_space {
            while self.bytes.get(at) == Some(&b' ') {
                at += 1;
            }
        }
        (self.bytes.get(at) == Some(&quote)).then_some(at)
    }

    fn unquoted(&self, start: usize, record: &mut Record) -> Result<End, Step> {
        let (value, end) = self.unquoted_end(start)?;
        record.values.push(Span { start, end: value, unescaped: false, quoted: false });
        Ok(end)
    }

    /// Where the value ends that has no quotes, and what comes then.
    fn unquoted_end(&self, start: usize) -> Result<(usize, End), Step> {
        let (delimiter, line_end) = (self.dialect.delimiter, self.dialect.line_end);
        let rest = self.bytes.get(start..).unwrap_or_default();
        let found = first_of(rest, (delimiter, line_end));
        let stop = match found {
            Some(found) => start + found,
            None if self.last => {
                let end = self.bytes.len();
                return Ok((self.without_return(start, end), End::Record(end)));
            }
            None => return Err(Step::More),
        };
        if self.bytes[stop] == delimiter {
            return Ok((stop, End::Value(stop + 1)));
        }
        Ok((self.without_return(start, stop), End::Record(stop + 1)))
    }

    fn without_return(&self, start: usize, end: usize) -> usize {
        let returned = end > start && self.dialect.line_end == b'\n' && self.bytes[end - 1] == b'\r';
        if returned { end - 1 } else { end }
    }

    fn quoted(&self, open: usize, record: &mut Record) -> Result<End, Step> {
        let start = open + 1;
        let (close, escapes) = self.closing(start)?;
        let content = self.bytes.get(start..close).unwrap_or_default();
        let lines = memchr::memchr_iter(self.dialect.line_end, content).count() as u64;
        let (rest, end) = self.unquoted_end(close + 1)?;
        let tail = self.bytes.get(close + 1..rest).unwrap_or_default();
        let odd = !tail.iter().all(|byte| *byte == b' ');
        if odd && lines > 0 {
            return Err(Step::Broken(Fault::Misquoted));
        }
        record.lines += lines;
        record.odd += usize::from(odd);
        if !escapes && !odd {
            record.values.push(Span { start, end: close, unescaped: false, quoted: true });
            return Ok(end);
        }
        let from = record.unescaped.len();
        self.unescape(content, &mut record.unescaped);
        if odd {
            record.unescaped.extend_from_slice(tail);
        }
        let to = record.unescaped.len();
        record.values.push(Span { start: from, end: to, unescaped: true, quoted: true });
        Ok(end)
    }

    /// The quote that closes a value, and whether there are escapes before it.
    fn closing(&self, start: usize) -> Result<(usize, bool), Step> {
        let quote = self.dialect.quote.unwrap_or(b'"');
        let escape = self.dialect.escape;
        let unclosed = if self.last { Step::Broken(Fault::Unclosed) } else { Step::More };
        let (mut at, mut escapes) = (start, false);
        loop {
            let rest = self.bytes.get(at..).unwrap_or_default();
            let found = match escape {
                Some(escape) if escape != quote => memchr::memchr2(quote, escape, rest),
                _ => memchr::memchr(quote, rest),
            };
            let place = at + found.ok_or(unclosed)?;
            let next = self.bytes.get(place + 1);
            if self.bytes[place] != quote {
                if next.is_none() {
                    return Err(unclosed);
                }
                (at, escapes) = (place + 2, true);
            } else if escape != Some(quote) {
                return Ok((place, escapes));
            } else if next == Some(&quote) {
                (at, escapes) = (place + 2, true);
            } else if next.is_none() && !self.last {
                return Err(Step::More);
            } else {
                return Ok((place, escapes));
            }
        }
    }

    fn unescape(&self, content: &[u8], into: &mut Vec<u8>) {
        let Some(escape) = self.dialect.escape else {
            into.extend_from_slice(content);
            return;
        };
        let mut rest = content;
        while let Some(found) = memchr::memchr(escape, rest) {
            into.extend_from_slice(&rest[..found]);
            let Some(next) = rest.get(found + 1) else {
                into.push(escape);
                return;
            };
            // Only quotes and escapes are escaped: `C:\new` in a quoted value stays what it is.
            if Some(*next) != self.dialect.quote && *next != escape {
                into.push(escape);
            }
            into.push(*next);
            rest = &rest[found + 2..];
        }
        into.extend_from_slice(rest);
    }
}

/// Where one of two bytes comes first. Values are short: eight bytes at a time beat a search that is made for long texts.
fn first_of(bytes: &[u8], (one, other): (u8, u8)) -> Option<usize> {
    const LOW: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let (ones, others) = (LOW * u64::from(one), LOW * u64::from(other));
    // The lowest bit that is set is that of the first byte which is zero; others above it may be set wrongly.
    let zero = |word: u64| word.wrapping_sub(LOW) & !word & HIGH;
    let (words, rest) = bytes.as_chunks::<8>();
    for (at, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let found = zero(word ^ ones) | zero(word ^ others);
        if found != 0 {
            return Some(at * 8 + found.trailing_zeros() as usize / 8);
        }
    }
    let found = rest.iter().position(|byte| *byte == one || *byte == other)?;
    Some(words.len() * 8 + found)
}

enum End {
    Value(usize),
    Record(usize),
}

#[cfg(test)]
mod tests {
    use super::first_of;

    #[test]
    fn the_first_of_two_bytes_is_found_wherever_it_is() {
        let pairs = [(b',', b'\n'), (0, 255), (127, 128), (1, 0), (b'a', b'b')];
        for (one, other) in pairs {
            // Bytes beside those that are looked for, which words of eight could mistake for them.
            let near =
                [one.wrapping_add(1), one.wrapping_sub(1), other.wrapping_add(1), one ^ 128, 0, 1, 128, 255];
            let plain: Vec<u8> = near.into_iter().filter(|byte| *byte != one && *byte != other).collect();
            for length in 0..40 {
                let mut bytes: Vec<u8> = plain.iter().copied().cycle().take(length).collect();
                assert_eq!(first_of(&bytes, (one, other)), None);
                for place in (0..length).rev() {
                    bytes[place] = if place % 2 == 0 { one } else { other };
                    assert_eq!(first_of(&bytes, (one, other)), Some(place), "{one} {other} {bytes:?}");
                }
            }
        }
    }
}
