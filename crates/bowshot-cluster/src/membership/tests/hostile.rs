//! What others send to the internal port.

use super::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

#[tokio::test]
async fn settings_that_cannot_work_are_refused() {
    let base = settings(&[]);
    let short = Duration::from_millis(60);
    for bad in [
        Settings { heartbeat: Duration::ZERO, ..base.clone() },
        Settings { suspect_after: short, ..base.clone() },
        Settings { dead_after: short, ..base.clone() },
        Settings { join: vec!["nowhere".to_owned()], ..base.clone() },
        Settings { advertise: Some("host:0".to_owned()), ..base.clone() },
    ] {
        assert!(!refused(Cluster::start(bad).await).is_empty());
    }
}

#[tokio::test]
async fn members_that_send_nonsense_are_closed() {
    let node = start(settings(&[])).await;
    let keys = crate::membership::security::Keys::load(&settings(&[]).security).expect("a secret");
    for bytes in [&u32::MAX.to_be_bytes()[..], b"\0\0\0\x05hello", b"\0\0\0\x02{}", b"\0\0\0\x00"] {
        let purpose = crate::membership::security::Purpose::Members;
        let mut wire = keys.dial(&address(&node), purpose).await.expect("it is a member");
        wire.write_all(bytes).await.expect("written");
        let mut answer = Vec::new();
        _ = timeout(PATIENCE, wire.read_to_end(&mut answer)).await.expect("closed within seconds");
        assert_eq!(answer, b"");
    }
    let stranger = crate::membership::security::Purpose::Work(uuid::Uuid::new_v4());
    let error = keys.dial(&address(&node), stranger).await.expect_err("no member");
    assert!(error.to_string().contains("not known yet"), "{error}");
}
