//! What the log says. The test keeps to one thread, whose log is its own.

use std::io::Write;
use std::sync::Arc;

use crate::issuer::Mock;
use crate::model::{Running, Setup, location, value};
use http::StatusCode;
use parking_lot::Mutex;
use serde_json::json;

/// Keeps what is logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn no_token_code_state_or_kubeconfig_is_in_the_log() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::level_filters::LevelFilter::TRACE)
        .with_writer(move || writer.clone())
        .finish();
    // With a single subscriber in the process, a thread without one that comes first to a place in the code would switch it off for all.
    let _another = tracing::Dispatch::new(tracing::subscriber::NoSubscriber::default());
    let _logged = tracing::subscriber::set_default(subscriber);
    let mock = Mock::start().await;
    let front = Running::with(Setup { login: Some(mock.login()), ..Setup::default() }).await;
    let end = location(&mock.log_in(&front, "good").await);
    mock.log_in(&front, "c0de-of-a-thief").await;
    let token = value(&end, "access_token").unwrap();
    let auth = format!("Bearer {token}");
    let order = json!({"metadata": {"name": "a"}, "spec": {"templateRef": {"name": "widgets"}, "clusterIdentity": {"identity": "u"}}});
    let bound = front.post("/api/bind", &[("authorization", &auth)], order.to_string()).await;
    assert_eq!(bound.status(), StatusCode::OK);
    front.get_with("/api/ping", &[("authorization", "Bearer f0rged.t0ken.here")]).await;
    front.get("/api/callback?code=l0st&state=f0rged-state").await;
    let text = String::from_utf8(log.0.lock().clone()).unwrap();
    assert!(text.contains("Somebody has logged in") && text.contains("Bound."), "{text}");
    let parts = token.split('.').skip(1);
    let secrets = parts.chain(["c0de-of-a-thief", "f0rged", "l0st", "s3cret", "access_token=", "code_verifier"]);
    for secret in secrets {
        let line = text.lines().find(|line| line.contains(secret));
        assert_eq!(line, None, "{secret}");
    }
}
