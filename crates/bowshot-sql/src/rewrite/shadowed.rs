//! A query of WITH that has the name of one around it: the planner has one list of names for both, so the inner one gets another
//! name, and its uses an alias.

use crate::template::{meaning, quoted};
use crate::walk::Tree;
use sqlparser::ast::{ObjectName, Query, TableAlias, TableFactor, VisitorMut};
use std::convert::Infallible;
use std::ops::ControlFlow;

pub(super) fn rename(statement: &mut impl Tree) {
    let ControlFlow::Continue(()) = statement.walk(&mut Shadowed::default());
}

#[derive(Default)]
struct Shadowed {
    frames: Vec<Frame>,
    renamed: usize,
}

/// One query with the names that its WITH gives.
struct Frame {
    names: Vec<Name>,
    recursive: bool,
    /// How many of the queries of its WITH have been looked at: they come first, in their order.
    visible: usize,
}

struct Name {
    written: String,
    /// What it is called from now on, if that is another name.
    now: Option<String>,
}

impl Frame {
    fn seen(&self) -> &[Name] {
        let own = usize::from(self.recursive);
        self.names.get(..(self.visible + own).min(self.names.len())).unwrap_or_default()
    }
}

impl Shadowed {
    fn frame(&mut self, query: &mut Query) -> Frame {
        let mut frame = Frame { names: Vec::new(), recursive: false, visible: 0 };
        let Some(with) = &mut query.with else { return frame };
        frame.recursive = with.recursive;
        for table in &mut with.cte_tables {
            let written = meaning(&table.alias.name);
            let around =
                self.frames.iter().flat_map(|frame| &frame.names).any(|name| name.written == written);
            let now = around.then(|| {
                self.renamed += 1;
                format!("{written}__{}", self.renamed)
            });
            if let Some(now) = &now {
                table.alias.name = quoted(now);
            }
            frame.names.push(Name { written, now });
        }
        frame
    }

    fn now(&self, written: &str) -> Option<String> {
        let frames = self.frames.iter().rev();
        let mut found =
            frames.filter_map(|frame| frame.seen().iter().rev().find(|name| name.written == written));
        found.next().and_then(|name| name.now.clone())
    }
}

impl VisitorMut for Shadowed {
    type Break = Infallible;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Infallible> {
        let frame = self.frame(query);
        self.frames.push(frame);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Infallible> {
        self.frames.pop();
        if let Some(around) = self.frames.last_mut()
            && around.visible < around.names.len()
        {
            around.visible += 1;
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Infallible> {
        let TableFactor::Table { name, alias, args: None, .. } = factor else {
            return ControlFlow::Continue(());
        };
        let [part] = name.0.as_slice() else { return ControlFlow::Continue(()) };
        let Some(ident) = part.as_ident().cloned() else { return ControlFlow::Continue(()) };
        if let Some(now) = self.now(&meaning(&ident)) {
            *name = ObjectName::from(vec![quoted(&now)]);
            alias.get_or_insert(TableAlias { explicit: true, name: ident, columns: Vec::new(), at: None });
        }
        ControlFlow::Continue(())
    }
}
