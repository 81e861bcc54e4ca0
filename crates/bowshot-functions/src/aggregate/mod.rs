//! Aggregates that DataFusion lacks, or whose results differ from PostgreSQL's and DuckDB's.
//!
//! `sum` is its own for overflow, `avg` for intervals; `moments` have a state of a few numbers; `conditional` take a condition; the others look at the
//! list of a group's values (`over_lists`). `overloads` tells apart what has one name.

mod arg_min_max;
mod average;
mod conditional;
mod hypothetical_set;
mod list_results;
mod moments;
mod over_lists;
mod overloads;
mod quantiles;
mod sum;
mod value_counts;

use crate::define::{Function, aggregate, stock};

pub use average::{interval_length, scaled_interval};
pub(crate) use overloads::AggregateForms;
pub(crate) use value_counts::counted;

pub(crate) const FUNCTIONS: &[&[Function]] = &[
    OTHERS,
    arg_min_max::BEST,
    arg_min_max::FUNCTIONS,
    conditional::FUNCTIONS,
    list_results::FUNCTIONS,
    moments::FUNCTIONS,
    quantiles::FUNCTIONS,
    hypothetical_set::FUNCTIONS,
];

const OTHERS: &[Function] = &[
    aggregate(
        "sum",
        "the sum; BIGINT of integers, an error where it does not fit; of booleans how many are true",
        sum::sum,
    ),
    stock("any_value", "a value that is not NULL").aliases(&["arbitrary"]),
    stock("approx_distinct", "about how many different values there are").aliases(&[
        "approx_count_distinct",
        "ndv",
        "uniq",
        "hll",
    ]),
    stock("approx_percentile_cont", "about the value at a fraction of the order").aliases(&[
        "approx_quantile",
        "approx_percentile",
        "percentile_approx",
    ]),
    stock("approx_median", "about the middle value"),
    stock("array_agg", "the values as a list, NULLs too").aliases(&["list", "group_array"]),
    aggregate("avg", "the average", average::avg),
    stock("bit_and", "the bits that all values have"),
    stock("bit_or", "the bits that one of the values has"),
    stock("bit_xor", "the bits that an odd number of values have"),
    stock("bool_and", "whether all values are true").aliases(&["every", "logical_and"]),
    stock("bool_or", "whether one of the values is true").aliases(&["logical_or"]),
    stock("corr", "the correlation of two columns"),
    stock("count", "how many values are not NULL, or how many rows there are"),
    stock("covar_pop", "the covariance of two columns as a population"),
    stock("covar_samp", "the covariance of two columns as a sample"),
    stock("first_value", "the first value; with ORDER BY among the arguments, of that order")
        .aliases(&["first"]),
    stock("last_value", "the last value").aliases(&["last"]),
    stock("max", "the greatest value; with a number behind it that many, as a list"),
    stock("min", "the least value; with a number behind it that many, as a list"),
    stock("nth_value", "the value at a place of the order"),
    stock("percentile_cont", "the value at a fraction of the order, between two where the fraction is")
        .aliases(&["percentile"]),
    stock("regr_avgx", "the average of the second column where both are known"),
    stock("regr_avgy", "the average of the first column where both are known"),
    stock("regr_count", "how many rows know both columns"),
    stock("regr_intercept", "where the line of least squares begins"),
    stock("regr_r2", "the square of the correlation"),
    stock("regr_slope", "how the line of least squares rises"),
    stock("regr_sxx", "the sum of squares of the second column"),
    stock("regr_sxy", "the sum of products of both columns"),
    stock("regr_syy", "the sum of squares of the first column"),
    stock("stddev", "the standard deviation as a sample").aliases(&["std"]),
    stock("stddev_pop", "the standard deviation as a population"),
    stock("var", "the variance as a sample").aliases(&["variance"]),
    stock("var_pop", "the variance as a population"),
];
