//! `FLOAT` without a precision, which PostgreSQL takes for 64 bits, and others for 32.

use crate::dialect::DialectName;
use crate::walk::Tree;
use sqlparser::ast::{
    AlterColumnOperation, AlterTableOperation, ArrayElemTypeDef, DataType, ExactNumberInfo, Expr, Statement,
    VisitorMut,
};
use std::ops::ControlFlow;

/// Those that columns of tables are declared with.
pub(super) fn in_columns(statement: &mut Statement, dialect: DialectName) {
    if dialect != DialectName::Postgres {
        return;
    }
    match statement {
        Statement::CreateTable(table) => {
            table.columns.iter_mut().for_each(|column| widen(&mut column.data_type));
        }
        Statement::AlterTable(alter) => {
            for operation in &mut alter.operations {
                match operation {
                    AlterTableOperation::AddColumn { column_def, .. } => widen(&mut column_def.data_type),
                    AlterTableOperation::AlterColumn {
                        op: AlterColumnOperation::SetDataType { data_type, .. },
                        ..
                    } => widen(data_type),
                    _ => {}
                }
            }
        }
        _ => {}
    }
}

/// Those of casts.
pub(super) fn in_casts(tree: &mut impl Tree, dialect: DialectName) {
    if dialect == DialectName::Postgres {
        let _ = tree.walk(&mut Casts);
    }
}

struct Casts;

impl VisitorMut for Casts {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Cast { data_type, .. } = expr {
            widen(data_type);
        }
        ControlFlow::Continue(())
    }
}

fn widen(data_type: &mut DataType) {
    match data_type {
        DataType::Float(ExactNumberInfo::None) => *data_type = DataType::DoublePrecision,
        DataType::Array(
            ArrayElemTypeDef::AngleBracket(inner)
            | ArrayElemTypeDef::SquareBracket(inner, _)
            | ArrayElemTypeDef::Parenthesis(inner),
        ) => widen(inner),
        _ => {}
    }
}
