//! Arrays as texts, `'{1,2}'`, where it is plain that they are arrays; and `ARRAY(SELECT …)`.

use super::{column, text, types};
use crate::calls::call;
use crate::template::{self, meaning, quoted};
use bowshot_api::Result;
use sqlparser::ast::{
    Array, ArrayElemTypeDef, BinaryOperator, CastKind, DataType, Distinct, Expr, Function,
    FunctionArgumentClause, FunctionArguments, GroupByExpr, Ident, OrderByExpr, OrderByKind, Query, Select,
    SelectItem, SetExpr, TableAlias, TableAliasColumnDef, TableFactor, Value,
};

/// Columns of the catalog that are arrays of numbers.
const COLUMNS: [&str; 7] =
    ["confkey", "conkey", "indclass", "indkey", "polroles", "proallargtypes", "proargtypes"];

/// Dimensions that an array of PostgreSQL has.
const MOST_DIMENSIONS: usize = 6;

/// `'{1,2}'::int[]` is `ARRAY['1', '2']::int[]`, and `'{{1},{2}}'` of that type one of two dimensions.
pub(super) fn cast(expr: &Expr) -> Option<Expr> {
    let Expr::Cast { kind, expr: inner, data_type, array, format } = expr else { return None };
    let mut element = types::element(data_type)?;
    while let Some(inner) = types::element(element) {
        element = inner;
    }
    let (elements, lengths) = dimensions(text(inner)?, MOST_DIMENSIONS)?;
    let data_type = match lengths.as_slice() {
        // An empty one has as many dimensions as its type.
        [0] => data_type.clone(),
        lengths => lengths.iter().fold(element.clone(), |of, _| {
            DataType::Array(ArrayElemTypeDef::SquareBracket(Box::new(of), None))
        }),
    };
    let (kind, expr) = (kind.clone(), Box::new(elements));
    Some(Expr::Cast { kind, expr, data_type, array: *array, format: format.clone() })
}

/// An array and the lengths of its dimensions; `None` for other texts, and where parts have different lengths.
fn dimensions(text: &str, most: usize) -> Option<(Expr, Vec<usize>)> {
    if let Some(elements) = elements(text) {
        let lengths = vec![elements.len()];
        return Some((list(elements), lengths));
    }
    let most = most.checked_sub(1).filter(|most| *most > 0)?;
    let parts = parts(text)?.into_iter().map(|part| dimensions(part, most)).collect::<Option<Vec<_>>>()?;
    let (_, below) = parts.first()?;
    if parts.iter().any(|(_, lengths)| lengths != below) {
        return None;
    }
    let lengths = std::iter::once(parts.len()).chain(below.iter().copied()).collect();
    let elem = parts.into_iter().map(|(part, _)| part).collect();
    Some((Expr::Array(Array { elem, named: true }), lengths))
}

/// What stands between the outermost brackets and commas.
pub fn parts(text: &str) -> Option<Vec<&str>> {
    let inner = text.trim().strip_prefix('{')?.strip_suffix('}')?;
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0_usize);
    let (mut in_quotes, mut escaped) = (false, false);
    for (at, character) in inner.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => in_quotes = !in_quotes,
            _ if in_quotes => {}
            '{' => depth += 1,
            '}' => depth = depth.checked_sub(1)?,
            ',' if depth == 0 => {
                parts.push(inner.get(start..at)?);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(inner.get(start..)?);
    (depth == 0 && !in_quotes).then_some(parts)
}

/// `a = ANY ('{1,2}')`: numbers where all of them are, unless a text is looked for.
pub(super) fn quantified(left: &Expr, right: &mut Expr) {
    let Some(elements) = text(right).and_then(elements) else { return };
    *right =
        if are_numbers(&elements) && text(left).is_none() { numbers_of(elements) } else { list(elements) };
}

fn are_numbers(elements: &[Option<String>]) -> bool {
    let is_whole =
        |element: &Option<String>| element.as_ref().is_none_or(|element| element.parse::<i64>().is_ok());
    !elements.is_empty() && elements.iter().all(is_whole)
}

/// `polroles = '{0}'`, `a && '{1}'`
pub(super) fn compared(left: &mut Expr, op: &BinaryOperator, right: &mut Expr) {
    if *op == BinaryOperator::PGOverlap {
        for side in [left, right] {
            if let Some(elements) = text(side).and_then(elements) {
                *side = if are_numbers(&elements) { numbers_of(elements) } else { list(elements) };
            }
        }
        return;
    }
    if !matches!(op, BinaryOperator::Eq | BinaryOperator::NotEq) {
        return;
    }
    in_place(left, right);
    in_place(right, left);
}

fn in_place(side: &Expr, other: &mut Expr) {
    let is_array = column(side).is_some_and(|name| COLUMNS.contains(&name.as_str()));
    if is_array && let Some(elements) = text(other).and_then(elements) {
        *other = numbers_of(elements);
    }
}

fn numbers_of(texts: Vec<Option<String>>) -> Expr {
    let numbers = DataType::Array(ArrayElemTypeDef::SquareBracket(Box::new(DataType::BigInt(None)), None));
    let expr = Box::new(list(texts));
    Expr::Cast { kind: CastKind::DoubleColon, expr, data_type: numbers, array: false, format: None }
}

fn list(elements: Vec<Option<String>>) -> Expr {
    let values = elements
        .into_iter()
        .map(|element| Expr::value(element.map_or(Value::Null, Value::SingleQuotedString)));
    Expr::Array(Array { elem: values.collect(), named: true })
}

/// The elements of an array of one dimension as PostgreSQL writes it (its manual, "Array Input and Output Syntax"); `None` for
/// any other text.
pub fn elements(text: &str) -> Option<Vec<Option<String>>> {
    let inner = text.trim().strip_prefix('{')?.strip_suffix('}')?;
    let mut found = Vec::new();
    if inner.trim().is_empty() {
        return Some(found);
    }
    let (mut element, mut quoted, mut in_quotes) = (String::new(), false, false);
    let mut characters = inner.chars();
    while let Some(character) = characters.next() {
        match character {
            '"' if in_quotes => in_quotes = false,
            '"' if !quoted && element.is_empty() => (quoted, in_quotes) = (true, true),
            ',' if !in_quotes && (quoted || !element.is_empty()) => {
                found.push(ended(&mut element, &mut quoted));
            }
            '"' | ',' | '{' | '}' if !in_quotes => return None,
            // Blanks around an element do not belong to it.
            blank if !in_quotes && blank.is_whitespace() && (quoted || element.is_empty()) => {}
            _ if quoted && !in_quotes => return None,
            '\\' => element.push(characters.next()?),
            other => element.push(other),
        }
    }
    if in_quotes || !quoted && element.is_empty() {
        return None;
    }
    found.push(ended(&mut element, &mut quoted));
    Some(found)
}

fn ended(element: &mut String, quoted: &mut bool) -> Option<String> {
    let (text, was_quoted) = (std::mem::take(element), std::mem::take(quoted));
    if was_quoted {
        return Some(text);
    }
    let plain = text.trim();
    (!plain.eq_ignore_ascii_case("null")).then(|| plain.to_owned())
}

/// `ARRAY(SELECT a FROM t ORDER BY b)` is `coalesce((SELECT array_agg(a ORDER BY b) FROM t), make_array())`.
pub(super) fn of_query(function: &Function) -> Result<Option<Expr>> {
    let FunctionArguments::Subquery(query) = &function.args else { return Ok(None) };
    let named = function.name.0.first().and_then(|part| part.as_ident());
    if function.name.0.len() != 1 || !named.is_some_and(|name| name.value.eq_ignore_ascii_case("array")) {
        return Ok(None);
    }
    let gathered = match gathered(query) {
        Some(gathered) => gathered,
        None => around(query)?,
    };
    Ok(Some(call("coalesce", vec![Expr::Subquery(Box::new(gathered)), call("make_array", Vec::new())])))
}

/// The query with its only column under `array_agg`, where it is a plain one: what it says of the queries around it, one that
/// stands a level deeper could not.
fn gathered(query: &Query) -> Option<Query> {
    let mut query = query.clone();
    let order = match query.order_by.take() {
        None => Vec::new(),
        Some(order) => match order.kind {
            OrderByKind::Expressions(keys) => keys,
            OrderByKind::All(_) => return None,
        },
    };
    if query.limit_clause.is_some() || query.fetch.is_some() {
        return None;
    }
    let SetExpr::Select(select) = query.body.as_mut() else { return None };
    if !is_plain(select) {
        return None;
    }
    let [item @ (SelectItem::UnnamedExpr(value) | SelectItem::ExprWithAlias { expr: value, .. })] =
        select.projection.as_slice()
    else {
        return None;
    };
    let in_order = |mut key: OrderByExpr| {
        if is_element(&key.expr, item) {
            key.expr = value.clone();
        }
        key
    };
    let gathered = array_agg(value.clone(), order.into_iter().map(in_order).collect());
    select.projection = vec![SelectItem::ExprWithAlias { expr: gathered, alias: quoted("array") }];
    Some(query)
}

fn array_agg(value: Expr, keys: Vec<OrderByExpr>) -> Expr {
    let mut gathered = call("array_agg", vec![value]);
    if let Expr::Function(function) = &mut gathered
        && let FunctionArguments::List(list) = &mut function.args
        && !keys.is_empty()
    {
        list.clauses.push(FunctionArgumentClause::OrderBy(keys));
    }
    gathered
}

fn is_plain(select: &Select) -> bool {
    let grouped = !matches!(&select.group_by, GroupByExpr::Expressions(keys, modifiers) if keys.is_empty() && modifiers.is_empty());
    let gives_rows = matches!(
        select.projection.as_slice(),
        [SelectItem::UnnamedExpr(Expr::Function(function)) | SelectItem::ExprWithAlias { expr: Expr::Function(function), .. }]
            if GIVES_ROWS.iter().any(|name| function.name.to_string().eq_ignore_ascii_case(name))
    );
    select.distinct.is_none() && !grouped && select.having.is_none() && select.top.is_none() && !gives_rows
}

/// Functions that give more rows than they are called for, or one of many.
const GIVES_ROWS: [&str; 8] =
    ["unnest", "generate_series", "generate_subscripts", "array_agg", "count", "max", "min", "sum"];

/// Whether a key of ORDER BY is the column itself: by its place, its name or what it is.
fn is_element(key: &Expr, item: &SelectItem) -> bool {
    match (key, item) {
        (Expr::Nested(key), item) => is_element(key, item),
        (Expr::Value(place), _) => matches!(place.value, Value::Number(..)),
        (Expr::Identifier(name), SelectItem::ExprWithAlias { expr, alias }) => {
            meaning(name) == meaning(alias) || key == expr
        }
        (Expr::Identifier(name), SelectItem::UnnamedExpr(Expr::CompoundIdentifier(names))) => {
            names.last().is_some_and(|last| meaning(last) == meaning(name))
        }
        (key, SelectItem::UnnamedExpr(value) | SelectItem::ExprWithAlias { expr: value, .. }) => key == value,
        _ => false,
    }
}

/// Any other query, under one that gathers its rows.
fn around(query: &Query) -> Result<Query> {
    let mut query = query.clone();
    let (keys, columns) = keys_of_rows(&mut query);
    let gathered = array_agg(Expr::Identifier(quoted("element")), keys);
    let mut outer = *template::query("SELECT t FROM t", &[])?;
    if let SetExpr::Select(select) = outer.body.as_mut()
        && let Some(table) = select.from.first_mut()
    {
        select.projection = vec![SelectItem::ExprWithAlias { expr: gathered, alias: quoted("array") }];
        let columns = columns.into_iter().map(|name| TableAliasColumnDef { name, data_type: None });
        table.relation = TableFactor::Derived {
            lateral: false,
            subquery: Box::new(query),
            alias: Some(TableAlias {
                explicit: true,
                name: quoted("elements"),
                columns: columns.collect(),
                at: None,
            }),
            sample: None,
        };
    }
    Ok(outer)
}

/// What its rows are ordered by, and the names of its columns. An inner query has no order, so keys other than the element
/// become columns of their own.
fn keys_of_rows(query: &mut Query) -> (Vec<OrderByExpr>, Vec<Ident>) {
    let mut columns = vec![quoted("element")];
    let mut keys = match query.order_by.as_ref().map(|order| &order.kind) {
        Some(OrderByKind::Expressions(keys)) => keys.clone(),
        _ => Vec::new(),
    };
    for key in &mut keys {
        if let SetExpr::Select(select) = query.body.as_mut()
            && !matches!(select.distinct, Some(Distinct::Distinct))
            && select.projection.first().is_some_and(|item| !is_element(&key.expr, item))
        {
            let name = quoted(&format!("key_{}", columns.len()));
            let expr = std::mem::replace(&mut key.expr, Expr::Identifier(name.clone()));
            select.projection.push(SelectItem::ExprWithAlias { expr, alias: name.clone() });
            columns.push(name);
        } else {
            key.expr = Expr::Identifier(quoted("element"));
        }
    }
    (keys, columns)
}
