//! Calls of functions and what they are given.

use sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments, Ident, ObjectName,
};

/// The value of an argument without a name.
fn value(argument: &FunctionArg) -> Option<&Expr> {
    match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => Some(value),
        _ => None,
    }
}

/// The values of arguments, if none has a name.
pub(crate) fn values(arguments: &[FunctionArg]) -> Option<Vec<&Expr>> {
    arguments.iter().map(value).collect()
}

/// See [`values`].
pub(crate) fn cloned_values(arguments: &[FunctionArg]) -> Option<Vec<Expr>> {
    arguments.iter().map(|argument| value(argument).cloned()).collect()
}

/// The arguments of a call, if they are plain.
pub(crate) fn arguments(function: &Function) -> Option<Vec<&Expr>> {
    match &function.args {
        FunctionArguments::List(list) => values(&list.args),
        _ => None,
    }
}

/// An argument without a name.
pub(crate) fn argument(value: Expr) -> FunctionArg {
    FunctionArg::Unnamed(FunctionArgExpr::Expr(value))
}

/// A call of a function.
pub(crate) fn call(name: &str, arguments: impl IntoIterator<Item = Expr>) -> Expr {
    let args = arguments.into_iter().map(argument).collect();
    let list = FunctionArgumentList { duplicate_treatment: None, args, clauses: Vec::new() };
    call_with(Ident::new(name), FunctionArguments::List(list))
}

/// A call with these arguments and nothing else.
pub(crate) fn call_with(name: Ident, args: FunctionArguments) -> Expr {
    Expr::Function(Function {
        name: ObjectName::from(vec![name]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args,
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}
