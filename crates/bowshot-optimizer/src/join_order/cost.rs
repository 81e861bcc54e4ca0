//! What joining relations in an order costs: the rows that go into hash tables, look there for partners, and come out.

use super::selectivity::selectivity;
use super::set::RelationSet;
use super::statistics::{ColumnFacts, Facts, Key};
use super::tree::{Shape, Tree};
use std::collections::HashMap;

/// A row that a hash table is built of costs so many that look for partners.
const BUILD: f64 = 2.0;
/// A row that comes out of a join costs so many that look for partners.
const OUTPUT: f64 = 1.0;

/// Columns that are equal in the result, each of another relation: any two of them may be compared to join their relations.
/// All that are on one side of a join are equal there already.
#[derive(Debug, Clone)]
pub(super) struct EqualColumns {
    /// In order of their relations.
    members: Vec<Member>,
    relations: RelationSet,
}

#[derive(Debug, Clone, Copy)]
struct Member {
    relation: usize,
    column: usize,
    /// The part of the relation's rows whose value others may have at all.
    share: f64,
    /// Different values among those.
    distinct: f64,
    /// Whether it has each value once, surely.
    key: bool,
}

/// Estimates for the relations of a tree.
#[derive(Debug)]
pub(super) struct Model {
    facts: Vec<Facts>,
    classes: Vec<EqualColumns>,
    conditions: Vec<(RelationSet, f64)>,
    /// Which relations share a class with each.
    neighbours: Vec<RelationSet>,
    rows: HashMap<RelationSet, f64>,
}

impl Model {
    /// The estimates for a tree; `None` if nothing is known of the size of a relation.
    pub(super) fn of(tree: &Tree) -> Option<Self> {
        let facts: Vec<Facts> = tree.relations.iter().map(Facts::of).collect::<Option<_>>()?;
        let classes = classes(tree, &facts);
        let mut neighbours = vec![RelationSet::default(); facts.len()];
        for class in &classes {
            for relation in class.relations.iter() {
                let others = class.relations.without(RelationSet::of(relation));
                neighbours[relation] = neighbours[relation].with(others);
            }
        }
        let nothing = Facts { rows: 1.0, all_rows: 1.0, columns: Vec::new() };
        let conditions = tree
            .conditions
            .iter()
            .map(|condition| (condition.relations, selectivity(&condition.expression, &nothing)))
            .collect();
        Some(Self { facts, classes, conditions, neighbours, rows: HashMap::new() })
    }

    pub(super) fn relations(&self) -> usize {
        self.facts.len()
    }

    /// Whether some equality joins two sets.
    pub(super) fn connects(&self, one: RelationSet, other: RelationSet) -> bool {
        one.iter().any(|relation| self.neighbours[relation].meets(other))
    }

    /// One pair of columns to compare for each class that has columns on both sides. The one of the larger relation is
    /// chosen, since conditions that a join learns are of most use there.
    pub(super) fn keys(&self, left: RelationSet, right: RelationSet) -> Vec<(usize, usize)> {
        let largest = |class: &EqualColumns, side: RelationSet| {
            let members = class.members.iter().filter(|member| side.has(member.relation));
            let rows = |member: &&Member| self.facts[member.relation].all_rows;
            members.max_by(|one, other| rows(one).total_cmp(&rows(other))).map(|member| member.column)
        };
        self.classes.iter().filter_map(|class| largest(class, left).zip(largest(class, right))).collect()
    }

    /// The cost of a shape, without reading its relations.
    pub(super) fn cost(&mut self, shape: &Shape) -> f64 {
        match shape {
            Shape::Relation(_) => 0.0,
            Shape::Join(left, right) => {
                let below = self.cost(left) + self.cost(right);
                below + self.join_cost(left.relations(), right.relations())
            }
        }
    }

    pub(super) fn join_cost(&mut self, left: RelationSet, right: RelationSet) -> f64 {
        cost_of(self.rows(left), self.rows(right), self.rows(left.with(right)))
    }

    pub(super) fn rows(&mut self, set: RelationSet) -> f64 {
        if let Some(rows) = self.rows.get(&set) {
            return *rows;
        }
        let rows = self.count(set);
        self.rows.insert(set, rows);
        rows
    }

    fn count(&self, set: RelationSet) -> f64 {
        let mut rows = 1.0;
        let mut joined = RelationSet::default();
        for relation in set.iter() {
            rows *= self.facts[relation].rows * self.share_of(relation, joined);
            joined = joined.with(RelationSet::of(relation));
        }
        let held = self.conditions.iter().filter(|(relations, _)| relations.is_within(set));
        let rows = held.fold(rows, |rows, (_, share)| rows * share);
        rows.max(1.0)
    }

    /// The part of all pairs of rows that stays when a relation comes to those that are joined.
    fn share_of(&self, relation: usize, joined: RelationSet) -> f64 {
        let (mut share, mut distinct, mut compared) = (1.0, 1.0, 0);
        // Which of the joined relations each comparison may be with, and the rows of those whose key is compared.
        let (mut partners, mut of_key) = (joined, f64::INFINITY);
        for class in &self.classes {
            let Some(own) = class.members.iter().find(|member| member.relation == relation) else { continue };
            let others = class.members.iter().filter(|member| joined.has(member.relation));
            let (mut theirs, mut count) = (f64::INFINITY, 0);
            for other in others.clone() {
                theirs = theirs.min(other.distinct);
                count += 1;
            }
            match (count, others.clone().next()) {
                (0, _) | (_, None) => continue,
                // The first relation of a class did not lose rows by being alone.
                (1, Some(first)) => share *= own.share * first.share,
                _ => share *= own.share,
            }
            for member in others.chain([own]).filter(|member| member.key) {
                of_key = of_key.min(self.facts[member.relation].all_rows);
            }
            distinct *= own.distinct.max(theirs);
            partners = partners.intersection(class.relations);
            compared += 1;
        }
        if compared > 1 {
            // Values of several columns do not occur in all combinations: there are as many as rows of one table or the
            // other, and unless one of the columns is a key, nothing says of which.
            let here = self.facts[relation].all_rows;
            let there = partners.iter().map(|partner| self.facts[partner].all_rows).reduce(f64::min);
            let combinations = there.map_or(here, |there| (here * there).sqrt());
            distinct = distinct.min(if of_key.is_finite() { of_key } else { combinations });
        }
        share / distinct.max(1.0)
    }
}

/// The cost of a join of so many rows with so many others, which gives so many.
pub(super) fn cost_of(one: f64, other: f64, output: f64) -> f64 {
    BUILD * one.min(other) + one.max(other) + OUTPUT * output
}

/// Unites equalities that share a column, as long as no relation comes in twice.
fn classes(tree: &Tree, facts: &[Facts]) -> Vec<EqualColumns> {
    let mut classes: Vec<Vec<usize>> = Vec::new();
    for (one, other) in &tree.equalities {
        let find = |column: &usize| classes.iter().position(|class| class.contains(column));
        match (find(one), find(other)) {
            (Some(first), Some(second)) if first == second => {}
            (Some(first), Some(second)) if apart(tree, &classes[first], &classes[second]) => {
                let moved = classes.swap_remove(first.max(second));
                classes[first.min(second)].extend(moved);
            }
            (Some(class), None) if apart(tree, &classes[class], &[*other]) => classes[class].push(*other),
            (None, Some(class)) if apart(tree, &classes[class], &[*one]) => classes[class].push(*one),
            // Such an equality stays by itself.
            _ => classes.push(vec![*one, *other]),
        }
    }
    classes.iter().map(|columns| EqualColumns::of(columns, tree, facts)).collect()
}

/// Whether no relation has columns on both sides.
fn apart(tree: &Tree, one: &[usize], other: &[usize]) -> bool {
    let relations = |columns: &[usize]| {
        columns
            .iter()
            .fold(RelationSet::default(), |all, column| all.with(RelationSet::of(tree.relation(*column))))
    };
    !relations(one).meets(relations(other))
}

impl EqualColumns {
    fn of(columns: &[usize], tree: &Tree, facts: &[Facts]) -> Self {
        let mut columns = columns.to_vec();
        columns.sort_unstable();
        let known: Vec<(usize, ColumnFacts)> = columns
            .iter()
            .map(|column| {
                let relation = tree.relation(*column);
                let facts = facts[relation].columns.get(column - tree.starts[relation]);
                (relation, facts.copied().unwrap_or_default())
            })
            .collect();
        // Only values that all have find partners.
        let (least, greatest) = known
            .iter()
            .filter_map(|(_, column)| column.range)
            .fold((f64::NEG_INFINITY, f64::INFINITY), |all, range| (all.0.max(range.0), all.1.min(range.1)));
        let within: Vec<(usize, ColumnFacts, f64)> = known
            .into_iter()
            .map(|(relation, column)| {
                let (within, share) = column.within(least, greatest);
                // Conditions ask for rows that have partners: for a year with sales, of a calendar of centuries.
                let Facts { rows, all_rows, .. } = &facts[relation];
                let share = if column.key == Key::Yes { (share * all_rows / rows).min(1.0) } else { share };
                (relation, within, share * (1.0 - within.nulls.unwrap_or(0.0)))
            })
            .collect();
        let most = values_of_key(&within);
        let free = within.iter().filter(|(_, column, _)| !column.pinned);
        let known = free.filter_map(|(_, column, _)| column.distinct).fold(f64::INFINITY, f64::min);
        let fewest = within.iter().map(|(other, ..)| facts[*other].all_rows).fold(f64::INFINITY, f64::min);
        let pinned = within.iter().filter(|(_, column, _)| column.pinned);
        let pinned = pinned.filter_map(|(_, column, _)| column.distinct).reduce(f64::min);
        let members = within.iter().zip(columns).map(|((relation, of, share), column)| {
            let distinct = match of.distinct {
                Some(distinct) if of.key == Key::Yes => distinct,
                Some(distinct) if of.pinned => distinct,
                Some(distinct) => distinct.min(most),
                None => fewest.min(known),
            };
            // Of the others, only the rows with those values find partners.
            let (distinct, share) = match pinned {
                Some(values) if !of.pinned => (values, share * (values / distinct).min(1.0)),
                _ => (distinct, *share),
            };
            Member { relation: *relation, column, share, distinct, key: of.key == Key::Yes }
        });
        let members: Vec<Member> = members.collect();
        let relations = members
            .iter()
            .fold(RelationSet::default(), |all, member| all.with(RelationSet::of(member.relation)));
        Self { members, relations }
    }
}

/// How many values the key has that the other columns refer to: their values are among those. Of several keys all but the
/// largest have a part of its values; of columns that only may be keys, the one with the fewest values is likely to be it.
fn values_of_key(columns: &[(usize, ColumnFacts, f64)]) -> f64 {
    let distinct = |key: Key| {
        let of = columns.iter().filter(move |(_, column, _)| column.key == key && !column.pinned);
        of.filter_map(|(_, column, _)| column.distinct)
    };
    let sure = distinct(Key::Yes).reduce(f64::max);
    sure.or_else(|| distinct(Key::Perhaps).reduce(f64::min)).unwrap_or(f64::INFINITY)
}
