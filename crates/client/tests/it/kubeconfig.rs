//! Kubeconfig files, good and bad.

use std::fs;
use std::path::{Path, PathBuf};

use carrick_client::{ConnectError, Overrides, Server};

/// A folder of its own for each test, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("carrick-kubeconfig-{test}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Self(path)
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn kubeconfig(context: &str, cluster: &str) -> String {
    format!(
        "{{apiVersion: v1, kind: Config, current-context: '{context}', clusters: [{{name: s, cluster: {{{cluster}}}}}], \
         contexts: [{{name: c, context: {{cluster: s, namespace: home}}}}]}}"
    )
}

fn problem(path: &Path, overrides: &Overrides) -> String {
    match Server::from_kubeconfig(path, overrides) {
        Ok(server) => panic!("{server:?} should have been refused"),
        Err(error) => error.to_string(),
    }
}

fn ca() -> String {
    match rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]) {
        Ok(ca) => ca.cert.pem(),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn every_problem_names_the_file_and_the_way_out() {
    let folder = Folder::new("problems");
    let missing = folder.0.join("missing");
    let plain = "server: 'http://127.0.0.1:1'";
    let cases = [
        (missing, "check the path"),
        (folder.file("empty", ""), "no kubeconfig was found. Have you set current-context?"),
        (folder.file("blank", &kubeconfig("", plain)), "no kubeconfig was found. Have you set current-context?"),
        (folder.file("other", &kubeconfig("other", plain)), "other"),
        (folder.file("broken", "{"), "broken"),
        (folder.file("no-server", &kubeconfig("c", "")), "url is missing"),
        (folder.file("no-ca", &kubeconfig("c", "server: 'https://a', certificate-authority: nope")), "nope"),
        (folder.file("bad-ca", &kubeconfig("c", "server: 'https://a', certificate-authority-data: eA==")), "bad-ca"),
        (
            folder.file("proxy", &kubeconfig("c", "server: 'https://a', proxy-url: 'ftp://me:secret@p'")),
            "cannot use its proxy-url: its scheme is \"ftp\"",
        ),
    ];
    for (path, wanted) in cases {
        let text = problem(&path, &Overrides::default());
        assert!(text.contains(wanted), "{wanted:?} is not in {text:?}");
        assert!(text.contains(&*path.to_string_lossy()), "{text:?} does not name {}", path.display());
    }
}

#[test]
fn the_url_keeps_its_path_and_the_context_its_namespace() -> Result<(), ConnectError> {
    let folder = Folder::new("url");
    let path = folder.file("k", &kubeconfig("c", "server: 'http://127.0.0.1:1/clusters/root:a/'"));
    let server = Server::from_kubeconfig(&path, &Overrides::default())?;
    assert_eq!((server.url(), server.default_namespace()), ("http://127.0.0.1:1/clusters/root:a", "home"));
    assert_eq!(server.at_path("/clusters/root:b").url(), "http://127.0.0.1:1/clusters/root:b");
    assert_eq!(Server::infer(Some(&path), &Overrides::default())?.url(), server.url());
    Ok(())
}

#[test]
fn overrides_replace_the_url_and_the_ca() -> Result<(), ConnectError> {
    let folder = Folder::new("overrides");
    // The kubeconfig's own CA file does not exist; with the override nobody looks for it.
    let path = folder.file("k", &kubeconfig("c", "server: 'https://a', certificate-authority: nope"));
    let ca_file = folder.file("ca.pem", &ca());
    for (host, wanted) in [("b.example:6443", "https://b.example:6443"), ("http://c/d", "http://c/d")] {
        let overrides =
            Overrides { host: Some(host.to_owned()), ca_file: Some(ca_file.clone()), ..Overrides::default() };
        assert_eq!(Server::from_kubeconfig(&path, &overrides)?.url(), wanted);
    }
    for text in ["", "no certificate", "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n"] {
        let overrides = Overrides { ca_file: Some(folder.file("bad.pem", text)), ..Overrides::default() };
        let text = problem(&path, &overrides);
        assert!(text.contains("bad.pem"), "{text}");
    }
    Ok(())
}

#[test]
fn a_kubeconfig_that_is_not_yaml_is_not_quoted() {
    let text = "apiVersion: v1\nusers:\n- name: a\n  user:\n    token: s3cr3t-token\n  bad indent: [\n";
    let error = Server::from_kubeconfig_yaml(text).unwrap_err();
    assert!(!format!("{error} {error:?}").contains("s3cr3t"), "{error:?}");
    assert!(error.to_string().starts_with("the given kubeconfig: "), "{error}");
}
