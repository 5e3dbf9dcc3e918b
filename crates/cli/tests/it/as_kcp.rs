//! `carrick plane --as-kcp`, started as scripts start kcp.

#![cfg(unix)] // stopping needs signals

use std::net::TcpListener;
use std::process::Command;

use carrick_client::{Client, ListOptions, Resource, Server};
use carrick_plane::{ClientCertificate, Config, Mode, Plane};
use serde_json::json;

use crate::running::{Folder, Running, carrick, kubectl};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../e2e/likekcp/start");
const GOLDEN: &str = include_str!("../../../../e2e/likekcp/start.golden");

/// Ports that nobody listens on. Systems take the ports of connections from above these: none of them is taken by chance before the script uses it.
fn ports() -> [String; 3] {
    // Test runs side by side begin at different ones.
    let first = 10_000 + u16::try_from(std::process::id().wrapping_mul(61) % 20_000).unwrap();
    let mut free = (first..first + 2_000).filter(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok());
    std::array::from_fn(|_| free.next().unwrap().to_string())
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

/// The root workspace for whoever holds a certificate.
fn root_for(certificate: &ClientCertificate, server: &str, authority: &str) -> Client {
    let encoded = |text: &str| data_encoding::BASE64.encode(text.as_bytes());
    let ClientCertificate { certificate, key } = certificate;
    let login = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "it",
        "clusters": [{ "name": "it", "cluster": { "server": server, "certificate-authority-data": encoded(authority) } }],
        "users": [{ "name": "it", "user": {
            "client-certificate-data": encoded(certificate), "client-key-data": encoded(key),
        } }],
        "contexts": [{ "name": "it", "context": { "cluster": "it", "user": "it" } }],
    });
    Server::from_kubeconfig_yaml(&login.to_string()).unwrap().at_path("/clusters/root")
}

/// With the flags that the suites of controllers for kcp start it with.
#[tokio::test(flavor = "multi_thread")]
async fn administrators_of_another_authority_get_in_by_their_certificates() {
    // Another plane plays the authority.
    let other = Plane::start(Config::new(Mode::Kcp)).await.unwrap();
    let [admin, nobody] = [("admin", "system:kcp:admin"), ("nobody", "others")]
        .map(|(user, group)| other.client_certificate(user, &[group]).unwrap());
    let folder = Folder::new("as-kcp-authority");
    let (authority, root) = (folder.path("ca.crt"), folder.path("root"));
    std::fs::write(&authority, other.ca_pem()).unwrap();
    let more = [
        "--embedded-etcd-peer-port=1",
        "--embedded-etcd-client-port=2",
        "--external-hostname=127.0.0.1",
        &format!("--client-ca-file={authority}"),
    ];
    let fixed = ["plane", "--as-kcp", "start", "--root-directory", &root, "--bind-address=127.0.0.1"];
    let free = ["--secure-port=0", "--experimental-bind-free-port"];
    let mut plane = Running::start_for_stderr(&[&fixed[..], &free, &more].concat());
    plane.until("ready: https://127.0.0.1:");
    let server = plane.output.rsplit("ready: ").next().unwrap().trim().to_owned();
    let trusted = std::fs::read_to_string(format!("{root}/apiserver.crt")).unwrap();
    let namespaces = Resource::cluster_wide("", "v1", "Namespace", "namespaces");
    let listed = root_for(&admin, &server, &trusted).get(&namespaces, None, "default").await.unwrap();
    assert!(listed.is_some(), "there is no namespace default in root");
    let refused = root_for(&nobody, &server, &trusted).list(&namespaces, None, &ListOptions::default()).await;
    assert!(refused.unwrap_err().is_forbidden());
    assert_eq!(plane.stop("TERM").0, Some(0));
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
