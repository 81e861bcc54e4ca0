//! Models of LightGBM, as its `save_model` writes them: lines of `key=value`, a block of them for each tree.
//!
//! Bits of `decision_type`: 1 a split by category, 2 missing goes left, 4 and 8 what counts as missing (nothing, zero, NaN).
//! Where nothing is missing, NaN is zero.

use crate::error::{Error, Result};
use crate::forest::build::{Builder, Described, Node, Test};
use crate::limits::{self, within};
use crate::link::Link;
use crate::model::{Classes, Evaluator, Model, Parts, Task};
use std::collections::HashMap;
use std::str::FromStr;

/// Lines by their keys, of the head or of one tree.
type Block<'a> = HashMap<&'a str, &'a str>;

pub(crate) fn read(text: &str) -> Result<Model> {
    let mut lines = text.lines();
    let (head, mut more) = block(&mut lines);
    let outputs: usize = number(&head, "num_tree_per_iteration")?;
    within("outputs", outputs, limits::OUTPUTS)?;
    let features = number::<usize>(&head, "max_feature_idx")?.saturating_add(1);
    let names: Vec<String> = list(&head, "feature_names")?;
    if names.len() != features {
        return Err(Error::damaged(format!("{} names for {features} features", names.len())));
    }
    if outputs == 0 {
        return Err(Error::damaged("no tree in a round"));
    }
    let objective = Objective::read(head.get("objective").copied().unwrap_or("custom"), outputs)?;
    let mut builder = Builder::new(features, vec![0.0; outputs])?;
    let mut trees = 0_usize;
    while more {
        let (tree, another) = block(&mut lines);
        add_tree(&mut builder, &tree, trees % outputs)?;
        trees += 1;
        more = another;
    }
    if !trees.is_multiple_of(outputs) {
        return Err(Error::damaged(format!("{trees} trees of {outputs} in a round")));
    }
    #[expect(clippy::cast_precision_loss, reason = "at most a hundred thousand trees")]
    let rounds = head.contains_key("average_output").then_some((trees / outputs).max(1) as f64);
    Ok(Model::new(Parts {
        format: "lightgbm",
        objective: objective.name,
        // LightGBM gives these names to features that have none.
        names: if names.iter().enumerate().all(|(at, name)| *name == format!("Column_{at}")) {
            Vec::new()
        } else {
            names
        },
        task: if objective.classes {
            Task::Classification(Classes::numbered(outputs.max(2)))
        } else {
            Task::Regression
        },
        link: objective.link,
        evaluator: Evaluator::Double(builder.finish(rounds)),
        inputs: None,
    }))
}

/// The lines up to the next tree; false behind the last one.
fn block<'a>(lines: &mut std::str::Lines<'a>) -> (Block<'a>, bool) {
    let mut block = Block::new();
    for line in lines {
        if line.starts_with("Tree=") {
            return (block, true);
        }
        if line == "end of trees" {
            break;
        }
        let (key, value) = line.split_once('=').unwrap_or((line, ""));
        block.insert(key, value);
    }
    (block, false)
}

/// What an objective says about its sums.
struct Objective {
    name: String,
    link: Link,
    classes: bool,
}

impl Objective {
    fn read(text: &str, outputs: usize) -> Result<Self> {
        let mut words = text.split_whitespace();
        let name = words.next().unwrap_or("custom").to_owned();
        let option = |wanted: &str| text.split_whitespace().find_map(|word| word.strip_prefix(wanted));
        let slope = || match option("sigmoid:").map(f64::from_str) {
            Some(Err(_)) => Err(Error::damaged("the objective's `sigmoid` is not a number")),
            slope => Ok(Link::Sigmoid(slope.and_then(std::result::Result::ok).unwrap_or(1.0))),
        };
        let (link, classes) = match name.as_str() {
            "regression" if words.any(|word| word == "sqrt") => (Link::SignedSquare, false),
            "regression" | "regression_l1" | "huber" | "fair" | "quantile" | "mape" | "lambdarank"
            | "rank_xendcg" | "custom" | "none" => (Link::Identity, false),
            "poisson" | "gamma" | "tweedie" => (Link::Exp, false),
            "binary" => (slope()?, true),
            "multiclass" => (Link::Softmax, true),
            "multiclassova" => (slope()?, true),
            "cross_entropy" => (Link::Sigmoid(1.0), false),
            "cross_entropy_lambda" => (Link::LogOnePlusExp, false),
            other => {
                return Err(Error::unsupported(format!("LightGBM's objective `{other}` is not supported")));
            }
        };
        if name == "binary" && outputs != 1 || name.starts_with("multiclass") && outputs < 2 {
            return Err(Error::damaged(format!("{outputs} trees in a round for `{name}`")));
        }
        Ok(Self { name, link, classes })
    }
}

fn add_tree(builder: &mut Builder<f64, f64>, tree: &Block<'_>, output: usize) -> Result<()> {
    if tree.get("is_linear").is_some_and(|linear| linear.trim() != "0") {
        return Err(Error::unsupported("LightGBM's `linear_tree` is not supported: train without it"));
    }
    let leaves: usize = number(tree, "num_leaves")?;
    within("nodes", leaves, limits::NODES)?;
    let values: Vec<f64> = list(tree, "leaf_value")?;
    if values.len() != leaves || leaves == 0 {
        return Err(Error::damaged(format!("{} values for {leaves} leaves", values.len())));
    }
    let splits = leaves - 1;
    let mut nodes = if splits == 0 { Vec::new() } else { Splits::read(tree, splits)?.nodes()? };
    nodes.extend((0..leaves).map(|leaf| Node::Leaf(leaf..leaf + 1)));
    let weights: Vec<(usize, f64)> = values.into_iter().map(|value| (output, value)).collect();
    builder.add(&Described { nodes: &nodes, root: 0, weights: &weights })
}

/// The columns of a tree, each with one entry for each split.
struct Splits {
    features: Vec<usize>,
    thresholds: Vec<f64>,
    decisions: Vec<u8>,
    left: Vec<i64>,
    right: Vec<i64>,
    /// Where the words of each set of categories begin.
    boundaries: Vec<usize>,
    words: Vec<u32>,
}

impl Splits {
    fn read(tree: &Block<'_>, count: usize) -> Result<Self> {
        let categories = number::<usize>(tree, "num_cat")? > 0;
        let splits = Self {
            features: list(tree, "split_feature")?,
            thresholds: list(tree, "threshold")?,
            decisions: list(tree, "decision_type")?,
            left: list(tree, "left_child")?,
            right: list(tree, "right_child")?,
            boundaries: if categories { list(tree, "cat_boundaries")? } else { Vec::new() },
            words: if categories { list(tree, "cat_threshold")? } else { Vec::new() },
        };
        let lengths =
            [splits.thresholds.len(), splits.decisions.len(), splits.left.len(), splits.right.len()];
        if splits.features.len() != count || lengths.iter().any(|length| *length != count) {
            return Err(Error::damaged("a tree's columns differ in length"));
        }
        Ok(splits)
    }

    fn nodes(&self) -> Result<Vec<Node<f64>>> {
        let (mut nodes, mut words) = (Vec::with_capacity(self.features.len()), 0);
        for at in 0..self.features.len() {
            let node = self.node(at)?;
            if let Node::Split { test: Test::OneOf { words: set, .. }, .. } = &node {
                // Any number of splits may name the same set.
                words += set.len();
                within("categories", words, limits::CATEGORY_WORDS)?;
            }
            nodes.push(node);
        }
        Ok(nodes)
    }

    fn node(&self, at: usize) -> Result<Node<f64>> {
        let (decision, threshold) = (self.decisions[at], self.thresholds[at]);
        let default_left = decision & 2 != 0;
        let (test, missing_left) = match (decision & 1, decision >> 2 & 3) {
            (1, _) => (Test::OneOf { words: self.categories(threshold)?, truncated: true }, false),
            // Zero takes the place of what is missing.
            (_, 0) => (Test::AtMost(threshold), 0.0 <= threshold),
            (_, 1) => (Test::AtMostZeroMissing(threshold), default_left),
            (_, 2) => (Test::AtMost(threshold), default_left),
            _ => return Err(Error::damaged(format!("unknown decision type {decision}"))),
        };
        let (left, right) = (self.child(self.left[at])?, self.child(self.right[at])?);
        Ok(Node::Split { feature: self.features[at], test, missing_left, left, right })
    }

    /// Leaves have negative places; here they come behind the splits.
    fn child(&self, place: i64) -> Result<usize> {
        let place = if place < 0 {
            usize::try_from(!place).map(|leaf| leaf.saturating_add(self.features.len()))
        } else {
            usize::try_from(place)
        };
        place.map_err(|_| Error::damaged("a tree refers to a missing node"))
    }

    fn categories(&self, threshold: f64) -> Result<Vec<u32>> {
        let words = crate::value_tree::place(threshold).and_then(|set| {
            let (first, end) = (self.boundaries.get(set)?, self.boundaries.get(set + 1)?);
            self.words.get(*first..*end)
        });
        Ok(words.ok_or_else(|| Error::damaged("a tree's categories do not match"))?.to_vec())
    }
}

fn number<T: FromStr>(block: &Block<'_>, key: &str) -> Result<T> {
    let text = block.get(key).ok_or_else(|| Error::damaged(format!("`{key}` is missing")))?;
    text.trim().parse().map_err(|_| Error::damaged(format!("`{key}` is not a number")))
}

fn list<T: FromStr>(block: &Block<'_>, key: &str) -> Result<Vec<T>> {
    let text = block.get(key).ok_or_else(|| Error::damaged(format!("`{key}` is missing")))?;
    text.split_whitespace()
        .map(|word| word.parse().map_err(|_| Error::damaged(format!("`{key}` is not a list of numbers"))))
        .collect()
}
