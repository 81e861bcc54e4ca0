//! Credentials that a catalog gives for the files of one table, for a while. They sign requests for that table and nothing else.

use async_trait::async_trait;
use object_store::CredentialProvider;
use object_store::aws::AwsCredential;
use parking_lot::Mutex;
use std::sync::Arc;

pub struct Vended {
    /// The region of the bucket, where the operator names none.
    pub(super) region: Option<String>,
    credential: Mutex<Arc<AwsCredential>>,
}

impl Vended {
    pub fn new(credential: AwsCredential, region: Option<String>) -> Self {
        Self { region, credential: Mutex::new(Arc::new(credential)) }
    }

    /// Signs requests with others from now on.
    pub fn renew(&self, credential: AwsCredential) {
        *self.credential.lock() = Arc::new(credential);
    }
}

#[async_trait]
impl CredentialProvider for Vended {
    type Credential = AwsCredential;

    async fn get_credential(&self) -> object_store::Result<Arc<AwsCredential>> {
        Ok(Arc::clone(&self.credential.lock()))
    }
}

bowshot_api::debug_fields!(Vended { region });

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_vended_is_not_shown() {
        let credential = AwsCredential {
            key_id: "key".to_owned(),
            secret_key: "hunter2".to_owned(),
            token: Some("hunter3".to_owned()),
        };
        let shown = format!("{:?}", Vended::new(credential, None));
        assert!(!shown.contains("hunter"), "{shown}");
    }
}
