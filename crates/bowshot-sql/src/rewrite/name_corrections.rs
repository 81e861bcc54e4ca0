//! Replaces column names that the planner did not find.

use super::outer_columns::qualifiers;
use crate::template::meaning;
use crate::walk::Tree;
use sqlparser::ast::{
    ExcludeSelectItem, Expr, GroupByExpr, Ident, Join, JoinConstraint, JoinOperator, ObjectName,
    ObjectNamePart, Select, SelectItem, TableWithJoins, VisitorMut,
};
use std::convert::Infallible;
use std::ops::ControlFlow;

/// Writes a column as it is spelled where it comes from, wherever a name has the meaning `name`; quoted names only if they
/// are to count. Returns whether there was one.
pub fn spell(statement: &mut impl Tree, name: &str, spelling: &str, quoted_too: bool) -> bool {
    let mut spell = Spell { name, spelling, quoted_too, found: false };
    let ControlFlow::Continue(()) = statement.walk(&mut spell);
    spell.found
}

struct Spell<'a> {
    name: &'a str,
    spelling: &'a str,
    quoted_too: bool,
    found: bool,
}

impl Spell<'_> {
    fn ident(&mut self, ident: &mut Ident) {
        if meaning(ident) == self.name && (ident.quote_style.is_none() || self.quoted_too) {
            *ident = Ident { quote_style: Some('"'), value: self.spelling.to_owned(), span: ident.span };
            self.found = true;
        }
    }

    fn last(&mut self, name: &mut ObjectName) {
        if let Some(ObjectNamePart::Identifier(ident)) = name.0.last_mut() {
            self.ident(ident);
        }
    }

    fn excluded(&mut self, item: &mut SelectItem) {
        let (SelectItem::Wildcard(options) | SelectItem::QualifiedWildcard(_, options)) = item else {
            return;
        };
        match &mut options.opt_exclude {
            Some(ExcludeSelectItem::Single(name)) => self.last(name),
            Some(ExcludeSelectItem::Multiple(names)) => names.iter_mut().for_each(|name| self.last(name)),
            None => {}
        }
        if let Some(except) = &mut options.opt_except {
            self.ident(&mut except.first_element);
            except.additional_elements.iter_mut().for_each(|name| self.ident(name));
        }
        if let Some(replace) = &mut options.opt_replace {
            replace.items.iter_mut().for_each(|item| self.ident(&mut item.column_name));
        }
    }

    fn using(&mut self, join: &mut Join) {
        if let JoinOperator::Join(constraint)
        | JoinOperator::Inner(constraint)
        | JoinOperator::Left(constraint)
        | JoinOperator::LeftOuter(constraint)
        | JoinOperator::Right(constraint)
        | JoinOperator::RightOuter(constraint)
        | JoinOperator::FullOuter(constraint) = &mut join.join_operator
            && let JoinConstraint::Using(names) = constraint
        {
            names.iter_mut().for_each(|name| self.last(name));
        }
    }
}

impl VisitorMut for Spell<'_> {
    type Break = Infallible;

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Infallible> {
        select.projection.iter_mut().for_each(|item| self.excluded(item));
        let joins = select.from.iter_mut().flat_map(|TableWithJoins { joins, .. }| joins);
        joins.for_each(|join| self.using(join));
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Infallible> {
        match expr {
            Expr::Identifier(ident) => self.ident(ident),
            Expr::CompoundIdentifier(names) => {
                let before = qualifiers(names);
                names.iter_mut().skip(before).for_each(|name| self.ident(name));
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// Puts what a column of the result is computed of in the place of its name, where the same SELECT uses the name:
/// `SELECT a + 1 AS b, b * 2 AS c`. Returns whether there was one.
pub fn inline_alias(statement: &mut impl Tree, name: &str) -> bool {
    let mut inline = Inline { name, found: false };
    statement.change_selects(|select| inline.in_select(select));
    inline.found
}

struct Inline<'a> {
    name: &'a str,
    found: bool,
}

impl Inline<'_> {
    fn put(&mut self, part: &mut impl Tree, column: &Expr) {
        part.change_expressions(|expr| {
            if matches!(expr, Expr::Identifier(ident) if meaning(ident) == self.name) {
                *expr = Expr::Nested(Box::new(column.clone()));
                self.found = true;
            }
        });
    }

    fn in_select(&mut self, select: &mut Select) {
        let defined = select.projection.iter().position(
            |item| matches!(item, SelectItem::ExprWithAlias { alias, .. } if meaning(alias) == self.name),
        );
        let Some(defined) = defined else { return };
        let Some(SelectItem::ExprWithAlias { expr, .. }) = select.projection.get(defined).cloned() else {
            return;
        };
        for item in select.projection.iter_mut().skip(defined + 1) {
            self.put(item, &expr);
        }
        for condition in
            [&mut select.selection, &mut select.having, &mut select.qualify].into_iter().flatten()
        {
            self.put(condition, &expr);
        }
        if let GroupByExpr::Expressions(keys, _) = &mut select.group_by {
            self.put(keys, &expr);
        }
    }
}
