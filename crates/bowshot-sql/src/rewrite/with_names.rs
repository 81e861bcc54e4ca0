//! The names that queries of WITH give to the places below them. A visitor says what it enters and leaves.

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
