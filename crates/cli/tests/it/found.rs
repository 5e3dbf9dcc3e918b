//! What commands without flags find: Deployments in the contexts of a kubeconfig, and what runs on this machine.

#![cfg(unix)] // stopping needs signals

use std::fs;

use crate::look::{Stage, ask};
use crate::running::{Running, carrick};
use serde_json::json;

#[test]
fn without_flags_the_agent_is_found_by_its_deployment() {
    let stage = Stage::open("found");
    let (service, kcp) = (stage.folder.path("dev/service.kubeconfig"), stage.folder.path("dev/provider.kubeconfig"));
    let kubectl = |arguments: &[&str]| {
        let all = [&["--kubeconfig", &service][..], arguments].concat();
        let Some(output) = crate::running::kubectl(&all) else { return false };
        assert!(output.status.success(), "{output:?}");
        true
    };
    let namespace = stage.namespace();
    if !kubectl(&["create", "secret", "generic", "kcp", "-n", &namespace, &format!("--from-file=kubeconfig={kcp}")]) {
        return;
    }
    // Nobody was asked, so nothing is found yet.
    let (code, _, stderr) = ask(&["doctor", "--kubeconfig", &service]);
    assert!(code == Some(2) && stderr.contains("no Deployment of an agent was found"), "{code:?} {stderr}");
    // Both sides in one kubeconfig, as people have them.
    let both = stage.folder.path("both.kubeconfig");
    fs::write(&both, contexts(&[("cluster", &service), ("workspace", &kcp)])).unwrap();
    let (code, _, stderr) = ask(&["explain", "--kubeconfig", &both]);
    let workspace = "context workspace leads to a workspace of kcp with slice dev";
    assert!(
        code == Some(1) && stderr.contains(workspace) && stderr.contains("--minify --context workspace"),
        "{stderr}"
    );
    fs::write(&both, contexts(&[("workspace", &kcp), ("cluster", &service)])).unwrap();
    for name in ["one", "two"] {
        let mut args = vec![
            "--apiexportendpointslice-ref=dev".to_owned(),
            "--kcp-kubeconfig=/kcp/kubeconfig".to_owned(),
            "--agent-name=dev".to_owned(),
            format!("--namespace={namespace}"),
        ];
        args.extend((name == "one").then(|| "--dashboard-address=:7445".to_owned()));
        let container = json!({
            "name": "agent", "image": "agent", "volumeMounts": [{ "name": "kcp", "mountPath": "/kcp" }], "args": args,
        });
        let template = json!({
            "metadata": { "labels": { "app": name } },
            "spec": { "containers": [container], "volumes": [{ "name": "kcp", "secret": { "secretName": "kcp" } }] },
        });
        let deployment = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": name, "namespace": namespace },
            "spec": { "selector": { "matchLabels": { "app": name } }, "template": template },
        });
        fs::write(stage.folder.path("deployment.json"), deployment.to_string()).unwrap();
        kubectl(&["apply", "-f", &stage.folder.path("deployment.json")]);
        let (code, out, stderr) = ask(&["doctor", "--kubeconfig", &service, "--fail-on", "red"]);
        if name == "one" {
            assert!(stderr.contains(&format!("--from-deployment {namespace}/one")), "{stderr}");
            assert!(code == Some(0) && out.contains("buckets is published as"), "{code:?} {out}");
            let (code, out, _) = ask(&["explain", "--kubeconfig", &service]);
            assert!(code == Some(0) && out.contains("default/first"), "{code:?} {out}");
            let (code, out, _) = ask(&["diff", "--kubeconfig", &service]);
            assert_eq!(code, Some(0), "{out}");
            let top = |kubeconfig: &str| {
                let top = carrick(&["top", "--once"]).env("KUBECONFIG", kubeconfig).output().unwrap();
                assert_eq!(top.status.code(), Some(1));
                String::from_utf8(top.stderr).unwrap()
            };
            let forwarded = |kubectl: &str| {
                format!(
                    "  {kubectl} -n {namespace} port-forward deployment/one 8086:7445 &\n  carrick top 127.0.0.1:8086\n"
                )
            };
            let stderr = top(&service);
            assert!(stderr.contains(&forwarded("kubectl")), "{stderr}");
            // The current context leads to kcp, the agent is in another one.
            let stderr = top(&both);
            assert!(stderr.contains(&forwarded("kubectl --context cluster")), "{stderr}");
            let (code, out, stderr) = ask(&["explain", "--kubeconfig", &both]);
            assert!(stderr.contains("--context cluster") && stderr.contains(&format!("{namespace}/one")), "{stderr}");
            assert!(code == Some(0) && out.contains("default/first"), "{code:?} {out}");
        } else {
            let top = carrick(&["top", "--once"]).env("KUBECONFIG", &service).output().unwrap();
            let stderr = String::from_utf8(top.stderr).unwrap();
            assert!(stderr.contains(&format!("Deployment {namespace}/two, for dev, serves no dashboard")), "{stderr}");
            assert_eq!(code, Some(2));
            for name in ["one", "two"] {
                assert!(stderr.contains(&format!("{namespace}/{name}, for dev")), "{stderr}");
            }
        }
    }
}

/// A kubeconfig with several contexts, the first of which is the current one, made of files with one each.
fn contexts(files: &[(&str, &str)]) -> String {
    let mut lists = [Vec::new(), Vec::new(), Vec::new()];
    for (name, file) in files {
        let text = fs::read_to_string(file).unwrap();
        let value = |key: &str| {
            let line = text.lines().find_map(|line| line.trim().strip_prefix(key)).unwrap();
            line.trim().trim_matches('"').to_owned()
        };
        let cluster =
            json!({ "server": value("server:"), "certificate-authority-data": value("certificate-authority-data:") });
        lists[0].push(json!({ "name": name, "cluster": cluster }));
        lists[1].push(json!({ "name": name, "user": { "token": value("token:") } }));
        lists[2].push(json!({ "name": name, "context": { "cluster": name, "user": name } }));
    }
    let [clusters, users, contexts] = lists;
    json!({
        "apiVersion": "v1", "kind": "Config", "clusters": clusters, "users": users, "contexts": contexts,
        "current-context": files[0].0,
    })
    .to_string()
}

#[test]
fn without_flags_what_runs_on_this_machine_is_found_and_the_flags_are_printed() {
    let stage = Stage::open("found-here");
    let nowhere = stage.folder.path("no.kubeconfig");
    let here = |arguments: &[&str]| {
        let mut command = carrick(arguments);
        command.env("XDG_STATE_HOME", stage.folder.path("state")).env("KUBECONFIG", &nowhere);
        let output = command.output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    let (service, kcp) = (stage.folder.path("dev/service.kubeconfig"), stage.folder.path("dev/provider.kubeconfig"));
    let flags = format!(
        "# --kubeconfig {service} --kcp-kubeconfig {kcp} --apiexportendpointslice-ref dev --namespace carrick-dev-"
    );
    let (code, out, stderr) = here(&["doctor", "--fail-on", "red"]);
    assert!(stderr.contains(&flags) && stderr.contains(" --agent-name dev "), "{stderr}");
    assert!(code == Some(0) && out.contains("buckets is published as"), "{code:?} {out} {stderr}");
    for command in [["explain"].as_slice(), &["trace", "default/first"], &["drift"], &["diff"], &["withdraw", "Bucket"]]
    {
        let (code, out, stderr) = here(command);
        assert!(code == Some(0) && stderr.contains(&flags), "{command:?}: {code:?} {out} {stderr}");
    }
    let (code, out, stderr) = here(&["top", "--once"]);
    assert!(code == Some(0) && out.contains("buckets") && stderr.contains(&stage.dashboard()), "{out} {stderr}");
    // Whoever gives the kubeconfigs needs neither the name of the slice nor the namespace.
    let (code, out, stderr) = ask(&["explain", "--kubeconfig", &service, "--kcp-kubeconfig", &kcp]);
    assert!(stderr.contains(&flags) && code == Some(0) && out.contains("default/first"), "{code:?} {out} {stderr}");
    // Of two, somebody chooses.
    let data = stage.folder.path("plane");
    let arguments = ["plane", "--data-dir", &data, "--port-kcp", "0", "--port-service", "0"];
    let mut plane = Running::start_noted(&arguments, &stage.folder.path("state"));
    plane.until("Running until Ctrl-C");
    let (code, _, stderr) = here(&["explain"]);
    assert!(code == Some(1) && stderr.contains("there are several agents"), "{code:?} {stderr}");
    assert!(stderr.contains("1  carrick dev, ") && stderr.contains("2  carrick plane, "), "{stderr}");
    // One that ends, however it does, is not found any more. What is left has nothing to look at yet.
    let (code, _) = stage.dev.stop("KILL");
    assert_eq!(code, None);
    let (code, _, stderr) = here(&["doctor"]);
    assert!(code == Some(2) && stderr.contains("has no APIExportEndpointSlice"), "{code:?} {stderr}");
}
