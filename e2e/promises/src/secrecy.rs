//! Values of Secrets are looked for in everything that comes out of an agent.

use carrick_e2e_stage::binary::Binary;
use carrick_e2e_stage::kinds;
use carrick_e2e_stage::world::EmbeddedWorld;
use std::future::{Ready, ready};

use anyhow::ensure;
use carrick_client::Resource;
use carrick_syncagent::api;
use data_encoding::BASE64;
use serde_json::{Value, json};

use super::deed::Team;
use super::flow::Flow;
use super::flows::{self, PLANTED};
use super::lab::Lab;
use super::storms;

/// Flows with Secrets, in storms, so that errors of all kinds are told.
pub async fn in_storms(flow: Flow) -> anyhow::Result<String> {
    let mut lab = Lab::open(flow).await?;
    let figures = storms::in_lab(&mut lab).await?;
    let looked_at = nothing_told(&lab).await?;
    lab.close().await?;
    Ok(format!("{figures}; nothing in {looked_at}"))
}

/// Rules that fail on the content of a Secret, each in its own way.
pub async fn of_rules_that_fail() -> anyhow::Result<String> {
    let flow = Flow {
        source: |stage| Resource::namespaced(&stage.group, "v1", "Credential", "credentials"),
        copy: |_| kinds::secrets(),
        related: &["secrets"],
        ..flows::plain()
    };
    let mut lab = Lab::bare(EmbeddedWorld::start().await?, flow, None).await?;
    let stage = &lab.stage;
    stage.create_export().await?;
    stage.bind(&stage.team_a).await?;
    let name = stage.published_name("Credential");
    let published = json!({
        "apiVersion": format!("{}/{}", api::GROUP, api::VERSION),
        "kind": "PublishedResource",
        "metadata": { "name": name, "labels": { "stage": stage.id } },
        "spec": {
            "resource": { "apiGroup": "", "kind": "Secret" },
            "projection": { "group": stage.group, "kind": "Credential", "plural": "credentials" },
        },
    });
    stage.service.create(&kinds::published_resources(), None, &published).await?;
    lab.start_agent()?;
    let rules = failing_rules();
    for (number, rule) in rules.iter().enumerate() {
        let patch = json!({ "spec": { "naming": null, "mutation": null } });
        lab.stage.service.merge_patch(&kinds::published_resources(), None, &name, &patch).await?;
        lab.stage.service.merge_patch(&kinds::published_resources(), None, &name, &json!({ "spec": rule })).await?;
        let order = format!("one-{number}");
        let content = json!({ "data": { "password": BASE64.encode(PLANTED.as_bytes()) } });
        lab.create_source(Team::A.of(&lab), &order, &content).await?;
        lab.stage
            .eventually(&format!("rule {rule} fails"), async || {
                let told = lab.logs().iter().any(|line| line.contains(&order) && line.contains("Failed to process"));
                let placed = lab.stage.copy_of_kind(&kinds::secrets(), Team::A.of(&lab), &order).await?;
                ensure!(told || placed.is_some(), "nothing is told about {order}");
                Ok(())
            })
            .await?;
    }
    let looked_at = nothing_told(&lab).await?;
    let failed = lab.logs().iter().filter(|line| line.contains("Failed to process object.")).count();
    lab.kill_agent().await?;
    Ok(format!("{} rules, {failed} failures told; nothing in {looked_at}", rules.len()))
}

/// What users may write by mistake and what then fails on the value.
fn failing_rules() -> Vec<Value> {
    let naming = |template: &str| json!({ "naming": { "name": template } });
    let cel = |expression: &str| json!({ "mutation": { "spec": [{ "cel": { "path": "data.other", "expression": expression } }] } });
    let template =
        |text: &str| json!({ "mutation": { "spec": [{ "template": { "path": "data.password", "template": text } }] } });
    let password = "(.Object.data.password | b64dec)";
    vec![
        cel("int(self.data.password)"),
        cel("duration(self.data.password)"),
        cel("timestamp(self.data.password)"),
        cel("self.data[self.data.password]"),
        cel("self.data.password + 1"),
        cel("url(self.data.password).getHost()"),
        cel("quantity(self.data.password)"),
        cel("self.data.password.matches(self.data.password + '(')"),
        template("{{ .Value | b64dec | mustToDate \"2006\" }}"),
        template("{{ mustFromJson (.Value | b64dec) }}"),
        template("{{ semver (.Value | b64dec) }}"),
        template("{{ mustRegexFind (printf \"%s(\" .Value) \"x\" }}"),
        template("{{ index .Value 100000 }}"),
        template("{{ (.Value).missing }}"),
        template("{{ call .Value }}"),
        naming(&format!("{{{{ mustFromJson {password} }}}}")),
        naming(&format!("{{{{ {password} | mustToDate \"2006\" }}}}")),
        naming(&format!("{{{{ {password}.missing }}}}")),
        naming(&format!("{{{{ {password} | sha3short 0 }}}}")),
        naming(&format!("{{{{ urlParse (printf \"%s%%zz://\" {password}) }}}}")),
    ]
}

/// The released binary with all details in its log.
pub async fn of_the_binary() -> anyhow::Result<String> {
    let lab = Lab::bare(EmbeddedWorld::start().await?, flows::secret_up(), None).await?;
    lab.flow.publish(&lab.stage).await?;
    let binary = Binary::build(&lab.stage).await?;
    let process = binary.start()?;
    for step in &lab.flow.steps[..3] {
        for deed in &step.deeds {
            lab.stage.eventually("the deed can be done", async || deed.act(&lab).await).await?;
        }
        lab.stage
            .eventually(&format!("{:?} is done", step.name), async || {
                ensure!((step.done)(&lab.eyes.look()), "it is not");
                Ok(())
            })
            .await?;
    }
    let log = process.log();
    ensure!(log.lines().count() > 10, "the binary says nothing: {log}");
    not_in("the log of the binary", &log)?;
    process.terminate().await?;
    Ok(format!("nothing in {} lines", log.lines().count()))
}

/// Looks everywhere but in Secrets.
async fn nothing_told(lab: &Lab) -> anyhow::Result<String> {
    let log = lab.logs();
    ensure!(!log.is_empty(), "the agents have said nothing");
    log.iter().try_for_each(|line| not_in("the log", line))?;
    let agent = lab.agent()?;
    not_in("/readyz", &agent.ready().await?)?;
    not_in("/metrics", &agent.metrics().await?)?;
    let mut objects = 0;
    for plane in [lab.world.kcp_plane(), lab.world.service_plane()] {
        let store = plane.store();
        let kinds = store.all_kinds();
        for kind in kinds.iter().filter(|kind| !["secrets", "credentials"].contains(&&*kind.resource)) {
            for (key, stored) in store.list(kind, None, None).1 {
                objects += 1;
                not_in(&format!("{} {}/{}", kind.resource, key.namespace, key.name), &stored.value().to_string())?;
            }
        }
    }
    Ok(format!("{} lines, {objects} objects, metrics and probes", log.len()))
}

fn not_in(place: &str, text: &str) -> anyhow::Result<()> {
    let once = encoded_stem(PLANTED);
    for planted in [PLANTED, &encoded_stem(&once), &once] {
        ensure!(!text.contains(planted), "a planted password is in {place}: {text}");
    }
    Ok(())
}

/// What a text looks like in base64 whatever follows it: three bytes are four letters, and the rest depends on what follows.
fn encoded_stem(text: &str) -> String {
    BASE64.encode(&text.as_bytes()[..text.len() / 3 * 3])
}

/// Whether the search finds what it looks for, or else the other trials would say nothing.
pub fn in_every_form() -> Ready<anyhow::Result<String>> {
    ready(found_in_every_form())
}

fn found_in_every_form() -> anyhow::Result<String> {
    let with = format!("{PLANTED}-1");
    let encoded = BASE64.encode(with.as_bytes());
    let forms = [with, encoded.clone(), BASE64.encode(encoded.as_bytes())];
    for text in &forms {
        ensure!(not_in("here", &format!("x {text} y")).is_err(), "{text} is not found");
    }
    not_in("here", "nothing")?;
    Ok(format!("{} forms", forms.len()))
}
