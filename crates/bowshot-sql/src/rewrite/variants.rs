//! Parts of VARIANT values: `v:a.b[0]` as the accesses that the planner knows, and `variant_get(v, path, 'type')` as a cast.

use crate::calls;
use crate::internal_sql::read_type;
use crate::literal::quoted_text;
use bowshot_api::{Error, Result};
use sqlparser::ast::{AccessExpr, CastKind, Expr, Function, JsonPath, JsonPathElem, Subscript, Value};

/// `v:a[0]` is `v['a'][0]`. Names of members are taken as they are written.
pub(super) fn access(value: &Expr, path: &JsonPath) -> Expr {
    let access_chain = path.path.iter().map(|step| {
        let index = match step {
            JsonPathElem::Dot { key, .. } => Expr::value(Value::SingleQuotedString(key.clone())),
            JsonPathElem::Bracket { key } | JsonPathElem::ColonBracket { key } => key.clone(),
        };
        AccessExpr::Subscript(Subscript::Index { index })
    });
    Expr::CompoundFieldAccess { root: Box::new(value.clone()), access_chain: access_chain.collect() }
}

/// The cast that a call with the name of a type stands for.
pub(super) fn typed_part(function: &Function) -> Result<Option<Expr>> {
    let name = function.name.0.last().and_then(|part| part.as_ident()).map(|name| name.value.to_lowercase());
    let kind = match name.as_deref() {
        Some("variant_get") => CastKind::Cast,
        Some("try_variant_get") => CastKind::TryCast,
        _ => return Ok(None),
    };
    let Some(arguments) = calls::arguments(function) else { return Ok(None) };
    let [value, path, named] = arguments.as_slice() else { return Ok(None) };
    let Some(text) = quoted_text(named) else { return Ok(None) };
    let data_type = read_type(text).ok_or_else(|| {
        Error::invalid(format!("`{text}` is no type"))
            .with_hint("name one as in CAST: `'INTEGER'`, `'VARCHAR[]'`")
    })?;
    let part = calls::call("variant_get", [(*value).clone(), (*path).clone()]);
    Ok(Some(Expr::Cast { kind, expr: Box::new(part), data_type, array: false, format: None }))
}
