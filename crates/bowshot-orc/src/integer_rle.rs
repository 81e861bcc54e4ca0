//! Whole numbers in runs, of both versions of the format. One run is unpacked at a time: at most 512 numbers.
//!
//! Sums wrap: numbers of a damaged file are wrong, and nothing else.

use crate::Error;
use crate::error::corrupt;
use crate::stream::Stream;

pub(crate) struct Integers {
    stream: Stream,
    second: bool,
    signed: bool,
    run: Vec<i64>,
    at: usize,
}

impl Integers {
    /// `second` is the second version of the format.
    pub(crate) fn new(stream: Stream, second: bool, signed: bool) -> Self {
        Self { stream, second, signed, run: Vec::new(), at: 0 }
    }

    pub(crate) fn read(&mut self, count: usize) -> Result<Vec<i64>, Error> {
        let mut values = Vec::new();
        while values.len() < count {
            if self.at == self.run.len() {
                self.run.clear();
                self.at = 0;
                if self.second { self.second_run()? } else { self.first_run()? }
            }
            let end = self.run.len().min(self.at + count - values.len());
            values.extend_from_slice(self.run.get(self.at..end).unwrap_or_default());
            self.at = end;
        }
        Ok(values)
    }

    /// The first version: a base with a step, or numbers as they are.
    fn first_run(&mut self) -> Result<(), Error> {
        let control = self.stream.byte()?;
        if control >= 128 {
            for _ in 0..256 - usize::from(control) {
                let value = self.number()?;
                self.run.push(value);
            }
            return Ok(());
        }
        let step = i64::from(self.stream.byte()?.cast_signed());
        let mut value = self.number()?;
        for _ in 0..usize::from(control) + 3 {
            self.run.push(value);
            value = value.wrapping_add(step);
        }
        Ok(())
    }

    fn second_run(&mut self) -> Result<(), Error> {
        let header = self.stream.byte()?;
        match header >> 6 {
            0 => self.short_repeat(header),
            1 => self.direct(header),
            2 => self.patched(header),
            _ => self.delta(header),
        }
    }

    fn short_repeat(&mut self, header: u8) -> Result<(), Error> {
        let value = self.big_endian(usize::from(header >> 3 & 7) + 1)?;
        let value = self.with_sign(value);
        self.run.resize(usize::from(header & 7) + 3, value);
        Ok(())
    }

    fn direct(&mut self, header: u8) -> Result<(), Error> {
        let (width, count) = (width_of(header >> 1 & 31), self.length(header)?);
        let mut bits = Packed::default();
        for _ in 0..count {
            let value = bits.next(&mut self.stream, width)?;
            let value = self.with_sign(value);
            self.run.push(value);
        }
        Ok(())
    }

    /// Narrow numbers above a base; a list of patches has the upper bits of those that are wider.
    fn patched(&mut self, header: u8) -> Result<(), Error> {
        let (width, count) = (width_of(header >> 1 & 31), self.length(header)?);
        let (third, fourth) = (self.stream.byte()?, self.stream.byte()?);
        let (base_bytes, patch_width) = (usize::from(third >> 5) + 1, width_of(third & 31));
        let (gap_width, patches) = (u32::from(fourth >> 5) + 1, usize::from(fourth & 31));
        if patch_width + gap_width > 64 || patch_width + width > 64 {
            return Err(corrupt("a patch of a number is too wide"));
        }
        let base = sign_and_size(self.big_endian(base_bytes)?, base_bytes);
        let mut values = Vec::with_capacity(count);
        let mut bits = Packed::default();
        for _ in 0..count {
            values.push(bits.next(&mut self.stream, width)?);
        }
        let (mut bits, mut place) = (Packed::default(), 0);
        for _ in 0..patches {
            let patch = bits.next(&mut self.stream, fixed(patch_width + gap_width))?;
            let gap = patch.checked_shr(patch_width).unwrap_or(0);
            place = usize::try_from(gap).unwrap_or(usize::MAX).saturating_add(place);
            let patch = patch & mask(patch_width);
            let value =
                values.get_mut(place).ok_or_else(|| corrupt("a patch belongs to no number of its run"))?;
            *value |= patch.checked_shl(width).unwrap_or(0);
        }
        self.run.extend(values.into_iter().map(|value| base.wrapping_add(value.cast_signed())));
        Ok(())
    }

    /// A base, and steps of one direction.
    fn delta(&mut self, header: u8) -> Result<(), Error> {
        let width = match header >> 1 & 31 {
            0 => 0,
            code => width_of(code),
        };
        let count = self.length(header)?;
        let mut value = self.number()?;
        let first = zigzag(self.varint()?);
        self.run.push(value);
        let mut bits = Packed::default();
        for place in 1..count {
            let step = match (place, width) {
                (1, _) | (_, 0) => first,
                _ => {
                    let size = bits.next(&mut self.stream, width)?.cast_signed();
                    if first < 0 { size.wrapping_neg() } else { size }
                }
            };
            value = value.wrapping_add(step);
            self.run.push(value);
        }
        Ok(())
    }

    /// The number of values of a run, whose highest bit is in its header.
    fn length(&mut self, header: u8) -> Result<usize, Error> {
        Ok((usize::from(header & 1) << 8 | usize::from(self.stream.byte()?)) + 1)
    }

    fn with_sign(&self, value: u64) -> i64 {
        if self.signed { zigzag(value) } else { value.cast_signed() }
    }

    fn number(&mut self) -> Result<i64, Error> {
        let value = self.varint()?;
        Ok(self.with_sign(value))
    }

    fn varint(&mut self) -> Result<u64, Error> {
        let mut value = 0_u64;
        for shift in (0..70).step_by(7) {
            let byte = self.stream.byte()?;
            value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(corrupt("a number does not end"))
    }

    fn big_endian(&mut self, bytes: usize) -> Result<u64, Error> {
        let mut value = 0_u64;
        for _ in 0..bytes {
            value = value << 8 | u64::from(self.stream.byte()?);
        }
        Ok(value)
    }
}

/// Numbers of some bits each, the highest bit first.
#[derive(Default)]
struct Packed {
    byte: u8,
    left: u32,
}

impl Packed {
    fn next(&mut self, stream: &mut Stream, width: u32) -> Result<u64, Error> {
        let (mut value, mut missing) = (0_u64, width);
        while missing > 0 {
            if self.left == 0 {
                (self.byte, self.left) = (stream.byte()?, 8);
            }
            let taken = missing.min(self.left);
            self.left -= taken;
            let bits = u64::from(self.byte >> self.left) & mask(taken);
            value = value << taken | bits;
            missing -= taken;
        }
        Ok(value)
    }
}

fn mask(bits: u32) -> u64 {
    u64::MAX.checked_shr(64 - bits.min(64)).unwrap_or(0)
}

/// A number of some bytes whose highest bit is its sign.
fn sign_and_size(value: u64, bytes: usize) -> i64 {
    let sign = 1_u64 << (bytes * 8 - 1);
    let size = (value & (sign - 1)).cast_signed();
    if value & sign == 0 { size } else { -size }
}

/// Bits of a number, by the code for it.
fn width_of(code: u8) -> u32 {
    match code {
        0..=23 => u32::from(code) + 1,
        24 => 26,
        25 => 28,
        26 => 30,
        27 => 32,
        28 => 40,
        29 => 48,
        30 => 56,
        _ => 64,
    }
}

/// The next number of bits for which there is a code.
fn fixed(bits: u32) -> u32 {
    match bits {
        0 => 1,
        1..=24 => bits,
        25..=32 => bits.next_multiple_of(2),
        33..=64 => bits.next_multiple_of(8),
        _ => 64,
    }
}

/// A number whose lowest bit is its sign.
fn zigzag(value: u64) -> i64 {
    (value >> 1).cast_signed() ^ -((value & 1).cast_signed())
}
