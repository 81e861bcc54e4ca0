//! Small models that can be followed by hand. Those of the libraries themselves are in `tests/models`.

use crate::Model;
use arrow::array::{ArrayRef, Float64Array, Int64Array};
use serde_json::{Value, json};
use std::sync::Arc;

/// One tree of XGBoost: `x0 < 0.5` gives -1, else 2; missing goes to the right.
fn stump(objective: &str, base_score: &str) -> Value {
    json!({"learner": {
        "attributes": {},
        "feature_names": ["a", "b"],
        "gradient_booster": {"name": "gbtree", "model": {"tree_info": [0], "trees": [{
            "left_children": [1, -1, -1], "right_children": [2, -1, -1], "split_indices": [0, 0, 0],
            "split_conditions": [0.5, -1.0, 2.0], "default_left": [0, 0, 0],
            "tree_param": {"num_nodes": "3", "size_leaf_vector": "1"},
        }]}},
        "learner_model_param": {"base_score": base_score, "num_class": "0", "num_feature": "2", "num_target": "1"},
        "objective": {"name": objective},
    }})
}

fn read(document: &Value) -> Result<Model, String> {
    Model::read(document.to_string().as_bytes()).map_err(|error| error.to_string())
}

fn columns(first: Vec<Option<f64>>) -> Vec<ArrayRef> {
    let rows = first.len();
    vec![Arc::new(Float64Array::from(first)), Arc::new(Int64Array::from(vec![7; rows]))]
}

const LIGHTGBM: &str = "tree
version=v4
num_class=1
num_tree_per_iteration=1
max_feature_idx=1
objective=regression
feature_names=Column_0 Column_1

Tree=0
num_leaves=3
num_cat=1
split_feature=0 1
threshold=0.25 0
decision_type=10 1
left_child=1 -1
right_child=-2 -3
leaf_value=1 10 100
cat_boundaries=0 1
cat_threshold=128
is_linear=0

end of trees
";

#[test]
fn trees_that_lead_nowhere_are_refused() {
    let broken = |key: &str, value: Value| {
        let mut document = stump("reg:squarederror", "0");
        document["learner"]["gradient_booster"]["model"]["trees"][0][key] = value;
        read(&document).expect_err("is broken")
    };
    assert!(broken("left_children", json!([0, -1, -1])).contains("reaches a node twice"));
    assert!(broken("left_children", json!([9, -1, -1])).contains("missing node"));
    assert!(broken("left_children", json!([1.5, -1, -1])).contains("missing node"));
    assert!(broken("split_indices", json!([2, 0, 0])).contains("feature 3 of 2"));
    assert!(broken("split_conditions", json!([0.5])).contains("differ in length"));
    assert!(broken("left_children", json!("x")).contains("`left_children` is not a list of numbers"));
    let error = read(&stump("reg:squarederror", "[1,2,3]")).expect_err("three");
    assert!(error.contains("3 numbers for 1 outputs"), "{error}");
    let error = read(&stump("binary:logistic", "7")).expect_err("no probability");
    assert!(error.contains("out of range"), "{error}");
}

#[test]
fn a_message_shows_little_of_a_file() {
    let error = read(&stump(&format!("reg:\n{}", "x".repeat(100_000)), "0")).expect_err("no such objective");
    assert!(error.len() < 400 && error.starts_with("XGBoost's objective `reg:\u{fffd}xxx"), "{error}");
}

#[test]
fn deep_and_endless_documents_end_in_an_error() {
    for bytes in ["[".repeat(100_000), "{\"a\":".repeat(100_000), format!("{{\"a\":{}", "[".repeat(100_000))]
    {
        assert!(Model::read(bytes.as_bytes()).is_err());
    }
    // UBJSON: lists in lists, a list of 2^31 values in no bytes, a text longer than the file.
    let deep = [b"{i\x01a".to_vec(), vec![b'['; 100_000]].concat();
    let many = b"{i\x01a[$Z#l\x7f\xff\xff\xff".to_vec();
    let long = b"{L\x7f\xff\xff\xff\xff\xff\xff\xff".to_vec();
    for bytes in [deep, many, long] {
        assert!(Model::read(&bytes).is_err());
    }
}

/// All files that differ from a good one in one byte, for a few values of it: none may panic or hang.
#[test]
fn no_damaged_byte_breaks_a_reader() {
    let json = stump("binary:logistic", "5E-1").to_string().into_bytes();
    for good in [json, LIGHTGBM.as_bytes().to_vec()] {
        for at in 0..good.len() {
            for byte in *b"\x00-9e[{\xff" {
                let mut damaged = good.clone();
                damaged[at] = byte;
                if let Ok(model) = Model::read(&damaged) {
                    drop(model.predict(&columns(vec![Some(0.3), None])));
                }
            }
            assert!(Model::read(&good[..at]).is_err() || good.starts_with(b"tree"));
        }
    }
}
