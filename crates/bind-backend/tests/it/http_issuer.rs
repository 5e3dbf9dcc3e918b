//! Logins by an issuer elsewhere, which tells the truth or does not; and TLS.

use std::sync::Arc;

use crate::issuer::{CLIENT, Mock, new_key};
use crate::model::{Model, Running, Setup, body, location, text, value};
use carrick_bind_api::install::HostAliases;
use carrick_bind_backend::http::{Allowed, Front, GivenKeys, HttpConfig, LoginMethod, TlsFiles};
use carrick_client::WebTrust;
use http::StatusCode;
use ring::signature::KeyPair;
use serde_json::json;

#[tokio::test]
async fn an_issuer_elsewhere_is_believed_when_its_tokens_prove_it() {
    let mock = Mock::start().await;
    let front = Running::with(Setup { login: Some(mock.login()), ..Setup::default() }).await;
    let end = location(&mock.log_in(&front, "good").await);
    let token = format!("Bearer {}", value(&end, "access_token").unwrap());
    assert_eq!(front.get_with("/api/ping", &[("authorization", &token)]).await.status(), StatusCode::OK);
    let person = front.model.state.lock().people[0].clone();
    assert_eq!((person.subject.as_str(), person.groups), ("ann", vec!["team".to_owned()]), "no group of the system");

    let refused = mock.log_in(&front, "stolen").await;
    assert_eq!(refused.status(), StatusCode::BAD_REQUEST);
    assert!(text(&refused).contains("invalid_grant") && !text(&refused).contains("stolen"), "{}", text(&refused));
    let now = jiff::Timestamp::now().as_second();
    for (change, problem) in [
        (json!({"iss": "https://evil.example"}), "another issuer"),
        (json!({"aud": "somebody"}), "another client"),
        (json!({"aud": [CLIENT, "somebody"]}), "another client"),
        (json!({"exp": now - 3600}), "expired"),
        (json!({"nbf": now + 3600}), "not valid yet"),
        (json!({"nonce": "other"}), "another login"),
        (json!({"sub": ""}), "names nobody"),
        (json!({"sub": "system:admin"}), "names nobody"),
    ] {
        mock.state.lock().change = change.clone();
        let refused = mock.log_in(&front, "good").await;
        assert_eq!(refused.status(), StatusCode::UNAUTHORIZED, "{change}");
        assert!(body(&refused)["error"].as_str().unwrap().contains(problem), "{change}: {}", text(&refused));
    }
    mock.state.lock().change = json!({"aud": [CLIENT, "somebody"], "azp": CLIENT, "groups": "one"});
    assert_eq!(mock.log_in(&front, "good").await.status(), StatusCode::FOUND);

    // Another key under the name of the known one is a forgery; a new key is looked for once.
    mock.state.lock().key = new_key();
    assert!(text(&mock.log_in(&front, "good").await).contains("signature is wrong"));
    assert_eq!(mock.state.lock().asked_for_keys, 1);
    {
        let mut state = mock.state.lock();
        "k2".clone_into(&mut state.key_name);
        state.shown = ("k2".to_owned(), state.key.public_key().as_ref().to_vec());
    }
    assert_eq!(mock.log_in(&front, "good").await.status(), StatusCode::FOUND);
    "k3".clone_into(&mut mock.state.lock().key_name);
    for _ in 0..5 {
        assert_eq!(mock.log_in(&front, "good").await.status(), StatusCode::UNAUTHORIZED);
    }
    assert_eq!(mock.state.lock().asked_for_keys, 2, "unknown keys do not make it ask again and again");
}

#[tokio::test]
async fn somebody_with_many_groups_stays_logged_in_in_a_browser() {
    let mock = Mock::start().await;
    let groups: Vec<String> = (0..150).map(|number| format!("a-group-with-a-long-name-{number}")).collect();
    mock.state.lock().change = json!({"groups": groups});
    let front = Running::with(Setup { login: Some(mock.login()), ..Setup::default() }).await;
    let set = |answer: &http::Response<bytes::Bytes>| -> Vec<String> {
        let all = answer.headers().get_all("set-cookie").iter();
        all.map(|value| value.to_str().unwrap().to_owned()).collect()
    };
    let begin = front.get("/api/authorize?redirect_url=%2F&session_id=s&client_type=ui").await;
    let url = location(&begin);
    {
        let mut state = mock.state.lock();
        (state.challenge, state.nonce) = (value(&url, "code_challenge").unwrap(), value(&url, "nonce").unwrap());
    }
    let browser = set(&begin)[0].split(';').next().unwrap().to_owned();
    let back = format!("/api/callback?code=good&state={}", value(&url, "state").unwrap());
    let end = front.get_with(&back, &[("cookie", &browser)]).await;
    assert_eq!(end.status(), StatusCode::FOUND, "{}", text(&end));
    let cookies = set(&end);
    // What has more than 4096 bytes with its attributes, browsers drop, and the login begins again and again.
    assert!(cookies.len() > 1 && cookies.iter().all(|cookie| cookie.len() <= 4096), "{} cookies", cookies.len());
    let session: Vec<&str> = cookies.iter().map(|cookie| cookie.split(';').next().unwrap()).collect();
    assert_eq!(front.get_with("/api/ping", &[("cookie", &session.join("; "))]).await.status(), StatusCode::OK);
    assert_eq!(front.model.state.lock().people[0].groups, groups);
}

fn config(login: LoginMethod, tls: Option<TlsFiles>) -> HttpConfig {
    HttpConfig {
        pretty_name: "p".to_owned(),
        token_expiry: std::time::Duration::from_mins(1),
        login,
        callback: "https://bind.example.io/api/callback".to_owned(),
        tls,
        keys: GivenKeys::default(),
        allowed: Allowed::default(),
        consumer_networks: Vec::new(),
        konnector_aliases: HostAliases::default(),
    }
}

async fn problem(config: HttpConfig) -> String {
    match Front::open(config, Arc::new(Model::default())).await {
        Ok(_) => panic!("it starts"),
        Err(error) => error.to_string(),
    }
}

/// Files with a certificate and its key.
struct Certificate {
    folder: std::path::PathBuf,
}

impl Certificate {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("bind-backend-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        std::fs::write(folder.join("cert"), made.cert.pem()).unwrap();
        std::fs::write(folder.join("key"), made.signing_key.serialize_pem()).unwrap();
        Self { folder }
    }

    fn files(&self) -> TlsFiles {
        TlsFiles { cert: self.folder.join("cert"), key: self.folder.join("key") }
    }
}

impl Drop for Certificate {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

#[tokio::test]
async fn a_wrong_issuer_or_certificate_is_named_at_the_start() {
    let mock = Mock::start().await;
    let external = |issuer: &str, ca_file| LoginMethod::External {
        issuer: issuer.to_owned(),
        client_id: CLIENT.to_owned(),
        client_secret: None,
        ca_file,
    };
    let other_name = mock.url.replace("127.0.0.1", "localhost");
    assert!(problem(config(external(&other_name, None), None)).await.contains("calls itself"));
    assert!(
        problem(config(external(&format!("{}/x", mock.url), None), None)).await.contains("does not tell how to log in")
    );
    // An issuer with TLS: nobody has signed its certificate, or the wrong one.
    let (own, other) = (Certificate::new("own"), Certificate::new("other"));
    let trust = WebTrust { ca_file: Some(own.files().cert), insecure: false };
    let front = Running::with(Setup { tls: Some(own.files()), trust, ..Setup::default() }).await;
    let issuer = format!("{}/oidc", front.url);
    for ca_file in [None, Some(other.files().cert)] {
        let said = problem(config(external(&issuer, ca_file), None)).await;
        assert!(said.contains("certificate"), "{said}");
    }
    let said = problem(config(external(&issuer, Some(own.folder.join("none"))), None)).await;
    assert!(said.starts_with("cannot use --oidc-ca-file"), "{said}");
    Front::open(config(external(&issuer, Some(own.files().cert)), None), Arc::new(Model::default())).await.unwrap();
    // A key of another certificate.
    let mixed = TlsFiles { cert: own.files().cert, key: other.files().key };
    let embedded = || LoginMethod::Embedded { issuer: issuer.clone() };
    assert!(problem(config(embedded(), Some(mixed))).await.starts_with("cannot use --tls-cert-file"));
    // Over TLS everything is https, and a whole login works.
    let provider = body(&front.get("/api/exports").await);
    let url = provider["authenticationMethods"][0]["oauth2CodeGrant"]["authenticatedURL"].as_str().unwrap();
    assert!(url.starts_with("https://127.0.0.1:"), "{url}");
    front.login("").await;
}
