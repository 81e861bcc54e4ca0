//! What the rows of a new table are partitioned by: `PARTITION BY (region, day(at), bucket(16, id))`, also as `PARTITIONED BY`. The parser
//! takes columns alone for their declarations, and what stands behind a list of columns is in the clauses that are kept of it.

use crate::forms::CLAUSES;
use crate::internal_sql::read_partition;
use crate::literal;
use crate::template::meaning;
use bowshot_api::{Error, Result};
use sqlparser::ast::{
    CreateTable, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, HiveDistributionStyle,
    TableConstraint,
};

/// A column, and what is made of its values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionField {
    pub column: String,
    pub transform: PartitionTransform,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartitionTransform {
    Identity,
    Year,
    Month,
    Day,
    Hour,
    Bucket(u32),
    Truncate(u32),
}

impl PartitionField {
    /// Takes them out of a statement. Other clauses about where rows lie stay in it.
    pub fn take(create: &mut CreateTable) -> Result<Vec<Self>> {
        let columns = match std::mem::replace(&mut create.hive_distribution, HiveDistributionStyle::NONE) {
            HiveDistributionStyle::PARTITIONED { columns } => columns,
            _ => Vec::new(),
        };
        let columns = columns
            .iter()
            .map(|column| Self { column: meaning(&column.name), transform: PartitionTransform::Identity });
        let mut fields: Vec<Self> = columns.collect();
        let mut clause = None;
        create.constraints.retain(|constraint| {
            let found = partition_clause(constraint);
            let is_other = found.is_none();
            clause = found.or(clause.take());
            is_other
        });
        for expr in create.partition_by.take().map(|expr| *expr).into_iter().chain(clause) {
            match expr {
                Expr::Tuple(parts) => {
                    for part in &parts {
                        fields.push(Self::read(part)?);
                    }
                }
                Expr::Nested(part) => fields.push(Self::read(&part)?),
                part => fields.push(Self::read(&part)?),
            }
        }
        Ok(fields)
    }

    /// A column, or a transform of one.
    pub(crate) fn read(expr: &Expr) -> Result<Self> {
        let refused = || {
            Error::invalid(format!("rows of a table are not partitioned by `{expr}`"))
                .with_hint("name a column, or write year, month, day or hour (column), bucket(16, column) or truncate(8, column)")
        };
        if let Expr::Identifier(column) = expr {
            return Ok(Self { column: meaning(column), transform: PartitionTransform::Identity });
        }
        let Expr::Function(function) = expr else { return Err(refused()) };
        let FunctionArguments::List(list) = &function.args else { return Err(refused()) };
        let mut arguments = Vec::with_capacity(list.args.len());
        for argument in &list.args {
            let FunctionArg::Unnamed(FunctionArgExpr::Expr(argument)) = argument else {
                return Err(refused());
            };
            arguments.push(argument);
        }
        let name = function.name.to_string().to_lowercase();
        let (transform, column) = match (name.as_str(), arguments.as_slice()) {
            ("year" | "years", [column]) => (PartitionTransform::Year, column),
            ("month" | "months", [column]) => (PartitionTransform::Month, column),
            ("day" | "days", [column]) => (PartitionTransform::Day, column),
            ("hour" | "hours", [column]) => (PartitionTransform::Hour, column),
            ("bucket", [width, column]) => {
                (PartitionTransform::Bucket(number(width).ok_or_else(refused)?), column)
            }
            ("truncate", [width, column]) => {
                (PartitionTransform::Truncate(number(width).ok_or_else(refused)?), column)
            }
            _ => return Err(refused()),
        };
        let Expr::Identifier(column) = column else { return Err(refused()) };
        Ok(Self { column: meaning(column), transform })
    }
}

/// What a clause partitions by that is kept as a condition of the table.
fn partition_clause(constraint: &TableConstraint) -> Option<Expr> {
    let TableConstraint::Check(check) = constraint else { return None };
    check.name.as_ref().filter(|name| name.value == CLAUSES)?;
    let Expr::Value(value) = check.expr.as_ref() else { return None };
    read_partition(&value.clone().into_string()?)
}

fn number(expr: &Expr) -> Option<u32> {
    literal::number(expr)?.parse().ok().filter(|number| *number > 0)
}
