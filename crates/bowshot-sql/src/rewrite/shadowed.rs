//! A query of WITH that has the name of one around it: the planner has one list of names for both, so the inner one gets another
//! name, and its uses an alias.

use super::with_names::{Name, WithNames};
use crate::template::{meaning, quoted};
use crate::walk::Tree;
use sqlparser::ast::{Ident, ObjectName, Query, TableAlias, TableFactor, VisitorMut};
use std::convert::Infallible;
use std::ops::ControlFlow;

pub(super) fn rename(statement: &mut impl Tree) {
    let ControlFlow::Continue(()) = statement.walk(&mut Shadowed::default());
}

#[derive(Default)]
struct Shadowed {
    around: WithNames,
    renamed: usize,
}

impl Shadowed {
    fn enter(&mut self, query: &mut Query) {
        let (mut recursive, mut names) = (false, Vec::new());
        if let Some(with) = &mut query.with {
            recursive = with.recursive;
            for table in &mut with.cte_tables {
                names.push(self.name(&mut table.alias.name));
            }
        }
        self.around.enter(recursive, names);
    }

    fn name(&mut self, alias: &mut Ident) -> Name {
        let written = meaning(alias);
        let now = self.around.is_taken(&written).then(|| {
            self.renamed += 1;
            format!("{written}__{}", self.renamed)
        });
        if let Some(now) = &now {
            *alias = quoted(now);
        }
        Name { written, now }
    }

    fn now(&self, written: &str) -> Option<String> {
        self.around.find(written).and_then(|name| name.now.clone())
    }
}

impl VisitorMut for Shadowed {
    type Break = Infallible;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Infallible> {
        self.enter(query);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Infallible> {
        self.around.leave();
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
