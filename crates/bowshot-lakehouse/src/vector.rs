//! Deletion vectors: places of deleted rows of one file as a bitmap (Puffin specification, "deletion-vector-v1"; Roaring bitmap
//! specification, "extension for 64-bit implementations"). A vector is data that somebody else has written: nothing in it is
//! believed before it is held against the bytes that are there.
//!
//! ```text
//! length (4, big-endian) │ magic │ number of keys (8) │ key (4), bitmap of 32 bits │ … │ CRC-32 of all since the magic (4, big-endian)
//! bitmap:  cookie │ [runs?] │ (key, cardinality - 1) … │ [offsets] │ containers: sorted values, 8 KiB of bits, or runs
//! ```

/// Before and behind a bitmap.
const LENGTH_BYTES: usize = 4;
const CHECKSUM_BYTES: usize = 4;
/// Before the bitmaps, in every format that has them.
pub(crate) const MAGIC: [u8; 4] = [0xd1, 0xd3, 0x39, 0x64];

/// First number of a bitmap that has no runs, and of one that may have some.
const WITHOUT_RUNS: u32 = 12_346;
const WITH_RUNS: u32 = 12_347;
/// So many containers have offsets where there may be runs.
const MIN_WITH_OFFSETS: usize = 4;
/// Values that are written down one by one; more are bits.
const MAX_LISTED: usize = 4_096;
const MAX_CONTAINERS: usize = 1 << 16;
const WORDS: usize = 1_024;

/// The places that a vector has, in order.
///
/// # Errors
/// Says what is wrong with it, or that it has more than `most`, which is found out before they are all taken.
pub(super) fn places(vector: &[u8], most: usize) -> Result<Vec<u64>, String> {
    let (length, rest) = vector.split_at_checked(LENGTH_BYTES).ok_or_else(damaged)?;
    let length = u32::from_be_bytes(length.try_into().map_err(|_| damaged())?);
    let end = rest.len().checked_sub(CHECKSUM_BYTES).ok_or_else(damaged)?;
    let (content, checksum) = rest.split_at_checked(end).ok_or_else(damaged)?;
    let is_whole =
        usize::try_from(length) == Ok(content.len()) && checksum == crc32fast::hash(content).to_be_bytes();
    if is_whole { bare(content, most) } else { Err(damaged()) }
}

/// The same of a vector without its length and its checksum, as logs have it within them.
///
/// # Errors
/// As [`places`].
pub(super) fn bare(content: &[u8], most: usize) -> Result<Vec<u64>, String> {
    let bitmaps = content.strip_prefix(&MAGIC).ok_or_else(damaged)?;
    match of_bitmaps(bitmaps, most)? {
        (found, []) => Ok(found),
        _ => Err(damaged()),
    }
}

/// The largest value of bitmaps; what stands behind them is somebody else's.
///
/// # Errors
/// As [`places`].
pub(crate) fn largest(bitmaps: &[u8], most: usize) -> Result<Option<u64>, String> {
    of_bitmaps(bitmaps, most).map(|(found, _)| found.last().copied())
}

/// The values of bitmaps, in order, and what stands behind them.
fn of_bitmaps(bitmaps: &[u8], most: usize) -> Result<(Vec<u64>, &[u8]), String> {
    let mut reader = Reader { bytes: bitmaps, found: Vec::new(), most };
    let read = reader.all();
    if reader.found.len() > most {
        return Err(format!("its deletion vector has more than {most} rows"));
    }
    let is_sorted = read.is_some() && reader.found.is_sorted_by(|one, other| one < other);
    if is_sorted { Ok((reader.found, reader.bytes)) } else { Err(damaged()) }
}

fn damaged() -> String {
    "its deletion vector is damaged".to_owned()
}

/// Reads bitmaps from the bytes that are left; `None` where they end too early, or make no sense.
struct Reader<'a> {
    bytes: &'a [u8],
    found: Vec<u64>,
    most: usize,
}

/// How a container is written.
struct Container {
    key: u16,
    count: usize,
    has_runs: bool,
}

impl Reader<'_> {
    fn all(&mut self) -> Option<()> {
        let keys = u64::from_le_bytes(self.take()?);
        for _ in 0..keys {
            let high = u32::from_le_bytes(self.take()?);
            self.bitmap(u64::from(high) << 32)?;
        }
        Some(())
    }

    /// One of 32 bits, whose values are added to `base`.
    fn bitmap(&mut self, base: u64) -> Option<()> {
        let cookie = u32::from_le_bytes(self.take()?);
        let may_have_runs = cookie & 0xffff == WITH_RUNS;
        let count = match cookie {
            WITHOUT_RUNS => usize::try_from(u32::from_le_bytes(self.take()?)).ok()?,
            _ if may_have_runs => usize::try_from(cookie >> 16).ok()? + 1,
            _ => return None,
        };
        if count > MAX_CONTAINERS {
            return None;
        }
        let flags = if may_have_runs { self.some(count.div_ceil(8))? } else { &[] };
        let flags = flags.to_vec();
        let mut containers = Vec::with_capacity(count);
        for place in 0..count {
            let has_runs = flags.get(place / 8).is_some_and(|flags| flags >> (place % 8) & 1 == 1);
            let (key, last) = (u16::from_le_bytes(self.take()?), u16::from_le_bytes(self.take()?));
            containers.push(Container { key, count: usize::from(last) + 1, has_runs });
        }
        if !may_have_runs || count >= MIN_WITH_OFFSETS {
            // They stand one behind the other: where each begins says nothing new.
            self.some(count.checked_mul(4)?)?;
        }
        containers.iter().try_for_each(|container| self.container(container, base))
    }

    fn container(&mut self, container: &Container, base: u64) -> Option<()> {
        let base = base + (u64::from(container.key) << 16);
        let before = self.found.len();
        if before + container.count > self.most {
            // Told by the number of what was found.
            self.found.resize(self.most + 1, 0);
            return None;
        }
        if container.has_runs {
            let runs = u16::from_le_bytes(self.take()?);
            for _ in 0..runs {
                let (start, more) = (u16::from_le_bytes(self.take()?), u16::from_le_bytes(self.take()?));
                let last = start.checked_add(more)?;
                if self.found.len() - before + usize::from(more) + 1 > container.count {
                    return None;
                }
                self.found.extend((start..=last).map(|low| base + u64::from(low)));
            }
        } else if container.count <= MAX_LISTED {
            for _ in 0..container.count {
                let low = u16::from_le_bytes(self.take()?);
                self.found.push(base + u64::from(low));
            }
        } else {
            for word in 0..WORDS {
                let mut bits = u64::from_le_bytes(self.take()?);
                let first = base + (word as u64) * 64;
                while bits != 0 {
                    self.found.push(first + u64::from(bits.trailing_zeros()));
                    bits &= bits - 1;
                }
            }
        }
        (self.found.len() - before == container.count).then_some(())
    }

    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.some(N)?.try_into().ok()
    }

    fn some(&mut self, count: usize) -> Option<&[u8]> {
        let (some, rest) = self.bytes.split_at_checked(count)?;
        self.bytes = rest;
        Some(some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framed(bitmap: &[u8]) -> Vec<u8> {
        let content = [MAGIC.as_slice(), bitmap].concat();
        let length = u32::try_from(content.len()).unwrap().to_be_bytes();
        [length.as_slice(), &content, &crc32fast::hash(&content).to_be_bytes()].concat()
    }

    /// One bitmap below a key, of containers as (key, count, content).
    fn bitmap(high: u32, containers: &[(u16, usize, Vec<u8>)]) -> Vec<u8> {
        let mut bytes = [high.to_le_bytes(), WITHOUT_RUNS.to_le_bytes()].concat();
        bytes.extend(u32::try_from(containers.len()).unwrap().to_le_bytes());
        for (key, count, _) in containers {
            bytes.extend(key.to_le_bytes());
            bytes.extend(u16::try_from(count - 1).unwrap().to_le_bytes());
        }
        bytes.extend(vec![0; containers.len() * 4]);
        containers.iter().for_each(|(.., content)| bytes.extend(content));
        bytes
    }

    fn listed(values: &[u16]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    fn of_keys(keys: &[Vec<u8>]) -> Vec<u8> {
        [&u64::try_from(keys.len()).unwrap().to_le_bytes()[..], &keys.concat()].concat()
    }

    #[test]
    fn every_kind_of_container_is_read() {
        let bits = vec![0xff; 8 * WORDS];
        let whole = bitmap(0, &[(0, 3, listed(&[0, 7, 65_535])), (2, 1 << 16, bits)]);
        let found = places(&framed(&of_keys(&[whole, bitmap(1, &[(0, 1, listed(&[5]))])])), 100_000).unwrap();
        let wanted = [0, 7, 65_535].into_iter().chain(131_072..196_608).chain([(1 << 32) + 5]);
        assert_eq!(found, wanted.collect::<Vec<u64>>());
        // One container with two runs, without offsets.
        let cookie = WITH_RUNS.to_le_bytes();
        let run = [&[1_u8][..], &listed(&[0, 5, 2, 10, 3, 20, 1])].concat();
        let runs = [&0_u32.to_le_bytes()[..], &cookie, &run].concat();
        assert_eq!(places(&framed(&of_keys(&[runs])), 100).unwrap(), [10, 11, 12, 13, 20, 21]);
        assert_eq!(places(&framed(&of_keys(&[])), 100).unwrap(), Vec::<u64>::new());
    }

    #[test]
    fn what_is_damaged_or_too_much_is_refused() {
        let good = framed(&of_keys(&[bitmap(0, &[(0, 3, listed(&[1, 2, 3]))])]));
        assert_eq!(places(&good, 3).unwrap(), [1, 2, 3]);
        assert!(places(&good, 2).unwrap_err().contains("more than 2"));
        for end in 0..good.len() {
            assert!(places(&good[..end], 10).is_err(), "{end}");
        }
        for byte in 0..good.len() {
            let mut other = good.clone();
            other[byte] ^= 1;
            assert!(places(&other, 10).is_err(), "{byte}");
        }
        let unsorted = [
            bitmap(0, &[(0, 2, listed(&[2, 1]))]),
            bitmap(0, &[(1, 1, listed(&[0])), (0, 1, listed(&[0]))]),
            bitmap(0, &[(0, 2, listed(&[1, 1]))]),
            bitmap(0, &[(0, 5_000, vec![0; 8 * WORDS])]),
        ];
        for bitmap in unsorted {
            assert!(places(&framed(&of_keys(&[bitmap])), 10_000).is_err());
        }
        let many = [u64::MAX.to_le_bytes().as_slice(), &bitmap(0, &[(0, 1, listed(&[1]))])].concat();
        assert!(places(&framed(&many), 10).is_err());
        let cookie = [0_u32.to_le_bytes(), 7_u32.to_le_bytes()].concat();
        assert!(places(&framed(&of_keys(&[cookie])), 10).is_err());
    }
}
