//! The names that queries of WITH give to the places below them. A visitor says what it enters and leaves.

use crate::template::meaning;
use sqlparser::ast::Query;

/// A query of WITH.
pub(super) struct Name {
    pub(super) written: String,
    /// What it is called from now on, if that is another name.
    pub(super) now: Option<String>,
}

/// One query with the names that its WITH gives.
struct Frame {
    names: Vec<Name>,
    recursive: bool,
    /// How many of the queries of its WITH have been looked at: they come first, in their order.
    visible: usize,
}

impl Frame {
    fn seen(&self) -> &[Name] {
        let own = usize::from(self.recursive);
        self.names.get(..(self.visible + own).min(self.names.len())).unwrap_or_default()
    }
}

/// The queries around a place, the innermost last.
#[derive(Default)]
pub(super) struct WithNames(Vec<Frame>);

impl WithNames {
    pub(super) fn enter(&mut self, recursive: bool, names: Vec<Name>) {
        self.0.push(Frame { names, recursive, visible: 0 });
    }

    /// The same for a query whose names stay.
    pub(super) fn enter_query(&mut self, query: &Query) {
        let with = query.with.as_ref();
        let tables = with.map(|with| with.cte_tables.as_slice()).unwrap_or_default().iter();
        let names = tables.map(|table| Name { written: meaning(&table.alias.name), now: None }).collect();
        self.enter(with.is_some_and(|with| with.recursive), names);
    }

    pub(super) fn leave(&mut self) {
        self.0.pop();
        if let Some(around) = self.0.last_mut()
            && around.visible < around.names.len()
        {
            around.visible += 1;
        }
    }

    /// The query of WITH that a name means at this place.
    pub(super) fn find(&self, written: &str) -> Option<&Name> {
        let mut frames = self.0.iter().rev();
        frames.find_map(|frame| frame.seen().iter().rev().find(|name| name.written == written))
    }

    /// Whether a query around this place has the name in its WITH, whether it is seen from here or not.
    pub(super) fn is_taken(&self, written: &str) -> bool {
        self.0.iter().flat_map(|frame| &frame.names).any(|name| name.written == written)
    }
}
