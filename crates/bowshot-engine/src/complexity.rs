//! Refuses statements that chain too much, before anything recursive sees them.
//!
//! The parser bounds how deep parentheses nest, but `1 + 1 + 1 + …`, `x::INT::INT…` and `SELECT 1 UNION ALL SELECT 1 …`
//! become trees as deep as they are long. Planning takes time with the square of that depth, and far enough down a stack
//! ends, and with it the process. So the text is measured by its tokens: operators in one expression, queries and
//! relations in one statement. Lists are flat and cost nothing: `IN (…)` and `VALUES` may be as long as the text may.

use bowshot_api::{Error, ErrorKind, Result};
use datafusion::sql::sqlparser::dialect::Dialect;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};

/// Operators in one expression, outside its parentheses.
const MAX_OPERATORS: usize = 1_000;
/// SELECTs in one statement, subqueries and members of unions included.
const MAX_QUERIES: usize = 500;
/// Tables in all FROM clauses of one statement.
const MAX_RELATIONS: usize = 300;

/// Texts up to this length cannot reach a limit, so they are not measured.
const SHORT_BYTES: usize = 2 * MAX_RELATIONS;

/// Measures a statement. A text without proper tokens passes: the parser will say what is wrong with it.
///
/// # Errors
/// `LimitReached`, naming what there is too much of.
pub(crate) fn check(sql: &str, dialect: &dyn Dialect) -> Result<()> {
    if sql.len() <= SHORT_BYTES {
        return Ok(());
    }
    let Ok(tokens) = Tokenizer::new(dialect, sql).tokenize() else { return Ok(()) };
    let mut measure = Measure { levels: vec![Level::default()], queries: 0, relations: 0 };
    for token in &tokens {
        measure.take(token)?;
    }
    Ok(())
}

struct Measure {
    /// One for each open parenthesis, and the statement itself.
    levels: Vec<Level>,
    queries: usize,
    relations: usize,
}

#[derive(Default)]
struct Level {
    operators: usize,
    in_from: bool,
}

impl Measure {
    fn take(&mut self, token: &Token) -> Result<()> {
        match token {
            Token::LParen | Token::LBrace => self.levels.push(Level::default()),
            // `x[1][1]…` is a chain too.
            Token::LBracket => {
                self.operator()?;
                self.levels.push(Level::default());
            }
            Token::RParen | Token::RBracket | Token::RBrace => {
                if self.levels.len() > 1 {
                    self.levels.pop();
                }
            }
            Token::Comma => {
                if self.level().in_from {
                    self.relation()?;
                }
                self.level().operators = 0;
            }
            Token::SemiColon => *self.level() = Level::default(),
            Token::Word(word) => self.word(word.keyword)?,
            Token::Whitespace(_) | Token::Number(..) | Token::Placeholder(_) | Token::EOF => {}
            token if is_text(token) => {}
            _ => self.operator()?,
        }
        Ok(())
    }

    fn word(&mut self, keyword: Keyword) -> Result<()> {
        match keyword {
            Keyword::AND
            | Keyword::OR
            | Keyword::NOT
            | Keyword::IS
            | Keyword::LIKE
            | Keyword::ILIKE
            | Keyword::BETWEEN
            | Keyword::COLLATE
            | Keyword::AT => self.operator()?,
            Keyword::SELECT => {
                self.queries += 1;
                *self.level() = Level::default();
                limit(
                    self.queries,
                    MAX_QUERIES,
                    "SELECTs",
                    "read from one table instead of a union of constants",
                )?;
            }
            Keyword::FROM => *self.level() = Level { operators: 0, in_from: true },
            Keyword::JOIN => self.relation()?,
            Keyword::WHERE
            | Keyword::GROUP
            | Keyword::HAVING
            | Keyword::ORDER
            | Keyword::LIMIT
            | Keyword::UNION => {
                *self.level() = Level::default();
            }
            Keyword::ON | Keyword::WHEN | Keyword::THEN | Keyword::ELSE | Keyword::VALUES => {
                self.level().operators = 0;
            }
            _ => {}
        }
        Ok(())
    }

    fn level(&mut self) -> &mut Level {
        match self.levels.len() {
            0 => unreachable!("the statement's own level is never taken away"),
            length => &mut self.levels[length - 1],
        }
    }

    fn operator(&mut self) -> Result<()> {
        let level = self.level();
        level.operators += 1;
        limit(
            level.operators,
            MAX_OPERATORS,
            "operators in one expression",
            "use `IN (…)`, or join a table of values",
        )
    }

    fn relation(&mut self) -> Result<()> {
        self.relations += 1;
        self.level().operators = 0;
        limit(self.relations, MAX_RELATIONS, "tables to join", "join fewer tables in one statement")
    }
}

fn is_text(token: &Token) -> bool {
    matches!(
        token,
        Token::SingleQuotedString(_)
            | Token::DoubleQuotedString(_)
            | Token::NationalStringLiteral(_)
            | Token::EscapedStringLiteral(_)
            | Token::UnicodeStringLiteral(_)
            | Token::HexStringLiteral(_)
            | Token::DollarQuotedString(_)
    )
}

fn limit(found: usize, most: usize, what: &str, hint: &str) -> Result<()> {
    if found <= most {
        return Ok(());
    }
    Err(Error::new(ErrorKind::LimitReached, format!("the statement has more than {most} {what}"))
        .with_hint(hint))
}

#[cfg(test)]
mod tests {
    use super::check;
    use bowshot_api::ErrorKind;
    use datafusion::sql::sqlparser::dialect::GenericDialect;

    #[test]
    fn chains_are_refused_and_lists_are_not() {
        for (sql, refused) in [
            (format!("SELECT 1{}", " + 1".repeat(1_000)), false),
            (format!("SELECT 1{}", " + 1".repeat(1_001)), true),
            (format!("SELECT 1{}", "::INT".repeat(2_000)), true),
            (format!("SELECT 1{}", " IS NULL".repeat(2_000)), true),
            (format!("SELECT a{}", ".a".repeat(2_000)), true),
            (format!("SELECT a{}", "[1]".repeat(2_000)), true),
            (format!("SELECT (1{})", " OR 1".repeat(2_000)), true),
            (format!("SELECT 1{}", " UNION ALL SELECT 1".repeat(400)), false),
            (format!("SELECT 1{}", " UNION ALL SELECT 1".repeat(600)), true),
            (format!("SELECT 1 FROM t{}", ", t".repeat(400)), true),
            (format!("SELECT 1 FROM t{}", " CROSS JOIN t".repeat(400)), true),
            (format!("SELECT 1 WHERE a IN (1{})", ", -1".repeat(50_000)), false),
            (format!("VALUES (1){}", ", (-1, 2 + 3)".repeat(50_000)), false),
            (format!("SELECT 1{}", ", a.b".repeat(50_000)), false),
            (")".repeat(10_000), false),
        ] {
            let kind = check(&sql, &GenericDialect {}).err().map(|error| error.kind());
            assert_eq!(kind == Some(ErrorKind::LimitReached), refused, "{}", &sql[..sql.len().min(60)]);
        }
    }
}
