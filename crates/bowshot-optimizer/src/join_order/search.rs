//! The cheapest order to join relations in: all orders that compare columns in each join are looked at while there are few
//! relations, else the cheapest next join is taken each time.

use super::cost::{Model, cost_of};
use super::set::RelationSet;
use super::tree::Shape;

/// All orders are looked at for so many relations; the number of those that are compared is 3 to this.
const EXHAUSTIVE: usize = 10;

/// The cheapest shape; `None` if no equality connects some of the relations.
pub(super) fn cheapest(model: &mut Model) -> Option<Shape> {
    if model.relations() <= EXHAUSTIVE { exhaustive(model) } else { greedy(model) }
}

/// What is known of a set of relations: the least cost to join them, and the two parts that are joined last.
type Best = Option<(f64, RelationSet)>;

/// Dynamic programming over all sets of relations, with bushy shapes (Moerkotte and Neumann, "Analysis of Two Existing and
/// One New Dynamic Programming Algorithm for the Generation of Optimal Bushy Join Trees without Cross Products", VLDB
/// 2006: the one by size of subsets).
fn exhaustive(model: &mut Model) -> Option<Shape> {
    let all = (1_usize << model.relations()) - 1;
    let rows: Vec<f64> = (0..=all).map(|set| model.rows(RelationSet(set as u64))).collect();
    let mut best: Vec<Best> = vec![None; all + 1];
    for relation in 0..model.relations() {
        best[1 << relation] = Some((0.0, RelationSet::default()));
    }
    for set in 1..=all {
        if set.is_power_of_two() {
            continue;
        }
        // The part with the first relation; the other has the rest.
        let first = set & set.wrapping_neg();
        let mut part = (set - 1) & set;
        while part > 0 {
            if part & first != 0
                && let (Some((one, _)), Some((other, _))) = (best[part], best[set & !part])
            {
                let (left, right) = (RelationSet(part as u64), RelationSet((set & !part) as u64));
                if model.connects(left, right) {
                    let cost = one + other + cost_of(rows[part], rows[set & !part], rows[set]);
                    if best[set].is_none_or(|(least, _)| cost < least) {
                        best[set] = Some((cost, left));
                    }
                }
            }
            part = (part - 1) & set;
        }
    }
    shape(RelationSet(all as u64), &best)
}

fn shape(set: RelationSet, best: &[Best]) -> Option<Shape> {
    if set.len() == 1 {
        return set.iter().next().map(Shape::Relation);
    }
    let (_, left) = best[usize::try_from(set.0).ok()?]?;
    let join = Shape::Join(Box::new(shape(left, best)?), Box::new(shape(set.without(left), best)?));
    Some(join)
}

/// Joins the two parts of which joining is cheapest, until there is one (greedy operator ordering: Fegaras, "A New Heuristic
/// for Optimizing Large Queries", DEXA 1998).
fn greedy(model: &mut Model) -> Option<Shape> {
    let mut parts: Vec<Shape> = (0..model.relations()).map(Shape::Relation).collect();
    while parts.len() > 1 {
        let mut best: Option<(f64, usize, usize)> = None;
        for right in 1..parts.len() {
            for left in 0..right {
                let sets = (parts[left].relations(), parts[right].relations());
                if !model.connects(sets.0, sets.1) {
                    continue;
                }
                let cost = model.join_cost(sets.0, sets.1);
                if best.is_none_or(|(least, ..)| cost < least) {
                    best = Some((cost, left, right));
                }
            }
        }
        let (_, left, right) = best?;
        let right = parts.swap_remove(right);
        let joined = Shape::Join(Box::new(parts[left].clone()), Box::new(right));
        parts[left] = joined;
    }
    parts.pop()
}
