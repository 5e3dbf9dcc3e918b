//! The rules of the HTTP front, against a provider in memory.

use std::sync::Arc;
use std::time::Duration;

use crate::model::{Running, Setup, body, error, location, text, value};
use bytes::Bytes;
use carrick_bind_api::version;
use http::{Request, StatusCode, header};
use serde_json::{Value, json};

fn bearer(token: &str) -> (&'static str, String) {
    ("authorization", format!("Bearer {token}"))
}

fn order(identity: &str) -> String {
    json!({"metadata": {"name": "mine"}, "spec": {"templateRef": {"name": "widgets"},
        "clusterIdentity": {"identity": identity, "prettyName": "c"}, "author": "somebody/else"}})
    .to_string()
}

async fn ping(front: &Running, token: &str, query: &str) -> StatusCode {
    let (name, value) = bearer(token);
    front.get_with(&format!("/api/ping{query}"), &[(name, &value)]).await.status()
}

#[tokio::test]
async fn a_provider_says_who_it_is_by_the_name_that_the_client_uses() {
    let front = Running::start().await;
    let answer = front.get("/api/exports?cluster_id=one").await;
    assert!(answer.headers().get(header::CACHE_CONTROL).is_none());
    let provider = body(&answer);
    assert_eq!((&provider["apiVersion"], &provider["kind"]), (&json!("v1alpha2"), &json!("BindingProvider")));
    assert_eq!(provider["providerPrettyName"], "Widgets Inc.");
    // kube-bind's own clients refuse what is older than 0.6.0, and read the version behind the mark.
    let spoken = version::of_program(provider["version"].as_str().unwrap()).unwrap();
    assert!(!version::is_older(spoken, version::OLDEST), "{spoken}");
    let method = &provider["authenticationMethods"][0];
    assert_eq!(method["method"], "OAuth2CodeGrant");
    assert_eq!(method["oauth2CodeGrant"]["authenticatedURL"], format!("{}/api/authorize?cluster_id=one", front.url));
    let headers = [("x-forwarded-proto", "https"), ("host", "bind.example.io")];
    let provider = body(&front.get_with("/api/exports", &headers).await);
    let url = &provider["authenticationMethods"][0]["oauth2CodeGrant"]["authenticatedURL"];
    assert_eq!(url, "https://bind.example.io/api/authorize");
    assert_eq!(location(&front.get("/exports?a=b").await), "/api/exports?a=b");
    let claimable = body(&front.get("/api/bindable-resources").await);
    assert_eq!(claimable[1]["GroupVersionResource"], json!({"Group": "", "Version": "v1", "Resource": "secrets"}));
    let manifests = front.get("/api/konnector-manifests").await;
    assert_eq!(manifests.headers()[header::CONTENT_TYPE], "text/yaml");
    assert!(text(&manifests).contains("kind: Deployment"));
    for path in ["/healthz", "/api/healthz"] {
        assert_eq!((front.get(path).await.status(), text(&front.get(path).await).as_str()), (StatusCode::OK, "ok"));
    }
    assert_eq!(text(&front.get("/readyz").await), "ok");
    front.model.state.lock().problem = Some("the cluster does not serve boundschemas".to_owned());
    let unready = front.get("/readyz").await;
    assert_eq!(
        (unready.status(), text(&unready).as_str()),
        (StatusCode::SERVICE_UNAVAILABLE, "the cluster does not serve boundschemas")
    );
    assert_eq!(front.get("/healthz").await.status(), StatusCode::OK, "a restart would not help");
    assert_eq!(error(&front.get("/api/nothing").await), (StatusCode::NOT_FOUND, "RESOURCE_NOT_FOUND".to_owned()));
    assert_eq!(error(&front.get("/api/bind").await).0, StatusCode::METHOD_NOT_ALLOWED);
}

#[tokio::test]
async fn a_command_line_logs_in_and_binds() {
    let front = Running::start().await;
    let token = front.login("").await;
    let (name, auth) = bearer(&token);
    let auth = [(name, auth.as_str())];
    let templates = front.get_with("/api/templates", &auth).await;
    assert!(templates.headers()[header::CACHE_CONTROL].to_str().unwrap().contains("no-store"));
    assert_eq!(body(&templates)["items"][0]["metadata"]["name"], "widgets");
    assert_eq!(body(&front.get_with("/api/collections", &auth).await)["items"][0]["metadata"]["name"], "all");
    let bound = front.post("/api/bind", &auth, order("uid-1")).await;
    assert_eq!(bound.status(), StatusCode::OK, "{}", text(&bound));
    let bound = body(&bound);
    assert_eq!((&bound["kind"], &bound["providerNamespace"]), (&json!("BindingResponse"), &json!("c-1")));
    assert_eq!(bound["requests"][0]["metadata"], json!({"name": "mine"}));
    assert_eq!(bound["authentication"]["oauth2CodeGrant"]["sid"], "sid");
    let author = format!("{}/oidc/kube-bind-embedded-user", front.url);
    assert_eq!(bound["authentication"]["oauth2CodeGrant"]["id"], author);
    assert_eq!(bound.get("bindingName"), None);
    let order_made = front.model.state.lock().orders[0].clone();
    assert_eq!((order_made.author, order_made.request_export), (author.clone(), false), "whoever has logged in");
    let person = front.model.state.lock().people[0].clone();
    assert_eq!(person.groups, ["engineering", "devops", "system:authenticated"]);

    // The web page's identity is that of the person, and another identity can be given by the query.
    let status = body(&front.get_with("/api/consumer-status", &auth).await);
    assert_eq!(status, json!({"connected": false, "namespace": "", "exports": []}));
    let bound = body(&front.post("/api/bind", &auth, order("ui-identity")).await);
    assert_eq!(bound["bindingName"], "mine");
    let status = body(&front.get_with("/api/consumer-status", &auth).await);
    assert_eq!(status, json!({"connected": true, "namespace": "c-1", "exports": ["mine"]}));
    front.post("/api/bind?consumer_id=uid-2", &auth, order("uid-1")).await;
    assert_eq!(front.model.state.lock().orders[2].identity, "uid-2");
}

#[tokio::test]
async fn wrong_orders_are_refused_with_the_right_code() {
    let front = Running::start().await;
    let (name, auth) = bearer(&front.login("").await);
    let auth = [(name, auth.as_str())];
    let bind = async |text: String| error(&front.post("/api/bind", &auth, text).await);
    let bad = (StatusCode::BAD_REQUEST, "BAD_REQUEST".to_owned());
    assert_eq!(bind(order("")).await, bad);
    assert_eq!(bind("{".to_owned()).await, bad);
    assert_eq!(bind(order("u").replace("mine", "Not/A name")).await, bad);
    assert_eq!(bind(order("u").replace("widgets", "")).await, bad);
    let unknown = bind(order("u").replace("widgets", "other")).await;
    assert_eq!(unknown, (StatusCode::NOT_FOUND, "RESOURCE_NOT_FOUND".to_owned()));
    assert!(front.model.state.lock().contracts.is_empty(), "nothing is made for an unknown template");
    let forbidden = (StatusCode::FORBIDDEN, "AUTHORIZATION_FAILED".to_owned());
    let somebody = (String::from("another/author"), Vec::new());
    front.model.state.lock().contracts.insert("theirs".to_owned(), somebody);
    assert_eq!(bind(order("theirs")).await, forbidden);
    assert_eq!(bind(order(&format!("{}/oidc/somebody-else", front.url))).await, forbidden);
    let large = "x".repeat(2 << 20);
    assert_eq!(bind(large.clone()).await, (StatusCode::PAYLOAD_TOO_LARGE, "BAD_REQUEST".to_owned()));
    assert_eq!(front.post("/api/authorize", &[], large).await.status(), StatusCode::PAYLOAD_TOO_LARGE);
    front.model.state.lock().denied = true;
    assert_eq!(bind(order("u")).await, forbidden);
    front.model.state.lock().is_away = true;
    assert_eq!(bind(order("u")).await, (StatusCode::SERVICE_UNAVAILABLE, "CLUSTER_CONNECTION_FAILED".to_owned()));
}

#[tokio::test]
async fn forged_expired_and_foreign_tokens_are_refused() {
    let model = Arc::default();
    let front = Running::with(Setup { model: Arc::clone(&model), ..Setup::default() }).await;
    let token = front.login("one").await;
    assert_eq!(ping(&front, &token, "?cluster_id=one").await, StatusCode::OK);
    // Of another cluster, or of none.
    assert_eq!(ping(&front, &token, "?cluster_id=two").await, StatusCode::FORBIDDEN);
    assert_eq!(ping(&front, &token, "").await, StatusCode::FORBIDDEN);
    assert_eq!(ping(&front, &token, "?cluster_id=a%0Ab").await, StatusCode::BAD_REQUEST);
    // Forged, or not a token at all.
    let parts: Vec<&str> = token.split('.').collect();
    let admin = data_encoding::BASE64URL_NOPAD
        .encode(br#"{"sub":"admin","iss":"i","sid":"s","iat":0,"nbf":0,"exp":9999999999}"#);
    for forged in [format!("{}.{admin}.{}", parts[0], parts[2]), parts[0].to_owned(), String::new()] {
        assert_eq!(ping(&front, &forged, "").await, StatusCode::UNAUTHORIZED);
    }
    let answer = front.get("/api/templates").await;
    assert_eq!(answer.headers()[header::WWW_AUTHENTICATE], "Bearer");
    assert_eq!(error(&answer), (StatusCode::UNAUTHORIZED, "AUTHENTICATION_FAILED".to_owned()));
    let basic = front.get_with("/api/ping", &[("authorization", "Basic YTpi")]).await;
    assert_eq!(basic.status(), StatusCode::UNAUTHORIZED);
    // Of another backend; but a replica, or this one after a restart, has the same keys.
    let other = Running::start().await;
    assert_eq!(ping(&other, &token, "?cluster_id=one").await, StatusCode::UNAUTHORIZED);
    let replica = Running::with(Setup { model, expiry: Some(Duration::from_secs(1)), ..Setup::default() }).await;
    assert_eq!(ping(&replica, &token, "?cluster_id=one").await, StatusCode::OK);
    let short = replica.login("").await;
    let expired = async {
        while ping(&replica, &short, "").await != StatusCode::UNAUTHORIZED {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), expired).await.expect("it expires");
}

#[tokio::test]
async fn tokens_go_to_the_same_machine_and_cookies_stay_here() {
    let front = Running::start().await;
    let ask = |url: &str, kind: &str| {
        let url: String = form_urlencoded::byte_serialize(url.as_bytes()).collect();
        format!("/api/authorize?redirect_url={url}&session_id=s&client_type={kind}")
    };
    for (url, kind) in [
        ("https://evil.example/callback", "cli"),
        ("http://127.0.0.1.evil.example:1/", "cli"),
        ("https://evil.example/", "ui"),
        ("//evil.example/", "ui"),
    ] {
        let answer = front.get(&ask(url, kind)).await;
        assert_eq!(answer.status(), StatusCode::BAD_REQUEST, "{url}");
        if kind == "cli" {
            assert_eq!(body(&answer)["success"], false);
        } else {
            assert_eq!(answer.headers()[header::CONTENT_TYPE], "text/plain; charset=utf-8");
        }
    }
    let own = front.get(&ask(&format!("{}/", front.url), "other")).await;
    assert_eq!(own.status(), StatusCode::FOUND, "whatever is not cli is a page");
    for missing in ["/api/authorize", "/api/authorize?session_id=s", "/api/authorize?redirect_url=%2F"] {
        assert_eq!(front.get(missing).await.status(), StatusCode::BAD_REQUEST, "{missing}");
    }
    let json = json!({"redirect_url": "http://127.0.0.1:1/c", "session_id": "s", "client_type": "cli"}).to_string();
    assert_eq!(front.post("/api/authorize", &[], json).await.status(), StatusCode::FOUND);
}

#[tokio::test]
async fn codes_and_states_are_used_once_and_only_where_they_belong() {
    let front = Running::start().await;
    let begin = "/api/authorize?redirect_url=http%3A%2F%2F127.0.0.1%3A9%2Fc&session_id=s&client_type=cli";
    let first = location(&front.get(&location(&front.get(begin).await)).await);
    let second = location(&front.get(&location(&front.get(begin).await)).await);
    let (code, state) = (value(&first, "code").unwrap(), value(&first, "state").unwrap());
    let other_state = value(&second, "state").unwrap();
    assert!(!state.contains("127.0.0.1"), "the state tells nothing");
    let callback = async |code: &str, state: &str| front.get(&format!("/api/callback?code={code}&state={state}")).await;
    assert_eq!(callback(&code, &other_state).await.status(), StatusCode::BAD_REQUEST, "a code of another login");
    assert_eq!(callback(&code, &state).await.status(), StatusCode::FOUND);
    let again = callback(&code, &state).await;
    assert_eq!((again.status(), &body(&again)["success"]), (StatusCode::BAD_REQUEST, &json!(false)), "used");
    assert_eq!(callback("forged", &state).await.status(), StatusCode::BAD_REQUEST);
    assert_eq!(callback(&code, "forged").await.status(), StatusCode::BAD_REQUEST);
    assert_eq!(front.get("/api/callback").await.status(), StatusCode::BAD_REQUEST);
    let refused = front.get(&format!("/api/callback?error=access_denied&state={state}")).await;
    assert!(text(&refused).contains("access_denied"));
    // The issuer gives codes for its own client's callback only, and tokens to its own client.
    let at_issuer = location(&front.get(begin).await);
    let elsewhere = at_issuer.replace("%2Fapi%2Fcallback", "%2Felsewhere");
    assert_eq!(front.get(&elsewhere).await.status(), StatusCode::BAD_REQUEST);
    let form = format!("grant_type=authorization_code&client_id=kube-bind-backend&client_secret=guess&code={code}");
    assert_eq!(front.post("/oidc/token", &[], form).await.status(), StatusCode::UNAUTHORIZED);
    assert_eq!(front.get("/oidc/userinfo").await.status(), StatusCode::UNAUTHORIZED);
    let discovery = body(&front.get("/oidc/.well-known/openid-configuration").await);
    assert_eq!(discovery["issuer"], format!("{}/oidc", front.url));
}

#[tokio::test]
async fn twenty_log_in_at_once() {
    let front = Arc::new(Running::start().await);
    let logins = (0..20).map(|_| {
        let front = Arc::clone(&front);
        tokio::spawn(async move {
            let token = front.login("").await;
            ping(&front, &token, "").await
        })
    });
    for login in logins.collect::<Vec<_>>() {
        assert_eq!(login.await.unwrap(), StatusCode::OK);
    }
}

fn cookies(answer: &http::Response<Bytes>) -> Vec<String> {
    answer.headers().get_all(header::SET_COOKIE).iter().map(|value| value.to_str().unwrap().to_owned()).collect()
}

/// Logs in as a browser does; returns its cookies.
async fn browse(front: &Running, page: &str, headers: &[(&str, &str)]) -> (String, Vec<String>) {
    let page: String = form_urlencoded::byte_serialize(page.as_bytes()).collect();
    let begin =
        front.get_with(&format!("/api/authorize?redirect_url={page}&session_id=s&client_type=ui"), headers).await;
    let browser = cookies(&begin)[0].split(';').next().unwrap().to_owned();
    let back = location(&front.get(&location(&begin)).await);
    let without = front.get(&back).await;
    assert_eq!(without.status(), StatusCode::BAD_REQUEST, "another browser");
    let back = location(&front.get(&location(&begin)).await);
    let all: Vec<(&str, &str)> = headers.iter().copied().chain([("cookie", browser.as_str())]).collect();
    let end = front.get_with(&back, &all).await;
    let set = cookies(&end);
    let session: Vec<&str> = set.iter().map(|cookie| cookie.split(';').next().unwrap()).collect();
    (format!("{browser}; {}", session.join("; ")), set)
}

#[tokio::test]
async fn a_login_that_fails_is_told_to_a_browser_by_a_page() {
    let front = Running::start().await;
    let failed = front.get_with("/api/callback?code=x&state=y&cluster_id=a", &[("accept", "text/html,*/*")]).await;
    assert_eq!(failed.status(), StatusCode::BAD_REQUEST);
    assert_eq!(failed.headers()[header::CONTENT_TYPE], "text/html; charset=utf-8");
    let page = text(&failed);
    assert!(page.contains("log in again") && page.contains("href=\"/?cluster_id=a\""), "{page}");
    let plain = front.get("/api/callback?code=x&state=y").await;
    assert_eq!(plain.headers()[header::CONTENT_TYPE], "text/plain; charset=utf-8");
}

#[tokio::test]
async fn a_browser_logs_in_looks_around_and_binds() {
    let front = Running::start().await;
    let welcome = front.get("/").await;
    assert!(text(&welcome).contains("Log in") && !text(&welcome).contains("widgets"));
    let policy = welcome.headers()[header::CONTENT_SECURITY_POLICY].to_str().unwrap().to_owned();
    assert!(policy.starts_with("default-src 'none'; style-src 'self';") && policy.contains("frame-ancestors 'none'"));
    let (cookie, set) = browse(&front, "/resources", &[]).await;
    assert!(set[0].contains("; HttpOnly; SameSite=Lax; Max-Age=3600") && !set[0].contains("Secure"), "{set:?}");
    let with = [("cookie", cookie.as_str())];
    let catalogue = text(&front.get_with("/", &with).await);
    assert!(
        catalogue.contains("Widgets &lt;for&gt; all") && catalogue.contains("/bind?template=widgets"),
        "{catalogue}"
    );
    let page = text(&front.get_with("/bind?template=widgets", &with).await);
    let mark = page.split("name=\"mark\" value=\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    assert!(page.contains("<label for=\"name\">") && page.contains("widgets.example.io"), "{page}");
    assert_eq!(front.get_with("/bind?template=none", &with).await.status(), StatusCode::NOT_FOUND);

    let form = |mark: &str, name: &str| format!("mark={mark}&template=widgets&name={name}");
    let cross = front.post("/bind", &[("cookie", &cookie), ("origin", "https://evil.example")], form(&mark, "a")).await;
    assert_eq!(cross.status(), StatusCode::FORBIDDEN);
    assert_eq!(front.post("/bind", &with, form("AAAA", "a")).await.status(), StatusCode::FORBIDDEN);
    let json = front.post("/api/bind", &[("cookie", &cookie), ("sec-fetch-site", "cross-site")], order("u")).await;
    assert_eq!(json.status(), StatusCode::FORBIDDEN);
    assert!(front.model.state.lock().orders.is_empty());
    let wrong = front.post("/bind", &with, form(&mark, "No+Name")).await;
    assert!(wrong.status() == StatusCode::BAD_REQUEST && text(&wrong).contains("role=\"alert\""));
    assert!(text(&wrong).contains("value=\"No Name\""), "what was typed is kept: {}", text(&wrong));
    // As Chromium sends the form of a page without a referrer.
    let hidden = [("cookie", cookie.as_str()), ("origin", "null"), ("sec-fetch-site", "same-origin")];
    assert_eq!(front.post("/bind", &hidden, form(&mark, "No+Name")).await.status(), StatusCode::BAD_REQUEST);
    assert_eq!(welcome.headers()[header::REFERRER_POLICY], "same-origin");
    let strange = [("cookie", cookie.as_str()), ("origin", "null")];
    assert_eq!(front.post("/bind", &strange, form(&mark, "a")).await.status(), StatusCode::FORBIDDEN);
    let done = front.post("/bind", &with, form(&mark, "a")).await;
    assert!(text(&done).contains("kind: APIServiceBindingBundle"), "{}", text(&done));
    let made = front.model.state.lock().orders[0].clone();
    assert!(made.request_export && made.identity == made.author);

    let out = front.post("/logout", &with, format!("mark={mark}")).await;
    assert!(
        out.status() == StatusCode::SEE_OTHER && cookies(&out)[0].starts_with("kube-bind=; "),
        "{:?}",
        cookies(&out)
    );
    assert!(cookies(&front.post("/api/logout?cluster_id=one", &[], "").await)[0].starts_with("kube-bind-one=; "));
    assert_eq!(front.get("/nowhere").await.status(), StatusCode::NOT_FOUND);
    assert_eq!(front.get("/style.css").await.headers()[header::CONTENT_TYPE], "text/css; charset=utf-8");
}

#[tokio::test]
async fn a_page_hands_its_answer_to_the_command_line_that_opened_it() {
    let front = Running::start().await;
    let query = "session_id=cli-1&redirect_url=http%3A%2F%2F127.0.0.1%3A9%2Fcallback&consumer_id=uid-7";
    let login = location(&front.get(&format!("/?{query}")).await);
    assert!(login.starts_with("/api/authorize?redirect_url=%2F%3F"), "{login}");
    let (cookie, _) = browse(&front, &format!("/?{query}"), &[]).await;
    let with = [("cookie", cookie.as_str())];
    let page = front.get_with(&format!("/bind?template=widgets&{query}"), &with).await;
    let policy = page.headers()[header::CONTENT_SECURITY_POLICY].to_str().unwrap();
    assert!(policy.contains("form-action 'self' http://127.0.0.1:9;"), "{policy}");
    let page = text(&page);
    assert!(page.contains("<code>uid-7</code>"), "{page}");
    let mark = page.split("name=\"mark\" value=\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    let form = format!("mark={mark}&template=widgets&name=a");
    let end = location(&front.post(&format!("/bind?{query}"), &with, form.clone()).await);
    assert!(end.starts_with("http://127.0.0.1:9/callback?") && value(&end, "session_id").unwrap() == "cli-1");
    let answer = value(&end, "binding_response").unwrap();
    // kube-bind's command line knows this alphabet only.
    assert!(data_encoding::BASE64URL.decode(answer.as_bytes()).is_ok(), "{answer}");
    let answer = carrick_bind_api::response::decode(&answer).unwrap();
    let answer: Value = serde_json::from_slice(&answer).unwrap();
    assert_eq!((&answer["kind"], &answer["requests"][0]["metadata"]["name"]), (&json!("BindingResponse"), &json!("a")));
    assert_eq!(front.model.state.lock().orders[0].identity, "uid-7");
    let elsewhere = query.replace("127.0.0.1", "evil.example");
    assert_eq!(front.post(&format!("/bind?{elsewhere}"), &with, form).await.status(), StatusCode::BAD_REQUEST);
}

/// A verifier and its challenge, as RFC 7636 has them in appendix B.
const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

/// Exchanges a code.
async fn exchange(front: &Running, code: &str, verifier: &str) -> http::Response<Bytes> {
    front.post("/api/exchange", &[], json!({"code": code, "code_verifier": verifier}).to_string()).await
}

#[tokio::test]
async fn a_command_line_that_can_exchange_a_code_gets_no_token_in_a_url() {
    let front = Running::start().await;
    let begin = format!(
        "/api/authorize?redirect_url=http%3A%2F%2F127.0.0.1%3A9%2Fcallback&session_id=sid&client_type=cli&code_challenge={CHALLENGE}"
    );
    let at_issuer = location(&front.get(&begin).await);
    let end = location(&front.get(&location(&front.get(&at_issuer).await)).await);
    assert_eq!(value(&end, "access_token"), None, "{end}");
    let code = value(&end, "code").unwrap();
    // Whoever reads the code has nothing.
    let state = value(&at_issuer, "state").unwrap();
    for (code, verifier) in [(&code, "another"), (&code, ""), (&code, CHALLENGE), (&state, VERIFIER)] {
        assert_eq!(error(&exchange(&front, code, verifier).await).0, StatusCode::UNAUTHORIZED, "{verifier}");
    }
    assert_eq!(front.get("/api/exchange").await.status(), StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(front.post("/api/exchange", &[], "{}").await.status(), StatusCode::BAD_REQUEST);
    let got = body(&exchange(&front, &code, VERIFIER).await);
    assert_eq!((&got["token_type"], &got["cluster_id"]), (&json!("Bearer"), &json!("")));
    let auth = format!("Bearer {}", got["access_token"].as_str().unwrap());
    assert_eq!(front.get_with("/api/ping", &[("authorization", &auth)]).await.status(), StatusCode::OK);
    let bad = front.get(&begin.replace(CHALLENGE, "plain")).await;
    assert_eq!(bad.status(), StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn a_page_hands_a_code_to_a_command_line_that_can_exchange_it() {
    let front = Running::start().await;
    let query = format!(
        "session_id=cli-1&redirect_url=http%3A%2F%2F127.0.0.1%3A9%2Fcallback&consumer_id=uid-7&code_challenge={CHALLENGE}"
    );
    let login = location(&front.get(&format!("/?{query}")).await);
    assert!(login.contains(CHALLENGE), "it comes back from the login: {login}");
    let (cookie, _) = browse(&front, &format!("/?{query}"), &[]).await;
    let with = [("cookie", cookie.as_str())];
    let page = text(&front.get_with(&format!("/bind?template=widgets&{query}"), &with).await);
    let mark = page.split("name=\"mark\" value=\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    let form = format!("mark={mark}&template=widgets&name=a");
    let end = location(&front.post(&format!("/bind?{query}"), &with, form).await);
    assert_eq!((value(&end, "binding_response"), value(&end, "session_id").as_deref()), (None, Some("cli-1")));
    let answer = body(&exchange(&front, &value(&end, "code").unwrap(), VERIFIER).await);
    assert_eq!((&answer["kind"], &answer["requests"][0]["metadata"]["name"]), (&json!("BindingResponse"), &json!("a")));
    assert!(answer["kubeconfig"].is_string());
}

#[tokio::test]
async fn behind_a_proxy_with_tls_cookies_are_secure() {
    let front = Running::start().await;
    let headers = [("x-forwarded-proto", "https"), ("host", "bind.example.io")];
    let (_, set) = browse(&front, "https://bind.example.io/", &headers).await;
    assert!(set[0].ends_with("; Secure"), "{set:?}");
}

#[tokio::test]
async fn a_request_with_a_huge_head_is_refused() {
    let front = Running::start().await;
    let request =
        Request::get(format!("{}/api/exports", front.url)).header("x-large", "a".repeat(100_000)).body(Bytes::new());
    let refused = front.web.send(request.unwrap()).await;
    assert!(refused.is_err() || refused.is_ok_and(|answer| answer.status().is_client_error()));
    assert_eq!(front.get("/healthz").await.status(), StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_uploaded_kubeconfig_gets_konnector_secret_and_bundle() {
    let plane = carrick_plane::Plane::start(carrick_plane::Config::new(carrick_plane::Mode::Kube)).await.unwrap();
    let kubeconfig = plane.kubeconfig("admin", None).unwrap();
    let setup = Setup {
        consumer_networks: vec!["127.0.0.0/8"],
        konnector_aliases: "10.0.0.7:api.example.io,bind.example.io".parse().unwrap(),
        ..Setup::default()
    };
    let front = Running::with(setup).await;
    let (name, auth) = bearer(&front.login("").await);
    let auth = [(name, auth.as_str())];
    let upload = |kubeconfig: &str, binding: &str| {
        let encoded = data_encoding::BASE64URL.encode(kubeconfig.as_bytes());
        json!({"consumerKubeconfig": encoded, "bindingName": binding}).to_string()
    };
    let apply = async |body: String| front.post("/api/apply-binding", &auth, body).await;
    assert_eq!(apply(upload(&kubeconfig, "mine")).await.status(), StatusCode::NOT_FOUND, "nothing is bound yet");
    front.post("/api/bind", &auth, order("ui-identity")).await;
    assert_eq!(apply(upload(&kubeconfig, "other")).await.status(), StatusCode::NOT_FOUND);
    let trap = kubeconfig.replace("token: ", "tokenFile: ");
    assert_eq!(apply(upload(&trap, "mine")).await.status(), StatusCode::BAD_REQUEST);
    assert_eq!(apply("{}".to_owned()).await.status(), StatusCode::BAD_REQUEST);
    let done = apply(upload(&kubeconfig, "mine")).await;
    assert_eq!(done.status(), StatusCode::OK, "{}", text(&done));
    assert_eq!((&body(&done)["konnectorDeployed"], &body(&done)["bundleCreated"]), (&json!(true), &json!(true)));
    let client = carrick_client::Server::from_kubeconfig_yaml(&kubeconfig).unwrap().client();
    let get = async |path: &str| client.raw_get(path).await.unwrap();
    let bundle = get("/apis/kube-bind.io/v1alpha2/apiservicebindingbundles/mine").await;
    assert_eq!(bundle["spec"]["kubeconfigSecretRef"]["name"], "kubeconfig-mine");
    get("/api/v1/namespaces/kube-bind/secrets/kubeconfig-mine").await;
    let deployment = get("/apis/apps/v1/namespaces/kube-bind/deployments/konnector").await;
    let aliases = json!([{"ip": "10.0.0.7", "hostnames": ["api.example.io", "bind.example.io"]}]);
    assert_eq!(deployment["spec"]["template"]["spec"]["hostAliases"], aliases);
    let manifests = text(&front.get("/api/konnector-manifests").await);
    assert!(manifests.contains("hostAliases:") && manifests.contains("api.example.io"), "{manifests}");
    // A konnector that is there stays as it is, and that is said.
    let again = apply(upload(&kubeconfig, "mine")).await;
    assert_eq!(again.status(), StatusCode::OK);
    assert!(body(&again)["message"].as_str().unwrap().contains("keeps its host aliases"), "{}", text(&again));
    // Whoever uploads may say other names.
    let deployments = carrick_client::Resource::namespaced("apps", "v1", "Deployment", "deployments");
    client
        .delete(&deployments, Some("kube-bind"), "konnector", &carrick_client::DeleteOptions::default())
        .await
        .unwrap();
    let other = |aliases: Value| {
        let mut body: Value = serde_json::from_str(&upload(&kubeconfig, "mine")).unwrap();
        body["hostAliases"] = aliases;
        body.to_string()
    };
    assert_eq!(apply(other(json!(["nonsense"]))).await.status(), StatusCode::BAD_REQUEST);
    assert_eq!(apply(other(json!(["10.0.0.8:api.example.io"]))).await.status(), StatusCode::OK);
    let deployment = get("/apis/apps/v1/namespaces/kube-bind/deployments/konnector").await;
    assert_eq!(deployment["spec"]["template"]["spec"]["hostAliases"][0]["ip"], "10.0.0.8");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_uploaded_kubeconfig_is_no_way_to_explore_what_only_the_backend_reaches() {
    let kubeconfig = |server: &str| {
        format!(
            "{{current-context: a, contexts: [{{name: a, context: {{cluster: b, user: c}}}}],
              clusters: [{{name: b, cluster: {{server: '{server}'}}}}], users: [{{name: c, user: {{token: t}}}}]}}"
        )
    };
    let upload = |kubeconfig: &str| {
        let encoded = data_encoding::BASE64URL.encode(kubeconfig.as_bytes());
        json!({"consumerKubeconfig": encoded, "bindingName": "mine"}).to_string()
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let front = Running::start().await;
    let (name, auth) = bearer(&front.login("").await);
    let auth = [(name, auth.as_str())];
    front.post("/api/bind", &auth, order("ui-identity")).await;
    for host in ["127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "2130706433", "169.254.169.254", "10.0.0.1"] {
        let answer =
            front.post("/api/apply-binding", &auth, upload(&kubeconfig(&format!("https://{host}:{port}")))).await;
        assert_eq!(answer.status(), StatusCode::BAD_REQUEST, "{host}");
        assert!(text(&answer).contains("--consumer-networks"), "{host}: {}", text(&answer));
    }
    let arrived = tokio::select! {
        biased;
        arrived = listener.accept() => arrived.is_ok(),
        () = std::future::ready(()) => false,
    };
    assert!(!arrived, "the backend has connected");

    // Where it may connect, it does not tell what it found.
    let front = Running::with(Setup { consumer_networks: vec!["127.0.0.0/8"], ..Setup::default() }).await;
    let (name, auth) = bearer(&front.login("").await);
    let auth = [(name, auth.as_str())];
    front.post("/api/bind", &auth, order("ui-identity")).await;
    let ask = async |port: u16| {
        let answer =
            front.post("/api/apply-binding", &auth, upload(&kubeconfig(&format!("https://127.0.0.1:{port}")))).await;
        (answer.status(), text(&answer))
    };
    let answering = tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = tokio::io::AsyncWriteExt::write_all(&mut stream, b"SSH-2.0-secret\r\n").await;
        }
    });
    let open = ask(port).await;
    answering.abort();
    let _ = answering.await;
    let closed = ask(port).await;
    assert_eq!(open, closed, "they can be told apart");
    assert_eq!(open.0, StatusCode::BAD_REQUEST);
}
