//! The data plane from outside: every Arrow type through encoder, frames and decoder, what is shared and what is
//! copied, and what hostile bytes do.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test may stop at once when its own material is wrong"
)]

mod body;
mod cases;
mod hostile;
mod joined;
mod make;
mod mapped;
mod round_trip;
mod sharing;
mod wire;
