//! The agent's own page: what it shows, and what it must not.

use std::sync::Arc;

use anyhow::{Context, bail, ensure};
use carrick_client::{DeleteOptions, Resource};
use carrick_e2e_stage::agent::{Agent, Setup};
use carrick_e2e_stage::stage::{NAMESPACE, Stage, Workspace, place};
use carrick_e2e_stage::world::World;
use carrick_e2e_stage::{fixtures, kinds};
use carrick_kcp::kinds::API_BINDING_V2;
use serde_json::{Value, json};

use super::related::{credentials, encoded, secret};

/// Who looks.
const VIEWER: &str = "dashboard-viewer";

pub(super) async fn it_shows_counts_and_journeys_and_no_content(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = Stage::bare(world).await?;
    stage.install_crd(&fixtures::crd(&stage.group, "Bucket")).await?;
    stage.create_export().await?;
    stage.publish("Bucket", json!({ "related": [credentials()] })).await?;
    stage.bind(&stage.team_a).await?;
    let agent = Agent::start(&stage, Setup { probes: true, ..Setup::default() })?;
    let team = &stage.team_a;
    stage.order(team, "bucket", json!({ "owner": "planted-in-the-spec" })).await?;
    let copy = stage.copy_is("the copy is placed", team, "bucket", |_| true).await?;
    let (namespace, copy_name) = place(&copy);
    stage.service.create(&kinds::secrets(), Some(namespace), &secret(copy_name, "planted-password")).await?;
    let at = (&team.client, &kinds::secrets(), Some(NAMESPACE), "bucket-credentials");
    stage.object("the Secret has arrived", at, |_| true).await?;
    stage.operator_reports(&copy, json!({ "url": "planted-in-the-status" })).await?;

    let name = stage.published_name("Bucket");
    stage
        .eventually("the page knows the whole journey", async || {
            let now = get(&agent, "/state.json").await?;
            ensure!(now["agent"]["ready"] == true && now["agent"]["export"] == stage.export_name(), "{now:#}");
            let published = now["publishedResources"].as_array().context("nothing is published")?;
            let bucket = published.iter().find(|it| it["name"] == name.as_str()).context("the Bucket is missing")?;
            ensure!(bucket["sources"] == 1.0 && bucket["copies"] == 1.0, "{bucket:#}");
            let [workspace] = now["workspaces"].as_array().context("no workspaces")?.as_slice() else {
                bail!("{now:#}")
            };
            ensure!(
                workspace["cluster"] == team.cluster.as_str() && workspace["path"] == team.path.as_str(),
                "{now:#}"
            );
            ensure!(workspace["objects"] == 1 && now["agent"]["verdict"] == "works", "{now:#}");
            let found = get(&agent, "/find.json?q=default%2Fbuck").await?;
            let journey = &found["found"][0];
            ensure!(journey["object"] == "default/bucket" && journey["held"] == true, "{found:#}");
            ensure!(journey["copy"]["place"] == format!("{namespace}/{copy_name}"), "{found:#}");
            ensure!(
                journey["hasStatus"] == true && journey["related"].as_array().is_some_and(|it| it.len() == 1),
                "{found:#}"
            );
            Ok(())
        })
        .await?;
    ensure!(get(&agent, "/find.json?q=nothing-like-it").await?["found"] == json!([]), "something was found");
    let key =
        get(&agent, "/find.json?q=default%2Fbuck").await?["found"][0]["key"].as_str().context("no key")?.to_owned();
    let way = get(&agent, &format!("/trace.json?published={name}&order={key}")).await?;
    ensure!(
        way["object"] == "Bucket default/bucket" && way["place"] == format!("in workspace {}", team.path),
        "{way:#}"
    );
    let [of_copy, related] = way["children"].as_array().context("nothing was made of it")?.as_slice() else {
        bail!("{way:#}")
    };
    ensure!(
        of_copy["object"] == format!("Bucket {namespace}/{copy_name}") && of_copy["created"].is_string(),
        "{way:#}"
    );
    ensure!(related["object"] == "credentials.0: default/bucket-credentials", "{way:#}");
    ensure!(!way.to_string().contains("\"problem\""), "{way:#}");
    let command = format!("carrick trace default/bucket --workspace {} --published-resource {name}", team.path);
    ensure!(of_copy.to_string().contains(&command), "{way:#}");

    let everything =
        [agent.dashboard("/").await?, agent.dashboard("/state.json").await?, agent.dashboard("/find.json?q=").await?];
    ensure!(everything[0].contains("text/html") && everything[0].contains("<title>api-syncagent</title>"), "no page");
    for planted in ["planted-password", &encoded("planted-password"), "planted-in-the-spec", "planted-in-the-status"] {
        ensure!(!everything.iter().any(|page| page.contains(planted)), "{planted} is shown");
    }
    ensure!(agent.dashboard("/metrics").await?.starts_with("HTTP/1.1 404"), "only its own pages are served");
    agent.stop().await
}

pub(super) async fn what_fails_is_told_where_it_stopped_until_it_is_healed(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let rule = json!([{ "cel": { "path": "spec.size", "expression": "self.spec.size * 2" } }]);
    let stage = publish(world, json!({ "mutation": { "spec": rule } })).await?;
    let agent = Agent::start(&stage, Setup { probes: true, ..Setup::default() })?;
    let (team, name) = (&stage.team_a, stage.published_name("Bucket"));
    stage.order(team, "good", json!({ "size": 21 })).await?;
    stage.order(team, "bad", json!({ "region": "eu" })).await?;
    stage
        .eventually("one order fails, and nothing says that the agent works", async || {
            let now = get(&agent, "/state.json").await?;
            ensure!(now["agent"]["verdict"] == "1 order fails" && now["agent"]["level"] == "bad", "{now:#}");
            let [reason] = now["stopped"].as_array().context("nothing")?.as_slice() else { bail!("{now:#}") };
            ensure!(reason["publishedResource"] == name.as_str() && reason["orders"] == 1, "{reason:#}");
            ensure!(
                reason["reason"] == "Rules" && reason["example"] == format!("{}/default/bad", team.path),
                "{reason:#}"
            );
            ensure!(reason["fix"].as_str().is_some_and(|fix| fix.contains("carrick toolkit")), "{reason:#}");
            Ok(())
        })
        .await?;
    stage.copy_is("the good one is served", team, "good", |_| true).await?;

    // By reason, by text and by both; one order by its full name, as the page links it.
    let by_path = format!("/find.json?q={}%2Fdefault%2Fbad", team.path.replace(':', "%3A"));
    for (path, wanted) in [
        ("/find.json?q=&stopped", vec!["default/bad"]),
        ("/find.json?q=&reason=Rules&stopped=", vec!["default/bad"]),
        ("/find.json?q=good&stopped", vec![]),
        ("/find.json?q=&reason=Forbidden", vec![]),
        ("/find.json?q=", vec!["default/bad", "default/good"]),
        (&by_path, vec!["default/bad"]),
    ] {
        let answer = get(&agent, path).await?;
        let found = answer["found"].as_array().context("nothing is found")?;
        let objects: Vec<&str> = found.iter().filter_map(|one| one["object"].as_str()).collect();
        ensure!(objects == wanted && answer["total"] == wanted.len(), "{path}: {answer:#}");
    }
    let journey = get(&agent, "/find.json?q=default/bad").await?["found"][0].clone();
    let stopped = &journey["stopped"];
    ensure!(journey["copy"].is_null() && stopped["station"] == "copy" && stopped["reason"] == "Rules", "{journey:#}");
    ensure!(stopped["message"].as_str().is_some_and(|message| message.contains("spec.size")), "{journey:#}");
    ensure!(
        stopped["times"].as_u64() > Some(0) && stopped["since"].as_str().is_some_and(|at| !at.is_empty()),
        "{journey:#}"
    );
    let journey = get(&agent, "/find.json?q=default/good").await?["found"][0].clone();
    ensure!(journey["stopped"].is_null(), "{journey:#}");

    let key = get(&agent, "/find.json?q=default/bad").await?["found"][0]["key"].as_str().context("no key")?.to_owned();
    let way = get(&agent, &format!("/trace.json?published={name}&order={key}")).await?;
    let problems: Vec<&str> =
        way["notes"].as_array().into_iter().flatten().filter_map(|it| it["text"].as_str()).collect();
    ensure!(problems.iter().any(|it| it.starts_with("Rules since ") && it.contains("spec.size")), "{way:#}");
    ensure!(problems.contains(&"it has no copy") && way["children"].is_null(), "{way:#}");

    stage.reorder(team, "bad", json!({ "size": 1 })).await?;
    stage
        .eventually("healed, nothing needs attention", async || {
            let now = get(&agent, "/state.json").await?;
            ensure!(now["agent"]["verdict"] == "works" && now["agent"]["level"] == "good", "{now:#}");
            let nothing = json!([]);
            ensure!(now["stopped"] == nothing && now["failures"] == nothing && now["problems"] == nothing, "{now:#}");
            ensure!(get(&agent, "/find.json?q=&stopped").await?["total"] == 0, "{now:#}");
            Ok(())
        })
        .await?;
    agent.stop().await
}

pub(super) async fn consumers_are_shown_with_their_bindings_and_claims(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = publish(world, json!({ "related": [credentials()] })).await?;
    let agent = Agent::start(&stage, Setup { probes: true, ..Setup::default() })?;
    stage.order(&stage.team_a, "bucket", json!({})).await?;
    let all = async || {
        let now = get(&agent, "/state.json").await?;
        let list = now["workspaces"].as_array().context("no workspaces")?.clone();
        let of = |team: &Workspace| {
            let mut found = list.iter().filter(|one| one["cluster"] == team.cluster.as_str());
            let workspace = found.next().with_context(|| format!("{} is missing in {now:#}", team.path))?;
            ensure!(workspace["path"] == team.path.as_str(), "{workspace:#}");
            let [binding] = workspace["bindings"].as_array().context("no bindings")?.as_slice() else {
                bail!("{workspace:#}")
            };
            ensure!(binding["name"] == stage.export_name() && binding["ready"] == true, "{workspace:#}");
            let claims = binding["claims"].as_array().into_iter().flatten();
            let secrets = claims.filter(|claim| claim["claim"] == "secrets").map(|claim| claim["state"].clone());
            anyhow::Ok((workspace["objects"].clone(), secrets.collect::<Vec<_>>()))
        };
        anyhow::Ok((of(&stage.team_a)?, of(&stage.team_b)?))
    };
    let accepted = vec![json!("accepted")];
    stage
        .eventually("both workspaces have accepted the claim, and one has an order", async || {
            let seen = all().await?;
            ensure!(seen == ((json!(1), accepted.clone()), (json!(0), accepted.clone())), "{seen:?}");
            Ok(())
        })
        .await?;
    stage.accept(&stage.team_b, &["namespaces"]).await?;
    stage
        .eventually("one of them has rejected it", async || {
            let seen = all().await?;
            ensure!(seen == ((json!(1), accepted.clone()), (json!(0), vec![json!("rejected")])), "{seen:?}");
            Ok(())
        })
        .await?;
    let bindings = kinds::kcp(&API_BINDING_V2);
    stage.team_b.client.delete(&bindings, None, stage.export_name(), &DeleteOptions::default()).await?;
    stage
        .eventually("a workspace that has left is not shown any more", async || {
            let now = get(&agent, "/state.json").await?;
            ensure!(now["workspaces"].as_array().is_some_and(|all| all.len() == 1), "{now:#}");
            Ok(())
        })
        .await?;
    agent.stop().await
}

pub(super) async fn an_order_is_compared_with_its_copy_and_no_secret_is_shown(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let rule = json!([{ "regex": { "path": "spec.region", "pattern": "^", "replacement": "dc-" } }]);
    let stage = publish(world, json!({ "mutation": { "spec": rule } })).await?;
    let agent = Agent::start(&stage, Setup { probes: true, ..Setup::default() })?;
    let team = &stage.team_a;
    stage.order(team, "bucket", json!({ "region": "eu", "size": 2, "free": { "password": "planted-before" } })).await?;
    let copy = stage.copy_is("the copy is placed", team, "bucket", |_| true).await?;
    stage.operator_edits(&copy, json!({ "owner": "operator", "free": { "password": "planted-after" } })).await?;
    let path =
        format!("/compare.json?published={}&order={}%2Fdefault%2Fbucket", stage.published_name("Bucket"), team.cluster);
    stage
        .eventually("the rules' work and the operator's are told apart", async || {
            let seen = get(&agent, &path).await?;
            let of = |path: &str| {
                let all = seen["differences"].as_array().into_iter().flatten();
                all.clone().find(|one| one["path"] == path).map(|one| json!([one["source"], one["copy"], one["why"]]))
            };
            ensure!(of("spec.region") == Some(json!(["\"eu\"", "\"dc-eu\"", "rules"])), "{seen:#}");
            ensure!(of("spec.owner") == Some(json!([null, "\"operator\"", "service"])), "{seen:#}");
            ensure!(of("spec.free.password").is_none_or(|it| it[0] == "(not shown)" && it[1] == it[0]), "{seen:#}");
            ensure!(!seen.to_string().contains("planted"), "{seen:#}");
            ensure!(of("spec.size").is_none() && seen["same"].as_u64() > Some(0), "{seen:#}");
            Ok(())
        })
        .await?;
    ensure!(agent.dashboard("/compare.json?published=nobody&order=c/ns/n").await?.starts_with("HTTP/1.1 404"), "found");
    // A site that gives its own name to this machine gets no content.
    let foreign = format!("GET {path} HTTP/1.1\r\nhost: evil.example.com\r\nconnection: close\r\n\r\n");
    let answer = agent.ask_dashboard(&foreign).await?;
    ensure!(answer.starts_with("HTTP/1.1 403") && !answer.contains("region"), "{answer}");
    agent.stop().await
}

pub(super) async fn whoever_reaches_it_from_elsewhere_logs_in_with_a_right(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let stage = publish(world, json!({})).await?;
    let agent = Agent::start(&stage, Setup { probes: true, exposed: true, ..Setup::default() })?;
    stage.ready(&agent).await?;
    let looks = async |headers: &str, path: &str| {
        agent.ask_dashboard(&format!("GET {path} HTTP/1.1\r\nhost: x\r\n{headers}connection: close\r\n\r\n")).await
    };
    let enters = async |token: &str, path: &str, headers: &str| {
        let length = token.len();
        let head = format!("POST {path} HTTP/1.1\r\nhost: x\r\n{headers}content-length: {length}\r\nconnection: close");
        agent.ask_dashboard(&format!("{head}\r\n\r\n{token}")).await
    };
    // Nobody gets anything, and everybody learns how to get in.
    for path in ["/", "/state.json", "/find.json?q=", "/compare.json?published=a&order=b"] {
        let answer = looks("", path).await?;
        ensure!(answer.starts_with("HTTP/1.1 401") && answer.contains("kubectl -n default create token"), "{answer}");
        ensure!(!answer.contains(&stage.agent_name()), "{answer}");
    }
    let wrong = enters("no-token", "/login", "").await?;
    ensure!(wrong.starts_with("HTTP/1.1 401") && wrong.contains("does not accept this token"), "{wrong}");
    ensure!(!wrong.contains("set-cookie") && !wrong.contains("no-token"), "{wrong}");
    let long = enters(&"x".repeat(20_000), "/login", "").await?;
    ensure!(long.starts_with("HTTP/1.1 401"), "{long}");

    let (account, token) = viewer(&stage).await?;
    let answer = enters(&token, "/login", "").await?;
    ensure!(answer.starts_with("HTTP/1.1 403") && answer.contains(&account), "{answer}");
    ensure!(answer.contains("may not get publishedresources.syncagent.kcp.io"), "{answer}");
    grant(&stage, &account).await?;
    let entered = stage
        .eventually("the right lets the viewer in", async || {
            let answer = enters(&token, "/login", "").await?;
            ensure!(answer.starts_with("HTTP/1.1 200"), "{answer}");
            Ok(answer)
        })
        .await?;
    let line = entered.lines().find_map(|line| line.strip_prefix("set-cookie: ")).context("no cookie")?;
    ensure!(line.contains("HttpOnly") && line.contains("SameSite=Strict") && !line.contains(&token), "{line}");
    let cookie = format!("cookie: other=1; {}\r\n", line.split(';').next().unwrap_or_default());
    let state = looks(&cookie, "/state.json").await?;
    ensure!(state.starts_with("HTTP/1.1 200") && state.contains(&stage.agent_name()), "{state}");
    ensure!(looks(&cookie, "/").await?.contains("data-login"), "the page does not offer to log out");
    let program = looks(&format!("authorization: Bearer {token}\r\n"), "/state.json").await?;
    ensure!(program.starts_with("HTTP/1.1 200"), "{program}");
    ensure!(enters("", "/state.json", &cookie).await?.starts_with("HTTP/1.1 405"), "something can be changed");

    let left = enters("", "/logout", &cookie).await?;
    ensure!(left.starts_with("HTTP/1.1 200") && left.contains("Max-Age=0"), "{left}");
    ensure!(looks(&cookie, "/state.json").await?.starts_with("HTTP/1.1 401"), "the session goes on");
    let logged = agent.log();
    ensure!(!logged.iter().any(|line| line.contains(&token)), "the token is in the log");
    agent.stop().await
}

pub(super) async fn a_token_for_the_dashboard_alone_lets_in_and_one_for_somebody_else_does_not(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    const OWN: &str = "dashboard.syncagent.kcp.io";
    let stage = publish(world, json!({})).await?;
    let (account, plain) = viewer(&stage).await?;
    grant(&stage, &account).await?;
    let (own, other) = (token_for(&stage, &[OWN]).await?, token_for(&stage, &["vault"]).await?);
    for (audience, tokens) in [
        (None, [(&plain, 200), (&own, 200), (&other, 401)]),
        (Some(OWN), [(&plain, 401), (&own, 200), (&other, 401)]),
        (Some("vault"), [(&plain, 401), (&own, 401), (&other, 200)]),
    ] {
        let setup = Setup { probes: true, exposed: true, dashboard_audience: audience, ..Setup::default() };
        let agent = Agent::start(&stage, setup)?;
        stage.ready(&agent).await?;
        for (token, wanted) in tokens {
            let head = format!("host: x\r\nauthorization: Bearer {token}\r\nconnection: close");
            stage
                .eventually("the token is accepted or refused", async || {
                    let answer = agent.ask_dashboard(&format!("GET /state.json HTTP/1.1\r\n{head}\r\n\r\n")).await?;
                    ensure!(answer.starts_with(&format!("HTTP/1.1 {wanted}")), "{audience:?}: {answer}");
                    let named = audience.is_none_or(|audience| answer.contains(&format!("audience {audience}")));
                    ensure!(wanted == 200 || named, "{audience:?}: {answer}");
                    Ok(())
                })
                .await?;
        }
        agent.stop().await?;
    }
    Ok(())
}

/// A ServiceAccount on the service cluster and a token of it.
async fn viewer(stage: &Stage) -> anyhow::Result<(String, String)> {
    let (namespace, name) = (stage.agent_namespace(), VIEWER);
    let account =
        json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": name, "namespace": namespace } });
    let accounts = Resource::namespaced("", "v1", "ServiceAccount", "serviceaccounts");
    let made = stage.service.create(&accounts, Some(&namespace), &account).await;
    ensure!(made.is_ok(), "{made:?}");
    Ok((format!("system:serviceaccount:{namespace}:{name}"), token_for(stage, &[]).await?))
}

/// A token of the viewer for these audiences, or for the service cluster itself.
async fn token_for(stage: &Stage, audiences: &[&str]) -> anyhow::Result<String> {
    let tokens = Resource::namespaced("", "v1", "TokenRequest", &format!("serviceaccounts/{VIEWER}/token"));
    let spec = json!({ "audiences": audiences });
    let request = json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec });
    let answer = stage.service.create(&tokens, Some(&stage.agent_namespace()), &request).await?;
    Ok(answer["status"]["token"].as_str().context("no token")?.to_owned())
}

/// Whoever is bound to the role that the chart makes can look.
pub(super) async fn the_viewers_role_lets_in(stage: &Stage, agent: &Agent, role: &str) -> anyhow::Result<()> {
    let (account, token) = viewer(stage).await?;
    let request =
        format!("GET /state.json HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\r\n");
    let answer = agent.ask_dashboard(&request).await?;
    ensure!(answer.starts_with("HTTP/1.1 403"), "{answer}");
    bind(stage, &account, role).await?;
    stage
        .eventually("the viewer can look", async || {
            let answer = agent.ask_dashboard(&request).await?;
            ensure!(answer.starts_with("HTTP/1.1 200"), "{answer}");
            Ok(())
        })
        .await
}

/// Lets an account look.
async fn grant(stage: &Stage, account: &str) -> anyhow::Result<()> {
    let name = format!("dashboard-{}", stage.id);
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": { "name": name },
        "rules": [{ "apiGroups": ["syncagent.kcp.io"], "resources": ["publishedresources"], "verbs": ["get"] }],
    });
    let roles = Resource::cluster_wide("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles");
    stage.service.create(&roles, None, &role).await?;
    bind(stage, account, &name).await
}

async fn bind(stage: &Stage, account: &str, role: &str) -> anyhow::Result<()> {
    let name = format!("dashboard-{}", stage.id);
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": { "name": name },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role },
        "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": account }],
    });
    stage.service.create(&kinds::cluster_role_bindings(), None, &binding).await?;
    Ok(())
}

async fn publish(world: Arc<dyn World>, spec: Value) -> anyhow::Result<Stage> {
    let stage = Stage::bare(world).await?;
    stage.install_crd(&fixtures::roomy(&stage.group)).await?;
    stage.create_export().await?;
    stage.publish("Bucket", spec).await?;
    futures::try_join!(stage.bind(&stage.team_a), stage.bind(&stage.team_b))?;
    Ok(stage)
}

pub(super) async fn get(agent: &Agent, path: &str) -> anyhow::Result<Value> {
    let answer = agent.dashboard(path).await?;
    let (_, body) = answer.split_once("\r\n\r\n").context("no body")?;
    serde_json::from_str(body).with_context(|| format!("no JSON: {answer}"))
}
