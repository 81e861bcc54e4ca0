//! Functions on lists, maps and structs. Most are DataFusion's under the names of PostgreSQL, DuckDB and Spark, with bounds on the length of
//! lists (`limits`).

mod fold;
mod list_arguments;
mod list_constructors;
mod lists;
mod maps;
mod quantified;
mod reduce;
mod structs;
mod timestamp_series;
mod vector_distance;

use crate::define::{Function, stock};
use datafusion::logical_expr::HigherOrderUDF;
use std::sync::Arc;

pub(crate) use list_arguments::bounded;
pub(crate) use lists::common_type;

/// Functions that take lambdas, and are not DataFusion's.
pub(crate) fn with_lambdas() -> Vec<Arc<HigherOrderUDF>> {
    vec![fold::list_reduce()]
}

pub(crate) const FUNCTIONS: &[&[Function]] = &[
    STOCK,
    list_constructors::FUNCTIONS,
    lists::FUNCTIONS,
    maps::MADE,
    maps::FUNCTIONS,
    quantified::FUNCTIONS,
    structs::FUNCTIONS,
    reduce::FUNCTIONS,
    vector_distance::FUNCTIONS,
];

const STOCK: &[Function] = &[
    stock("array_any_match", "whether a lambda is true for an element"),
    stock("array_append", "the list with an element at its end"),
    stock("array_compact", "the list without NULLs"),
    stock("array_concat", "lists one after the other"),
    stock("array_distance", "the Euclidean distance of two vectors"),
    stock("array_distinct", "the different elements"),
    stock("array_element", "the element at an index, from the end if it is negative"),
    stock("array_except", "the elements that the second list lacks"),
    stock("array_filter", "the elements that a lambda is true for").aliases(&["filter"]),
    stock("array_has", "whether a list has an element"),
    stock("array_has_all", "whether a list has all elements of another; operator `@>`"),
    stock("array_has_any", "whether two lists have an element in common; operator `&&`")
        .aliases(&["array_overlap"]),
    stock("array_intersect", "the elements of both lists"),
    stock("array_length", "how many elements there are, in a dimension").aliases(&["array_size"]),
    stock("array_ndims", "how many dimensions there are"),
    stock("array_pop_back", "the list without its last element"),
    stock("array_pop_front", "the list without its first element"),
    stock("array_position", "the index of the first element of a value"),
    stock("array_positions", "the indexes of all elements of a value"),
    stock("array_prepend", "the list with an element in front"),
    // PostgreSQL and Spark remove and replace every element of that value, DataFusion under this name the first.
    stock("array_remove_all", "the list without the elements of a value")
        .aliases(&["array_remove", "list_remove"]),
    stock("array_remove_n", "the list without the first so many elements of a value"),
    stock("array_replace_all", "the list with another value in place of one")
        .aliases(&["array_replace", "list_replace"]),
    stock("array_replace_n", "the same for the first so many elements"),
    stock("array_reverse", "the list from its end"),
    stock("array_slice", "the elements from an index to another"),
    stock("array_to_string", "the elements as one text with a separator"),
    stock("array_transform", "the elements changed by a lambda").aliases(&[
        "array_apply",
        "list_apply",
        "apply",
        "transform",
    ]),
    stock("arrays_zip", "the elements of several lists, side by side").aliases(&["array_zip"]),
    stock("cardinality", "how many elements a list or a map has").aliases(&["size"]),
    stock("cosine_distance", "one less the cosine of the angle between two vectors")
        .aliases(&["list_cosine_distance", "array_cosine_distance"]),
    stock("empty", "whether a list has no elements"),
    stock("flatten", "the elements of the lists in a list"),
    stock("get_field", "a member of a struct").aliases(&["struct_extract"]),
    stock("inner_product", "the inner product of two vectors").aliases(&[
        "list_inner_product",
        "array_inner_product",
        "list_dot_product",
        "array_dot_product",
    ]),
    stock("map", "a map from a list of keys and a list of values"),
    stock("map_entries", "the pairs of a map as a list"),
    stock("map_keys", "the keys of a map"),
    stock("map_values", "the values of a map"),
    stock("named_struct", "a struct of names and values that alternate").aliases(&["struct_pack"]),
    stock("string_to_array", "the parts of a text between separators"),
    stock("struct", "a struct of the arguments"),
];
