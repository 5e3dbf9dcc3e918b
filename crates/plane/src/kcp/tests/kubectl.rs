//! The flow of exports and bindings by plain YAML, as a user with kubectl sees it. Skipped where there is no kubectl.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::world::{ADMIN, World};
use std::io::Write as _;

struct Kubectl {
    folder: PathBuf,
}

impl Kubectl {
    /// None if kubectl is not installed.
    fn new(name: &str) -> Option<Self> {
        let found =
            Command::new("kubectl").args(["version", "--client"]).output().is_ok_and(|out| out.status.success());
        let folder = std::env::temp_dir().join(format!("carrick-plane-kubectl-{name}-{}", std::process::id()));
        found.then(|| std::fs::create_dir_all(&folder).unwrap());
        found.then_some(Self { folder })
    }

    /// Runs kubectl in a workspace; its output, or its complaint as an error.
    async fn run(&self, world: &World, workspace: &str, args: &[&str], input: &str) -> Result<String, String> {
        let config = self.folder.join(format!("{}.yaml", workspace.replace(':', "-")));
        std::fs::write(&config, world.plane.kubeconfig(ADMIN, Some(workspace)).unwrap()).unwrap();
        let mut command = Command::new("kubectl");
        command.args(args).env("KUBECONFIG", config).env("HOME", &self.folder);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let input = input.to_owned();
        let output = tokio::task::spawn_blocking(move || {
            let mut child = command.spawn().unwrap();
            child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
            child.wait_with_output().unwrap()
        });
        let output = output.await.unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
    }

    async fn ok(&self, world: &World, workspace: &str, line: &str, input: &str) -> String {
        let args: Vec<&str> = line.split_whitespace().collect();
        let result = self.run(world, workspace, &args, input).await;
        result.unwrap_or_else(|error| panic!("kubectl {line}: {error}"))
    }
}

impl Drop for Kubectl {
    fn drop(&mut self) {
        // Leftovers in the temporary folder do no harm.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

const WORKSPACES: &str = "
apiVersion: tenancy.kcp.io/v1alpha1
kind: Workspace
metadata: {name: provider}
---
apiVersion: tenancy.kcp.io/v1alpha1
kind: Workspace
metadata: {name: consumer}
spec: {type: {name: universal}}
";

const EXPORT: &str = "
apiVersion: apis.kcp.io/v1alpha1
kind: APIResourceSchema
metadata: {name: today.cowboys.wildwest.dev}
spec:
  group: wildwest.dev
  names: {plural: cowboys, singular: cowboy, kind: Cowboy, listKind: CowboyList, shortNames: [cb]}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    additionalPrinterColumns:
    - {name: Intent, type: string, jsonPath: .spec.intent}
    subresources: {status: {}}
    schema:
      description: A cowboy is part of the wild west.
      type: object
      properties:
        spec:
          type: object
          required: [intent]
          properties:
            intent: {type: string, description: What the cowboy is up to.}
        status:
          type: object
          properties:
            result: {type: string}
---
apiVersion: apis.kcp.io/v1alpha1
kind: APIExport
metadata: {name: cowboys}
spec:
  latestResourceSchemas: [today.cowboys.wildwest.dev]
  permissionClaims:
  - {resource: configmaps, all: true}
";

const BINDING: &str = "
apiVersion: apis.kcp.io/v1alpha1
kind: APIBinding
metadata: {name: cowboys}
spec:
  reference: {export: {path: 'root:provider', name: cowboys}}
  permissionClaims:
  - {resource: configmaps, all: true, state: Accepted}
";

const COWBOY: &str = "
apiVersion: wildwest.dev/v1
kind: Cowboy
metadata: {name: john, namespace: default}
spec: {intent: ride}
";

#[tokio::test(flavor = "multi_thread")]
async fn the_flow_from_export_to_binding_works_with_kubectl() {
    let Some(kubectl) = Kubectl::new("flow") else { return };
    let world = World::start().await;
    let run = async |workspace: &str, line: &str, input: &str| kubectl.ok(&world, workspace, line, input).await;

    run("root", "apply -f -", WORKSPACES).await;
    run("root", "wait ws --all --for=jsonpath={.status.phase}=Ready --timeout=20s", "").await;
    let table = run("root", "get ws", "").await;
    let header: Vec<&str> = table.lines().next().unwrap().split_whitespace().collect();
    assert_eq!(header, ["NAME", "TYPE", "REGION", "PHASE", "URL", "AGE"]);
    assert!(table.contains(&format!("{}/clusters/root:provider", world.plane.url())), "{table}");

    run("root:provider", "apply -f -", EXPORT).await;
    run("root:provider", "apply -f -", EXPORT).await;
    run("root:provider", "wait apiexport cowboys --for=condition=IdentityValid --timeout=20s", "").await;
    run("root:consumer", "apply -f -", BINDING).await;
    run("root:consumer", "wait apibinding cowboys --for=condition=Ready --timeout=20s", "").await;
    assert!(run("root:consumer", "api-resources --api-group=wildwest.dev", "").await.contains("cowboys"));
    assert!(run("root:consumer", "explain cowboys.spec.intent", "").await.contains("What the cowboy is up to."));
    let invalid = COWBOY.replace("intent: ride", "{}");
    assert!(kubectl.run(&world, "root:consumer", &["apply", "-f", "-"], &invalid).await.is_err());
    run("root:consumer", "apply -f -", COWBOY).await;
    assert!(run("root:consumer", "get cb", "").await.contains("ride"));
    run("root:consumer", "label cowboy john tall=yes", "").await;
    run("root:consumer", "annotate cowboy john hat=white", "").await;

    let url =
        run("root:provider", "get apiexportendpointslice cowboys -o jsonpath={.status.endpoints[0].url}", "").await;
    let server = format!("--server={url}/clusters/*");
    let seen = run("root:provider", &format!("{server} get cowboys -A -o name"), "").await;
    assert_eq!(seen.trim(), "cowboy.wildwest.dev/john");
    let claimed = run("root:provider", &format!("{server} get configmaps -A -o name"), "").await;
    assert!(claimed.contains("configmap/kube-root-ca.crt"), "{claimed}");

    run("root:consumer", "delete apibinding cowboys --timeout=20s", "").await;
    assert!(kubectl.run(&world, "root:consumer", &["get", "cowboys"], "").await.is_err());
    run("root", "delete ws consumer provider --timeout=20s", "").await;
    assert_eq!(run("root", "get ws -o name", "").await, "");
}
