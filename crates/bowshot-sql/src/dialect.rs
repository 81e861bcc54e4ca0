//! The dialects of SQL that Bowshot reads: one wrapper over the parser's own ones.
//!
//! The parser keeps all that differs between dialects in flags and hooks of a trait. Here those of one of its dialects are
//! taken over, and changed where Bowshot reads more (forms of DuckDB and PostgreSQL that do no harm) or reads right what the
//! parser reads wrong: operators bind as in PostgreSQL in all dialects but that of MySQL, and `a IS DISTINCT FROM b AND c`
//! ends before the AND.

use crate::infix::{OperatorWord, operator_word};
use crate::{external, identity, infix, pivot, prefix};
use sqlparser::ast::{
    BinaryOperator, ColumnOption, Expr, GranteesType, Ident, ObjectNamePart, Statement, UnaryOperator,
};
use sqlparser::dialect::{Dialect as Base, GenericDialect, MySqlDialect, PostgreSqlDialect, Precedence};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;
use std::any::TypeId;
use std::iter::Peekable;
use std::str::Chars;

bowshot_api::named! {
    /// Which SQL a text is written in, with the name that settings and stored texts have.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub enum DialectName: as_str {
        /// PostgreSQL's meaning with everybody's harmless extensions.
        #[default]
        Ansi = "ansi",
        /// PostgreSQL as its own clients expect it.
        Postgres = "postgres",
        /// MySQL.
        MySql = "mysql",
    }
}

impl DialectName {
    /// `None` for a name that is not known.
    pub fn parse(name: &str) -> Option<Self> {
        match name.to_ascii_lowercase().as_str() {
            "ansi" | "generic" => Some(Self::Ansi),
            "postgres" | "postgresql" => Some(Self::Postgres),
            "mysql" => Some(Self::MySql),
            _ => None,
        }
    }

    fn base(self) -> &'static dyn Base {
        match self {
            Self::Ansi => &GenericDialect {},
            Self::Postgres => &PostgreSqlDialect {},
            Self::MySql => &MySqlDialect {},
        }
    }
}

/// A dialect as the parser takes it.
#[derive(Debug, Clone, Copy)]
pub struct Dialect {
    name: DialectName,
    versions: bool,
    is_written: bool,
}

impl Dialect {
    pub fn new(name: DialectName) -> Self {
        Self { name, versions: false, is_written: false }
    }

    /// The same for a text that asks for earlier states of tables.
    pub(crate) fn with_versions(self) -> Self {
        Self { versions: true, ..self }
    }

    /// The same for the tokens of a text as its client has written it: comments of MySQL with code in them are comments, and
    /// its variables no words.
    pub(crate) fn for_written_text(self) -> Self {
        Self { is_written: true, ..self }
    }

    fn begins_variable(&self, ch: char) -> bool {
        self.is_written && self.name == DialectName::MySql && ch == '@'
    }

    /// Which one it is.
    pub fn name(&self) -> DialectName {
        self.name
    }

    fn base(&self) -> &'static dyn Base {
        self.name.base()
    }

    /// Whether operators bind as in PostgreSQL.
    fn binds_as_postgres(&self) -> bool {
        self.name != DialectName::MySql
    }
}

macro_rules! as_the_base {
    ($($flag:ident),+ $(,)?) => {
        $(fn $flag(&self) -> bool {
            self.base().$flag()
        })+
    };
    ($($hook:ident($($argument:ident: $type:ty),*) -> $result:ty;)+) => {
        $(fn $hook(&self, $($argument: $type),*) -> $result {
            self.base().$hook($($argument),*)
        })+
    };
}

macro_rules! always {
    ($($flag:ident),+ $(,)?) => {
        $(fn $flag(&self) -> bool {
            true
        })+
    };
}

impl Base for Dialect {
    /// The parser asks for the type of a dialect in some places.
    fn dialect(&self) -> TypeId {
        self.base().dialect()
    }

    as_the_base! {
        supports_string_literal_backslash_escape, ignores_wildcard_escapes,
        supports_unicode_string_literal, supports_filter_during_aggregation,
        supports_window_clause_named_window_reference, supports_within_after_array_aggregation,
        supports_partition_by_after_order_by, supports_array_join_syntax, supports_group_by_expr,
        supports_left_associative_joins_without_parens,
        supports_outer_join_operator, supports_cross_join_constraint, supports_connect_by,
        supports_execute_immediate, supports_match_recognize, supports_in_empty_list,
        supports_start_transaction_modifier, supports_end_transaction_modifier,
        supports_named_fn_args_with_eq_operator, supports_named_fn_args_with_colon_operator,
        supports_named_fn_args_with_assignment_operator, supports_named_fn_args_with_rarrow_operator,
        supports_named_fn_args_with_expr_name, supports_numeric_prefix,
        supports_window_function_null_treatment_arg, supports_dictionary_syntax,
        support_map_literal_syntax, supports_parenthesized_set_variables,
        supports_comma_separated_set_assignments, supports_update_order_by,
        supports_select_wildcard_except, convert_type_before_value, supports_triple_quoted_string,
        supports_trailing_commas, supports_limit_comma, supports_string_literal_concatenation,
        supports_projection_trailing_commas,
        supports_from_trailing_commas, supports_column_definition_trailing_commas,
        supports_object_name_double_dot_notation, supports_struct_literal, supports_empty_projections,
        supports_select_expr_star, supports_from_first_select, supports_from_first_insert,
        supports_pipe_operator, supports_user_host_grantee, supports_match_against,
        supports_select_wildcard_exclude, supports_select_exclude,
        supports_create_table_multi_schema_info_sources, supports_select_modifiers,
        describe_requires_table_keyword, allow_extract_custom, allow_extract_single_quotes,
        supports_extract_comma_syntax, supports_subquery_as_function_arg,
        supports_create_view_comment_syntax, supports_array_typedef_without_element_type,
        supports_parens_around_table_factor, supports_values_as_table_factor, supports_dollar_placeholder,
        supports_dollar_as_money_prefix, supports_create_index_with_clause, require_interval_qualifier,
        supports_explain_with_utility_options, supports_asc_desc_in_column_definition,
        supports_factorial_operator, supports_bitwise_shift_operators, supports_nested_comments,
        supports_eq_alias_assignment, supports_try_convert,
        supports_bang_not_operator, supports_listen_notify, supports_load_data, supports_load_extension,
        supports_top_before_distinct, supports_boolean_literals, supports_show_like_before_in,
        supports_comment_on, supports_create_table_select, supports_partiql,
        supports_constraint_keyword_without_name, supports_key_column_option,
        supports_table_sample_before_alias, supports_insert_table_function, supports_insert_table_query,
        supports_insert_format, supports_set_stmt_without_operator,
        supports_string_escape_constant, supports_table_hints, requires_single_line_comment_whitespace,
        supports_array_typedef_with_brackets, supports_geometric_types, supports_set_names,
        supports_space_separated_column_options, supports_alter_column_type_using,
        supports_comma_separated_drop_column_list, supports_data_type_signed_suffix,
        supports_interval_options,
        supports_semantic_view_table_factor, supports_quote_delimited_string,
        supports_comment_optimizer_hint, supports_double_ampersand_operator, supports_binary_kw_as_cast,
        supports_select_wildcard_replace, supports_select_wildcard_ilike, supports_select_wildcard_rename,
        supports_select_wildcard_with_alias, supports_optimize_table, supports_install, supports_detach,
        supports_prewhere, supports_with_fill, supports_limit_by, supports_interpolate, supports_settings,
        supports_select_format, supports_comma_separated_trim, supports_cte_without_as,
        supports_select_item_multi_column_alias, supports_xml_expressions, supports_create_table_using,
        supports_long_type_as_bigint, supports_map_literal_with_angle_brackets
    }

    fn supports_multiline_comment_hints(&self) -> bool {
        !self.is_written && self.base().supports_multiline_comment_hints()
    }

    fn supports_numeric_literal_underscores(&self) -> bool {
        self.binds_as_postgres()
    }

    /// `'a'` and `'b'` on the next line are one text in the standard.
    fn supports_string_literal_concatenation_with_newline(&self) -> bool {
        self.binds_as_postgres()
    }

    always! {
        supports_order_by_all, supports_create_table_like_parenthesized, supports_notnull_operator,
        supports_insert_set
    }

    /// In MySQL, `INSERT INTO t SET a = 1` has no alias, and an alias stands behind the rows.
    fn supports_insert_table_alias(&self) -> bool {
        self.binds_as_postgres()
    }

    /// `GROUP BY a WITH ROLLUP`. PostgreSQL's own dialect has no such words.
    fn supports_group_by_with_modifier(&self) -> bool {
        self.name != DialectName::Postgres
    }

    /// Only in texts that ask for an earlier state: else `AT`, `BEFORE` and `CHANGES` could not be names of tables.
    fn supports_table_versioning(&self) -> bool {
        self.versions
    }

    /// `x -> …` is JSON everywhere but in the arguments of functions over lists, which [`crate::prefix`] finds.
    fn supports_lambda_functions(&self) -> bool {
        false
    }

    as_the_base! {
        is_delimited_identifier_start(ch: char) -> bool;
        is_nested_delimited_identifier_start(ch: char) -> bool;
        peek_nested_delimited_identifier_quotes(chars: Peekable<Chars<'_>>) -> Option<(char, Option<char>)>;
        identifier_quote_style(identifier: &str) -> Option<char>;
        is_custom_operator_part(ch: char) -> bool;
        is_reserved_for_identifier(keyword: Keyword) -> bool;
        get_reserved_keywords_for_select_item_operator() -> &[Keyword];
        get_reserved_grantees_types() -> &[GranteesType];
        is_table_factor(keyword: &Keyword, parser: &mut Parser<'_>) -> bool;
        is_identifier_generating_function_name(ident: &Ident, parts: &[ObjectNamePart]) -> bool;
    }

    fn is_identifier_start(&self, ch: char) -> bool {
        !self.begins_variable(ch) && self.base().is_identifier_start(ch)
    }

    fn is_identifier_part(&self, ch: char) -> bool {
        !self.begins_variable(ch) && self.base().is_identifier_part(ch)
    }

    /// `SELECT 1 FOR UPDATE`: FOR is no name without AS.
    fn is_column_alias(&self, keyword: &Keyword, parser: &mut Parser<'_>) -> bool {
        *keyword != Keyword::FOR && self.base().is_column_alias(keyword, parser)
    }

    fn is_select_item_alias(&self, explicit: bool, keyword: &Keyword, parser: &mut Parser<'_>) -> bool {
        explicit || self.is_column_alias(keyword, parser)
    }

    fn is_table_alias(&self, keyword: &Keyword, parser: &mut Parser<'_>) -> bool {
        // Where the base has hints, they begin with these words.
        let hints =
            self.supports_table_hints() && matches!(keyword, Keyword::USE | Keyword::IGNORE | Keyword::FORCE);
        *keyword != Keyword::STRAIGHT_JOIN
            && !hints
            && self.base().is_table_alias(keyword, parser)
            && !is_before_join(parser)
    }

    fn is_table_factor_alias(&self, explicit: bool, keyword: &Keyword, parser: &mut Parser<'_>) -> bool {
        explicit || self.is_table_alias(keyword, parser)
    }

    fn parse_column_option(
        &self,
        parser: &mut Parser<'_>,
    ) -> Result<Option<Result<Option<ColumnOption>, ParserError>>, ParserError> {
        match identity::parse(parser)? {
            Some(option) => Ok(Some(Ok(Some(option)))),
            None => self.base().parse_column_option(parser),
        }
    }

    fn parse_statement(&self, parser: &mut Parser<'_>) -> Option<Result<Statement, ParserError>> {
        pivot::parse(parser)
            .or_else(|| external::parse(parser))
            .or_else(|| self.base().parse_statement(parser))
    }

    fn parse_prefix(&self, parser: &mut Parser<'_>) -> Option<Result<Expr, ParserError>> {
        if let Some(signed) = self.signed(parser) {
            return Some(signed);
        }
        if self.name == DialectName::MySql && parser.peek_token_ref().token == Token::ExclamationMark {
            return Some(prefix::bang(parser, self.prec_value(Precedence::AtTz)));
        }
        if let Some(not) = prefix::not_exists(parser, self.prec_value(Precedence::UnaryNot)) {
            return Some(not);
        }
        prefix::parse(parser).or_else(|| self.base().parse_prefix(parser))
    }

    fn parse_infix(
        &self,
        parser: &mut Parser<'_>,
        expr: &Expr,
        precedence: u8,
    ) -> Option<Result<Expr, ParserError>> {
        if let Some(parsed) = infix::parse(parser, expr, precedence, self.name) {
            return Some(parsed);
        }
        if let Some(distinct) = self.distinct_from(parser, expr) {
            return Some(distinct);
        }
        if let Some(between) = self.between_symmetric(parser, expr) {
            return Some(between);
        }
        if self.name == DialectName::Ansi && parser.peek_token_ref().token == Token::Sharp {
            return Some(exclusive_or(parser, expr, precedence));
        }
        if self.binds_as_postgres()
            && let Some(word) = operator_word(parser)
        {
            return Some(self.word_operator(parser, expr, word));
        }
        self.base().parse_infix(parser, expr, precedence)
    }

    fn get_next_precedence(&self, parser: &Parser<'_>) -> Option<Result<u8, ParserError>> {
        if let Some((precedence, above)) = infix::precedence(parser, self.name) {
            return Some(Ok(self.prec_value(precedence) + above));
        }
        if self.binds_as_postgres() {
            return match &parser.peek_token_ref().token {
                // Else a slice of a list, or a field of a map literal.
                Token::Colon => infix::ends_key(parser).then(|| Ok(self.prec_unknown())),
                Token::Word(next) => match operator_word(parser) {
                    Some(word) => Some(Ok(self.prec_value(word.precedence()))),
                    // Where it is an operator, `infix` has said so.
                    None if next.keyword == Keyword::DIV => Some(Ok(self.prec_unknown())),
                    None => PostgreSqlDialect {}.get_next_precedence(parser),
                },
                _ => PostgreSqlDialect {}.get_next_precedence(parser),
            };
        }
        self.base().get_next_precedence(parser)
    }

    fn prec_value(&self, precedence: Precedence) -> u8 {
        if self.binds_as_postgres() {
            PostgreSqlDialect {}.prec_value(precedence)
        } else {
            self.base().prec_value(precedence)
        }
    }
}

impl Dialect {
    /// `-2 ^ 2` is `(-2) ^ 2`: a sign binds tighter than all operators but `::`, `[…]` and COLLATE. `~2 + 1` is `~(2 + 1)`.
    fn signed(&self, parser: &mut Parser<'_>) -> Option<Result<Expr, ParserError>> {
        if !self.binds_as_postgres() {
            return None;
        }
        let (op, precedence) = match &parser.peek_token_ref().token {
            Token::Minus => (UnaryOperator::Minus, Precedence::AtTz),
            Token::Plus => (UnaryOperator::Plus, Precedence::AtTz),
            Token::Tilde => (UnaryOperator::BitwiseNot, Precedence::PgOther),
            _ => return None,
        };
        parser.advance_token();
        let of = parser.parse_subexpr(self.prec_value(precedence));
        Some(of.map(|of| Expr::UnaryOp { op, expr: Box::new(of) }))
    }

    /// `a IS [NOT] DISTINCT FROM b`. The parser's own way takes all that follows, ANDs and all, for its right side.
    fn distinct_from(&self, parser: &mut Parser<'_>, left: &Expr) -> Option<Result<Expr, ParserError>> {
        let is = |at: usize, keyword: Keyword| matches!(&parser.peek_nth_token_ref(at).token, Token::Word(word) if word.keyword == keyword);
        let negated = is(1, Keyword::NOT);
        let at = if negated { 2 } else { 1 };
        if !is(0, Keyword::IS) || !is(at, Keyword::DISTINCT) || !is(at + 1, Keyword::FROM) {
            return None;
        }
        (0..at + 2).for_each(|_| parser.advance_token());
        let left = Box::new(left.clone());
        let right = parser.parse_subexpr(self.prec_value(Precedence::Is));
        Some(right.map(|right| {
            if negated {
                Expr::IsNotDistinctFrom(left, Box::new(right))
            } else {
                Expr::IsDistinctFrom(left, Box::new(right))
            }
        }))
    }
}

impl Dialect {
    /// `a [NOT] BETWEEN SYMMETRIC b AND c`: between the two, whichever is less.
    fn between_symmetric(&self, parser: &mut Parser<'_>, expr: &Expr) -> Option<Result<Expr, ParserError>> {
        let word = |at: usize| match &parser.peek_nth_token_ref(at).token {
            Token::Word(word) if word.quote_style.is_none() => word.value.to_ascii_uppercase(),
            _ => String::new(),
        };
        let negated = word(0) == "NOT";
        let at = usize::from(negated);
        let symmetric = word(at + 1);
        if word(at) != "BETWEEN" || symmetric != "SYMMETRIC" && symmetric != "ASYMMETRIC" {
            return None;
        }
        (0..at + 2).for_each(|_| parser.advance_token());
        Some(parser.parse_between(expr.clone(), negated).map(|between| match between {
            Expr::Between { expr, negated, low, high } if symmetric == "SYMMETRIC" => {
                either_way(*expr, negated, (*low, *high))
            }
            other => other,
        }))
    }
}

/// `a # b`, which the parser knows of PostgreSQL alone.
fn exclusive_or(parser: &mut Parser<'_>, left: &Expr, precedence: u8) -> Result<Expr, ParserError> {
    parser.advance_token();
    let right = Box::new(parser.parse_subexpr(precedence)?);
    Ok(Expr::BinaryOp { left: Box::new(left.clone()), op: BinaryOperator::PGBitwiseXor, right })
}

impl Dialect {
    /// `a ISNULL` and `a GLOB 'x*'`.
    fn word_operator(
        &self,
        parser: &mut Parser<'_>,
        left: &Expr,
        word: OperatorWord,
    ) -> Result<Expr, ParserError> {
        parser.advance_token();
        let left = Box::new(left.clone());
        match word {
            OperatorWord::IsNull => Ok(Expr::IsNull(left)),
            OperatorWord::Glob => {
                let right = Box::new(parser.parse_subexpr(self.prec_value(Precedence::Like))?);
                Ok(Expr::BinaryOp { left, op: BinaryOperator::Custom("GLOB".to_owned()), right })
            }
        }
    }
}

fn either_way(expr: Expr, negated: bool, (low, high): (Expr, Expr)) -> Expr {
    let between = |low: &Expr, high: &Expr| {
        let (expr, low, high) = (expr.clone(), low.clone(), high.clone());
        Box::new(Expr::Between { expr: Box::new(expr), negated, low: Box::new(low), high: Box::new(high) })
    };
    let op = if negated { BinaryOperator::And } else { BinaryOperator::Or };
    let (left, right) = (between(&low, &high), between(&high, &low));
    Expr::Nested(Box::new(Expr::BinaryOp { left, op, right }))
}

/// `FROM a POSITIONAL JOIN b`: the word is no name for `a`.
fn is_before_join(parser: &Parser<'_>) -> bool {
    let joins = |at: usize| matches!(&parser.peek_nth_token_ref(at).token, Token::Word(word) if word.keyword == Keyword::JOIN);
    matches!(&parser.get_current_token().token, Token::Word(word)
        if word.quote_style.is_none() && word.value.eq_ignore_ascii_case("positional"))
        && joins(0)
}
