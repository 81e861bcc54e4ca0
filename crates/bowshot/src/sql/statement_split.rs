//! Splits text into SQL statements at semicolons that are not inside quotes or comments.
//!
//! It knows the quotes of all dialects that the server speaks: `'…'`, `E'…'`, `"…"`, `` `…` ``, `$tag$…$tag$`, and
//! comments `-- …` and nested `/* … */`. A backslash escapes only in `E'…'`.

/// Complete statements, and what comes after the last semicolon.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Split<'a> {
    /// Without semicolons, surrounding space and statements that are nothing but comments.
    pub(super) statements: Vec<&'a str>,
    /// Unfinished statement; empty if only space and finished comments are left.
    pub(super) rest: &'a str,
}

/// All statements of a text; the last needs no semicolon.
pub(super) fn all(text: &str) -> Vec<String> {
    let split = split(text);
    let rest = (!split.rest.is_empty()).then_some(split.rest);
    split.statements.into_iter().chain(rest).map(str::to_owned).collect()
}

/// Splits a text that may end in the middle of a statement.
pub(super) fn split(text: &str) -> Split<'_> {
    let mut scanner = Scanner { text, position: 0 };
    let mut statements = Vec::new();
    let mut start = 0;
    let mut has_content = false;
    while let Some(piece) = scanner.next_piece() {
        match piece {
            Piece::Semicolon => {
                if has_content {
                    let statement = text.get(start..scanner.position - 1).unwrap_or_default();
                    statements.push(statement.trim());
                }
                start = scanner.position;
                has_content = false;
            }
            Piece::Content | Piece::Open => has_content = true,
            Piece::Blank => {}
        }
    }
    let rest = if has_content { text.get(start..).unwrap_or_default().trim() } else { "" };
    Split { statements, rest }
}

enum Piece {
    Semicolon,
    /// A token that makes a statement.
    Content,
    /// Space or a comment.
    Blank,
    /// A quote or comment without an end.
    Open,
}

struct Scanner<'a> {
    text: &'a str,
    position: usize,
}

impl Scanner<'_> {
    fn next_piece(&mut self) -> Option<Piece> {
        let rest = self.rest();
        let first = rest.chars().next()?;
        if rest.starts_with("--") {
            let end = rest.find('\n').unwrap_or(rest.len());
            return Some(self.advance(end, Piece::Blank));
        }
        if rest.starts_with("/*") {
            return Some(self.comment());
        }
        match first {
            ';' => Some(self.advance(1, Piece::Semicolon)),
            '\'' => Some(if self.after_escape_prefix() { self.escaped() } else { self.quoted('\'') }),
            '"' | '`' => Some(self.quoted(first)),
            '$' => Some(self.dollar()),
            space if space.is_whitespace() => Some(self.advance(space.len_utf8(), Piece::Blank)),
            other => Some(self.advance(other.len_utf8(), Piece::Content)),
        }
    }

    fn rest(&self) -> &str {
        self.text.get(self.position..).unwrap_or_default()
    }

    fn advance(&mut self, bytes: usize, piece: Piece) -> Piece {
        self.position += bytes;
        piece
    }

    fn open(&mut self) -> Piece {
        self.position = self.text.len();
        Piece::Open
    }

    /// A doubled quote inside is two strings in a row, which splits the same.
    fn quoted(&mut self, quote: char) -> Piece {
        match self.rest().get(1..).and_then(|inside| inside.find(quote)) {
            Some(length) => self.advance(length + 2, Piece::Content),
            None => self.open(),
        }
    }

    fn escaped(&mut self) -> Piece {
        let mut escape = false;
        for (index, byte) in self.rest().bytes().enumerate().skip(1) {
            match byte {
                _ if escape => escape = false,
                b'\\' => escape = true,
                b'\'' => return self.advance(index + 1, Piece::Content),
                _ => {}
            }
        }
        self.open()
    }

    fn comment(&mut self) -> Piece {
        let rest = self.rest();
        let mut depth = 0_usize;
        let mut index = 0;
        while let Some(two) = rest.as_bytes().get(index..index + 2) {
            index += match two {
                b"/*" => {
                    depth += 1;
                    2
                }
                b"*/" => {
                    depth -= 1;
                    2
                }
                _ => 1,
            };
            if depth == 0 {
                return self.advance(index, Piece::Blank);
            }
        }
        self.open()
    }

    fn dollar(&mut self) -> Piece {
        let rest = self.rest();
        let tag = rest.get(1..).and_then(|inside| inside.find('$')).and_then(|end| rest.get(..end + 2));
        let Some(tag) = tag.filter(|tag| is_tag(tag)).filter(|_| !self.after_word()) else {
            return self.advance(1, Piece::Content);
        };
        let found = rest.get(tag.len()..).and_then(|inside| inside.find(tag)).map(|end| end + 2 * tag.len());
        match found {
            Some(length) => self.advance(length, Piece::Content),
            None => self.open(),
        }
    }

    /// Whether the quote comes right after an `E` that is a word by itself.
    fn after_escape_prefix(&self) -> bool {
        let before = self.text.get(..self.position).unwrap_or_default();
        before.strip_suffix(['e', 'E']).is_some_and(|before| !ends_in_word(before))
    }

    fn after_word(&self) -> bool {
        ends_in_word(self.text.get(..self.position).unwrap_or_default())
    }
}

fn ends_in_word(text: &str) -> bool {
    text.chars().next_back().is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '$')
}

/// `$$` or `$name$`; `$1` is a parameter.
fn is_tag(tag: &str) -> bool {
    let name = tag.trim_matches('$');
    !name.starts_with(|c: char| c.is_ascii_digit()) && name.chars().all(|c| c.is_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::split;

    fn check(text: &str, statements: &[&str], rest: &str) {
        let found = split(text);
        assert_eq!((found.statements.as_slice(), found.rest), (statements, rest), "{text}");
    }

    #[test]
    fn statements_end_at_semicolons() {
        check("", &[], "");
        check("select 1", &[], "select 1");
        check(" select 1 ; select 2;", &["select 1", "select 2"], "");
        check(";;select 1;;", &["select 1"], "");
        check("select 'größe'; x", &["select 'größe'"], "x");
    }

    #[test]
    fn quotes_hide_semicolons() {
        check("select ';';", &["select ';'"], "");
        check("select 'it''s;';", &["select 'it''s;'"], "");
        check(r"select 'a\'; select 2;", &[r"select 'a\'", "select 2"], "");
        check(r"select E'a\';' ; x", &[r"select E'a\';'"], "x");
        check(r"select name'a\'; x", &[r"select name'a\'"], "x");
        check("select \"a;b\", `c;d`;", &["select \"a;b\", `c;d`"], "");
        check("select $$a;b$$, $t$;$$;$t$;", &["select $$a;b$$, $t$;$$;$t$"], "");
        check("select $1; select a$b;", &["select $1", "select a$b"], "");
        check("select 'open; x", &[], "select 'open; x");
        check("select $$open; x", &[], "select $$open; x");
    }

    #[test]
    fn comments_hide_semicolons_and_make_no_statement() {
        check("-- a; b\nselect 1;", &["-- a; b\nselect 1"], "");
        check("/* a; /* b; */ c; */ select 1; -- done", &["/* a; /* b; */ c; */ select 1"], "");
        check("-- only a comment", &[], "");
        check("/* only */ ; -- comments", &[], "");
        check("select 1 /* open; ", &[], "select 1 /* open;");
    }
}
