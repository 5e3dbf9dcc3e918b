//! `carrick plane`, run as a user would.

#![cfg(unix)] // stopping needs signals

use std::path::Path;
use std::process::Command;

use crate::running::{Folder, Running, carrick, kubectl};

fn start(data: &str) -> Running {
    let mut plane = Running::start(&["plane", "--data-dir", data, "--port-kcp", "0", "--port-service", "0"]);
    plane.until("Running until Ctrl-C");
    plane
}

/// The address in the line of the table that starts with a word.
fn address(output: &str, word: &str) -> String {
    let line = output.lines().find(|line| line.starts_with(word)).unwrap();
    line.split_whitespace().find(|part| part.starts_with("https://")).unwrap().to_owned()
}

#[test]
fn every_command_it_suggests_works() {
    if kubectl(&["version", "--client"]).is_none() {
        println!("skipped: there is no kubectl");
        return;
    }
    let folder = Folder::new("plane-commands");
    let plane = start(&folder.path("data"));
    let suggested = plane.output.lines().filter_map(|line| line.strip_prefix("  "));
    let script: Vec<&str> = suggested.collect();
    assert!(script.len() > 10, "{script:?}");
    let home = env!("CARGO_TARGET_TMPDIR");
    let answer = Command::new("sh").args(["-exc", &script.join("\n")]).env("HOME", home).output().unwrap();
    let told = String::from_utf8_lossy(&answer.stdout);
    assert!(answer.status.success(), "{told}\n{}", String::from_utf8_lossy(&answer.stderr));
    for wanted in ["gadget.example.io/first created", "first   hello", "kube-system"] {
        assert!(told.contains(wanted), "{wanted}\n{told}");
    }
    let (code, told) = plane.stop("TERM");
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains("Stopped. The data stays in "), "{told}");
}

#[tokio::test]
async fn a_restart_continues_with_data_and_tokens() {
    let folder = Folder::new("plane-restart");
    let data = folder.path("data");
    let secrets = carrick_client::Resource::namespaced("", "v1", "Secret", "secrets");
    let provider = |url: &str| {
        let kubeconfig = std::fs::read_to_string(format!("{data}/provider.kubeconfig")).unwrap();
        carrick_client::Server::from_kubeconfig_yaml(&kubeconfig).unwrap().at_url(url).unwrap()
    };

    let plane = start(&data);
    let old = provider(&address(&plane.output, "provider's workspace"));
    let secret = serde_json::json!({"metadata": {"name": "kept"}, "data": {"a": "Yg=="}});
    old.create(&secrets, Some("default"), &secret).await.unwrap();
    // The second process must not touch the data of the first.
    let second = carrick(&["plane", "--data-dir", &data]).output().unwrap();
    assert_eq!(second.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&second.stderr).contains("another carrick plane runs with "));
    assert_eq!(plane.stop("INT").0, Some(0));

    let kept = std::fs::read_to_string(format!("{data}/provider.token")).unwrap();
    let plane = start(&data);
    assert!(plane.output.starts_with("Continuing with the data in "), "{}", plane.output);
    let new = provider(&address(&plane.output, "provider's workspace"));
    let found = new.get(&secrets, Some("default"), "kept").await.unwrap();
    assert_eq!(found.unwrap()["data"]["a"], "Yg==");
    assert_eq!(std::fs::read_to_string(format!("{data}/provider.token")).unwrap(), kept);
    let elsewhere = new.at_url(&format!("{}/clusters/root", address(&plane.output, "kcp"))).unwrap();
    assert!(elsewhere.list(&secrets, None, &carrick_client::ListOptions::default()).await.unwrap_err().is_forbidden());
}

#[test]
fn shards_and_fault_endpoints_are_printed_and_answer() {
    let folder = Folder::new("plane-options");
    let data = folder.path("data");
    let mut plane = Running::start(
        &[
            &["plane", "--data-dir", &data, "--port-kcp", "0", "--port-service", "0"][..],
            &["--shards", "2", "--control", "--fsync"],
        ]
        .concat(),
    );
    plane.until("Running until Ctrl-C");
    for wanted in ["shard 0", "shard 1"] {
        assert!(address(&plane.output, wanted).starts_with("https://127.0.0.1:"), "{}", plane.output);
    }
    for wanted in ["faults of kcp", "faults of the service"] {
        let line = plane.output.lines().find(|line| line.starts_with(wanted)).unwrap();
        let server = line.split_once("http://").unwrap().1.trim();
        assert!(std::net::TcpStream::connect(server).is_ok(), "{line}");
    }
    let admin = std::fs::read_to_string(format!("{data}/shard-admin.kubeconfig")).unwrap();
    assert!(admin.contains("shard-admin"), "{admin}");
    assert_eq!(plane.stop("TERM").0, Some(0));
}

#[test]
fn bad_input_names_the_thing_and_the_way_out() {
    let folder = Folder::new("plane-bad");
    let (data, file) = (folder.path("data"), folder.path("file"));
    std::fs::write(&file, "").unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let below = format!("{file}/below");
    let cases: [(&[&str], String); 6] = [
        (&["--data-dir", &file], format!("{file} is a file; give --data-dir a folder")),
        (&["--data-dir", &below], format!("cannot create the folder {below}; give --data-dir one you may write to")),
        (&["--data-dir", &data, "--port-kcp", &port], "give --port-kcp another port, or 0 for a free one".into()),
        (
            &["--data-dir", &data, "--port-kcp", "0", "--port-service", &port],
            "give --port-service another port, or 0 for a free one".into(),
        ),
        (
            &["--data-dir", &data, "--port-kcp", "0", "--port-service", "0", "--client-ca", &below],
            format!("cannot read the client authorities in {below}"),
        ),
        (
            &["--data-dir", &data, "--provider-workspace", "provider"],
            "\"provider\" is not a workspace below root".into(),
        ),
    ];
    for (args, wanted) in cases {
        let output = carrick(&[&["plane"], args].concat()).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        assert!(stderr.starts_with("error: ") && stderr.contains(&wanted), "{wanted}\n{stderr}");
        assert!(output.stdout.is_empty());
    }
}

/// What a newcomer pastes first, on a machine where something else has the port.
#[test]
fn the_first_block_of_the_first_page_ends_with_an_error_where_its_port_is_taken() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/getting-started.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (_, rest) = page.split_once("\n```sh\n").unwrap();
    let (block, _) = rest.split_once("\n```\n").unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    assert!(block.contains("--port-kcp 7443"), "{block}");
    let folder = Folder::new("first-block");
    let programs = Path::new(env!("CARGO_BIN_EXE_carrick")).parent().unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap_or_default());
    std::fs::create_dir_all(folder.path("")).unwrap();
    let output = Command::new("timeout")
        .args(["120", "bash", "-c", &block.replace("7443", &port).replace("--port-service 7444", "--port-service 0")])
        .current_dir(folder.path(""))
        .env("PATH", path)
        .output()
        .unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    // 124 is what `timeout` says of a command that does not end.
    assert_eq!(output.status.code(), Some(0), "{told}");
    let wanted = format!("error: cannot listen on 127.0.0.1:{port}: ");
    assert!(told.contains(&wanted) && told.contains("give --port-kcp another port"), "{told}");
}

#[test]
fn help_has_examples_for_every_command() {
    for command in [&["--help"][..], &["demo", "--help"], &["dev", "--help"], &["plane", "--help"]] {
        let output = carrick(command).output().unwrap();
        assert!(output.status.success());
        assert!(String::from_utf8(output.stdout).unwrap().contains("Examples:\n  carrick "), "{command:?}");
    }
    let version = carrick(&["--version"]).output().unwrap();
    assert_eq!(String::from_utf8(version.stdout).unwrap(), concat!("carrick ", env!("CARGO_PKG_VERSION"), "\n"));
}
