//! Foreign keys as the tools of PostgreSQL and MySQL write them: they are kept and shown, and nobody enforces them. Elsewhere the
//! statement has to say so itself, with NOT ENFORCED.

use crate::dialect::DialectName;
use sqlparser::ast::{
    AlterTableOperation, ColumnDef, ColumnOption, ConstraintCharacteristics, ForeignKeyConstraint, Statement,
    TableConstraint,
};

pub(super) fn as_notes(statement: &mut Statement, dialect: DialectName) {
    if dialect == DialectName::Ansi {
        return;
    }
    match statement {
        Statement::CreateTable(create) => {
            create.constraints.iter_mut().for_each(constraint);
            create.columns.iter_mut().for_each(column);
        }
        Statement::AlterTable(alter) => {
            for operation in &mut alter.operations {
                match operation {
                    AlterTableOperation::AddConstraint { constraint: added, .. } => constraint(added),
                    AlterTableOperation::AddColumn { column_def, .. } => column(column_def),
                    _ => {}
                }
            }
        }
        _ => {}
    }
}

fn constraint(constraint: &mut TableConstraint) {
    if let TableConstraint::ForeignKey(key) = constraint {
        note(key);
    }
}

fn column(column: &mut ColumnDef) {
    for option in &mut column.options {
        if let ColumnOption::ForeignKey(key) = &mut option.option {
            note(key);
        }
    }
}

fn note(key: &mut ForeignKeyConstraint) {
    let characteristics = key.characteristics.get_or_insert_with(ConstraintCharacteristics::default);
    // Who asks for it in so many words hears that it is not done.
    if characteristics.enforced.is_none() {
        characteristics.enforced = Some(false);
    }
}
