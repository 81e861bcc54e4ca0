//! Window functions that DataFusion lacks or computes wrongly.

mod lead_lag;
mod ratio_to_report;

use crate::define::{Function, stock, window};

pub(crate) const FUNCTIONS: &[&[Function]] = &[&[
    stock("cume_dist", "the part of the rows that are not behind this one"),
    stock("dense_rank", "the rank without gaps"),
    window("lag", "the value some rows before, or a default", lead_lag::lag),
    window("lead", "the value some rows behind, or a default", lead_lag::lead),
    stock("ntile", "the number of the part of so many equal ones"),
    stock("percent_rank", "the rank from 0 to 1"),
    stock("rank", "the rank with gaps"),
    window(
        "ratio_to_report",
        "the part that a value has of the sum of its partition",
        ratio_to_report::ratio_to_report,
    ),
    stock("row_number", "the number of the row"),
]];
