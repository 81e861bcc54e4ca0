//! Link functions: sums of a forest to the output of its objective.

/// What becomes of the sums of one row. All of it happens in 64 bits, whatever the sums were made in.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Link {
    /// They are the answer.
    Identity,
    /// Each is the logarithm of odds, times this.
    Sigmoid(f64),
    /// All together are logarithms of probabilities but for a constant.
    Softmax,
    /// Each is a logarithm.
    Exp,
    /// Each is a root, with the sign of its square.
    SignedSquare,
    /// `ln(1 + e^x)`.
    LogOnePlusExp,
    /// One if above zero, else zero.
    Hinge,
}

impl Link {
    /// Applies it to the sums of one row.
    pub(crate) fn apply(self, row: &mut [f64]) {
        match self {
            Link::Identity => {}
            Link::Sigmoid(slope) => each(row, |x| 1.0 / (1.0 + (-slope * x).exp())),
            Link::Softmax => softmax(row),
            Link::Exp => each(row, f64::exp),
            Link::SignedSquare => each(row, |x| x * x.abs()),
            Link::LogOnePlusExp => each(row, |x| x.exp().ln_1p()),
            Link::Hinge => each(row, |x| f64::from(u8::from(x > 0.0))),
        }
    }
}

fn each(row: &mut [f64], f: impl Fn(f64) -> f64) {
    row.iter_mut().for_each(|x| *x = f(*x));
}

/// The greatest is taken off first, so that nothing overflows.
fn softmax(row: &mut [f64]) {
    let greatest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut sum = 0.0;
    for x in row.iter_mut() {
        *x = (*x - greatest).exp();
        sum += *x;
    }
    each(row, |x| x / sum);
}
