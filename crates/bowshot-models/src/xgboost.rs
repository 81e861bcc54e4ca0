//! Models of XGBoost, as its `save_model` writes them: JSON and UBJSON.
//!
//! XGBoost compares and sums in 32 bits, and so does this. `base_score` is what a row without any tree would get, after
//! the link; older versions write one number, newer ones a list of one for each output.

use crate::error::{Error, Result};
use crate::forest::build::{Builder, Described, Node, Test};
use crate::limits::{self, within};
use crate::link::Link;
use crate::model::{Classes, Evaluator, Model, Parts, Task};
use crate::value_tree::{Value, place};

/// Reads a document that `save_model` wrote.
pub(crate) fn read(document: &Value) -> Result<Model> {
    let learner = document.get("learner")?;
    let booster = learner.get("gradient_booster")?;
    let (trees, drops) = match booster.text("name")? {
        "gbtree" => (booster.get("model")?, None),
        "dart" => (booster.get("gbtree")?.get("model")?, Some(booster.numbers("weight_drop")?)),
        other => {
            return Err(Error::unsupported(format!("XGBoost models of booster `{other}` are not supported")));
        }
    };
    let parameters = learner.get("learner_model_param")?;
    let objective = objective(learner.get("objective")?.text("name")?)?;
    let outputs = parameters.count("num_class")?.max(parameters.count("num_target").unwrap_or(1)).max(1);
    within("outputs", outputs, limits::OUTPUTS)?;
    let features = parameters.count("num_feature")?;
    let base = base_scores(parameters, outputs, objective.margin)?;
    let mut builder = Builder::new(features, base)?;
    let kept = kept_trees(learner, trees)?;
    let groups = trees.numbers("tree_info")?;
    for (index, tree) in trees.list("trees")?.iter().take(kept).enumerate() {
        let group = groups.get(index).copied().and_then(place).unwrap_or(usize::MAX);
        let drop = drops.map_or(Some(1.0), |drops| drops.get(index).copied());
        let drop = drop.ok_or_else(|| Error::damaged("a tree without a weight"))?;
        add_tree(&mut builder, tree, group, drop)?;
    }
    Ok(Model::new(Parts {
        format: "xgboost",
        objective: objective.name,
        names: names(learner, features)?,
        task: if objective.classes {
            Task::Classification(Classes::numbered(outputs.max(2)))
        } else {
            Task::Regression
        },
        link: objective.link,
        evaluator: Evaluator::Single(builder.finish(None)),
        inputs: None,
    }))
}

/// What an objective says about its sums.
struct Objective {
    name: String,
    link: Link,
    classes: bool,
    /// From `base_score` to the sum that gives it.
    margin: fn(f32) -> f32,
}

/// All objectives that are known; a new one may mean anything.
fn objective(name: &str) -> Result<Objective> {
    let (link, classes, margin): (Link, bool, fn(f32) -> f32) = match name {
        "reg:squarederror"
        | "reg:linear"
        | "reg:squaredlogerror"
        | "reg:pseudohubererror"
        | "reg:absoluteerror"
        | "reg:quantileerror"
        | "reg:expectileerror"
        | "binary:logitraw"
        | "rank:pairwise"
        | "rank:ndcg"
        | "rank:map" => (Link::Identity, false, |base| base),
        "reg:logistic" => (Link::Sigmoid(1.0), false, logit),
        "binary:logistic" => (Link::Sigmoid(1.0), true, logit),
        "binary:hinge" => (Link::Hinge, true, |base| base),
        "multi:softmax" | "multi:softprob" => (Link::Softmax, true, |base| base),
        "count:poisson" | "reg:gamma" | "reg:tweedie" | "survival:cox" | "survival:aft" => {
            (Link::Exp, false, f32::ln)
        }
        other => return Err(Error::unsupported(format!("XGBoost's objective `{other}` is not supported"))),
    };
    Ok(Objective { name: name.to_owned(), link, classes, margin })
}

fn logit(base: f32) -> f32 {
    -(1.0 / base - 1.0).ln()
}

#[expect(clippy::cast_possible_truncation, reason = "XGBoost computes in 32 bits")]
fn base_scores(parameters: &Value, outputs: usize, margin: fn(f32) -> f32) -> Result<Vec<f32>> {
    let wrong = || Error::damaged("`base_score` is not a number");
    let scores: Vec<f32> = match parameters.get("base_score")? {
        Value::Number(score) => vec![*score as f32],
        Value::Text(text) => {
            let texts = text.trim().trim_start_matches('[').trim_end_matches(']').split(',');
            texts.map(|text| text.trim().parse().map_err(|_| wrong())).collect::<Result<_>>()?
        }
        _ => return Err(wrong()),
    };
    let scores: Vec<f32> = scores.into_iter().map(margin).collect();
    if scores.iter().any(|score| !score.is_finite()) {
        return Err(Error::damaged("`base_score` is out of range for the objective"));
    }
    match scores.len() {
        1 => Ok(vec![scores[0]; outputs]),
        count if count == outputs => Ok(scores),
        count => Err(Error::damaged(format!("`base_score` has {count} numbers for {outputs} outputs"))),
    }
}

/// How many trees count: those up to the best round, if training was stopped early. XGBoost's scikit-learn interface does
/// the same.
fn kept_trees(learner: &Value, model: &Value) -> Result<usize> {
    let all = model.list("trees")?.len();
    let Some(attributes) =
        learner.find("attributes").filter(|attributes| attributes.find("best_iteration").is_some())
    else {
        return Ok(all);
    };
    let best = attributes.count("best_iteration")?;
    // Where each round begins; before version 2 it was not written.
    let begins = model.numbers("iteration_indptr").unwrap_or(&[]);
    Ok(begins.get(best + 1).copied().and_then(place).unwrap_or(all).min(all))
}

fn names(learner: &Value, features: usize) -> Result<Vec<String>> {
    let Some(Value::List(names)) = learner.find("feature_names") else { return Ok(Vec::new()) };
    if names.len() != features && !names.is_empty() {
        return Err(Error::damaged(format!("{} names for {features} features", names.len())));
    }
    let text = |name: &Value| match name {
        Value::Text(name) => Ok(name.clone()),
        _ => Err(Error::damaged("a feature's name is not a string")),
    };
    names.iter().map(text).collect()
}

/// The columns of a tree, each with one entry for each node.
struct Columns<'a> {
    left: &'a [f64],
    right: &'a [f64],
    feature: &'a [f64],
    condition: &'a [f64],
    default_left: &'a [f64],
    /// Empty in models from before there were categories.
    split_type: &'a [f64],
}

fn add_tree(builder: &mut Builder<f32, f32>, tree: &Value, group: usize, drop: f64) -> Result<()> {
    let parameters = tree.get("tree_param")?;
    if parameters.find("size_leaf_vector").is_some() && parameters.count("size_leaf_vector")? > 1 {
        return Err(Error::unsupported(
            "XGBoost's `multi_output_tree` is not supported: train with one tree for each output",
        ));
    }
    let columns = Columns {
        left: tree.numbers("left_children")?,
        right: tree.numbers("right_children")?,
        feature: tree.numbers("split_indices")?,
        condition: tree.numbers("split_conditions")?,
        default_left: tree.numbers("default_left")?,
        split_type: if tree.find("split_type").is_some() { tree.numbers("split_type")? } else { &[] },
    };
    within("nodes", columns.left.len(), limits::NODES)?;
    let mut categories = categories(tree, columns.left.len())?;
    let mut weights = Vec::new();
    let mut nodes = Vec::with_capacity(columns.left.len());
    for at in 0..columns.left.len() {
        nodes.push(node(&columns, at, &mut categories, (group, drop), &mut weights)?);
    }
    builder.add(&Described { nodes: &nodes, root: 0, weights: &weights })
}

#[expect(clippy::cast_possible_truncation, reason = "XGBoost computes in 32 bits")]
fn node(
    columns: &Columns<'_>,
    at: usize,
    categories: &mut [Option<Vec<u32>>],
    (group, drop): (usize, f64),
    weights: &mut Vec<(usize, f32)>,
) -> Result<Node<f32>> {
    let entry = |column: &[f64]| {
        column.get(at).copied().ok_or_else(|| Error::damaged("a tree's columns differ in length"))
    };
    let condition = entry(columns.condition)? as f32;
    let left = entry(columns.left)?;
    #[expect(clippy::float_cmp, reason = "a whole number")]
    if left == -1.0 {
        weights.push((group, condition * drop as f32));
        return Ok(Node::Leaf(weights.len() - 1..weights.len()));
    }
    let wrong = || Error::damaged("a tree refers to a missing node");
    let (left, right) = (place(left).ok_or_else(wrong)?, entry(columns.right).map(place)?.ok_or_else(wrong)?);
    let feature =
        place(entry(columns.feature)?).ok_or_else(|| Error::damaged("a tree node has no feature"))?;
    let missing_left = entry(columns.default_left)? != 0.0;
    if columns.split_type.get(at).is_none_or(|kind| *kind == 0.0) {
        return Ok(Node::Split { feature, test: Test::Below(condition), missing_left, left, right });
    }
    let words =
        categories[at].take().ok_or_else(|| Error::damaged("a split by category without categories"))?;
    // The categories of a set go to the right there, to the left here.
    let test = Test::OneOf { words, truncated: false };
    Ok(Node::Split { feature, test, missing_left: !missing_left, left: right, right: left })
}

/// For each node the bits of its categories, if it splits by them.
fn categories(tree: &Value, nodes: usize) -> Result<Vec<Option<Vec<u32>>>> {
    let mut sets = vec![None; nodes];
    if tree.find("categories_nodes").is_none() {
        return Ok(sets);
    }
    let wrong = || Error::damaged("a tree's categories do not match");
    let all = tree.numbers("categories")?;
    let (segments, sizes) = (tree.numbers("categories_segments")?, tree.numbers("categories_sizes")?);
    let mut words = 0;
    for (index, node) in tree.numbers("categories_nodes")?.iter().enumerate() {
        let entry = |column: &[f64]| column.get(index).copied().and_then(place).ok_or_else(wrong);
        let (first, size) = (entry(segments)?, entry(sizes)?);
        let set = all.get(first..first.saturating_add(size)).ok_or_else(wrong)?;
        let set = bits(set)?;
        // One category of a large number takes as much room as all below it.
        words += set.len();
        within("categories", words, limits::CATEGORY_WORDS)?;
        *place(*node).and_then(|node| sets.get_mut(node)).ok_or_else(wrong)? = Some(set);
    }
    Ok(sets)
}

fn bits(set: &[f64]) -> Result<Vec<u32>> {
    let mut words = Vec::new();
    for category in set {
        let category = place(*category).ok_or_else(|| Error::damaged("a category is not a whole number"))?;
        within("categories", category / 32, limits::CATEGORY_WORDS >> 4)?;
        if words.len() <= category / 32 {
            words.resize(category / 32 + 1, 0);
        }
        words[category / 32] |= 1 << (category % 32);
    }
    Ok(words)
}
