//! `jsonb_to_recordset(j) AS t(a INT, b TEXT)`: rows of JSON whose columns stand behind the call, and calls that give JSONB.

use crate::template::{self, meaning};
use bowshot_api::{Error, Result};
use sqlparser::ast::{
    CastKind, DataType, Expr, FunctionArg, FunctionArgExpr, Ident, ObjectName, SelectItem, SetExpr,
    TableFactor, Value,
};

/// Puts a query of the columns in the place of such a call.
pub(super) fn typed(factor: &mut TableFactor) -> Result<()> {
    let (name, arguments, alias) = match factor {
        TableFactor::Table { name, args: Some(arguments), alias, .. } => {
            (&*name, arguments.args.as_slice(), alias)
        }
        TableFactor::Function { name, args, alias, .. } => (&*name, args.as_slice(), alias),
        _ => return Ok(()),
    };
    let name = called(name);
    let many = match name.as_str() {
        "json_to_recordset" | "jsonb_to_recordset" => true,
        "json_to_record" | "jsonb_to_record" => false,
        _ => return Ok(()),
    };
    let [FunctionArg::Unnamed(FunctionArgExpr::Expr(document))] = arguments else {
        return Err(Error::invalid(format!("`{name}` takes one document")));
    };
    let mut alias = alias.take().ok_or_else(|| untyped(&name))?;
    let document = if many {
        template::expression("unnest(json_elements(j))", &[("j", document)])?
    } else {
        document.clone()
    };
    let mut subquery = template::query("SELECT 1", &[])?;
    if let SetExpr::Select(select) = subquery.body.as_mut() {
        select.projection.clear();
        for column in &mut alias.columns {
            let data_type = column.data_type.take().ok_or_else(|| untyped(&name))?;
            let expr = member(&document, &column.name, data_type)?;
            select.projection.push(SelectItem::ExprWithAlias { expr, alias: column.name.clone() });
        }
        if select.projection.is_empty() {
            return Err(untyped(&name));
        }
    }
    alias.columns.clear();
    *factor = TableFactor::Derived { lateral: true, subquery, alias: Some(alias), sample: None };
    Ok(())
}

fn called(name: &ObjectName) -> String {
    name.0.last().and_then(|part| part.as_ident()).map(meaning).unwrap_or_default()
}

fn untyped(name: &str) -> Error {
    Error::invalid(format!("a column definition list is required for `{name}`"))
        .with_hint(format!("write `{name}(…) AS t(a INT, b TEXT)`"))
}

fn member(document: &Expr, name: &Ident, data_type: DataType) -> Result<Expr> {
    let key = Expr::value(Value::SingleQuotedString(meaning(name)));
    let part = match data_type {
        DataType::JSON | DataType::JSONB => "json_extract_path(j, k)",
        _ => "json_extract_path_text(j, k)",
    };
    let part = template::expression(part, &[("j", document), ("k", &key)])?;
    Ok(cast(part, data_type))
}

/// What gives JSON as JSONB.
pub(super) fn normal(expr: &Expr) -> Expr {
    cast(expr.clone(), DataType::JSONB)
}

fn cast(expr: Expr, data_type: DataType) -> Expr {
    Expr::Cast { kind: CastKind::Cast, expr: Box::new(expr), data_type, array: false, format: None }
}
