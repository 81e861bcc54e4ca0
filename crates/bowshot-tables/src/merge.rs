//! Merges what one transaction changed into what others did meanwhile: three states of the same thing go in, the base
//! that the transaction began with, what it made of it, and the head. The module `tables` has the rules.
//!
//! Catalogs, schemas and entries follow one rule ([`merge_children`]): what is the same in base and changed is left as
//! the head has it; what was made, dropped or put in another's place needs the head to be as the base was; what only
//! changed inside is merged inside. Only the rows of a table ([`merge_rows`]) have a finer rule.

use super::key_conflicts::{NewRows, may_share_key};
use super::snapshot::{CatalogState, SchemaState};
use super::{Entry, EntryName, Error, Segment, Snapshot, Table, What};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use uuid::Uuid;

/// Rows of a segment in memory that are taken out of another one while other commits wait.
const MAX_ROWS_TAKEN_OUT: usize = 8192;

#[derive(Debug)]
pub(super) struct Sides<'a, T> {
    pub(super) base: &'a T,
    pub(super) changed: &'a T,
    pub(super) head: &'a T,
}

impl<'a, T> Sides<'a, T> {
    pub(super) fn part<P>(&self, part: impl Fn(&'a T) -> &'a P) -> Sides<'a, P> {
        Sides { base: part(self.base), changed: part(self.changed), head: part(self.head) }
    }
}

pub(super) trait Node: Clone {
    fn what(&self) -> What;
    /// Stays while the thing changes.
    fn id(&self) -> Uuid;
    /// Whether both are the very same state of the same thing.
    fn same(&self, other: &Self) -> bool;
    /// Whether both are the same but for where rows are kept, which background maintenance changes: that is nobody's conflict.
    fn alike(&self, other: &Self) -> bool {
        self.same(other)
    }
    /// The merge of three states of the same thing, of which base and changed differ.
    fn merge(sides: Sides<'_, Self>, name: &str) -> Result<Self, Error>;
}

/// Merges things by name; `parent` is the whole name of what they are in.
pub(super) fn merge_children<N: Node>(
    sides: Sides<'_, BTreeMap<String, N>>,
    parent: &str,
) -> Result<BTreeMap<String, N>, Error> {
    let mut merged = sides.head.clone();
    let names: BTreeSet<&String> = sides.base.keys().chain(sides.changed.keys()).collect();
    for name in names {
        let (base, changed, head) = (sides.base.get(name), sides.changed.get(name), sides.head.get(name));
        if same_state(base, changed) {
            continue;
        }
        let whole_name = || if parent.is_empty() { name.clone() } else { format!("{parent}.{name}") };
        let result = match (base, changed, head) {
            (Some(base), Some(changed), Some(head))
                if base.id() == changed.id() && base.id() == head.id() =>
            {
                Some(N::merge(Sides { base, changed, head }, &whole_name())?)
            }
            _ if same_state(base, head) => changed.cloned(),
            (Some(base), _, Some(head)) if base.alike(head) => changed.cloned(),
            _ => return Err(conflict(base, head, whole_name())),
        };
        match result {
            Some(node) => merged.insert(name.clone(), node),
            None => merged.remove(name),
        };
    }
    Ok(merged)
}

pub(super) fn all_children<N: Node>(
    one: &BTreeMap<String, N>,
    other: &BTreeMap<String, N>,
    are: impl Fn(&N, &N) -> bool,
) -> bool {
    let pairs = || one.iter().zip(other);
    one.len() == other.len()
        && pairs().all(|((name, node), (other_name, other))| name == other_name && are(node, other))
}

/// Whether what is under each of the names is still what it was, but for where rows are kept.
pub(super) fn are_unchanged(names: &BTreeSet<EntryName>, base: &Snapshot, head: &Snapshot) -> bool {
    names.iter().all(|name| match (base.entry(name), head.entry(name)) {
        (Some(base), Some(head)) => base.id() == head.id() && base.alike(head),
        (None, None) => true,
        (Some(_), None) | (None, Some(_)) => false,
    })
}

pub(super) fn changed_tables(head: &Snapshot, merged: &Snapshot) -> Vec<(EntryName, Arc<Table>)> {
    tables_where(head, merged, |before, entry| !same_state(before, Some(entry)))
}

/// The tables that `merged` has in the state of the head, after changes that undo one another: they lack its version.
pub(super) fn restored_tables(head: &Snapshot, merged: &Snapshot) -> Vec<(EntryName, Arc<Table>)> {
    tables_where(head, merged, |before, entry| match (before, entry) {
        (Some(Entry::Table(before)), Entry::Table(table)) => {
            !Arc::ptr_eq(before, table) && before.same(table)
        }
        _ => false,
    })
}

fn tables_where(
    head: &Snapshot,
    merged: &Snapshot,
    is_wanted: impl Fn(Option<&Entry>, &Entry) -> bool,
) -> Vec<(EntryName, Arc<Table>)> {
    let mut found = Vec::new();
    for (catalog, merged) in merged.catalog_states() {
        let head = head.catalog_states().get(catalog);
        if head.is_some_and(|head| Arc::ptr_eq(head, merged)) {
            continue;
        }
        for (schema, merged) in &merged.schemas {
            let head = head.and_then(|head| head.schemas.get(schema));
            if head.is_some_and(|head| Arc::ptr_eq(head, merged)) {
                continue;
            }
            for (name, entry) in &merged.entries {
                let before = head.and_then(|head| head.entries.get(name));
                if let (Entry::Table(table), true) = (entry, is_wanted(before, entry)) {
                    found.push((EntryName::new(catalog, schema, name), Arc::clone(table)));
                }
            }
        }
    }
    found
}

/// What has children by name is merged by them.
macro_rules! parent_node {
    ($state:ident, $what:expr, $children:ident) => {
        impl Node for Arc<$state> {
            fn what(&self) -> What {
                $what
            }

            fn id(&self) -> Uuid {
                self.id
            }

            fn same(&self, other: &Self) -> bool {
                Arc::ptr_eq(self, other)
                    || (self.id == other.id && all_children(&self.$children, &other.$children, Node::same))
            }

            fn alike(&self, other: &Self) -> bool {
                self.id == other.id && all_children(&self.$children, &other.$children, Node::alike)
            }

            fn merge(sides: Sides<'_, Self>, name: &str) -> Result<Self, Error> {
                if Arc::ptr_eq(sides.base, sides.head) {
                    return Ok(Arc::clone(sides.changed));
                }
                let $children = merge_children(sides.part(|state| &state.$children), name)?;
                Ok(Self::new($state { id: sides.head.id, $children }))
            }
        }
    };
}

parent_node!(CatalogState, What::Catalog, schemas);
parent_node!(SchemaState, What::Schema, entries);

impl Node for Entry {
    fn what(&self) -> What {
        match self {
            Self::Table(_) | Self::External(_) => What::Table,
            Self::View(_) => What::View,
            Self::Broken(broken) => broken.what,
        }
    }

    fn id(&self) -> Uuid {
        match self {
            Self::Table(table) => table.id(),
            Self::View(view) => view.id,
            Self::External(external) => external.id,
            Self::Broken(broken) => broken.id,
        }
    }

    fn same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Table(one), Self::Table(other)) => Arc::ptr_eq(one, other) || one.same(other),
            (Self::View(one), Self::View(other)) => Arc::ptr_eq(one, other) || one == other,
            (Self::External(one), Self::External(other)) => Arc::ptr_eq(one, other) || one == other,
            (Self::Broken(one), Self::Broken(other)) => Arc::ptr_eq(one, other),
            (Self::Table(_) | Self::View(_) | Self::External(_) | Self::Broken(_), _) => false,
        }
    }

    fn alike(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Table(one), Self::Table(other)) => one.same_rows(other),
            _ => self.same(other),
        }
    }

    fn merge(sides: Sides<'_, Self>, name: &str) -> Result<Self, Error> {
        let Sides { base, changed, head } = sides;
        if base.same(head) {
            return Ok(changed.clone());
        }
        let merged = match (base, changed, head) {
            (Self::Table(base), Self::Table(changed), Self::Table(head))
                if base.same_rows(head) && !Arc::ptr_eq(base.definition(), changed.definition()) =>
            {
                redefined(Sides { base: base.as_ref(), changed: changed.as_ref(), head: head.as_ref() })
            }
            (Self::Table(base), Self::Table(changed), Self::Table(head)) => {
                merge_rows(Sides { base: base.as_ref(), changed: changed.as_ref(), head: head.as_ref() })
            }
            _ => None,
        };
        match merged {
            Some(table) => Ok(Self::Table(Arc::new(table))),
            None => Err(conflict(Some(base), Some(head), name.to_owned())),
        }
    }
}

/// The table with another definition, where the head's rows were only moved: segments that are there no more get other numbers.
fn redefined(sides: Sides<'_, Table>) -> Option<Table> {
    let (before, now) = (ids(sides.base), ids(sides.head));
    let segments = sides.changed.shared_segments().iter().map(|segment| {
        let has_moved = before.contains(&segment.id()) && !now.contains(&segment.id());
        if has_moved { segment.again().ok().map(Arc::new) } else { Some(Arc::clone(segment)) }
    });
    let segments = segments.collect::<Option<Vec<_>>>()?;
    Some(sides.changed.with_segments(segments).numbered(sides.head.version(), None))
}

/// The head's rows without the segments that the transaction removed and with those it added; `None` if a change would be lost.
fn merge_rows(sides: Sides<'_, Table>) -> Option<Table> {
    let Sides { base, changed, head } = sides;
    let definition = base.definition();
    if !Arc::ptr_eq(definition, changed.definition()) || !Arc::ptr_eq(definition, head.definition()) {
        return None;
    }
    // The keys of the added rows were compared with the rows of the base; uniting segments changes none.
    let inserts = changed.edits().inserted != base.edits().inserted;
    let has_keys = definition.keys().next().is_some();
    if has_keys && inserts && may_share_key(base, &new_rows(base, changed), &new_rows(base, head)) {
        return None;
    }
    let segments = merged_segments(&sides, false).or_else(|| merged_segments(&sides, true))?;
    let edits = head.edits().plus(changed.edits().minus(base.edits()));
    let merged = head.with_segments(segments).with_edits(edits);
    // Rows that were only moved are those of the head's version.
    Some(if edits == head.edits() { merged } else { merged.numbered(head.version(), None) })
}

/// The segments of both sides. A file of the head that was made of segments of the base loses rows as it is, by which later merges know
/// it, or is taken apart first: then it may lose any number.
fn merged_segments(sides: &Sides<'_, Table>, apart: bool) -> Option<Vec<Arc<Segment>>> {
    let (base, changed) = (sides.base, sides.changed);
    let mut added = without(changed.shared_segments(), &ids(base));
    let mut removed: HashSet<u64> = ids(base).difference(&ids(changed)).copied().collect();
    let mut there = sides.head.shared_segments().to_vec();
    let known = if apart { by_id(base) } else { HashMap::new() };
    for segment in base.shared_segments() {
        if removed.contains(&segment.id()) && merge_lost_rows((segment, &known), &mut added, &mut there)? {
            removed.remove(&segment.id());
        }
    }
    let there = taken_apart(base, there, &removed)?;
    let mut segments = without(&there, &removed);
    segments.extend(added);
    Some(segments)
}

/// Merges the rows that one side has taken out of a segment into what the other side has made of the same segment: `added` are segments
/// of the transaction, `there` those of the head; files that have nothing but rows of `known` are taken apart. `false` where there is
/// nothing to merge, `None` if both took out the same row.
fn merge_lost_rows(
    (base, known): (&Arc<Segment>, &HashMap<u64, &Arc<Segment>>),
    added: &mut Vec<Arc<Segment>>,
    there: &mut Vec<Arc<Segment>>,
) -> Option<bool> {
    if there.iter().any(|segment| segment.id() == base.id()) {
        return Some(false);
    }
    let rest_of_base = |segments: &[Arc<Segment>]| {
        segments.iter().enumerate().find_map(|(place, segment)| Some((place, segment.lost_of(base)?)))
    };
    let made_of_base = |segments: &[Arc<Segment>]| segments.iter().position(|it| it.is_made_of(base));
    let is_taken_apart = |segments: &[Arc<Segment>], at: usize| {
        segments.get(at).is_some_and(|it| {
            it.file().is_some() && !it.is_stored_with(base) && it.parts_among(known).is_some()
        })
    };
    match (rest_of_base(added.as_slice()), rest_of_base(there.as_slice())) {
        // The transaction has only moved the rows.
        (Some((ours, lost)), Some((theirs, lost_there))) if lost.is_empty() => {
            take_out(base, &lost_there, (added, ours))?;
            there.remove(theirs);
        }
        (Some((ours, lost)), theirs) => {
            let theirs = theirs.map(|(place, _)| place);
            let Some(target) = theirs.or_else(|| made_of_base(there.as_slice())) else { return Some(false) };
            if is_taken_apart(there.as_slice(), target) {
                return Some(false);
            }
            take_out(base, &lost, (there, target))?;
            added.remove(ours);
        }
        // The transaction has united the rows with others.
        (None, Some((theirs, lost))) => {
            let Some(target) = made_of_base(added.as_slice()) else { return Some(false) };
            take_out(base, &lost, (added, target))?;
            there.remove(theirs);
        }
        // The transaction has taken out the whole segment, which the head has united with others.
        (None, None) => {
            let is_small = base.memory().is_some() && base.rows() <= MAX_ROWS_TAKEN_OUT;
            let target = made_of_base(there.as_slice()).filter(|_| is_small);
            let Some(target) = target.filter(|_| made_of_base(added.as_slice()).is_none()) else {
                return Some(false);
            };
            if is_taken_apart(there.as_slice(), target) {
                return Some(false);
            }
            let all: Vec<u32> = (0..base.stored_rows() as u32).collect();
            take_out(base, &all, (there, target))?;
        }
    }
    Some(true)
}

/// Takes stored rows of `base` out of the segment at a place. `None` where one of them is gone.
fn take_out(base: &Segment, lost: &[u32], (segments, at): (&mut Vec<Arc<Segment>>, usize)) -> Option<()> {
    let target = segments.get(at)?;
    let rows = lost.iter().map(|row| target.place_of_row(base, *row)).collect::<Option<Vec<u32>>>()?;
    if rows.iter().any(|row| target.deleted().contains(*row as usize)) {
        return None;
    }
    match target.losing(&rows)? {
        Some(left) => *segments.get_mut(at)? = left,
        None => drop(segments.remove(at)),
    }
    Some(())
}

fn new_rows(base: &Table, later: &Table) -> Vec<NewRows> {
    let there: HashSet<u64> = base.shared_segments().iter().map(|segment| segment.origin()).collect();
    let unknown = later.shared_segments().iter().filter(|segment| !there.contains(&segment.origin()));
    let rows = unknown.map(|segment| NewRows::new(Arc::clone(segment), segment.rows_beyond(&there)));
    rows.filter(|rows| rows.count() > 0).collect()
}

/// The head's segments, in which those that were united since the base are single again where the transaction has
/// taken one of them out: uniting changes no row, so it is nobody's conflict. `None` if another one took them out.
fn taken_apart(base: &Table, head: Vec<Arc<Segment>>, removed: &HashSet<u64>) -> Option<Vec<Arc<Segment>>> {
    let ids: HashSet<u64> = head.iter().map(|segment| segment.id()).collect();
    let mut missing: HashSet<u64> = removed.difference(&ids).copied().collect();
    if missing.is_empty() {
        return Some(head);
    }
    let there = by_id(base);
    let mut segments = Vec::new();
    for segment in head {
        let parts = segment.parts_among(&there);
        match parts.filter(|parts| parts.iter().any(|part| missing.contains(&part.id()))) {
            None => segments.push(segment),
            Some(parts) => {
                for part in parts {
                    if !missing.remove(&part.id()) {
                        // Its number has had its time.
                        segments.push(Arc::new(part.again().ok()?.of_parts(&[part])));
                    }
                }
            }
        }
    }
    missing.is_empty().then_some(segments)
}

fn by_id(table: &Table) -> HashMap<u64, &Arc<Segment>> {
    table.shared_segments().iter().map(|segment| (segment.id(), segment)).collect()
}

fn ids(table: &Table) -> HashSet<u64> {
    table.shared_segments().iter().map(|segment| segment.id()).collect()
}

fn without(segments: &[Arc<Segment>], ids: &HashSet<u64>) -> Vec<Arc<Segment>> {
    segments.iter().filter(|segment| !ids.contains(&segment.id())).cloned().collect()
}

fn same_state<N: Node>(one: Option<&N>, other: Option<&N>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => one.same(other),
        (None, None) => true,
        (Some(_), None) | (None, Some(_)) => false,
    }
}

fn conflict<N: Node>(base: Option<&N>, head: Option<&N>, name: String) -> Error {
    let change = match (base, head) {
        (None, _) => "created",
        (Some(_), None) => "dropped",
        (Some(_), Some(_)) => "changed",
    };
    let what = head.or(base).map_or(What::Table, Node::what);
    Error::Conflict { what, name, change }
}
