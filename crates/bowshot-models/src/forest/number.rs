//! The two floating-point types that forests compute in.

use std::fmt::Debug;
use std::ops::{AddAssign, Div};

/// A floating-point type of features or sums.
pub(crate) trait Number:
    Copy + Debug + Default + PartialOrd + AddAssign + Div<Output = Self> + Send + Sync + 'static
{
    /// The nearest value.
    fn of(value: f64) -> Self;
    /// The value, exactly.
    fn wide(self) -> f64;
    /// True if there is no value.
    fn missing(self) -> bool;
    /// The next value that is greater, so that "at most" becomes "below".
    fn above(self) -> Self;
    /// A place as a number; exact up to [`crate::limits::NODES`].
    fn of_place(place: usize) -> Self;
    /// The place again.
    fn place(self) -> usize;
}

macro_rules! number {
    ($float:ty, $nearest:expr) => {
        impl Number for $float {
            fn of(value: f64) -> Self {
                $nearest(value)
            }

            fn wide(self) -> f64 {
                f64::from(self)
            }

            fn missing(self) -> bool {
                self.is_nan()
            }

            fn above(self) -> Self {
                self.next_up()
            }

            #[expect(clippy::cast_precision_loss, reason = "places stay below 2^24")]
            fn of_place(place: usize) -> Self {
                place as $float
            }

            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "it came from `of_place`"
            )]
            fn place(self) -> usize {
                self as usize
            }
        }
    };
}

#[expect(clippy::cast_possible_truncation, reason = "the nearest value is meant")]
fn single(value: f64) -> f32 {
    value as f32
}

number!(f32, single);
number!(f64, std::convert::identity);
