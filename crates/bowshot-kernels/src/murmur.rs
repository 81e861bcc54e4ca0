//! MurmurHash3 of 32 bits (`MurmurHash3_x86_32`), from which other systems make hashes and buckets.

/// The hash of bytes.
pub fn hash(bytes: &[u8], seed: u32) -> u32 {
    let (words, rest) = bytes.as_chunks::<4>();
    let hash = words.iter().fold(seed, |hash, word| mixed(hash, u32::from_le_bytes(*word)));
    let last = rest.iter().rev().fold(0_u32, |word, byte| (word << 8) | u32::from(*byte));
    finished(hash ^ scrambled(last), bytes.len())
}

/// Spark's hash of bytes, in which each byte behind the last whole word counts by itself.
pub fn spark_hash(bytes: &[u8], seed: u32) -> u32 {
    let (words, rest) = bytes.as_chunks::<4>();
    let hash = words.iter().fold(seed, |hash, word| mixed(hash, u32::from_le_bytes(*word)));
    let hash = rest.iter().fold(hash, |hash, byte| mixed(hash, i32::from(*byte as i8) as u32));
    finished(hash, bytes.len())
}

/// The hash of the four bytes of a number, the lowest first.
pub fn hash_word(value: u32, seed: u32) -> u32 {
    finished(mixed(seed, value), 4)
}

/// The hash of the eight bytes of a number, the lowest first.
pub fn hash_words(value: u64, seed: u32) -> u32 {
    finished(mixed(mixed(seed, value as u32), (value >> 32) as u32), 8)
}

fn scrambled(word: u32) -> u32 {
    word.wrapping_mul(0xcc9e_2d51).rotate_left(15).wrapping_mul(0x1b87_3593)
}

fn mixed(hash: u32, word: u32) -> u32 {
    (hash ^ scrambled(word)).rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64)
}

/// The length modulo 2³² is part of the hash.
fn finished(hash: u32, length: usize) -> u32 {
    let mut hash = hash ^ length as u32;
    hash = (hash ^ (hash >> 16)).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ (hash >> 13)).wrapping_mul(0xc2b2_ae35);
    hash ^ (hash >> 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_the_manuals() {
        // Spark's: hash('ABC') of PySpark's, hash('Spark', array(123), 2) of the function itself.
        assert_eq!(spark_hash(b"ABC", 42) as i32, -757_602_832);
        assert_eq!(hash_word(2, hash_word(123, spark_hash(b"Spark", 42))) as i32, -1_321_691_492);
        // Doris': murmur_hash3_32("hello") and ("hello", "world").
        assert_eq!(hash(b"hello", 104_729), 1_321_743_225);
        assert_eq!(hash(b"world", hash(b"hello", 104_729)), 984_713_481);
        // Iceberg's, appendix "32-bit Hash Requirements" of the specification.
        assert_eq!(hash(b"iceberg", 0), 1_210_000_089);
        assert_eq!(hash(&34_i64.to_le_bytes(), 0), 2_017_239_379);
        assert_eq!(hash_words(34, 0), 2_017_239_379);
    }
}
