//! `carrick top` and `carrick dashboard` with a dashboard behind https, as an Ingress would serve it.

#![cfg(unix)] // stopping needs signals

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::process::Output;
use std::sync::Arc;

use crate::running::{Folder, Running, carrick};
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};

/// What the server lets in.
const TOKEN: &str = "sesame";

/// A dashboard at an https URL with a certificate of its own authority, which is in the folder as `ca.crt`.
fn serve(folder: &Folder) -> String {
    let pair = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    fs::write(folder.path("ca.crt"), pair.cert.pem()).unwrap();
    fs::write(folder.path("token"), format!("{TOKEN}\n")).unwrap();
    let key = PrivateKeyDer::try_from(pair.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_no_client_auth().with_single_cert(vec![pair.cert.der().clone()], key).unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let config = Arc::clone(&config);
            // Clients that do not trust us leave in the middle.
            std::thread::spawn(move || {
                let stream = StreamOwned::new(ServerConnection::new(config).ok()?, stream);
                answer(stream)
            });
        }
    });
    url
}

fn answer(stream: StreamOwned<ServerConnection, std::net::TcpStream>) -> Option<()> {
    let mut stream = BufReader::new(stream);
    let (mut target, mut is_known) = (String::new(), false);
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).ok().filter(|length| *length > 0)?;
        let line = line.trim_end().to_ascii_lowercase();
        if let Some(rest) = line.strip_prefix("get ") {
            rest.split(' ').next()?.clone_into(&mut target);
        }
        is_known |= line == format!("authorization: bearer {TOKEN}");
        if line.is_empty() {
            break;
        }
    }
    let state = json!({
        "agent": { "name": "far", "verdict": "works", "level": "good", "export": "e", "workspace": "root:p", "version": "1", "uptimeSeconds": 5 },
        "now": {}, "problems": [], "failures": [], "stopped": [], "failing": 0, "publishedResources": [], "workspaces": [],
    });
    let (status, more, body) = match target.as_str() {
        "/moved/state.json" => ("308 Permanent Redirect", "location: https://elsewhere/state.json\r\n", String::new()),
        _ if is_known => ("200 OK", "", state.to_string()),
        _ => ("401 Unauthorized", "", "who are you?\n".to_owned()),
    };
    let length = body.len();
    let head = format!("HTTP/1.1 {status}\r\n{more}content-length: {length}\r\nconnection: close\r\n\r\n");
    let stream = stream.get_mut();
    stream.write_all(head.as_bytes()).ok()?;
    stream.write_all(body.as_bytes()).ok()?;
    stream.conn.send_close_notify();
    stream.flush().ok()
}

fn told(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn top_reads_a_dashboard_behind_https() {
    let folder = Folder::new("https-top");
    let url = serve(&folder);
    let (ca, token) = (folder.path("ca.crt"), folder.path("token"));
    let output =
        carrick(&["top", &url, "--certificate-authority", &ca, "--token-file", &token, "-o", "json"]).output().unwrap();
    let state: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", told(&output)));
    assert_eq!(state["agent"]["name"], "far");

    let mut by_environment = carrick(&["top", &url, "--insecure-skip-tls-verify"]);
    let output = by_environment.env("CARRICK_DASHBOARD_TOKEN", TOKEN).output().unwrap();
    assert!(output.stdout.starts_with(b"far  works  up 5 s"), "{output:?}");
}

#[test]
fn what_keeps_top_out_is_told_with_the_way_in() {
    let folder = Folder::new("https-refused");
    let url = serve(&folder);
    let (ca, token) = (folder.path("ca.crt"), folder.path("token"));
    fs::write(folder.path("empty"), "nothing").unwrap();
    let (empty, missing, moved) = (folder.path("empty"), folder.path("missing"), format!("{url}/moved"));
    let plain = url.replace("https", "http");
    let cases: [(&[&str], &str); 8] = [
        (&[&url, "--token-file", &token], "; pass the authority that signed it: --certificate-authority FILE"),
        (
            &[&url, "--certificate-authority", &ca],
            "asks to log in; pass --token-file or set CARRICK_DASHBOARD_TOKEN. It says: who are you?",
        ),
        (&[&url, "--certificate-authority", &empty], "--certificate-authority cannot be used: "),
        (&[&url, "--certificate-authority", &missing], "--certificate-authority cannot be used: "),
        (&[&url, "--certificate-authority", &ca, "--token-file", &missing], "cannot read --token-file"),
        (&[&moved, "--certificate-authority", &ca], "redirects to https://elsewhere/state.json; pass that URL"),
        (&[&plain], "; if it speaks https, pass the URL with https://"),
        (&["127.0.0.1:1"], "; start the agent with --dashboard-address, and pass that address"),
    ];
    for (args, wanted) in cases {
        let output = carrick(&[&["top"], args].concat()).output().unwrap();
        let told = told(&output);
        assert!(output.status.code() == Some(1) && told.contains(wanted), "{args:?}: {told}");
        assert!(!told.contains(TOKEN), "{told}");
    }
    let both = carrick(&["top", &url, "--certificate-authority", &ca, "--insecure-skip-tls-verify"]).output().unwrap();
    assert!(both.status.code() == Some(2) && told(&both).contains("cannot be used with"), "{both:?}");
}

#[test]
fn one_page_shows_agents_behind_https() {
    let folder = Folder::new("https-page");
    let url = serve(&folder);
    let (ca, token) = (folder.path("ca.crt"), folder.path("token"));
    let flags = ["--address", "127.0.0.1:0", "--certificate-authority", &ca, "--token-file", &token];
    let mut page = Running::start(&[&["dashboard"], flags.as_slice(), &[&url]].concat());
    page.until("1 agent at http://127.0.0.1:");
    let all = page.output.split_whitespace().find(|word| word.starts_with("http://")).unwrap();
    let all = all.trim_end_matches(';').to_owned();
    let agents: Value = serde_json::from_str(&crate::running::get(&all, "/agents.json")).unwrap();
    let agent = &agents["agents"][0];
    assert_eq!((&agent["url"], &agent["agent"]["verdict"]), (&json!(url), &json!("works")), "{agents}");
    assert_eq!(page.stop("TERM").0, Some(0));
}
