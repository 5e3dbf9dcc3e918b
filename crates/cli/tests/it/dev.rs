//! `carrick dev`, run as a user would, with its output in a pipe.

#![cfg(unix)] // stopping needs signals

use std::fs;

use crate::running::{Folder, Running, carrick, kubectl};

const CRD: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: buckets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Bucket, listKind: BucketList, plural: buckets, singular: bucket}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {region: {type: string, enum: [eu, us]}}}
          status: {type: object, properties: {url: {type: string}}}
";
const PUBLISHED: &str = "
apiVersion: syncagent.kcp.io/v1alpha1
kind: PublishedResource
metadata: {name: buckets}
spec:
  resource: {apiGroup: example.com, kind: Bucket, versions: [v1]}
";
const RELATED: &str = "
  related:
  - {identifier: keys, origin: service, version: v1, resource: secrets, object: {template: {template: '{{ .Object.metadata.name }}-keys'}}}
";
const ORDER: &str = "{apiVersion: example.com/v1, kind: Bucket, metadata: {name: first}, spec: {region: eu}}";

/// Writes as many editors do: beside the file, then moved over it.
fn save(folder: &Folder, name: &str, text: &str) {
    let (beside, path) = (folder.path(".beside"), folder.path(name));
    fs::write(&beside, text).unwrap();
    fs::rename(beside, path).unwrap();
}

fn files(test: &str) -> Folder {
    let folder = Folder::new(test);
    fs::create_dir_all(folder.path("orders")).unwrap();
    for (name, text) in [("crd.yaml", CRD), ("pr.yaml", PUBLISHED), ("orders/first.yaml", ORDER)] {
        fs::write(folder.path(name), text).unwrap();
    }
    folder
}

fn arguments(folder: &Folder) -> Vec<String> {
    let all =
        [("--crd", "crd.yaml"), ("--published-resource", "pr.yaml"), ("--object", "orders"), ("--data-dir", "dev")];
    let flags = all.iter().flat_map(|(flag, name)| [(*flag).to_owned(), folder.path(name)]);
    std::iter::once("dev".to_owned()).chain(flags).collect()
}

fn start(arguments: &[String]) -> Running {
    Running::start(&arguments.iter().map(String::as_str).collect::<Vec<_>>())
}

#[test]
fn files_are_applied_again_at_every_change_and_nothing_is_left_behind() {
    let folder = files("dev-loop");
    let mut dev = start(&arguments(&folder));
    dev.until("Running until Ctrl-C");
    dev.until("applied Bucket first");
    dev.until("object buckets default/first: order generation 1 → copy generation 1 → no status; copy: ");

    // A change of an order.
    save(&folder, "orders/first.yaml", &ORDER.replace("eu", "us"));
    dev.until("order generation 2 → copy generation 2");
    // One that the schema refuses leaves everything as it is, and says why.
    save(&folder, "orders/first.yaml", &ORDER.replace("eu", "mars"));
    dev.until("orders/first.yaml: Bucket first: spec.region: Unsupported value: \"mars\"");
    // A change of the CRD makes it good.
    save(&folder, "crd.yaml", &CRD.replace("[eu, us]", "[eu, us, mars]"));
    dev.until("applied CustomResourceDefinition buckets.example.com");
    dev.until("order generation 3 → copy generation 3");
    // A file that is not valid YAML changes nothing.
    save(&folder, "pr.yaml", "kind: [");
    dev.until("pr.yaml: this is not valid YAML: ");
    // Claims that come with related objects are accepted.
    save(&folder, "pr.yaml", &format!("{PUBLISHED}{}", RELATED.trim_start_matches('\n')));
    dev.until("applied PublishedResource buckets");
    let ask = |config: &str, args: &[&str]| {
        let config = folder.path(&format!("dev/{config}.kubeconfig"));
        let output = kubectl(&[&["--kubeconfig", &config], args].concat())?;
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Some(String::from_utf8(output.stdout).unwrap())
    };
    // The rest needs somebody who plays the operator.
    let copy = "jsonpath={.items[0].metadata.namespace}/{.items[0].metadata.name}";
    if let Some(copy) = ask("service", &["get", "buckets", "-A", "-o", copy]) {
        let (namespace, name) = copy.split_once('/').unwrap();
        let patch = ["-n", namespace, "patch", "bucket", name, "--subresource=status", "--type=merge", "-p"];
        ask("service", &[&patch[..], &["{\"status\":{\"url\":\"u\"}}"]].concat());
        dev.until("→ status is back");
        let secret = format!("{name}-keys");
        ask("service", &["-n", namespace, "create", "secret", "generic", &secret, "--from-literal=a=b"]);
        dev.until("related keys");
        let secret = ask("consumer", &["get", "secret", "first-keys", "-o", "name"]).unwrap();
        assert_eq!(secret, "secret/first-keys\n");
    }
    // When a file is deleted, its objects are deleted, also in a folder.
    fs::remove_file(folder.path("orders/first.yaml")).unwrap();
    dev.until("removed Bucket first");
    dev.until("object buckets default/first: gone");
    save(&folder, "orders/second.yaml", &ORDER.replace("first", "second"));
    dev.until("object buckets default/second: order generation 1 → copy generation 1");
    fs::remove_file(folder.path("pr.yaml")).unwrap();
    dev.until("removed PublishedResource buckets");

    let (code, told) = dev.stop("INT");
    assert_eq!(code, Some(0), "{told}");
    assert!(told.ends_with("Nothing is left behind.\n") && !told.contains('\x1b'), "{told}");
    assert!(!fs::exists(folder.path("dev")).unwrap(), "the kubeconfigs are still there");
}

#[test]
fn a_cluster_that_was_there_before_is_left_as_it_was() {
    let folder = files("dev-existing");
    let plane = folder.path("plane");
    let mut cluster = Running::start(&["plane", "--data-dir", &plane, "--port-kcp", "0", "--port-service", "0"]);
    cluster.until("Running until Ctrl-C");
    let service = format!("{plane}/service.kubeconfig");
    let ask = |args: &[&str]| {
        let output = kubectl(&[&["--kubeconfig", &service], args].concat())?;
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Some(String::from_utf8(output.stdout).unwrap())
    };
    let everything = ["get", "crd,ns,clusterroles,clusterrolebindings,secrets", "-A", "-o", "name"];
    let Some(before) = ask(&everything) else { return };

    let mut arguments = arguments(&folder);
    arguments.extend(["--service-kubeconfig".to_owned(), service.clone()]);
    let mut dev = start(&arguments);
    dev.until("object buckets default/first: order generation 1 → copy generation 1");
    let during = ask(&everything).unwrap();
    assert!(during.contains("buckets.example.com") && during.contains("namespace/carrick-dev-"), "{during}");
    let (code, told) = dev.stop("TERM");
    assert_eq!(code, Some(0), "{told}");
    assert_eq!(ask(&everything).unwrap(), before, "{told}");

    // An agent that would serve these files too is not left to find out.
    let agent = r#"{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "agent", "namespace": "default"}, "spec": {
        "selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [
        {"name": "agent", "image": "x", "args": ["--kcp-kubeconfig=/k"]}]}}}}"#;
    let crd = carrick(&["init", "--agent-crd"]).output().unwrap().stdout;
    fs::write(folder.path("agent-crd.yaml"), crd).unwrap();
    fs::write(folder.path("agent.json"), agent).unwrap();
    ask(&["apply", "-f", &folder.path("agent-crd.yaml"), "-f", &folder.path("agent.json")]);
    let refused = carrick(&arguments.iter().map(String::as_str).collect::<Vec<_>>()).output().unwrap();
    let told = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(1), "{told}");
    assert!(told.contains("Deployment default/agent is an agent") && told.contains("!dev.carrick.io/run"), "{told}");
    ask(&["delete", "-f", &folder.path("agent-crd.yaml"), "-f", &folder.path("agent.json")]);

    // A CRD that existed before stays.
    ask(&["apply", "-f", &folder.path("crd.yaml")]);
    let mut dev = start(&arguments);
    dev.until("object buckets default/first: order generation 1 → copy generation 1");
    let (code, told) = dev.stop("INT");
    assert_eq!(code, Some(0), "{told}");
    assert_eq!(
        ask(&["get", "crd", "-o", "name"]).unwrap(),
        "customresourcedefinition.apiextensions.k8s.io/buckets.example.com\n"
    );
}

#[test]
fn a_crd_alone_is_offered_as_it_is_and_an_order_can_be_pasted() {
    let folder = files("dev-alone");
    let mut dev = Running::start(&["dev", "--crd", &folder.path("crd.yaml"), "--data-dir", &folder.path("dev")]);
    dev.until("Running until Ctrl-C");
    dev.until("published buckets.example.com: Bucket.example.com as v");
    let line = dev.output.lines().find_map(|line| line.trim().strip_prefix("echo '")).unwrap().to_owned();
    fs::write(folder.path("pasted.json"), line.split_once("' | kubectl apply").unwrap().0).unwrap();
    let (config, order) = (folder.path("dev/consumer.kubeconfig"), folder.path("pasted.json"));
    if let Some(output) = kubectl(&["--kubeconfig", &config, "apply", "-f", &order]) {
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        dev.until("object buckets.example.com default/my-bucket: order generation 1 → copy generation 1");
    }
    assert_eq!(dev.stop("TERM").0, Some(0));
}

#[test]
fn an_empty_folder_is_said_and_what_is_fixed_is_said() {
    let folder = files("dev-empty");
    fs::create_dir_all(folder.path("nothing")).unwrap();
    fs::write(folder.path("pr.yaml"), PUBLISHED.replace("kind: Bucket", "kind: Bukket")).unwrap();
    let mut arguments = arguments(&folder);
    arguments.extend(["--object".to_owned(), folder.path("nothing")]);
    let mut dev = start(&arguments);
    dev.until("nothing holds no *.yaml, *.yml or *.json");
    dev.until("✗ published buckets: Bukket.example.com: ");
    save(&folder, "pr.yaml", PUBLISHED);
    dev.until("✓ published buckets: Bucket.example.com");
    dev.until("object buckets default/first: order generation 1 → copy generation 1");
    let (code, told) = dev.stop("TERM");
    assert_eq!(code, Some(0), "{told}");
    // Whatever takes a moment at the start is no alarm; on a slow machine the order waits longer than that for its kind, which is one.
    let alarms: Vec<&str> = told.lines().filter(|line| line.contains('✗')).collect();
    let is_meant = |line: &&str| {
        let time = line.trim_start().split(' ').next().and_then(|time| time.parse::<f64>().ok());
        let is_late = line.contains("Bucket first: ") && time.is_some_and(|time| time >= 4.0);
        line.contains("holds no") || line.contains("Bukket") || is_late
    };
    assert!(alarms.iter().all(is_meant), "{alarms:#?}");
}

#[test]
fn mistakes_on_the_command_line_are_named() {
    let folder = files("dev-mistakes");
    let (missing, crd) = (folder.path("missing.yaml"), folder.path("crd.yaml"));
    for (args, code, wanted) in [
        (vec!["dev", "--crd", &missing], 1, format!("error: cannot read {missing}")),
        (vec!["dev", "--object", &crd], 2, "--published-resource <FILE>".to_owned()),
        (vec!["dev", "--crd", &crd, "--service-kubeconfig", &missing], 1, missing.clone()),
        (vec!["dev", "--crd", &crd, "--data-dir", &crd], 1, format!("{crd} is a file")),
    ] {
        let output = carrick(&args).output().unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{told}");
        assert!(told.contains(&wanted), "{wanted}\n{told}");
    }
}

/// Files as people and generators write them, and what `carrick dev` says about each; kubectl takes and refuses the same.
#[test]
fn whatever_kubectl_applies_is_applied_and_whatever_it_refuses_is_refused() {
    let folder = files("dev-kubectl");
    fs::create_dir_all(folder.path("publish")).unwrap();
    let write = |name: &str, bytes: &[u8]| fs::write(folder.path(name), bytes).unwrap();
    let named = |name: &str| PUBLISHED.replace("name: buckets", &format!("name: {name}"));
    let role = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: dev-role}\nrules: []\n";
    let (slip, string) = (named("slip").replace("apiGroup", "group"), named("string").replace("[v1]", "[{name: v1}]"));
    let good: [(&str, Vec<u8>); 4] = [
        ("publish/windows.yaml", format!("\u{feff}{}", named("windows").trim_start()).replace('\n', "\r\n").into()),
        ("publish/nulls.yaml", format!("{role}---\n{}  related:\n  mutation:\n", named("nulls").replace("{name", "{namespace: x, name")).into()),
        ("publish/older.json", br#"{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"syncagent.kcp.io/v1alpha1","kind":"PublishedResource","metadata":{"name":"older"},"spec":{"resource":{"apiGroup":"example.com","kind":"Bucket","version":"v1"}}}]}"#.into()),
        ("publish/utf16.yaml", [0xff, 0xfe].into_iter().chain(named("utf16").encode_utf16().flat_map(u16::to_le_bytes)).collect()),
    ];
    let bad: [(&str, String, &str); 6] = [
        (
            "publish/slip.yaml",
            slip,
            "slip: unknown field \"spec.resource.group\" (spec.resource has apiGroup, kind, version, versions)",
        ),
        ("publish/string.yaml", string, "string: unknown field \"spec.resource.versions[0].name\""),
        ("publish/template.yaml", named("{{ .Release.Name }}"), "a template has to be rendered first"),
        (
            "publish/number.yaml",
            named("123"),
            "object 1: metadata.name is 123, which is not text to YAML; put it in quotes",
        ),
        ("publish/tab.yaml", named("tab").replace("  resource", "\tresource"), "line 6: tabs disallowed"),
        (
            "publish/words.yaml",
            "just words\n".to_owned(),
            "object 1 is text, where apiVersion, kind and metadata should be",
        ),
    ];
    for (name, bytes) in &good {
        write(name, bytes);
    }
    for (name, text, _) in &bad {
        write(name, text.as_bytes());
    }

    let arguments = arguments(&folder).into_iter().map(|word| word.replace("pr.yaml", "publish"));
    let mut dev = start(&arguments.collect::<Vec<_>>());
    dev.until("applied PublishedResource windows from");
    let rest = ["older", "utf16", "x/nulls"].map(|name| format!("applied PublishedResource {name} from"));
    let all: Vec<&str> = rest.iter().map(String::as_str).chain(bad.iter().map(|(_, _, wanted)| *wanted)).collect();
    dev.until_all(&all);
    assert!(dev.output.contains("applied ClusterRole dev-role from"), "{}", dev.output);
    assert!(!dev.output.contains("typed patch object"), "{}", dev.output);

    let config = folder.path("dev/service.kubeconfig");
    let files = good.iter().map(|(name, _)| (*name, true)).chain(bad.iter().map(|(name, _, _)| (*name, false)));
    for (name, is_good) in files {
        let path = folder.path(name);
        let Some(output) = kubectl(&["--kubeconfig", &config, "apply", "--dry-run=server", "-f", &path]) else { break };
        assert_eq!(output.status.success(), is_good, "{name}: {}", String::from_utf8_lossy(&output.stderr));
    }
    assert_eq!(dev.stop("INT").0, Some(0));
}
