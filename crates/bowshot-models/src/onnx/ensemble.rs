//! The trees of `TreeEnsembleClassifier`, `TreeEnsembleRegressor` and `TreeEnsemble`.
//!
//! The first two list nodes of all trees by pairs of numbers, of the tree and of the node in it; `TreeEnsemble` by places.

use super::proto::Node as Operator;
use crate::error::{Error, Result};
use crate::forest::build::{Builder, Described, Node, Test};
use crate::forest::{Forest, Number};
use crate::limits::{self, within};
use crate::link::Link;
use crate::model::{Classes, Evaluator, Task};
use crate::value_tree::place;
use std::collections::HashMap;

/// An ensemble, with what its results mean.
pub(super) struct Ensemble {
    pub(super) operator: String,
    pub(super) task: Task,
    pub(super) link: Link,
    pub(super) evaluator: Evaluator,
}

/// What the trees' sums are to become.
struct Sums {
    base: Vec<f64>,
    average: bool,
}

/// Reads the ensemble of an operator over so many features.
pub(super) fn read(node: &Operator<'_>, features: usize) -> Result<Ensemble> {
    let operator = node.operator.to_owned();
    if operator == "TreeEnsembleClassifier" {
        return classifier(node, features, operator);
    }
    let outputs = node.integer("n_targets").and_then(|count| usize::try_from(count).ok()).unwrap_or(1).max(1);
    within("outputs", outputs, limits::OUTPUTS)?;
    let by_place = operator == "TreeEnsemble";
    let average = match (node.text("aggregate_function"), node.integer("aggregate_function")) {
        (Some("SUM") | None, None) | (None, Some(1)) => false,
        (Some("AVERAGE"), _) | (None, Some(0)) => true,
        (Some(other), _) => {
            return Err(Error::unsupported(format!("ONNX trees aggregated by `{other}` are not supported")));
        }
        (None, Some(other)) => {
            return Err(Error::unsupported(format!(
                "ONNX trees with the aggregate function {other} are not supported"
            )));
        }
    };
    let sums = Sums { base: base(node.floats("base_values"), outputs)?, average };
    let link = link(node)?;
    let trees =
        if by_place { trees_by_place(node)? } else { trees_by_number(node, "target", outputs, false)? };
    Ok(Ensemble { operator, task: Task::Regression, link, evaluator: evaluator(&trees, features, sums)? })
}

fn classifier(node: &Operator<'_>, features: usize, operator: String) -> Result<Ensemble> {
    let texts: Vec<String> =
        node.texts("classlabels_strings").iter().map(|text| (*text).to_owned()).collect();
    let classes = if texts.is_empty() {
        Classes::Integers(node.integers("classlabels_int64s").to_vec())
    } else {
        Classes::Texts(texts)
    };
    within("outputs", classes.count(), limits::OUTPUTS)?;
    if classes.count() < 2 {
        return Err(Error::unsupported("ONNX classifiers of fewer than two classes are not supported"));
    }
    let ids = node.integers("class_ids");
    // Two classes of which one has weights: these are of the second, whatever number they have.
    let binary = classes.count() == 2 && ids.iter().all(|id| Some(id) == ids.first());
    let outputs = if binary { 1 } else { classes.count() };
    let link = link(node)?;
    if binary && link == Link::Identity && node.floats("class_weights").iter().any(|weight| *weight < 0.0) {
        return Err(Error::unsupported(
            "ONNX classifiers with scores instead of probabilities are not supported",
        ));
    }
    let base = match node.floats("base_values") {
        [_, second] if binary => vec![*second],
        given => base(given, outputs)?,
    };
    let trees = trees_by_number(node, "class", outputs, binary)?;
    let evaluator = evaluator(&trees, features, Sums { base, average: false })?;
    Ok(Ensemble { operator, task: Task::Classification(classes), link, evaluator })
}

fn base(given: &[f64], outputs: usize) -> Result<Vec<f64>> {
    match given {
        [] => Ok(vec![0.0; outputs]),
        base if base.len() == outputs => Ok(base.to_vec()),
        base => Err(Error::damaged(format!("{} base values for {outputs} outputs", base.len()))),
    }
}

fn link(node: &Operator<'_>) -> Result<Link> {
    match (node.text("post_transform"), node.integer("post_transform")) {
        (Some("NONE") | None, None) | (None, Some(0)) => Ok(Link::Identity),
        (Some("LOGISTIC"), _) | (None, Some(2)) => Ok(Link::Sigmoid(1.0)),
        (Some("SOFTMAX"), _) | (None, Some(1)) => Ok(Link::Softmax),
        (Some(other), _) => Err(Error::unsupported(format!("ONNX' `{other}` after trees is not supported"))),
        (None, Some(other)) => {
            Err(Error::unsupported(format!("ONNX' post transform {other} after trees is not supported")))
        }
    }
}

/// Trees as ONNX lists them, in 64 bits.
struct Trees {
    nodes: Vec<Node<f64>>,
    /// The first node of each.
    roots: Vec<usize>,
    weights: Vec<(usize, f64)>,
    /// True if thresholds have 64 bits.
    double: bool,
}

/// The forest in the arithmetic that its thresholds have.
fn evaluator(trees: &Trees, features: usize, sums: Sums) -> Result<Evaluator> {
    if trees.double {
        Ok(Evaluator::Double(forest(trees, features, sums)?))
    } else {
        Ok(Evaluator::Mixed(forest(trees, features, sums)?))
    }
}

/// Each tree alone: nodes lie one tree after the other, so its nodes are those from its first to the next one's.
fn forest<T: Number>(trees: &Trees, features: usize, sums: Sums) -> Result<Forest<T, f64>> {
    let mut builder = Builder::new(features, sums.base)?;
    for (index, root) in trees.roots.iter().enumerate() {
        let end = trees.roots.get(index + 1).copied().unwrap_or(trees.nodes.len());
        let own = trees
            .nodes
            .get(*root..end)
            .ok_or_else(|| Error::damaged("the nodes of a tree are not contiguous"))?;
        let nodes: Vec<Node<T>> = own.iter().map(|node| moved(node, *root)).collect::<Result<_>>()?;
        let (first, end) = own_weights(own);
        let weights = trees
            .weights
            .get(first..end)
            .ok_or_else(|| Error::damaged("a leaf refers to missing weights"))?;
        let nodes: Vec<Node<T>> = nodes.into_iter().map(|node| rebased(node, first)).collect();
        builder.add(&Described { nodes: &nodes, root: 0, weights })?;
    }
    #[expect(clippy::cast_precision_loss, reason = "at most a hundred thousand trees")]
    let divisor = sums.average.then_some(trees.roots.len().max(1) as f64);
    Ok(builder.finish(divisor))
}

/// The part of the weights that the leaves among these nodes name.
fn own_weights(nodes: &[Node<f64>]) -> (usize, usize) {
    let ranges = nodes.iter().filter_map(|node| match node {
        Node::Leaf(range) if !range.is_empty() => Some(range),
        _ => None,
    });
    let (first, end) =
        ranges.fold((usize::MAX, 0), |(first, end), range| (first.min(range.start), end.max(range.end)));
    (first.min(end), end)
}

fn rebased<T>(node: Node<T>, first: usize) -> Node<T> {
    match node {
        Node::Leaf(range) if range.is_empty() => Node::Leaf(0..0),
        Node::Leaf(range) => Node::Leaf(range.start - first..range.end - first),
        split @ Node::Split { .. } => split,
    }
}

/// A node with places that count from its tree's first, and thresholds in the forest's arithmetic.
fn moved<T: Number>(node: &Node<f64>, root: usize) -> Result<Node<T>> {
    Ok(match node {
        Node::Leaf(range) => Node::Leaf(range.clone()),
        Node::Split { feature, test, missing_left, left, right } => {
            let place = |at: &usize| {
                at.checked_sub(root).ok_or_else(|| Error::damaged("a tree refers to a node of another tree"))
            };
            let test = match test {
                Test::Below(value) => Test::Below(T::of(*value)),
                Test::AtMost(value) => Test::AtMost(T::of(*value)),
                Test::AtMostZeroMissing(value) => Test::AtMostZeroMissing(T::of(*value)),
                Test::Equal(value) => Test::Equal(T::of(*value)),
                Test::OneOf { words, truncated } => {
                    Test::OneOf { words: words.clone(), truncated: *truncated }
                }
            };
            Node::Split {
                feature: *feature,
                test,
                missing_left: *missing_left,
                left: place(left)?,
                right: place(right)?,
            }
        }
    })
}

fn wrong() -> Error {
    Error::damaged("the columns of the trees differ in length")
}

/// The place or number that a column has for a node.
fn place_at(column: &[i64], at: usize) -> Result<usize> {
    column.get(at).and_then(|place| usize::try_from(*place).ok()).ok_or_else(wrong)
}

/// Trees of `TreeEnsembleClassifier` and `TreeEnsembleRegressor`; `kind` is how the attributes of their weights begin.
fn trees_by_number(node: &Operator<'_>, kind: &str, outputs: usize, binary: bool) -> Result<Trees> {
    let (tree_ids, node_ids) = (node.integers("nodes_treeids"), node.integers("nodes_nodeids"));
    within("nodes", tree_ids.len(), limits::NODES)?;
    let mut places = HashMap::with_capacity(tree_ids.len());
    let mut roots = Vec::new();
    for (at, key) in tree_ids.iter().zip(node_ids).enumerate() {
        if places.insert(key, at).is_some() {
            return Err(Error::damaged("two nodes have the same id"));
        }
        if at == 0 || tree_ids[at - 1] != *key.0 {
            roots.push(at);
        }
    }
    let mut leaves = leaf_weights(node, kind, (outputs, binary), &places)?;
    let modes = node.texts("nodes_modes");
    let values =
        node.tensor("nodes_values_as_tensor").map_or(node.floats("nodes_values"), |tensor| &tensor.values);
    let features = node.integers("nodes_featureids");
    let (yes, no) = (node.integers("nodes_truenodeids"), node.integers("nodes_falsenodeids"));
    let missing = node.integers("nodes_missing_value_tracks_true");
    let mut trees = Trees {
        nodes: Vec::new(),
        roots,
        weights: Vec::new(),
        double: node.tensor("nodes_values_as_tensor").is_some_and(|tensor| tensor.double),
    };
    for at in 0..places.len() {
        let mode = modes.get(at).ok_or_else(wrong)?;
        if *mode == "LEAF" {
            let first = trees.weights.len();
            trees.weights.append(&mut leaves[at]);
            trees.nodes.push(Node::Leaf(first..trees.weights.len()));
            continue;
        }
        let child = |ids: &[i64]| {
            let id = ids.get(at).ok_or_else(wrong)?;
            places
                .get(&(&tree_ids[at], id))
                .copied()
                .ok_or_else(|| Error::damaged("a tree refers to a missing node"))
        };
        let split = Split {
            feature: place_at(features, at)?,
            value: *values.get(at).ok_or_else(wrong)?,
            missing_yes: missing.get(at).is_some_and(|missing| *missing != 0),
            yes: child(yes)?,
            no: child(no)?,
        };
        trees.nodes.push(split.node(mode)?);
    }
    Ok(trees)
}

/// The weights of each node, by its place.
fn leaf_weights(
    node: &Operator<'_>,
    kind: &str,
    (outputs, binary): (usize, bool),
    places: &HashMap<(&i64, &i64), usize>,
) -> Result<Vec<Vec<(usize, f64)>>> {
    let column = |name: &str| node.integers(&format!("{kind}_{name}"));
    let (trees, nodes, ids) = (column("treeids"), column("nodeids"), column("ids"));
    let name = format!("{kind}_weights");
    let weights =
        node.tensor(&format!("{name}_as_tensor")).map_or(node.floats(&name), |tensor| &tensor.values);
    let lengths = [trees.len(), nodes.len(), ids.len()];
    if lengths.iter().any(|length| *length != weights.len()) {
        return Err(Error::damaged("the columns of the weights differ in length"));
    }
    let mut leaves = vec![Vec::new(); places.len()];
    for (at, weight) in weights.iter().enumerate() {
        let place = places
            .get(&(&trees[at], &nodes[at]))
            .ok_or_else(|| Error::damaged("a weight of a missing node"))?;
        let output = if binary { 0 } else { usize::try_from(ids[at]).unwrap_or(usize::MAX) };
        if output >= outputs {
            return Err(Error::damaged("a leaf has an output out of range"));
        }
        leaves[*place].push((output, *weight));
    }
    Ok(leaves)
}

/// A split as ONNX has it.
struct Split {
    feature: usize,
    value: f64,
    /// Missing values count as a yes; else every comparison with one is a no.
    missing_yes: bool,
    yes: usize,
    no: usize,
}

impl Split {
    /// The split as the forest has it: its yes is to the left, so that the opposite of a question changes the sides.
    fn node(&self, mode: &str) -> Result<Node<f64>> {
        let (test, turned) = match mode {
            "BRANCH_LEQ" => (Test::AtMost(self.value), false),
            "BRANCH_LT" => (Test::Below(self.value), false),
            "BRANCH_GT" => (Test::AtMost(self.value), true),
            "BRANCH_GTE" => (Test::Below(self.value), true),
            "BRANCH_EQ" => (Test::Equal(self.value), false),
            "BRANCH_NEQ" => (Test::Equal(self.value), true),
            other => return Err(Error::unsupported(format!("ONNX' split `{other}` is not supported"))),
        };
        // "Not equal" is the one comparison that holds for a missing value.
        let missing_yes = self.missing_yes || mode == "BRANCH_NEQ";
        let (left, right) = if turned { (self.no, self.yes) } else { (self.yes, self.no) };
        Ok(Node::Split { feature: self.feature, test, missing_left: missing_yes != turned, left, right })
    }
}

/// Trees of `TreeEnsemble`: places of splits and of leaves, which are lists apart.
fn trees_by_place(node: &Operator<'_>) -> Result<Trees> {
    let roots = node.integers("tree_roots");
    within("trees", roots.len(), limits::TREES)?;
    let columns = Places {
        features: node.integers("nodes_featureids"),
        splits: node.floats("nodes_splits"),
        modes: node.floats("nodes_modes"),
        missing: node.integers("nodes_missing_value_tracks_true"),
        yes: [node.integers("nodes_truenodeids"), node.integers("nodes_trueleafs")],
        no: [node.integers("nodes_falsenodeids"), node.integers("nodes_falseleafs")],
    };
    let (targets, weights) = (node.integers("leaf_targetids"), node.floats("leaf_weights"));
    let mut trees = Trees {
        nodes: Vec::new(),
        roots: Vec::new(),
        weights: Vec::new(),
        double: node.tensor("nodes_splits").is_some_and(|tensor| tensor.double),
    };
    let mut splits = 0;
    for root in roots {
        trees.roots.push(trees.nodes.len());
        // Places in the lists that wait, each with its place here.
        let mut open = vec![(false, *root)];
        let mut at = 0;
        while let Some((leaf, place)) = open.get(at).copied() {
            at += 1;
            within("nodes", trees.nodes.len() + open.len(), limits::NODES)?;
            let place = usize::try_from(place).map_err(|_| wrong())?;
            if leaf {
                let target = place_at(targets, place)?;
                let first = trees.weights.len();
                trees.weights.push((target, *weights.get(place).ok_or_else(wrong)?));
                trees.nodes.push(Node::Leaf(first..first + 1));
                continue;
            }
            // Each split has one place in one tree; more would be a tree that comes back to itself.
            splits += 1;
            within("splits", splits, columns.features.len())?;
            let first = trees.nodes.len() + open.len() + 1 - at;
            let (split, mode) = columns.split(place, first)?;
            open.extend([columns.child(columns.yes, place)?, columns.child(columns.no, place)?]);
            trees.nodes.push(split.node(mode)?);
        }
    }
    Ok(trees)
}

/// The columns of `TreeEnsemble`'s splits.
struct Places<'a> {
    features: &'a [i64],
    splits: &'a [f64],
    modes: &'a [f64],
    missing: &'a [i64],
    yes: [&'a [i64]; 2],
    no: [&'a [i64]; 2],
}

impl Places<'_> {
    /// A child: whether it is a leaf, and its place in the list of its kind.
    fn child(&self, [places, leaves]: [&[i64]; 2], at: usize) -> Result<(bool, i64)> {
        let entry = |column: &[i64]| column.get(at).copied().ok_or_else(wrong);
        Ok((entry(leaves)? != 0, entry(places)?))
    }

    /// The split at a place, whose children get the places from `first` on.
    fn split(&self, at: usize, first: usize) -> Result<(Split, &'static str)> {
        let modes = [
            "BRANCH_LEQ",
            "BRANCH_LT",
            "BRANCH_GTE",
            "BRANCH_GT",
            "BRANCH_EQ",
            "BRANCH_NEQ",
            "BRANCH_MEMBER",
        ];
        let mode =
            self.modes.get(at).copied().and_then(place).and_then(|mode| modes.get(mode)).ok_or_else(wrong)?;
        let split = Split {
            feature: place_at(self.features, at)?,
            value: *self.splits.get(at).ok_or_else(wrong)?,
            missing_yes: self.missing.get(at).is_some_and(|missing| *missing != 0),
            yes: first,
            no: first + 1,
        };
        Ok((split, mode))
    }
}
