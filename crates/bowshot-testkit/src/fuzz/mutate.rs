//! Damages bytes in the ways that find defects in decoders: flipped bits, cut ends, repeated parts, extreme lengths.

use super::random::Random;

/// Numbers that decoders trip over, as varints and as little-endian lengths.
const EXTREMES: [&[u8]; 8] = [
    &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
    &[0xff, 0xff, 0xff, 0xff, 0x07],
    &[0xff, 0xff, 0xff, 0xff],
    &[0xff, 0xff, 0xff, 0x7f],
    &[0x00, 0x00, 0x00, 0x80],
    &[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80],
    &[0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00],
    &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f],
];

/// Applies one to four damages.
pub fn bytes(random: &mut Random, input: &[u8]) -> Vec<u8> {
    let mut bytes = input.to_vec();
    for _ in 0..=random.below(4) {
        damage(random, &mut bytes);
    }
    bytes
}

fn damage(random: &mut Random, bytes: &mut Vec<u8>) {
    let at = random.below(bytes.len() + 1);
    let end = (at + 1 + random.below(8)).min(bytes.len());
    match random.below(8) {
        0 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
        1 if at < bytes.len() => bytes[at] = random.bits() as u8,
        2 => bytes.truncate(at),
        3 => drop(bytes.drain(at.min(end)..end)),
        4 => {
            let length = random.below(16);
            let inserted = random.bytes(length);
            bytes.splice(at..at, inserted);
        }
        5 => {
            let repeated = bytes[at.min(end)..end].repeat(1 + random.below(64));
            bytes.splice(at..at, repeated);
        }
        6 => {
            let extreme = *random.pick(&EXTREMES);
            bytes.splice(at..at.max(end), extreme.iter().copied());
        }
        _ => {
            let other = random.below(bytes.len() + 1);
            let (from, to) = (at.min(other), at.max(other));
            bytes[from..to].reverse();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::bytes;
    use crate::fuzz::random::Random;

    #[test]
    fn the_same_seed_damages_alike_and_most_inputs_change() {
        let input: Vec<u8> = (0..100).collect();
        let damaged: Vec<_> = (0..200).map(|case| bytes(&mut Random::new(7, case), &input)).collect();
        let again: Vec<_> = (0..200).map(|case| bytes(&mut Random::new(7, case), &input)).collect();
        assert_eq!(damaged, again);
        assert!(damaged.iter().filter(|found| **found != input).count() > 190);
    }
}
