//! Which texts may have secrets in them, and which statements have places for them.

use super::{Located, is_word, is_word_at, word};
use crate::source_tokens::first_word;
use sqlparser::tokenizer::Token;

/// Words behind which a secret stands, by themselves or at the end of a longer one.
const SECRET_WORDS: &[&str] = bowshot_api::words! {
    password passwd pwd passphrase secret key_id access_key_id secret_access_key secret_key session_token
    account_key sas_token bearer_token access_token auth_token refresh_token token service_account
    connection_string private_key api_key apikey client_secret credentials
};
/// Keys of secrets and databases whose values anybody may read; all others are hidden.
const SHOWN_KEYS: &[&str] = bowshot_api::words! {
    type scope provider region endpoint url_style virtual_hosted anonymous account account_name user
    username read_only schema data_path warehouse
};
/// What statements begin with.
const VERBS: &[&str] = bowshot_api::words! {
    abort alter analyse analyze attach begin cache call checkpoint close comment commit copy create
    deallocate declare delete desc describe detach discard do drop end execute explain export fetch from
    grant handler import insert install kill listen load lock merge move notify optimize pivot pragma
    prepare refresh release rename replace reset revoke rollback savepoint select set show start summarize
    table truncate uncache unlisten unlock unpivot update upsert use vacuum values with
};

/// What statements make and alter.
const KINDS: &[&str] = bowshot_api::words! {
    catalog column database default domain function index macro mask model policy row schema sequence
    table token trigger type view
};
/// What may stand before that.
const BEFORE_KIND: &[&str] = bowshot_api::words! {
    external global local materialized or recursive replace temp temporary unique unlogged
};

/// Which places a statement has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    /// `CREATE … SECRET`, and where that word is.
    Secret(usize),
    /// What has a password of a user.
    User,
    Attach,
    Set,
    Other,
}

impl Mark {
    pub(super) fn find(statement: &[Located<'_>]) -> Self {
        let is = |at: usize, words: &[&str]| words.iter().any(|word| is_word_at(statement, at, word));
        let grants_by_password =
            || is(0, &["grant"]) && statement.iter().any(|token| is_word(token.token, "identified"));
        if is(0, &["create"]) {
            const BETWEEN: [&str; 5] = ["or", "replace", "persistent", "temporary", "temp"];
            let kind = (1..statement.len()).find(|at| !is(*at, &BETWEEN)).unwrap_or(0);
            if is(kind, &["secret"]) {
                return Self::Secret(kind);
            }
        }
        if is(0, &["create", "alter"]) && is(1, &["user", "role", "group"])
            || is(0, &["create"]) && is(1, &["or"]) && is(3, &["user", "role"])
            || is(0, &["set"]) && is(1, &["password"])
            || grants_by_password()
        {
            return Self::User;
        }
        match () {
            () if is(0, &["attach"]) => Self::Attach,
            () if is(0, &["set"]) => Self::Set,
            () => Self::Other,
        }
    }
}

/// Whether there is anything to look for: asked of every statement, so without a copy of it.
pub(super) fn may_hold_secrets(sql: &str) -> bool {
    let first = first_word(sql);
    let is_one = |word: &str, of: [&str; 2]| of.iter().any(|mark| word.eq_ignore_ascii_case(mark));
    let (mut makes, mut user) = (false, false);
    !is_verb(&first)
        || sql.contains("://") && sql.contains('@')
        || sql.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| {
            // A misspelled word for the password of a user is none of the others.
            makes |= is_one(word, ["create", "alter"]);
            user |= is_one(word, ["user", "role"]);
            makes && user || is_one(word, ["identified", "attach"]) || is_secret_word(word)
        })
}

/// Whether a statement begins with words that begin one.
pub(super) fn is_known(statement: &[Located<'_>]) -> bool {
    let first = statement.first().map(|token| token.token);
    let Some(Token::Word(first)) = first else { return first == Some(&Token::LParen) };
    if ["create", "alter"].iter().all(|verb| !first.value.eq_ignore_ascii_case(verb)) {
        return is_verb(&first.value.to_ascii_lowercase());
    }
    let words = statement.iter().skip(1).map_while(|token| word(token.token)).map(str::to_ascii_lowercase);
    let mut kind = words.skip_while(|word| BEFORE_KIND.contains(&word.as_str()));
    kind.next().is_some_and(|kind| KINDS.contains(&kind.as_str()))
}

/// Whether statements begin with this word, which is in lower case; before a parenthesis there is none.
pub(super) fn is_verb(word: &str) -> bool {
    word.is_empty() || VERBS.contains(&word)
}

pub(super) fn is_secret_word(word: &str) -> bool {
    SECRET_WORDS.iter().any(|secret| {
        word.len().checked_sub(secret.len()).is_some_and(|at| {
            let (before, end) = word.as_bytes().split_at(at);
            end.eq_ignore_ascii_case(secret.as_bytes())
                && before.last().is_none_or(|byte| matches!(byte, b'_' | b'@'))
        })
    })
}

pub(super) fn is_shown_key(key: &str) -> bool {
    SHOWN_KEYS.iter().any(|shown| key.eq_ignore_ascii_case(shown))
}
