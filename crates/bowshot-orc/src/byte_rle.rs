//! Runs of bytes, and truth values, which are the bits of such bytes.

use crate::Error;
use crate::stream::Stream;

/// Bytes: a control byte says how often the next one counts, or how many stand there as they are.
pub(crate) struct Runs {
    stream: Stream,
    left: usize,
    /// The byte that repeats; else bytes are read one by one.
    repeated: Option<u8>,
}

impl Runs {
    pub(crate) fn new(stream: Stream) -> Self {
        Self { stream, left: 0, repeated: None }
    }

    fn next(&mut self) -> Result<u8, Error> {
        if self.left == 0 {
            let control = self.stream.byte()?;
            if control < 128 {
                self.left = usize::from(control) + 3;
                self.repeated = Some(self.stream.byte()?);
            } else {
                self.left = 256 - usize::from(control);
                self.repeated = None;
            }
        }
        self.left -= 1;
        match self.repeated {
            Some(byte) => Ok(byte),
            None => self.stream.byte(),
        }
    }

    pub(crate) fn read(&mut self, count: usize) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        for _ in 0..count {
            bytes.push(self.next()?);
        }
        Ok(bytes)
    }
}

/// Truth values, the highest bit of a byte first.
pub(crate) struct Bits {
    runs: Runs,
    byte: u8,
    left: u32,
}

impl Bits {
    pub(crate) fn new(stream: Stream) -> Self {
        Self { runs: Runs::new(stream), byte: 0, left: 0 }
    }

    pub(crate) fn read(&mut self, count: usize) -> Result<Vec<bool>, Error> {
        let mut bits = Vec::new();
        for _ in 0..count {
            if self.left == 0 {
                (self.byte, self.left) = (self.runs.next()?, 8);
            }
            self.left -= 1;
            bits.push(self.byte >> self.left & 1 == 1);
        }
        Ok(bits)
    }
}
