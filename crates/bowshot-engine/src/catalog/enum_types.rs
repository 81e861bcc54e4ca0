//! Which enumerated type a name means in one statement. Types belong to the snapshot of the statement as its tables do; one that
//! its caller may not know is not there.

use super::names::ident;
use super::public::Schemas;
use bowshot_api::catalog_names::{DEFAULT_SCHEMA, PUBLIC};
use bowshot_policy::Access;
use bowshot_policy::rules::Rules;
use bowshot_sql::Tree;
use bowshot_system_catalog::enum_types::may_know;
use bowshot_tables::EntryName;
use bowshot_types::enums::EnumType;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    self, AlterColumnOperation, AlterTableOperation, ArrayElemTypeDef, ColumnDef, ColumnOption,
    DataType as SqlType, Expr, ObjectName, VisitorMut,
};
use std::convert::Infallible;
use std::ops::ControlFlow;
use std::sync::Arc;

/// The types that one statement may name.
pub(crate) struct SeenTypes<'a> {
    schemas: Schemas<'a>,
    default_schema: &'a str,
    /// Schemas that names are looked for in after the default one.
    path: &'a [String],
    access: &'a Access,
    rules: Arc<Rules>,
}

impl<'a> SeenTypes<'a> {
    pub(crate) fn new(
        schemas: Schemas<'a>,
        (default_schema, path): (&'a str, &'a [String]),
        access: &'a Access,
    ) -> Self {
        let rules = schemas.pinned.shared().notes().read(Rules::of);
        Self { schemas, default_schema, path, access, rules }
    }

    /// The full name of a type that is there or will be; `None` for what is no name of one.
    pub(crate) fn full_name(&self, name: &ObjectName) -> Option<EntryName> {
        let parts: Option<Vec<String>> = name.0.iter().map(|part| part.as_ident().map(ident)).collect();
        let catalog = self.schemas.default_catalog;
        match parts?.as_slice() {
            [name] => Some(EntryName::new(catalog, self.default_schema, name)),
            [schema, name] => Some(EntryName::new(catalog, self.schema(catalog, schema), name)),
            [catalog, schema, name] => Some(EntryName::new(catalog, self.schema(catalog, schema), name)),
            _ => None,
        }
    }

    /// The full name of a type that is there, in whatever schema of the path; of another one, that of the first schema.
    pub(crate) fn known_name(&self, name: &ObjectName) -> Option<EntryName> {
        self.find(name).and_then(|found| found.name).or_else(|| self.full_name(name))
    }

    fn schema<'s>(&self, catalog: &str, schema: &'s str) -> &'s str {
        if schema == PUBLIC && self.schemas.has_alias(catalog) { DEFAULT_SCHEMA } else { schema }
    }

    /// Puts the labels in the place of the names of types.
    pub(crate) fn resolve(&self, statement: &mut Statement) {
        if self.rules.types.is_empty() {
            return;
        }
        match statement {
            Statement::Statement(statement) => {
                let ControlFlow::Continue(()) = statement.walk(&mut Resolve(self));
            }
            Statement::Explain(explain) => self.resolve(&mut explain.statement),
            _ => {}
        }
    }

    fn find(&self, name: &ObjectName) -> Option<EnumType> {
        let first = self.full_name(name)?;
        let path = if name.0.len() == 1 { self.path } else { &[] };
        let others = path.iter().map(|schema| EntryName::new(&first.catalog, schema, &first.name));
        std::iter::once(first.clone()).chain(others).find_map(|name| {
            let labels = self.rules.types.get(&name).filter(|_| may_know(&name, self.access))?.clone();
            Some(EnumType { name: Some(name), labels })
        })
    }

    fn resolve_type(&self, data_type: &mut SqlType) {
        let found = match data_type {
            SqlType::Custom(name, modifiers) if modifiers.is_empty() => self.find(name),
            SqlType::Array(
                ArrayElemTypeDef::AngleBracket(item)
                | ArrayElemTypeDef::SquareBracket(item, _)
                | ArrayElemTypeDef::Parenthesis(item),
            ) => {
                self.resolve_type(item);
                None
            }
            _ => None,
        };
        if let Some(found) = found {
            *data_type = found.syntax();
        }
    }
}

impl SeenTypes<'_> {
    fn resolve_column(&self, column: &mut ColumnDef) {
        self.resolve_type(&mut column.data_type);
        for option in &mut column.options {
            if let ColumnOption::Default(value) = &mut option.option {
                self.resolve_default(value);
            }
        }
    }

    /// A default is held against the type of its column anyway: `'a'::t` is kept as the text.
    fn resolve_default(&self, value: &mut Expr) {
        if let Expr::Cast { expr, data_type: SqlType::Custom(name, _), .. } = value
            && matches!(expr.as_ref(), Expr::Value(_))
            && self.find(name).is_some()
        {
            *value = expr.as_ref().clone();
        }
    }
}

struct Resolve<'a>(&'a SeenTypes<'a>);

impl VisitorMut for Resolve<'_> {
    type Break = Infallible;

    fn pre_visit_statement(&mut self, statement: &mut ast::Statement) -> ControlFlow<Infallible> {
        match statement {
            ast::Statement::CreateTable(create) => {
                create.columns.iter_mut().for_each(|column| self.0.resolve_column(column));
            }
            ast::Statement::AlterTable(alter) => {
                for operation in &mut alter.operations {
                    match operation {
                        AlterTableOperation::AddColumn { column_def, .. } => {
                            self.0.resolve_column(column_def);
                        }
                        AlterTableOperation::AlterColumn {
                            op: AlterColumnOperation::SetDefault { value },
                            ..
                        } => self.0.resolve_default(value),
                        AlterTableOperation::ChangeColumn { data_type, .. }
                        | AlterTableOperation::ModifyColumn { data_type, .. }
                        | AlterTableOperation::AlterColumn {
                            op: AlterColumnOperation::SetDataType { data_type, .. },
                            ..
                        } => self.0.resolve_type(data_type),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Infallible> {
        match expr {
            Expr::Cast { data_type, .. } | Expr::Convert { data_type: Some(data_type), .. } => {
                self.0.resolve_type(data_type);
            }
            Expr::TypedString(typed) => self.0.resolve_type(&mut typed.data_type),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}
