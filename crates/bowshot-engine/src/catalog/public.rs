//! `public`, as tools of PostgreSQL call the default schema of unqualified names: where no schema has this name, it is
//! [`DEFAULT_SCHEMA`]. It is put in its place before anything is looked up, so that rights go by the one name. So is the schema of
//! the session's own tables for `pg_temp`.

use crate::catalog::names::ident;
use crate::databases::Databases;
use bowshot_api::catalog_names::{DEFAULT_SCHEMA, PG_TEMP, PUBLIC, TEMPORARY_CATALOG};
use bowshot_policy::snapshot::Pinned;
use bowshot_sql::Tree;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{Expr, Ident, ObjectName, ObjectNamePart, VisitorMut};
use std::convert::Infallible;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Where a statement looks for schemas.
pub(crate) struct Schemas<'a> {
    pub(crate) pinned: &'a Pinned,
    pub(crate) databases: &'a Arc<dyn Databases>,
    pub(crate) default_catalog: &'a str,
}

impl Schemas<'_> {
    /// Whether `public` is another name in a catalog. Other databases have their own.
    pub(crate) fn has_alias(&self, catalog: &str) -> bool {
        !self.databases.has(catalog)
            && !self.pinned.has_schema(catalog, PUBLIC)
            && self.pinned.has_schema(catalog, DEFAULT_SCHEMA)
    }
}

/// Puts the schema that is meant in the place of `public` in the names of tables and columns.
pub(crate) fn resolve(statement: &mut Statement, schemas: &Schemas<'_>) {
    match statement {
        Statement::Statement(statement) => {
            let ControlFlow::Continue(()) = statement.walk(&mut Public(schemas));
        }
        Statement::Explain(explain) => resolve(&mut explain.statement, schemas),
        _ => {}
    }
}

struct Public<'a>(&'a Schemas<'a>);

impl Public<'_> {
    fn put(&self, catalog: Option<&Ident>, schema: &mut Ident) {
        if ident(schema) != PUBLIC {
            return;
        }
        let catalog = catalog.map_or_else(|| self.0.default_catalog.to_owned(), ident);
        if self.0.has_alias(&catalog) {
            *schema = Ident { value: DEFAULT_SCHEMA.to_owned(), ..schema.clone() };
        }
    }
}

impl VisitorMut for Public<'_> {
    type Break = Infallible;

    fn pre_visit_relation(&mut self, relation: &mut ObjectName) -> ControlFlow<Infallible> {
        if let [schema, _] = relation.0.as_slice()
            && schema.as_ident().is_some_and(|schema| ident(schema) == PG_TEMP)
        {
            let place = [TEMPORARY_CATALOG, DEFAULT_SCHEMA].map(Ident::new);
            drop(relation.0.splice(..1, place.map(ObjectNamePart::Identifier)));
        }
        match relation.0.as_mut_slice() {
            [ObjectNamePart::Identifier(schema), _] => self.put(None, schema),
            [catalog, ObjectNamePart::Identifier(schema), _] => self.put(catalog.as_ident(), schema),
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Infallible> {
        let Expr::CompoundIdentifier(parts) = expr else { return ControlFlow::Continue(()) };
        if let [schema, _, _] = parts.as_slice()
            && ident(schema) == PG_TEMP
        {
            drop(parts.splice(..1, [TEMPORARY_CATALOG, DEFAULT_SCHEMA].map(Ident::new)));
        }
        if let [schema, _, _] = parts.as_mut_slice() {
            self.put(None, schema);
        }
        ControlFlow::Continue(())
    }
}
