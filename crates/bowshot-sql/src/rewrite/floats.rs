//! Types whose names say less in one dialect: `FLOAT` without a precision, which PostgreSQL takes for 64 bits, and others for 32;
//! times without one, whose seconds have no fraction in columns of MySQL.

use crate::dialect::DialectName;
use crate::walk::Tree;
use sqlparser::ast::{
    AlterColumnOperation, AlterTableOperation, ArrayElemTypeDef, DataType, ExactNumberInfo, Expr, Statement,
    TimezoneInfo,
};

/// Those that columns of tables are declared with.
pub(super) fn in_columns(statement: &mut Statement, dialect: DialectName) {
    let change: fn(&mut DataType) = match dialect {
        DialectName::Postgres => widen,
        DialectName::MySql => whole_seconds,
        DialectName::Ansi => return,
    };
    match statement {
        Statement::CreateTable(table) => {
            table.columns.iter_mut().for_each(|column| change(&mut column.data_type));
        }
        Statement::AlterTable(alter) => {
            for operation in &mut alter.operations {
                match operation {
                    AlterTableOperation::AddColumn { column_def, .. } => change(&mut column_def.data_type),
                    AlterTableOperation::AlterColumn {
                        op: AlterColumnOperation::SetDataType { data_type, .. },
                        ..
                    }
                    | AlterTableOperation::ModifyColumn { data_type, .. }
                    | AlterTableOperation::ChangeColumn { data_type, .. } => change(data_type),
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
        tree.change_expressions(|expr| {
            if let Expr::Cast { data_type, .. } = expr {
                widen(data_type);
            }
        });
    }
}

fn whole_seconds(data_type: &mut DataType) {
    if let DataType::Datetime(digits)
    | DataType::Timestamp(digits, TimezoneInfo::None)
    | DataType::Time(digits, TimezoneInfo::None) = data_type
    {
        digits.get_or_insert(0);
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
