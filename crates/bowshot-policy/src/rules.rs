//! The notes of a snapshot as rules, and as models, types and functions, which rules are about. Keys are JSON arrays, so that no
//! name can be taken for two.

use super::function_note::FunctionNote;
use super::grants::{self, Given, Grants, given_from};
use bowshot_object_store::secrets::Secrets;
use bowshot_tables::{EntryName, Notes, Pipe};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

/// Name of the role that everybody has.
pub const PUBLIC: &str = "public";

/// A catalog, a schema, a table or a model: the parts of its name. That of a model has an empty one before the last, which no
/// table has: a right on a table is none on a model, and the rights on a schema are those on the models in it.
pub type Place = Vec<String>;

/// The rights, policies and masks of one snapshot.
#[derive(Debug, Default, PartialEq)]
pub struct Rules {
    /// Whether there is any rule, or anything that should have been one.
    pub any: bool,
    pub roles: BTreeSet<String>,
    pub users: BTreeMap<String, User>,
    /// Roles by member.
    pub members: BTreeMap<String, BTreeSet<String>>,
    /// Rights that count.
    pub grants: BTreeMap<Place, BTreeMap<String, Given>>,
    /// Those of them that may be handed on.
    pub options: BTreeMap<Place, BTreeMap<String, Given>>,
    /// All grants as they are kept.
    pub granted: BTreeMap<Place, Grants>,
    pub owners: BTreeMap<Place, String>,
    /// Rights on tables to come: by who makes them and in which schema, nowhere meaning everywhere; to whom.
    pub defaults: BTreeMap<(String, Place), BTreeMap<String, Given>>,
    pub policies: BTreeMap<Place, Vec<Policy>>,
    /// Tokens by user and name.
    pub tokens: BTreeMap<(String, String), Token>,
    pub models: BTreeMap<Place, Arc<ModelNote>>,
    /// Labels of enumerated types.
    pub types: BTreeMap<EntryName, Vec<String>>,
    pub functions: BTreeMap<EntryName, Arc<FunctionNote>>,
    /// What the mask `hash` mixes in.
    pub salt: String,
    /// A note that cannot be read: nothing is granted then.
    pub broken: bool,
}

/// A user that SQL has made.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct User {
    pub hash: Option<String>,
    pub admin: bool,
    pub attributes: BTreeMap<String, String>,
}

/// A token of a user: its hash, and when it was made and expires, in seconds since 1970.
#[derive(Debug, Clone, PartialEq)]
pub struct Token {
    pub sha256: String,
    pub made: u64,
    pub expires: Option<u64>,
}

/// What is kept of a model beside its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelNote {
    /// Tells the model from others that have had its name.
    pub id: String,
    /// How often it was made: 1 for a new one, one more with each `CREATE OR REPLACE`.
    pub version: u64,
    /// Finds its file.
    pub sha256: String,
    pub bytes: u64,
    /// Microseconds since 1970.
    pub made: i64,
    /// What `system.models` tells of it, so that no file has to be read for that.
    pub facts: Value,
}

/// A filter of rows, or a mask of a column.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    pub name: String,
    pub column: Option<String>,
    /// For whom; empty: everybody.
    pub roles: BTreeSet<String>,
    pub using: String,
}

/// What a note is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Key<'a> {
    Role(&'a str),
    User(&'a str),
    Member {
        role: &'a str,
        member: &'a str,
    },
    /// Of a grantor that is neither the owner nor an admin.
    Grant {
        place: &'a [String],
        grantee: &'a str,
        grantor: Option<&'a str>,
    },
    /// Which rights of a grant may be handed on.
    Options {
        place: &'a [String],
        grantee: &'a str,
        grantor: Option<&'a str>,
    },
    Owner(&'a [String]),
    Default {
        user: &'a str,
        place: &'a [String],
        grantee: &'a str,
    },
    Policy {
        place: &'a [String],
        mask: bool,
        name: &'a str,
    },
    Token {
        user: &'a str,
        name: &'a str,
    },
    /// No rule, but what rules are about.
    Model(&'a [String]),
    /// The same.
    Type(&'a EntryName),
    /// The same.
    Function(&'a EntryName),
    Salt,
    /// Written with the first rule and never taken out: dropping the last one must not open everything.
    Closed,
}

impl Key<'_> {
    pub fn text(&self) -> String {
        match self {
            Self::Role(name) => json!(["role", name]),
            Self::User(name) => json!(["user", name]),
            Self::Member { role, member } => json!(["member", role, member]),
            Self::Grant { place, grantee, grantor: None } => json!(["grant", place, grantee]),
            Self::Grant { place, grantee, grantor } => json!(["grant", place, grantee, grantor]),
            Self::Options { place, grantee, grantor: None } => json!(["option", place, grantee]),
            Self::Options { place, grantee, grantor } => json!(["option", place, grantee, grantor]),
            Self::Owner(place) => json!(["owner", place]),
            Self::Default { user, place, grantee } => json!(["default", user, place, grantee]),
            Self::Policy { place, mask, name } => json!(["policy", place, mask, name]),
            Self::Token { user, name } => json!(["token", user, name]),
            Self::Model(place) => json!(["model", place]),
            Self::Type(name) => json!(["type", [name.catalog, name.schema, name.name]]),
            Self::Function(name) => json!(["function", [name.catalog, name.schema, name.name]]),
            Self::Salt => json!(["salt"]),
            Self::Closed => json!(["closed"]),
        }
        .to_string()
    }
}

/// Whether a rule takes something away from those who are there already.
pub fn closes(key: &str) -> bool {
    let kind =
        serde_json::from_str::<Value>(key).ok().and_then(|key| key.get(0)?.as_str().map(str::to_owned));
    !matches!(
        kind.as_deref(),
        Some(
            "role"
                | "user"
                | "member"
                | "grant"
                | "option"
                | "owner"
                | "default"
                | "salt"
                | "token"
                | "model"
                | "type"
                | "function"
                | "secret"
                | "pipe"
        )
    )
}

/// Whether a note is a rule: with tokens, models, types, functions, secrets and pipes alone, everybody may do everything.
fn is_rule(key: &str) -> bool {
    !key.starts_with("[\"token\",") && !is_thing(key)
}

/// Whether a note is that of a model, a type, a function, a secret or a pipe, with which no right comes or goes.
pub(crate) fn is_thing(key: &str) -> bool {
    ["[\"model\",", "[\"type\",", "[\"function\","].iter().any(|kind| key.starts_with(kind))
        || is_read_by_others(key)
}

/// Whether a note is read by others: one that cannot be read takes nothing away but itself.
fn is_read_by_others(key: &str) -> bool {
    Secrets::is_note(key) || Pipe::is_note(key)
}

/// Whether both have the same models, types, functions and secrets. Pipes, whose notes change with each load, mean nothing to a query.
pub fn has_same_things(one: &Notes, other: &Notes) -> bool {
    fn things(notes: &Notes) -> impl Iterator<Item = (&String, &String)> {
        notes.texts().iter().filter(|(key, _)| is_thing(key) && !Pipe::is_note(key))
    }
    things(one).eq(things(other))
}

/// What a note of a right, an owner or a policy is about.
pub fn place_in(key: &str) -> Option<Place> {
    let key: Value = serde_json::from_str(key).ok()?;
    let place = match key.get(0)?.as_str()? {
        "grant" | "option" | "owner" | "policy" => texts(key.get(1)?)?,
        "default" => texts(key.get(2)?)?,
        _ => return None,
    };
    Some(place).filter(|place| !place.is_empty())
}

/// What is at a place, as GRANT names it.
pub fn object_type(place: &[String]) -> &'static str {
    match place.len() {
        1 => "CATALOG",
        2 => "SCHEMA",
        3 => "TABLE",
        4 => "MODEL",
        _ => "TYPE",
    }
}

/// The place of a model.
pub fn model_place(name: &EntryName) -> Place {
    vec![name.catalog.clone(), name.schema.clone(), String::new(), name.name.clone()]
}

/// The place of a type: as that of a model, with one more empty part.
pub fn type_place(name: &EntryName) -> Place {
    vec![name.catalog.clone(), name.schema.clone(), String::new(), String::new(), name.name.clone()]
}

/// The place of a function: as that of a type, with one more empty part.
pub fn function_place(name: &EntryName) -> Place {
    let EntryName { catalog, schema, name } = name.clone();
    vec![catalog, schema, String::new(), String::new(), String::new(), name]
}

/// The place of a table or view.
pub fn place_of(name: &EntryName) -> Place {
    vec![name.catalog.clone(), name.schema.clone(), name.name.clone()]
}

impl Rules {
    /// The files of all models, by their SHA-256.
    pub fn files(&self) -> HashSet<String> {
        self.models.values().map(|model| model.sha256.clone()).collect()
    }

    /// Reads the notes. What cannot be read takes all rights away.
    pub fn of(notes: &BTreeMap<String, String>) -> Self {
        let mut rules = Self { any: notes.keys().any(|key| is_rule(key)), ..Self::default() };
        for (key, text) in notes.iter().filter(|(key, _)| !is_read_by_others(key)) {
            if rules.add(key, text).is_none() {
                tracing::error!(key, "an access rule cannot be read: only configured admins have rights");
                return Self { any: true, broken: true, ..Self::default() };
            }
        }
        for (place, all) in &rules.granted {
            let counting = grants::effective(all);
            rules.grants.insert(place.clone(), grants::rights(&counting));
            rules.options.insert(place.clone(), grants::options(&counting));
        }
        rules
    }

    fn add(&mut self, key: &str, text: &str) -> Option<()> {
        let key: Value = serde_json::from_str(key).ok()?;
        let value: Value = serde_json::from_str(text).ok()?;
        let parts = key.as_array()?;
        let part = |n: usize| parts.get(n).and_then(Value::as_str).map(str::to_owned);
        match (parts.first()?.as_str()?, parts.len()) {
            ("role", 2) => drop(self.roles.insert(part(1)?)),
            ("user", 2) => drop(self.users.insert(part(1)?, user_from(&value)?)),
            ("member", 3) => drop(self.members.entry(part(2)?).or_default().insert(part(1)?)),
            ("grant" | "option", 3 | 4) => {
                let grantor = if parts.len() == 4 { Some(part(3)?) } else { None };
                let all = self.granted.entry(texts(parts.get(1)?)?).or_default();
                let granted = all.entry((part(2)?, grantor)).or_default();
                let given = given_from(&value)?;
                if parts.first()?.as_str()? == "grant" {
                    granted.rights = given;
                } else {
                    granted.options = given;
                }
            }
            ("owner", 2) => drop(self.owners.insert(texts(parts.get(1)?)?, value.as_str()?.to_owned())),
            ("default", 4) => {
                let of = (part(1)?, texts(parts.get(2)?)?);
                self.defaults.entry(of).or_default().insert(part(3)?, given_from(&value)?);
            }
            ("policy", 4) => {
                let policy = policy_from(part(3)?, &value)?;
                if parts.get(2)?.as_bool()? != policy.column.is_some() {
                    return None;
                }
                self.policies.entry(texts(parts.get(1)?)?).or_default().push(policy);
            }
            ("token", 3) => {
                let token = Token {
                    sha256: value.get("sha256")?.as_str()?.to_owned(),
                    made: value.get("made")?.as_u64()?,
                    expires: match value.get("expires")? {
                        Value::Null => None,
                        expires => Some(expires.as_u64()?),
                    },
                };
                self.tokens.insert((part(1)?, part(2)?), token);
            }
            ("model", 2) => {
                let place = texts(parts.get(1)?)?;
                if place.len() != 4 || place.get(2).is_some_and(|part| !part.is_empty()) {
                    return None;
                }
                self.models.insert(place, Arc::new(model_from(&value)?));
            }
            ("type", 2) => {
                let [catalog, schema, name]: [String; 3] = texts(parts.get(1)?)?.try_into().ok()?;
                self.types.insert(EntryName { catalog, schema, name }, texts(&value)?);
            }
            ("function", 2) => {
                let [catalog, schema, name]: [String; 3] = texts(parts.get(1)?)?.try_into().ok()?;
                let note = Arc::new(FunctionNote::from_json(&value)?);
                self.functions.insert(EntryName { catalog, schema, name }, note);
            }
            ("closed", 1) => {}
            ("salt", 1) => value.as_str()?.clone_into(&mut self.salt),
            _ => return None,
        }
        Some(())
    }
}

fn texts(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(|text| text.as_str().map(str::to_owned)).collect()
}

fn policy_from(name: String, value: &Value) -> Option<Policy> {
    Some(Policy {
        name,
        column: match value.get("column")? {
            Value::Null => None,
            column => Some(column.as_str()?.to_owned()),
        },
        roles: texts(value.get("roles")?)?.into_iter().collect(),
        using: value.get("using")?.as_str()?.to_owned(),
    })
}

fn user_from(value: &Value) -> Option<User> {
    let attributes = value.get("attributes")?.as_object()?.iter();
    Some(User {
        hash: match value.get("hash")? {
            Value::Null => None,
            hash => Some(hash.as_str()?.to_owned()),
        },
        admin: value.get("admin")?.as_bool()?,
        attributes: attributes
            .map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
            .collect::<Option<_>>()?,
    })
}

pub fn user_text(user: &User) -> String {
    json!({ "hash": user.hash, "admin": user.admin, "attributes": user.attributes }).to_string()
}

pub fn token_text(token: &Token) -> String {
    json!({ "sha256": token.sha256, "made": token.made, "expires": token.expires }).to_string()
}

fn model_from(value: &Value) -> Option<ModelNote> {
    Some(ModelNote {
        id: value.get("id")?.as_str()?.to_owned(),
        version: value.get("version")?.as_u64()?,
        sha256: value.get("sha256")?.as_str()?.to_owned(),
        bytes: value.get("bytes")?.as_u64()?,
        made: value.get("made")?.as_i64()?,
        facts: value.get("facts")?.clone(),
    })
}

pub fn model_text(model: &ModelNote) -> String {
    let ModelNote { id, version, sha256, bytes, made, facts } = model;
    json!({ "id": id, "version": version, "sha256": sha256, "bytes": bytes, "made": made, "facts": facts })
        .to_string()
}

pub fn policy_text(policy: &Policy) -> String {
    json!({ "column": policy.column, "roles": policy.roles, "using": policy.using }).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grants::given_text;
    use bowshot_sql::Privilege;

    #[test]
    fn notes_come_back_as_they_were() {
        let place = vec!["c".to_owned(), "s".to_owned(), "t\",\"x".to_owned()];
        let user = User {
            hash: Some("h".to_owned()),
            admin: true,
            attributes: BTreeMap::from([("a".to_owned(), "b".to_owned())]),
        };
        let given = Given::from([
            (Privilege::Select, Some(BTreeSet::from(["a".to_owned()]))),
            (Privilege::Insert, None),
        ]);
        let token = Token { sha256: "00".to_owned(), made: 7, expires: Some(9) };
        let policy = Policy {
            name: "p".to_owned(),
            column: Some("a".to_owned()),
            roles: BTreeSet::from(["r".to_owned()]),
            using: "null".to_owned(),
        };
        let notes = BTreeMap::from([
            (Key::User("u").text(), user_text(&user)),
            (Key::Grant { place: &place, grantee: "r", grantor: None }.text(), given_text(&given)),
            (Key::Grant { place: &place, grantee: "s", grantor: Some("r") }.text(), given_text(&given)),
            (Key::Options { place: &place, grantee: "r", grantor: None }.text(), given_text(&given)),
            (Key::Policy { place: &place, mask: true, name: "p" }.text(), policy_text(&policy)),
            (Key::Member { role: "r", member: "u" }.text(), "true".to_owned()),
            (Key::Owner(&place).text(), json!("u").to_string()),
            (Key::Default { user: "u", place: &place[..2], grantee: "r" }.text(), given_text(&given)),
            (Key::Token { user: "u", name: "t" }.text(), token_text(&token)),
        ]);
        let rules = Rules::of(&notes);
        assert!(!rules.broken && rules.any);
        assert_eq!(rules.tokens.get(&("u".to_owned(), "t".to_owned())), Some(&token));
        let alone = [(Key::Token { user: "u", name: "t" }.text(), token_text(&token))];
        let alone = Rules::of(&BTreeMap::from(alone));
        assert!(!alone.any && !alone.broken && alone.tokens.len() == 1, "tokens are no rules");
        let model = ModelNote {
            id: "i".into(),
            version: 2,
            sha256: "00".into(),
            bytes: 3,
            made: -4,
            facts: json!({ "trees": 1 }),
        };
        let at = model_place(&EntryName::new("c", "s", "m"));
        let alone = Rules::of(&BTreeMap::from([(Key::Model(&at).text(), model_text(&model))]));
        assert!(!alone.any && !alone.broken, "models are no rules");
        let mood = EntryName::new("c", "s", "mood");
        let alone_too = Rules::of(&BTreeMap::from([(Key::Type(&mood).text(), json!(["sad"]).to_string())]));
        assert!(!alone_too.any && !alone_too.broken, "types are no rules");
        assert_eq!(alone_too.types.get(&mood), Some(&vec!["sad".to_owned()]));
        for key in [Secrets::note("lake"), Pipe::key("p")] {
            assert!(!closes(&key), "{key}");
            assert_eq!(Rules::of(&BTreeMap::from([(key, "no JSON".to_owned())])), Rules::default());
        }
        assert_eq!(alone.models.get(&at).map(AsRef::as_ref), Some(&model));
        assert_eq!(rules.users.get("u"), Some(&user));
        assert_eq!(rules.grants.get(&place).and_then(|grants| grants.get("r")), Some(&given));
        let defaults = rules.defaults.get(&("u".to_owned(), place[..2].to_vec()));
        assert_eq!(defaults.and_then(|grants| grants.get("r")), Some(&given));
        assert_eq!(rules.policies.get(&place), Some(&vec![policy]));
        assert_eq!(rules.members.get("u"), Some(&BTreeSet::from(["r".to_owned()])));
    }

    #[test]
    fn what_cannot_be_read_gives_no_rights() {
        for (key, text) in [
            ("no JSON", "true"),
            ("[\"grant\",[\"c\"],\"r\"]", "{\"FLY\":null}"),
            ("[\"unheard of\"]", "true"),
            ("[\"role\"]", "true"),
            ("[\"model\",[\"c\",\"s\",\"\",\"m\"]]", "true"),
            ("[\"type\",[\"c\",\"s\",\"t\"]]", "true"),
            ("[\"function\",[\"c\",\"s\",\"f\"]]", "{\"body\":\"SELECT 1\"}"),
            (
                "[\"model\",[\"c\",\"s\",\"m\"]]",
                "{\"id\":\"i\",\"version\":1,\"sha256\":\"0\",\"bytes\":1,\"made\":1}",
            ),
            (
                "[\"policy\",[\"c\",\"s\",\"t\"],false,\"p\"]",
                "{\"column\":\"a\",\"roles\":[],\"using\":\"true\"}",
            ),
        ] {
            let rules = Rules::of(&BTreeMap::from([(key.to_owned(), text.to_owned())]));
            assert!(rules.broken && rules.any && rules.grants.is_empty(), "{key}");
        }
    }
}
