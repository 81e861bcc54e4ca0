//! The standard's constructors of JSON: `JSON_ARRAY(a, b NULL ON NULL RETURNING JSONB)`, `JSON_OBJECT('k' VALUE v ABSENT ON NULL)`.

use crate::calls::{argument, call_with};
use crate::dialect::DialectName;
use sqlparser::ast::{
    CastKind, Expr, Function, FunctionArg, FunctionArgOperator, FunctionArgumentClause, FunctionArgumentList,
    FunctionArguments, Ident, JsonNullClause,
};

/// The call with plain arguments, of a function that keeps NULLs or leaves them out; `None` for the forms that calls have
/// everywhere.
pub(super) fn plain(function: &Function, name: &str, dialect: DialectName) -> Option<Expr> {
    let FunctionArguments::List(list) = &function.args else { return None };
    let (mut absent, mut data_type) = (None, None);
    for clause in &list.clauses {
        match clause {
            FunctionArgumentClause::JsonNullClause(null) => {
                absent = Some(*null == JsonNullClause::AbsentOnNull);
            }
            FunctionArgumentClause::JsonReturningClause(returning) => {
                data_type = Some(returning.data_type.clone());
            }
            _ => return None,
        }
    }
    let is_named = list.args.iter().any(|argument| value_of_key(argument).is_some());
    // In PostgreSQL, arrays leave NULLs out unless they are asked to keep them.
    let leaves_out = dialect == DialectName::Postgres && name == "json_array";
    if absent.is_none() && data_type.is_none() && !is_named && !leaves_out {
        return None;
    }
    let built = match (name, absent.unwrap_or(leaves_out)) {
        ("json_array", true) => "json_array_of_values",
        ("json_array", false) => "json_build_array",
        (_, true) => "json_object_of_values",
        (_, false) => "json_build_object",
    };
    let args = list.args.iter().flat_map(|argument| match value_of_key(argument) {
        Some(pair) => Vec::from(pair),
        None => vec![argument.clone()],
    });
    let list = FunctionArgumentList { duplicate_treatment: None, args: args.collect(), clauses: Vec::new() };
    let built = call_with(Ident::new(built), FunctionArguments::List(list));
    Some(match data_type {
        Some(data_type) => {
            let expr = Box::new(built);
            Expr::Cast { kind: CastKind::Cast, expr, data_type, array: false, format: None }
        }
        None => built,
    })
}

/// Key and value of `k VALUE v` or `k : v`.
fn value_of_key(given: &FunctionArg) -> Option<[FunctionArg; 2]> {
    let (key, value, operator) = match given {
        FunctionArg::Named { name, arg, operator } => (Expr::Identifier(name.clone()), arg, operator),
        FunctionArg::ExprNamed { name, arg, operator } => (name.clone(), arg, operator),
        FunctionArg::Unnamed(_) => return None,
    };
    let pairs = matches!(operator, FunctionArgOperator::Value | FunctionArgOperator::Colon);
    pairs.then(|| [argument(key), FunctionArg::Unnamed(value.clone())])
}
