//! Refuses statements that chain too much, before anything recursive sees them.
//!
//! The parser bounds how deep parentheses nest, but `1 + 1 + 1 + …`, `x::INT::INT…` and `SELECT 1 UNION ALL SELECT 1 …`
//! become trees as deep as they are long. Planning takes time with the square of that depth, and far enough down a stack
//! ends, and with it the process. And where a bracket can mean two things (`CAST(`, `POSITION(`, `(SELECT`), the parser
//! tries one and then the other: each level of nesting doubles its time. So the text is measured by its tokens: operators
//! in one expression, queries and relations in one statement, ambiguous brackets inside one another. Lists are flat and
//! cost nothing: `IN (…)` and `VALUES` may be as long as the text may. What a SELECT gives and what it sorts by is compared
//! with one another, which takes time with the square or the cube of its length, so it may not.

use crate::tokens::is_blank;
use bowshot_api::{Error, ErrorKind, Result};
use sqlparser::dialect::Dialect;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};

/// Operators in one expression, outside its parentheses.
const MAX_OPERATORS: usize = 1_000;
/// Operators between two commas or SELECTs, whatever stands between them: words such as VALUES can be column names.
const MAX_CHAIN: usize = 5_000;
/// UNIONs, other set operations and pipes in one statement.
const MAX_SET_OPERATIONS: usize = 500;
/// SELECTs in one statement, subqueries and members of unions included.
const MAX_QUERIES: usize = 500;
/// Tables in all FROM clauses of one statement.
const MAX_RELATIONS: usize = 300;

/// INTERSECTs and EXCEPTs in one statement: each is a join around what is before it.
const MAX_INTERSECTIONS: usize = 100;
/// Window functions in one statement: each that differs from the others is a step around them.
const MAX_WINDOWS: usize = 500;
/// Grouping sets of one GROUP BY. CUBE has as many as its columns have subsets.
const MAX_GROUPING_SETS: u64 = 4_096;

/// What one SELECT gives. That many are planned in 6 seconds, twice as many in 18.
const MAX_ITEMS: usize = 10_000;
/// Functions at the head of what one SELECT gives, which may be aggregates: that many are planned in 8 seconds, and those of
/// each pair are compared.
const MAX_CALLS: usize = 2_000;
/// Names in one statement, which are not words of SQL: each is looked up many times.
const MAX_NAMES: usize = 100_000;
/// What one ORDER BY sorts by: planned in a second and a half, three times as many in 14.
const MAX_KEYS: usize = 1_000;

/// Types inside one another in a text that names one.
const MAX_TYPE_TEXT: usize = 32;

/// Brackets inside one another that the parser may read in two ways.
const MAX_AMBIGUOUS: usize = 10;
/// Measures the statements of a text that another parser reads. One without proper tokens passes: the parser will say what is wrong
/// with it.
///
/// # Errors
/// `LimitReached`, naming what there is too much of.
pub fn check_limits(sql: &str, dialect: &dyn Dialect) -> Result<()> {
    match Tokenizer::new(dialect, sql).tokenize_with_location() {
        Ok(tokens) => check(&tokens),
        Err(_) => Ok(()),
    }
}

/// Measures a statement.
pub(crate) fn check(tokens: &[TokenWithSpan]) -> Result<()> {
    check_type_texts(tokens)?;
    let mut measure = Measure { levels: vec![Level::default()], ..Measure::default() };
    let mut last = &Token::EOF;
    for token in tokens.iter().map(|token| &token.token).filter(|token| !is_blank(token)) {
        measure.take(token, last)?;
        last = token;
    }
    Ok(())
}

/// Whether a text is too short, and has too few queries, to be planned for long by what it says itself.
pub fn is_small(sql: &str) -> bool {
    const BYTES: usize = 1_000;
    const QUERIES: usize = 4;
    let words = || sql.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
    let has = |wanted: &'static str| words().filter(move |word| word.eq_ignore_ascii_case(wanted));
    let multiplies =
        || ["cube", "rollup", "sets", "pivot"].into_iter().any(|word| has(word).next().is_some());
    sql.len() <= BYTES && has("select").count() <= QUERIES && !multiplies()
}

/// Texts in which `arrow_cast` and its like name a type: what reads them goes as deep as they do.
fn check_type_texts(tokens: &[TokenWithSpan]) -> Result<()> {
    let names_types = |token: &TokenWithSpan| match &token.token {
        Token::Word(word) => word.value.get(..6).is_some_and(|begin| begin.eq_ignore_ascii_case("arrow_")),
        _ => false,
    };
    if !tokens.iter().any(names_types) {
        return Ok(());
    }
    let texts = tokens.iter().map(|token| &token.token).filter(|token| is_text(token));
    let deepest = texts.map(|token| nesting(&token.to_string())).max().unwrap_or(0);
    limit(deepest, MAX_TYPE_TEXT, "levels in the text of a type", "use a flatter type")
}

/// How many brackets stand inside one another.
fn nesting(text: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0_usize);
    for byte in text.bytes() {
        match byte {
            b'(' | b'<' => depth += 1,
            b')' | b'>' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

#[derive(Default)]
struct Measure {
    /// One for each open parenthesis, and the statement itself.
    levels: Vec<Level>,
    queries: usize,
    relations: usize,
    set_operations: usize,
    intersections: usize,
    windows: usize,
    names: usize,
    /// Of the GROUP BY that is being read.
    grouping_sets: u64,
}

#[derive(Default)]
struct Level {
    operators: usize,
    /// Operators since the last comma or SELECT.
    chain: usize,
    clause: Clause,
    /// Commas of the clause, where it is a list that is counted.
    items: usize,
    /// Calls of functions in a list of SELECT, outside of one another.
    calls: usize,
    /// Ambiguous brackets around this place.
    ambiguous: usize,
    /// Whether it was opened where a table stands, as in `FROM (SELECT`: that has one meaning.
    is_table: bool,
    /// Whether it is the list of a CUBE, a ROLLUP or GROUPING SETS, and how many parts that has.
    grouping: Option<Keyword>,
    parts: u32,
}

/// Where a comma stands.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Clause {
    #[default]
    Other,
    Select,
    From,
    Order,
}

impl Measure {
    fn take(&mut self, token: &Token, last: &Token) -> Result<()> {
        match token {
            Token::LParen | Token::LBrace => self.open(last)?,
            // `x[1][1]…` is a chain too.
            Token::LBracket => {
                self.operator()?;
                self.open(last)?;
            }
            Token::RParen | Token::RBracket | Token::RBrace => {
                if self.levels.len() > 1
                    && let Some(level) = self.levels.pop()
                {
                    self.grouped(&level)?;
                }
            }
            Token::Comma => {
                self.item()?;
                let level = self.level();
                (level.operators, level.chain) = (0, 0);
                level.parts += 1;
            }
            Token::VerticalBarRightAngleBracket => self.set_operation()?,
            Token::SemiColon => self.level().begin(Clause::Other),
            Token::Word(word) => self.word(word.keyword, last)?,
            Token::Number(..) | Token::Placeholder(_) | Token::EOF => {}
            token if is_text(token) => {}
            _ => self.operator()?,
        }
        Ok(())
    }

    fn open(&mut self, last: &Token) -> Result<()> {
        self.call(last)?;
        let around = self.level();
        let is_table = around.clause == Clause::From || keyword_of(last) == Keyword::AS;
        let ambiguous = around.ambiguous + ambiguity(keyword_of(last));
        let keyword = keyword_of(last);
        let grouping = matches!(keyword, Keyword::CUBE | Keyword::ROLLUP | Keyword::SETS).then_some(keyword);
        self.levels.push(Level { ambiguous, is_table, grouping, ..Level::default() });
        self.ambiguous()
    }

    fn word(&mut self, keyword: Keyword, last: &Token) -> Result<()> {
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
                self.level().begin(Clause::Select);
                self.level().chain = 0;
                if *last == Token::LParen && !self.level().is_table {
                    self.level().ambiguous += 1;
                    self.ambiguous()?;
                }
                limit(
                    self.queries,
                    MAX_QUERIES,
                    "SELECTs",
                    "read from one table instead of a union of constants",
                )?;
            }
            Keyword::FROM => {
                self.level().begin(Clause::From);
            }
            Keyword::JOIN => self.relation()?,
            // The parser reads each within the one before it, and does not count how deep it is.
            Keyword::INTERVAL if keyword_of(last) == Keyword::INTERVAL => {
                self.level().ambiguous += 1;
                self.ambiguous()?;
            }
            Keyword::ORDER => self.level().begin(Clause::Order),
            Keyword::WHERE | Keyword::HAVING | Keyword::LIMIT => self.level().begin(Clause::Other),
            Keyword::GROUP => {
                self.level().begin(Clause::Other);
                self.grouping_sets = 1;
            }
            Keyword::NoKeyword => {
                self.names += 1;
                limit(
                    self.names,
                    MAX_NAMES,
                    "names",
                    "write values instead of names, or split the statement",
                )?;
            }
            Keyword::OVER => {
                self.windows += 1;
                limit(self.windows, MAX_WINDOWS, "window functions", "split the statement")?;
            }
            Keyword::UNION | Keyword::EXCEPT | Keyword::INTERSECT | Keyword::MINUS => {
                self.level().begin(Clause::Other);
                if keyword != Keyword::UNION {
                    self.intersections += 1;
                    let hint = "join the tables, or use IN and NOT IN";
                    limit(self.intersections, MAX_INTERSECTIONS, "INTERSECTs and EXCEPTs", hint)?;
                }
                self.set_operation()?;
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
        level.chain += 1;
        let (operators, chain) = (level.operators, level.chain);
        limit(chain, MAX_CHAIN, "operators in one list item", "use `IN (…)`, or join a table of values")?;
        limit(
            operators,
            MAX_OPERATORS,
            "operators in one expression",
            "use `IN (…)`, or join a table of values",
        )
    }

    fn ambiguous(&mut self) -> Result<()> {
        let found = self.level().ambiguous;
        limit(
            found,
            MAX_AMBIGUOUS,
            "subqueries or calls of CAST and the like inside one another",
            "nest less deeply",
        )
    }

    fn set_operation(&mut self) -> Result<()> {
        self.set_operations += 1;
        let hint = "read from one table instead of a union of constants";
        limit(self.set_operations, MAX_SET_OPERATIONS, "set operations", hint)
    }

    /// A bracket has been closed, of grouping sets perhaps. Those of several lists of one GROUP BY multiply.
    fn grouped(&mut self, level: &Level) -> Result<()> {
        let parts = u64::from(level.parts) + 1;
        let sets = match level.grouping {
            None => return Ok(()),
            Some(Keyword::CUBE) => {
                1_u64.checked_shl(level.parts + 1).filter(|_| parts < 64).unwrap_or(u64::MAX)
            }
            Some(Keyword::ROLLUP) => parts + 1,
            Some(_) => parts,
        };
        self.grouping_sets = self.grouping_sets.max(1).saturating_mul(sets);
        if self.grouping_sets <= MAX_GROUPING_SETS {
            return Ok(());
        }
        let message = format!("a GROUP BY has more than {MAX_GROUPING_SETS} grouping sets");
        Err(Error::new(ErrorKind::LimitReached, message)
            .with_hint("group by fewer columns, or name the sets"))
    }

    /// A comma: one more of what the clause lists.
    fn item(&mut self) -> Result<()> {
        let level = self.level();
        level.items += 1;
        let (items, clause) = (level.items, level.clause);
        match clause {
            Clause::From => self.relation(),
            Clause::Select => {
                limit(items, MAX_ITEMS, "columns in one SELECT", "select `*`, or put them into lists")
            }
            Clause::Order => limit(items, MAX_KEYS, "values in one ORDER BY", "sort by fewer"),
            Clause::Other => Ok(()),
        }
    }

    /// A bracket behind a name opens where a SELECT lists what it gives.
    fn call(&mut self, last: &Token) -> Result<()> {
        let is_name = matches!(last, Token::Word(word) if !matches!(word.keyword, Keyword::OVER | Keyword::IN | Keyword::AS));
        let level = self.level();
        if level.clause != Clause::Select || !is_name {
            return Ok(());
        }
        level.calls += 1;
        limit(level.calls, MAX_CALLS, "calls of functions in one SELECT", "split the statement")
    }

    fn relation(&mut self) -> Result<()> {
        self.relations += 1;
        self.level().operators = 0;
        limit(self.relations, MAX_RELATIONS, "tables to join", "join fewer tables in one statement")
    }
}

impl Level {
    /// Another clause begins in the same brackets.
    fn begin(&mut self, clause: Clause) {
        self.operators = 0;
        self.clause = clause;
        (self.items, self.calls) = (1, 0);
    }
}

fn keyword_of(token: &Token) -> Keyword {
    if let Token::Word(word) = token { word.keyword } else { Keyword::NoKeyword }
}

/// How much the bracket of a call adds to the parser's choices.
fn ambiguity(name: Keyword) -> usize {
    match name {
        Keyword::CAST
        | Keyword::TRY_CAST
        | Keyword::SAFE_CAST
        | Keyword::OVERLAY
        | Keyword::SUBSTRING
        | Keyword::SUBSTR
        | Keyword::CEIL
        | Keyword::FLOOR
        | Keyword::CONVERT
        | Keyword::TRY_CONVERT
        | Keyword::TRIM
        | Keyword::EXTRACT => 1,
        // It tries more than two.
        Keyword::POSITION => 2,
        _ => 0,
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
    use super::check_limits;
    use bowshot_api::ErrorKind;
    use sqlparser::dialect::GenericDialect;

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
            (format!("VALUES (1){}", " UNION ALL VALUES (1)".repeat(600)), true),
            (format!("SELECT 1{}", " |> WHERE true".repeat(600)), true),
            (format!("SELECT 1{}", format!("{}+values", "+1".repeat(900)).repeat(6)), true),
            (format!("SELECT 1 FROM t{}", ", t".repeat(400)), true),
            (format!("SELECT 1 FROM t{}", " CROSS JOIN t".repeat(400)), true),
            (format!("SELECT 1 WHERE a IN (1{})", ", -1".repeat(50_000)), false),
            (format!("VALUES (1){}", ", (-1, 2 + 3)".repeat(50_000)), false),
            (format!("SELECT 1{}", ", a.b".repeat(9_999)), false),
            (format!("SELECT 1{}", ", a.b".repeat(10_000)), true),
            (format!("SELECT 1, b FROM t GROUP BY a{}", ", a.b".repeat(40_000)), false),
            (format!("SELECT f(1{})", ", a.b".repeat(40_000)), false),
            (format!("SELECT f(1{})", ", a.b".repeat(50_000)), true),
            (format!("INSERT INTO t VALUES (1){}", ", (NULL, DATE '2020-01-01')".repeat(50_000)), false),
            (format!("SELECT 1{}", ", sum(f(a))".repeat(2_000)), false),
            (format!("SELECT 1{}", ", sum(f(a))".repeat(2_001)), true),
            (format!("SELECT 1 WHERE a = 1{}", " OR f(a)".repeat(900)), false),
            (format!("SELECT 1 ORDER BY a{}", ", b".repeat(999)), false),
            (format!("SELECT 1 ORDER BY a{}", ", b".repeat(1_000)), true),
            (format!("SELECT rank() OVER (ORDER BY a{})", ", b".repeat(1_000)), true),
            (format!("SELECT 1 ORDER BY a{}", ", f(b, c, d)".repeat(900)), false),
            (format!("SELECT 1 FROM (VALUES (1){}) ORDER BY 1", ", (2)".repeat(50_000)), false),
            (")".repeat(10_000), false),
            (format!("SELECT {}1", "CAST( ".repeat(11)), true),
            (format!("SELECT {}1{}", "cast(".repeat(10), " AS INT)".repeat(10)), false),
            (format!("SELECT {}1{}", "cast(".repeat(11), " AS INT)".repeat(11)), true),
            (format!("SELECT {}1", "position(".repeat(6)), true),
            (format!("SELECT {}1{}", "(SELECT ".repeat(11), ")".repeat(11)), true),
            (format!("SELECT 1{}", ", CAST(a AS INT)".repeat(1_000)), false),
            (format!("{}SELECT 1{}", "SELECT * FROM (".repeat(40), ") AS t".repeat(40)), false),
            (format!("WITH {} SELECT 1", "a AS (SELECT 1), ".repeat(40)), false),
            (format!("SELECT 1 FROM t GROUP BY CUBE (a{})", ", a".repeat(11)), false),
            (format!("SELECT 1 FROM t GROUP BY CUBE (a{})", ", a".repeat(12)), true),
            (format!("SELECT 1 FROM t GROUP BY CUBE (a{})", ", a".repeat(39)), true),
            (format!("SELECT 1 FROM t GROUP BY cube(a{})", ", a".repeat(100)), true),
            (format!("SELECT 1 FROM t GROUP BY CUBE (a, (b{}))", ", a".repeat(100)), false),
            (format!("SELECT 1 FROM t GROUP BY ROLLUP (a{})", ", a".repeat(100)), false),
            (format!("SELECT 1 FROM t GROUP BY a{}", ", CUBE (a, b, c, d)".repeat(4)), true),
            (format!("SELECT 1 FROM t GROUP BY GROUPING SETS ((a){})", ", (b)".repeat(5_000)), true),
            (
                format!(
                    "SELECT 1 FROM t{}",
                    " UNION ALL SELECT 1 FROM t GROUP BY CUBE (a, b, c)".repeat(100)
                ),
                false,
            ),
            (format!("SELECT arrow_cast(NULL, '{}Int8{}')", "List(".repeat(20), ")".repeat(20)), false),
            (format!("SELECT arrow_cast(NULL, '{}Int8{}')", "List(".repeat(33), ")".repeat(33)), true),
            (format!("SELECT 1, ARROW_CAST(NULL, $${}$$)", "List(".repeat(20_000)), true),
            (format!("SELECT 1, '{}'", "(".repeat(20_000)), false),
            (format!("SELECT {}'1 day'", "INTERVAL ".repeat(3_000)), true),
            (format!("SELECT a{}", ", INTERVAL '1 day'".repeat(3_000)), false),
            (format!("SHOW TABLES WHERE a{}", " AND a".repeat(2_000)), true),
            (format!("SELECT 1{}", ", sum(1) OVER ()".repeat(500)), false),
            (format!("SELECT 1{}", ", sum(1) OVER ()".repeat(501)), true),
            (format!("SELECT 1{}", " INTERSECT SELECT 1".repeat(101)), true),
        ] {
            let kind = check_limits(&sql, &GenericDialect {}).err().map(|error| error.kind());
            assert_eq!(kind == Some(ErrorKind::LimitReached), refused, "{}", &sql[..sql.len().min(60)]);
        }
    }
}
