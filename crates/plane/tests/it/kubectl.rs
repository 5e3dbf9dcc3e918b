//! kubectl against a plain service cluster. Without kubectl on the path these tests say so and pass.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use carrick_plane::{Config, Mode, Plane};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::Command;

const CRD: &str = r#"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.io}
spec:
  group: example.io
  scope: Namespaced
  names: {plural: widgets, kind: Widget, shortNames: [wd]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    additionalPrinterColumns:
    - {name: Size, type: integer, jsonPath: .spec.size}
    - {name: Ready, type: string, jsonPath: '.status.conditions[?(@.type=="Ready")].status'}
    schema:
      openAPIV3Schema:
        type: object
        description: A widget.
        required: [spec]
        properties:
          spec:
            type: object
            description: What is wanted.
            required: [size]
            properties:
              size: {type: integer, minimum: 1, description: How big it is.}
              color: {type: string, enum: [red, green], default: red}
          status:
            type: object
            properties:
              conditions: {type: array, items: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"#;

fn widget(spec: &str) -> String {
    format!("{{apiVersion: example.io/v1, kind: Widget, metadata: {{name: w1, namespace: default}}, spec: {spec}}}")
}

struct Shell {
    plane: Plane,
    home: PathBuf,
}

impl Shell {
    async fn start() -> Option<Shell> {
        let found =
            Command::new("kubectl").args(["version", "--client"]).output().await.is_ok_and(|out| out.status.success());
        if !found {
            println!("kubectl is not installed: skipped");
            return None;
        }
        let plane = Plane::start(Config::new(Mode::Kube)).await.unwrap();
        let home = std::env::temp_dir().join(format!("carrick-kubectl-{}", uuid::Uuid::new_v4()));
        std::fs::create_dir_all(&home).unwrap();
        std::fs::write(home.join("config"), plane.kubeconfig("admin", None).unwrap()).unwrap();
        Some(Shell { plane, home })
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new("kubectl");
        command.args(line.split_whitespace()).env("KUBECONFIG", self.home.join("config")).env("HOME", &self.home);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        command
    }

    /// Output and errors of a command, with `input` on its standard input.
    async fn run(&self, line: &str, input: &str) -> (bool, String) {
        let mut child = self.command(line).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        // A command that does not read its input closes it early.
        // Some versions take whatever begins with a brace for JSON.
        let input = if input.is_empty() { String::new() } else { format!("---\n{input}") };
        let _ = stdin.write_all(input.as_bytes()).await;
        drop(stdin);
        let output = tokio::time::timeout(Duration::from_mins(1), child.wait_with_output()).await.expect(line).unwrap();
        let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
        (output.status.success(), text)
    }

    #[track_caller]
    fn check(line: &str, (success, text): &(bool, String), expected: &str) {
        assert!(*success, "kubectl {line}\n{text}");
        assert!(text.contains(expected), "kubectl {line}\n{text}\ndoes not show\n{expected}");
    }

    async fn shows(&self, line: &str, input: &str, expected: &str) {
        Self::check(line, &self.run(line, input).await, expected);
    }

    async fn fails(&self, line: &str, input: &str, expected: &str) {
        let (success, text) = self.run(line, input).await;
        assert!(!success && text.contains(expected), "kubectl {line}\n{text}\ndoes not show\n{expected}");
    }

    async fn stop(self) {
        self.plane.stop().await;
        std::fs::remove_dir_all(self.home).unwrap();
    }
}

#[tokio::test]
async fn custom_resources_work_as_a_user_expects() {
    let Some(shell) = Shell::start().await else { return };
    shell.shows("apply -f -", CRD, "customresourcedefinition.apiextensions.k8s.io/widgets.example.io created").await;
    shell.shows("apply -f -", CRD, "widgets.example.io unchanged").await;
    shell.shows("wait --for=condition=Established crd/widgets.example.io --timeout=10s", "", "condition met").await;
    shell
        .shows("api-resources --api-group=example.io", "", "widgets   wd           example.io/v1   true         Widget")
        .await;
    shell.shows("explain widgets.spec", "", "How big it is.").await;
    shell.shows("apply -f -", &widget("{size: 3}"), "widget.example.io/w1 created").await;
    shell.shows("apply -f -", &widget("{size: 3}"), "widget.example.io/w1 unchanged").await;
    shell.shows("apply -f -", &widget("{size: 4}"), "widget.example.io/w1 configured").await;
    shell
        .fails("apply -f -", &widget("{size: 4, bogus: 1}"), "strict decoding error: unknown field \"spec.bogus\"")
        .await;
    shell.fails("apply -f -", &widget("{size: 0}"), "spec.size in body should be greater than or equal to 1").await;
    shell.shows("get wd", "", "NAME   SIZE   READY\nw1     4").await;
    shell.shows("get wd w1 -o yaml", "", "spec:\n  color: red\n  size: 4").await;
    shell.shows("label wd w1 tier=gold", "", "widget.example.io/w1 labeled").await;
    shell.shows("annotate wd w1 note=hi", "", "widget.example.io/w1 annotated").await;
    shell.shows("get wd -l tier=gold -o name", "", "widget.example.io/w1").await;
    let patch = r#"patch wd w1 --subresource=status --type=merge -p {"status":{"conditions":[{"type":"Ready","status":"True"}]}}"#;
    shell.shows(patch, "", "patched").await;
    shell.shows("wait --for=condition=Ready wd/w1 --timeout=10s", "", "condition met").await;
    shell.shows("apply --server-side --field-manager=ssa -f -", &widget("{size: 4}"), "serverside-applied").await;
    shell.fails("apply --server-side --field-manager=other -f -", &widget("{size: 5}"), "conflict").await;
    shell.shows("delete wd w1", "", "widget.example.io \"w1\" deleted").await;
    shell.shows("delete crd widgets.example.io", "", "deleted").await;
    shell.stop().await;
}

#[tokio::test]
async fn built_in_kinds_work_as_a_user_expects() {
    let Some(shell) = Shell::start().await else { return };
    shell.shows("get namespaces", "", "default           Active").await;
    shell.shows("create configmap settings --from-literal=a=b", "", "configmap/settings created").await;
    shell.fails("create configmap settings --from-literal=a=b", "", "configmaps \"settings\" already exists").await;
    shell.shows("get configmap settings -o jsonpath={.data.a}", "", "b").await;
    shell.shows("create secret generic creds --from-literal=a=b", "", "secret/creds created").await;
    shell.shows("get secrets", "", "creds   Opaque   1").await;
    shell.shows("create namespace team", "", "namespace/team created").await;
    shell.shows("create role reader --verb=get --resource=configmaps -n team", "", "created").await;
    shell.shows("create rolebinding readers --role=reader --user=bob -n team", "", "created").await;
    shell.shows("auth can-i get configmaps -n team --as bob", "", "yes").await;
    shell.fails("auth can-i get secrets -n team --as bob", "", "no").await;
    shell.shows("auth whoami", "", "Username    admin").await;
    shell.shows("delete namespace team", "", "namespace \"team\" deleted").await;
    shell.fails("get namespace team", "", "namespaces \"team\" not found").await;
    let deployment = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 2, selector: {matchLabels: {a: b}}, \
        template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}";
    shell.shows("apply -f -", deployment, "deployment.apps/web created").await;
    shell.shows("get deployments", "", "web    0/2").await;
    shell.shows("apply -f - --dry-run=server", deployment, "unchanged (server dry run)").await;
    shell.shows("create token default", "", "eyJ").await;
    shell.fails("create token default --duration=1m", "", "may not specify a duration less than 10 minutes").await;
    shell.shows("delete deployment web", "", "deployment.apps \"web\" deleted").await;
    // Kinds kubectl knows are sent as protobuf.
    shell
        .shows(
            "create deployment api --image=example/api:1 --replicas=3 --port=8080",
            "",
            "deployment.apps/api created",
        )
        .await;
    let made = "{.spec.replicas} {.spec.template.spec.containers[0].image} {.spec.template.spec.containers[0].ports[0].containerPort} {.spec.selector.matchLabels.app}";
    shell
        .shows(&format!("get deployment api -o jsonpath={}", made.replace(' ', "_")), "", "3_example/api:1_8080_api")
        .await;
    shell.shows("explain deployment.spec.template.spec.containers.ports --recursive", "", "containerPort").await;
    shell.shows("scale deployment api --replicas=5", "", "deployment.apps/api scaled").await;
    shell.shows("get deployment api -o jsonpath={.spec.replicas}", "", "5").await;
    shell.shows("expose deployment api --port=80 --target-port=http", "", "service/api exposed").await;
    shell.shows("get service api -o jsonpath={.spec.ports[0].targetPort}", "", "http").await;
    shell.shows("create job once --image=example/job", "", "job.batch/once created").await;
    shell.shows("create cronjob often --image=example/job --schedule=*/5", "", "cronjob.batch/often created").await;
    shell.shows("create ingress door --rule=example.org/*=api:80", "", "ingress.networking.k8s.io/door created").await;
    shell.shows("run one --image=example/one --env=A=B --dry-run=server", "", "pod/one created (server dry run)").await;
    shell.shows("create quota limits --hard=cpu=1,memory=2Gi", "", "resourcequota/limits created").await;
    shell.shows("get quota limits -o jsonpath={.spec.hard.memory}", "", "2Gi").await;
    shell.shows("create poddisruptionbudget spare --selector=app=api --min-available=50%", "", "created").await;
    shell.shows("get pdb spare -o jsonpath={.spec.minAvailable}", "", "50%").await;
    shell.stop().await;
}

#[tokio::test]
async fn a_watch_prints_changes_as_they_come() {
    let Some(shell) = Shell::start().await else { return };
    let mut child = shell.command("get configmaps -w --no-headers").spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    shell.shows("create configmap one", "", "created").await;
    let seen = async {
        loop {
            let line = lines.next_line().await.unwrap().expect("more lines");
            if line.starts_with("one ") {
                return line;
            }
        }
    };
    let line = tokio::time::timeout(Duration::from_secs(30), seen).await.unwrap();
    assert!(line.split_whitespace().nth(1) == Some("0"), "{line}");
    child.kill().await.unwrap();
    shell.stop().await;
}
