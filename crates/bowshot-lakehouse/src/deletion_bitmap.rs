//! Deletion vectors: places of deleted rows of one file as a bitmap (Puffin specification, "deletion-vector-v1"; Roaring bitmap
//! specification, "extension for 64-bit implementations").
//!
//! ```text
//! length (4, big-endian) │ magic │ number of keys (8) │ key (4), bitmap of 32 bits │ … │ CRC-32 of all since the magic (4, big-endian)
//! ```

use roaring::RoaringTreemap;

/// Before and behind a bitmap.
const LENGTH_BYTES: usize = 4;
const CHECKSUM_BYTES: usize = 4;
/// Before the bitmaps, in every format that has them.
pub(crate) const MAGIC: [u8; 4] = [0xd1, 0xd3, 0x39, 0x64];

/// The places that a vector has, in order.
///
/// # Errors
/// Says what is wrong with it, or that it has more than `most`.
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
pub(super) fn bare(content: &[u8], most: usize) -> Result<Vec<u64>, String> {
    let bitmaps = content.strip_prefix(&MAGIC).ok_or_else(damaged)?;
    match read(bitmaps, most)? {
        (found, []) => Ok(found.iter().collect()),
        _ => Err(damaged()),
    }
}

/// A vector of these places, as files have it; `None` for one that is too long to be one.
pub(super) fn bytes(places: &RoaringTreemap) -> Option<Vec<u8>> {
    let mut bitmaps = Vec::with_capacity(places.serialized_size());
    places.serialize_into(&mut bitmaps).ok()?;
    framed(&bitmaps)
}

fn framed(bitmaps: &[u8]) -> Option<Vec<u8>> {
    let content = [MAGIC.as_slice(), bitmaps].concat();
    let length = u32::try_from(content.len()).ok()?.to_be_bytes();
    Some([length.as_slice(), &content, &crc32fast::hash(&content).to_be_bytes()].concat())
}

/// The largest value of bitmaps; what stands behind them is somebody else's.
pub(crate) fn largest(bitmaps: &[u8], most: usize) -> Result<Option<u64>, String> {
    read(bitmaps, most).map(|(found, _)| found.max())
}

/// The values of bitmaps, and what stands behind them.
fn read(bitmaps: &[u8], most: usize) -> Result<(RoaringTreemap, &[u8]), String> {
    let mut rest = bitmaps;
    let found = RoaringTreemap::deserialize_from(&mut rest).map_err(|_| damaged())?;
    // Of two bitmaps below one key, the library keeps the second alone.
    let keys = bitmaps.first_chunk().map(|keys| u64::from_le_bytes(*keys));
    if keys != Some(found.bitmaps().count() as u64) {
        return Err(damaged());
    }
    match found.len() > most as u64 {
        true => Err(format!("its deletion vector has more than {most} rows")),
        false => Ok((found, rest)),
    }
}

fn damaged() -> String {
    "its deletion vector is damaged".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vector(values: impl IntoIterator<Item = u64>) -> Vec<u8> {
        let mut bytes = Vec::new();
        RoaringTreemap::from_iter(values).serialize_into(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn a_vector_is_read() {
        let wanted: Vec<u64> =
            [0, 7, 65_535].into_iter().chain(131_072..196_608).chain([(1 << 32) + 5]).collect();
        let bytes = vector(wanted.iter().copied());
        assert_eq!(places(&framed(&bytes).unwrap(), 100_000).unwrap(), wanted);
        assert_eq!(super::bytes(&RoaringTreemap::from_iter(&wanted)), framed(&bytes));
        assert_eq!(largest(&[bytes.as_slice(), b"more"].concat(), 100_000).unwrap(), wanted.last().copied());
        assert_eq!(places(&framed(&vector([])).unwrap(), 100).unwrap(), Vec::<u64>::new());
    }

    #[test]
    fn what_is_damaged_or_too_much_is_refused() {
        let good = framed(&vector([1, 2, 3])).unwrap();
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
        // Two bitmaps below one key, more keys than bitmaps, and bytes behind the last one.
        let (one, another) = (vector([1]), vector([2]));
        let twice = [2_u64.to_le_bytes().as_slice(), &one[8..], &another[8..]].concat();
        let many = [u64::MAX.to_le_bytes().as_slice(), &one[8..]].concat();
        for bitmaps in [twice, many, [one.as_slice(), b"more"].concat()] {
            assert!(places(&framed(&bitmaps).unwrap(), 10).is_err());
        }
    }
}
