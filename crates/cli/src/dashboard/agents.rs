//! The agents behind one page, each at its URL.

use std::time::Duration;

use anyhow::{Context, bail};
use carrick_process::Page;
use http::StatusCode;
use serde_json::{Value, json};

use super::reader::{Reader, ReaderFlags, dashboard_url};

/// How long an agent may take to answer before it counts as down.
const PATIENCE: Duration = Duration::from_secs(5);

/// Agents, in the order in which they were named.
pub struct Agents {
    urls: Vec<String>,
    reader: Reader,
}

impl Agents {
    /// The agents at these URLs.
    pub fn new(given: &[String], reader: ReaderFlags) -> anyhow::Result<Self> {
        let urls = given.iter().map(|given| dashboard_url(given)).collect::<anyhow::Result<Vec<String>>>()?;
        if let Some(twice) = urls.iter().enumerate().find_map(|(at, url)| urls[..at].contains(url).then_some(url)) {
            bail!("{twice} is named twice");
        }
        Ok(Self { urls, reader: Reader::new(reader)? })
    }

    /// How all of them are doing. One that does not answer says so, and holds up nobody.
    pub async fn all(&self) -> Value {
        let each = self.urls.iter().map(|url| async move {
            match self.ask(&format!("{url}/state.json")).await {
                Ok((200, text)) => summary(url, &serde_json::from_str(&text).unwrap_or_default()),
                Ok((status, text)) => {
                    broken(url, &format!("answers {status}: {}", text.lines().next().unwrap_or_default()))
                }
                Err(error) => broken(url, &format!("{error:#}")),
            }
        });
        json!({ "agents": futures::future::join_all(each).await })
    }

    /// What an agent, by its number, serves at a path.
    pub async fn pass_on(&self, number: &str, below: &str) -> Option<Page> {
        let url = number.parse::<usize>().ok()?.checked_sub(1).and_then(|at| self.urls.get(at))?;
        let url = format!("{url}/{below}");
        let html = below.split('?').next() == Some("");
        Some(match self.ask(&url).await {
            Ok((200, text)) if html => {
                // There is a way back.
                let text = text.replacen("<html", "<html data-agents", 1);
                Page { status: StatusCode::OK, kind: Page::HTML, text }
            }
            Ok((200, text)) => Page { status: StatusCode::OK, kind: "application/json", text },
            // Nobody can log in here, so nobody is asked to.
            Ok((401 | 403, text)) => {
                let advice = "start carrick dashboard with --token-file or $CARRICK_DASHBOARD_TOKEN";
                Page::text(StatusCode::BAD_GATEWAY, format!("{url} asks to log in: {advice}\n{text}"))
            }
            Ok((status, text)) => Page::text(StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY), text),
            Err(error) => Page::text(StatusCode::BAD_GATEWAY, format!("{error:#}\n")),
        })
    }

    async fn ask(&self, url: &str) -> anyhow::Result<(u16, String)> {
        let answer = tokio::time::timeout(PATIENCE, self.reader.get(url)).await;
        answer.with_context(|| format!("GET {url}: no answer within {} s", PATIENCE.as_secs()))?
    }
}

/// What one row shows of an agent. Pure.
fn summary(url: &str, state: &Value) -> Value {
    if !state["agent"].is_object() {
        return broken(url, "is not a dashboard");
    }
    let published = state["publishedResources"].as_array().cloned().unwrap_or_default();
    let total = |key: &str| published.iter().filter_map(|pr| pr[key].as_f64()).sum::<f64>();
    json!({
        "url": url,
        "agent": state["agent"],
        "problems": state["problems"],
        "failures": state["failures"],
        "failing": state["failing"],
        "stopped": state["stopped"],
        "published": published.iter().map(|pr| json!({ "name": pr["name"], "trouble": pr["trouble"] })).collect::<Vec<_>>(),
        "orders": total("sources"),
        "copies": total("copies"),
        "workspaces": state["workspaces"].as_array().map_or(0, Vec::len),
        "lagSeconds": state["now"]["lagSeconds"],
    })
}

fn broken(url: &str, problem: &str) -> Value {
    json!({ "url": url, "problem": problem })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_is_summed_up_and_what_is_none_says_so() {
        let state = json!({
            "agent": { "name": "a", "verdict": "1 order fails", "level": "bad" },
            "problems": [], "failures": [], "failing": 1, "stopped": [{ "reason": "Rules" }],
            "publishedResources": [
                { "name": "x", "trouble": "t", "sources": 2.0, "copies": 1.0 }, { "name": "y", "trouble": null, "sources": 3.0, "copies": 3.0 },
            ],
            "workspaces": [{}, {}], "now": { "lagSeconds": 0.5 },
        });
        let seen = summary("u", &state);
        assert_eq!((&seen["orders"], &seen["copies"], &seen["workspaces"]), (&json!(5.0), &json!(4.0), &json!(2)));
        assert_eq!((&seen["failing"], &seen["published"][0]["trouble"]), (&json!(1), &json!("t")));
        assert_eq!(summary("u", &json!({ "x": 1 })), json!({ "url": "u", "problem": "is not a dashboard" }));
    }

    #[test]
    fn an_agent_is_named_once() {
        let error = Agents::new(&[":1".to_owned(), "http://127.0.0.1:1/".to_owned()], ReaderFlags::default())
            .err()
            .unwrap()
            .to_string();
        assert_eq!(error, "http://127.0.0.1:1 is named twice");
    }
}
