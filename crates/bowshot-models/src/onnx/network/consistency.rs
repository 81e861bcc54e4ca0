//! A graph is asked about a few rows before it is a model: all at once and one at a time, since an answer must not depend on
//! which rows are asked about together.

use super::Input;
use super::onnx_runtime::Engine;
use super::tensors::{Kind, Numbers, Output, Tensor};
use crate::error::{Error, Result};

/// Rows that are asked about.
pub(super) const ROWS: usize = 3;
/// How far the numbers of a row may be from those of the row alone: kernels add up in another order.
const CLOSE: f64 = 1e-3;

/// What the graph gives for the rows together.
pub(super) fn probe(engine: &Engine, inputs: &[Input]) -> Result<Vec<Output>> {
    let together = engine.run(inputs.iter().map(|input| tensor(input, 0, ROWS)).collect(), ROWS)?;
    for row in 0..ROWS {
        let alone = engine.run(inputs.iter().map(|input| tensor(input, row, 1)).collect(), 1)?;
        let same = alone.len() == together.len()
            && together.iter().zip(&alone).all(|(together, alone)| same(together, alone, row));
        if !same {
            return Err(Error::unsupported(
                "the ONNX graph does not compute each row independently: its output depends on other rows",
            ));
        }
    }
    Ok(together)
}

fn same(together: &Output, alone: &Output, row: usize) -> bool {
    let width = alone.count();
    if together.count() != width * ROWS {
        return false;
    }
    let own = row * width..(row + 1) * width;
    let close =
        |a: f64, b: f64| a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= CLOSE * (1.0 + b.abs());
    match (&together.numbers, &alone.numbers) {
        (Numbers::Floats(all), Numbers::Floats(one)) => {
            all[own].iter().zip(one).all(|(a, b)| close(f64::from(*a), f64::from(*b)))
        }
        (Numbers::Doubles(all), Numbers::Doubles(one)) => {
            all[own].iter().zip(one).all(|(a, b)| close(*a, *b))
        }
        (Numbers::Integers(all), Numbers::Integers(one)) => all[own] == one[..],
        (Numbers::Texts(all), Numbers::Texts(one)) => all[own] == one[..],
        _ => false,
    }
}

fn tensor(input: &Input, first: usize, rows: usize) -> Tensor {
    let width = input.width;
    let cells = (first * width..(first + rows) * width).map(|at| (at * 31 % 13) as i64);
    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    let floats = cells.clone().map(|cell| cell as f64 / 4.0 - 1.5);
    #[expect(clippy::cast_possible_truncation, reason = "small numbers")]
    let numbers = match input.kind {
        Kind::Float => Numbers::Floats(floats.map(|number| number as f32).collect()),
        Kind::Double => Numbers::Doubles(floats.collect()),
        // Whole numbers are mostly places in a list, of which there are at least two.
        Kind::Integer => Numbers::Integers(cells.map(|cell| cell % 2).collect()),
        Kind::Small => Numbers::Small(cells.map(|cell| (cell % 2) as i32).collect()),
        Kind::Truth => Numbers::Truths(cells.map(|cell| cell % 2 == 1).collect()),
    };
    Tensor { width, numbers }
}
