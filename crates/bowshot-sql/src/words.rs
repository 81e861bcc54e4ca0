//! What a statement begins with, told without its tokens: asked of every statement on the threads of connections.

/// The first word of a statement in lower case, whatever space and comments stand before it; empty where there is none.
pub fn first_word(sql: &str) -> String {
    let start = without_comments(sql);
    let end = start.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(start.len());
    start.get(..end).unwrap_or_default().to_ascii_lowercase()
}

fn without_comments(sql: &str) -> &str {
    let mut rest = sql.trim_start();
    loop {
        let after = match rest.get(..2) {
            _ if rest.starts_with('#') => rest.split_once('\n').map(|(_, after)| after),
            Some("--") => rest.split_once('\n').map(|(_, after)| after),
            Some("/*") => after_comment(rest),
            _ => return rest,
        };
        let Some(after) = after else { return "" };
        rest = after.trim_start();
    }
}

/// What follows a comment, which may hold others.
fn after_comment(sql: &str) -> Option<&str> {
    let (mut depth, mut rest) = (0_usize, sql);
    while let Some(place) = rest.find(['/', '*']) {
        rest = &rest[place..];
        let step = match rest.get(..2) {
            Some("/*") => {
                depth += 1;
                2
            }
            Some("*/") => {
                depth -= 1;
                2
            }
            _ => 1,
        };
        rest = rest.get(step..)?;
        if depth == 0 {
            return Some(rest);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::first_word;

    #[test]
    fn the_first_word_is_found_behind_space_and_comments() {
        for (sql, expected) in [
            ("VACUUM t", "vacuum"),
            (" \n\tCall\tjoin_cache_clear()", "call"),
            ("-- why\n/* and */ Optimize -- this\n\"T\"", "optimize"),
            ("-- nothing", ""),
            // Only MySQL has such comments, and no other statement begins so.
            ("# why\n# more\nSHOW # this\nTABLES", "show"),
            ("#", ""),
            ("/* open", ""),
            ("/* /* */ vacuum */ SELECT t", "select"),
            ("/* /**/ /***/ */ VACUUM /*/ t */ t", "vacuum"),
            ("(SELECT 1)", ""),
            ("größe x", "größe"),
        ] {
            assert_eq!(first_word(sql), expected, "{sql}");
        }
    }
}
