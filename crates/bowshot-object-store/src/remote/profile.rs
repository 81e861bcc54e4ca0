//! Profiles of AWS: the files `credentials` and `config` in `~/.aws`, as the tools of AWS write them. The credentials of a
//! profile are read again while the server runs, since such tools put new ones there before the old ones end.

use async_trait::async_trait;
use object_store::CredentialProvider;
use object_store::aws::AwsCredential;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long what was read is believed.
const BELIEVED: Duration = Duration::from_secs(10);

pub(super) fn chosen() -> Option<String> {
    std::env::var("AWS_PROFILE").ok().filter(|name| !name.is_empty())
}

/// A value of a profile, of the one that the environment names, or of `default`.
pub(super) fn value(profile: Option<&str>, key: &str) -> Option<String> {
    let name = name(profile);
    let found = |path: Option<PathBuf>| section(&std::fs::read_to_string(path?).ok()?, &name)?.remove(key);
    found(config_path()).or_else(|| found(credentials_path()))
}

#[derive(Debug)]
pub(super) struct Credentials {
    profile: String,
    known: Mutex<Option<(Instant, Arc<AwsCredential>)>>,
}

impl Credentials {
    /// Those of the profile; `None` if no profile was named and there are none for `default`.
    ///
    /// # Errors
    /// When a profile was named that has no keys.
    pub(super) fn find(profile: Option<&str>) -> Result<Option<Self>, String> {
        let found = Self { profile: name(profile), known: Mutex::default() };
        match (read(&found.profile), profile) {
            (Some(_), _) => Ok(Some(found)),
            (None, None) => Ok(None),
            (None, Some(name)) => Err(format!("the profile `{name}` of `~/.aws/credentials` has no keys")),
        }
    }
}

#[async_trait]
impl CredentialProvider for Credentials {
    type Credential = AwsCredential;

    async fn get_credential(&self) -> object_store::Result<Arc<AwsCredential>> {
        let mut known = self.known.lock();
        if let Some((_, credential)) = known.as_ref().filter(|(read, _)| read.elapsed() < BELIEVED) {
            return Ok(Arc::clone(credential));
        }
        let credential = read(&self.profile).map(Arc::new).ok_or_else(|| object_store::Error::Generic {
            store: "S3",
            source: "no credentials in the profile".into(),
        })?;
        *known = Some((Instant::now(), Arc::clone(&credential)));
        Ok(credential)
    }
}

fn read(profile: &str) -> Option<AwsCredential> {
    [credentials_path(), config_path()].into_iter().flatten().find_map(|path| {
        let mut values = section(&std::fs::read_to_string(path).ok()?, profile)?;
        Some(AwsCredential {
            key_id: values.remove("aws_access_key_id")?,
            secret_key: values.remove("aws_secret_access_key")?,
            token: values.remove("aws_session_token"),
        })
    })
}

fn name(profile: Option<&str>) -> String {
    profile.map(str::to_owned).or_else(chosen).unwrap_or_else(|| "default".to_owned())
}

fn credentials_path() -> Option<PathBuf> {
    place("AWS_SHARED_CREDENTIALS_FILE", "credentials")
}

fn config_path() -> Option<PathBuf> {
    place("AWS_CONFIG_FILE", "config")
}

fn place(variable: &str, file: &str) -> Option<PathBuf> {
    let given = std::env::var_os(variable).filter(|path| !path.is_empty()).map(PathBuf::from);
    given.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".aws").join(file)))
}

/// The values of a profile, which is `[NAME]` or `[profile NAME]`.
fn section(text: &str, name: &str) -> Option<HashMap<String, String>> {
    let mut values = None;
    let mut inside = false;
    for line in text.lines().map(str::trim) {
        if let Some(header) = line.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
            let header = header.trim();
            inside = header == name || header.strip_prefix("profile").is_some_and(|rest| rest.trim() == name);
            if inside {
                values.get_or_insert_with(HashMap::new);
            }
        } else if let (true, Some((key, value))) =
            (inside && !line.starts_with(['#', ';']), line.split_once('='))
            && let Some(values) = &mut values
        {
            values.insert(key.trim().to_ascii_lowercase(), value.trim().to_owned());
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::section;

    #[test]
    fn profiles_are_found_by_name() {
        let text = "# x\n[default]\naws_access_key_id = A\n\n[profile team]\nregion=eu-1\naws_secret_access_key = a=b\n[teams]\nregion=x\n";
        assert_eq!(section(text, "default").unwrap()["aws_access_key_id"], "A");
        let team = section(text, "team").unwrap();
        assert_eq!((team["region"].as_str(), team["aws_secret_access_key"].as_str()), ("eu-1", "a=b"));
        assert!(section(text, "other").is_none());
    }
}
