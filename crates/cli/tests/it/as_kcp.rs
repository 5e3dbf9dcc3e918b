//! `carrick plane --as-kcp`, started as scripts start kcp.

#![cfg(unix)] // stopping needs signals

use std::net::TcpListener;
use std::process::Command;

use crate::running::{Folder, Running, carrick, kubectl};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../e2e/likekcp/start");
const GOLDEN: &str = include_str!("../../../../e2e/likekcp/start.golden");

/// Ports that were free a moment ago.
fn ports() -> [String; 3] {
    let held: [TcpListener; 3] = std::array::from_fn(|_| TcpListener::bind("127.0.0.1:0").unwrap());
    held.each_ref().map(|listener| listener.local_addr().unwrap().port().to_string())
}

/// Starts it on a free port, and waits until it is ready.
fn start(root: &str, more: &[&str]) -> Running {
    let fixed = ["plane", "--as-kcp", "start", "--root-directory", root, "--bind-address=127.0.0.1"];
    let free = ["--secure-port=0", "--experimental-bind-free-port"];
    let mut plane = Running::start_for_stderr(&[&fixed[..], &free, more].concat());
    plane.until("ready: https://127.0.0.1:");
    plane
}

/// What the script says about the plane is what it says about kcp: `e2e/real likekcp` compares the same record with that.
#[test]
fn a_script_that_starts_kcp_finds_no_difference() {
    if kubectl(&["version", "--client"]).is_none() {
        println!("skipped: there is no kubectl");
        return;
    }
    let folder = Folder::new("as-kcp-script");
    let program = [env!("CARGO_BIN_EXE_carrick"), "plane", "--as-kcp"];
    let answer = Command::new(SCRIPT).arg(folder.path("work")).args(ports()).args(program).output().unwrap();
    let told = String::from_utf8(answer.stdout).unwrap();
    let complaints = String::from_utf8_lossy(&answer.stderr);
    assert!(answer.status.success(), "{told}\n{complaints}");
    for (line, (told, wanted)) in told.lines().zip(GOLDEN.lines()).enumerate() {
        assert_eq!(told, wanted, "line {}\n{complaints}", line + 1);
    }
    assert_eq!(told.lines().count(), GOLDEN.lines().count(), "{told}");
}

#[test]
fn a_certificate_that_is_there_is_used() {
    let folder = Folder::new("as-kcp-certificate");
    let (first, second) = (folder.path("first"), folder.path("second"));
    start(&first, &[]).stop("TERM");
    std::fs::create_dir(&second).unwrap();
    for file in ["apiserver.crt", "apiserver.key"] {
        std::fs::copy(format!("{first}/{file}"), format!("{second}/{file}")).unwrap();
    }
    let (code, _) = start(&second, &[]).stop("TERM");
    assert_eq!(code, Some(0));
    let authority = |root: &str| {
        let text = std::fs::read_to_string(format!("{root}/admin.kubeconfig")).unwrap();
        text.lines().find(|line| line.contains("certificate-authority-data")).unwrap().to_owned()
    };
    assert_eq!(authority(&first), authority(&second));
    // The same by name, in another folder.
    let (crt, key) =
        (format!("--tls-cert-file={first}/apiserver.crt"), format!("--tls-private-key-file={first}/apiserver.key"));
    let third = folder.path("third");
    start(&third, &[&crt, &key]).stop("TERM");
    assert_eq!(authority(&first), authority(&third));
    assert!(!std::path::Path::new(&format!("{third}/apiserver.crt")).exists());
}

#[test]
fn every_flag_without_effect_is_named() {
    let folder = Folder::new("as-kcp-flags");
    let more =
        ["--audit-log-path=a", "--etcd-servers", "https://localhost:1", "--profiling=false", "--external-hostname=x"];
    let (code, told) = start(&folder.path("root"), &more).stop("TERM");
    assert_eq!(code, Some(0), "{told}");
    for wanted in [
        "--audit-log-path has no effect: nothing is audited",
        "--etcd-servers has no effect: the plane keeps its data itself",
        "--profiling has no effect: there are no metrics, traces or profiles",
        "--external-hostname has no effect: kcp ignores it too",
    ] {
        assert!(told.lines().any(|line| line == wanted), "{wanted}\n{told}");
    }
    let help = carrick(&["plane", "--as-kcp", "start", "--help"]).output().unwrap();
    assert_eq!(help.status.code(), Some(0));
    let text = String::from_utf8(help.stdout).unwrap();
    for wanted in ["--token-auth-file string", "    --audit-policy-file\n", "  because nothing is audited:"] {
        assert!(text.contains(wanted), "{wanted}\n{text}");
    }
}

#[test]
fn addresses_for_others_are_told_to_them() {
    let folder = Folder::new("as-kcp-addresses");
    let root = folder.path("root");
    let more = [
        "--shard-base-url=https://shard.example.com:1",
        "--shard-external-url=https://kcp.example.com",
        "--shard-virtual-workspace-url=https://virtual.example.com/",
    ];
    let mut plane = Running::start_for_stderr(
        &[
            &["plane", "--as-kcp", "--root-directory", &root, "--bind-address=127.0.0.1"][..],
            &["--secure-port=0", "--experimental-bind-free-port"],
            &more,
        ]
        .concat(),
    );
    plane.until("ready: https://shard.example.com:1");
    let kubeconfig = std::fs::read_to_string(format!("{root}/admin.kubeconfig")).unwrap();
    assert!(kubeconfig.contains("server: https://shard.example.com:1/clusters/system:admin\n"), "{kubeconfig}");
    assert_eq!(plane.stop("INT").0, Some(0));
    let data = std::fs::read_to_string(format!("{root}/etcd-server/commits.jsonl")).unwrap();
    let shard = data.lines().rfind(|line| line.contains("\"shards\"")).unwrap();
    for wanted in [
        "\"baseURL\":\"https://shard.example.com:1\"",
        "\"externalURL\":\"https://kcp.example.com\"",
        "\"virtualWorkspaceURL\":\"https://virtual.example.com\"",
    ] {
        assert!(shard.contains(wanted), "{wanted}\n{shard}");
    }
}

#[test]
fn without_a_root_directory_nothing_but_the_kubeconfig_is_written() {
    let folder = Folder::new("as-kcp-memory");
    let kubeconfig = format!("--kubeconfig-path={}", folder.path("admin.kubeconfig"));
    let hash = format!("--authentication-admin-token-path={}", folder.path("hash"));
    let (code, told) = start("", &[&kubeconfig, &hash]).stop("TERM");
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains("data: in memory"), "{told}");
    let mut names: Vec<_> = std::fs::read_dir(folder.path(""))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["admin.kubeconfig", "hash"]);
}

#[test]
fn the_data_of_a_real_kcp_is_left_alone() {
    let folder = Folder::new("as-kcp-real");
    std::fs::create_dir_all(folder.path("etcd-server/member")).unwrap();
    let output = carrick(&["plane", "--as-kcp", "start", "--root-directory", &folder.path("")]).output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.starts_with("Error: ") && told.contains("holds data of a real kcp"), "{told}");
}
