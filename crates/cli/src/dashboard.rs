//! `carrick dashboard`: the dashboards of several agents on one page.
//!
//! ```text
//!  browser ─▶ /                     page.html: one row for each agent
//!          ─▶ /agents.json          asks every agent for its /state.json, when somebody looks and not otherwise
//!          ─▶ /agents/2/…           the page and the data of the second agent, passed on as they are
//! ```

mod agents;
pub mod reader;

use std::net::{SocketAddr, TcpListener};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, ensure};
use console::Term;
use http::{Method, StatusCode};
use tokio_util::sync::CancellationToken;

use crate::logs;
use crate::signals::StopSignals;
use agents::Agents;
use carrick_process::Page;
use reader::ReaderFlags;

const PAGE: &str = include_str!("dashboard/page.html");

/// Serve one page for several agents, also of many service clusters.
///
/// Each URL is that of an agent that was started with --dashboard-address. They are asked only while somebody looks, and it is read-only.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Where the agents serve their dashboards: URLs, or host:port
    #[arg(value_name = "URL", required = true)]
    urls: Vec<String>,
    /// Where to serve the page; only this machine can reach it
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8090")]
    address: SocketAddr,
    #[command(flatten)]
    reader: ReaderFlags,
}

const EXAMPLES: &str = "\
Examples:
  carrick dashboard 127.0.0.1:8086 127.0.0.1:8087
  kubectl -n kcp-system port-forward deployment/storage-api-syncagent 8086 &
  kubectl -n kcp-system port-forward deployment/queues-api-syncagent 8087:8086 &
  carrick dashboard :8086 :8087
  kubectl create token dashboard-viewer >token
  carrick dashboard --token-file token \\
    https://storage.example.com https://queues.example.com";

/// Serves the page until stopped.
pub async fn run(args: Args, verbose: bool) -> anyhow::Result<ExitCode> {
    logs::init(logs::Quiet::Silent, verbose);
    ensure!(
        args.address.ip().is_loopback(),
        "--address {}: whoever reaches this page sees what the token allows, so it is served on loopback only; use 127.0.0.1:{}",
        args.address,
        args.address.port()
    );
    let agents = Arc::new(Agents::new(&args.urls, args.reader)?);
    let listener = TcpListener::bind(args.address)
        .with_context(|| format!("cannot listen on {}; choose another one with --address", args.address))?;
    listener.set_nonblocking(true)?;
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let (address, stop) = (listener.local_addr()?, CancellationToken::new());
    let mut stopped = StopSignals::listen()?;
    // If the reader has closed the pipe, there is nobody to print for.
    let count = if args.urls.len() == 1 { "1 agent".to_owned() } else { format!("{} agents", args.urls.len()) };
    let _ = Term::stdout().write_str(&format!("{count} at http://{address}; Ctrl-C ends it\n"));
    let answer = move |request: http::Request<hyper::body::Incoming>| {
        let agents = Arc::clone(&agents);
        async move {
            // Another site must not get at what the token allows by giving its own name to this machine.
            if !carrick_process::is_local(request.headers()) {
                let words = "this is shown only at localhost or an IP address\n";
                return Page::text(StatusCode::FORBIDDEN, words).response();
            }
            let target = request.uri().path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
            answer(&agents, request.method(), target).await.response()
        }
    };
    let serving = tokio::spawn(carrick_process::serve_requests(listener, answer, stop.clone()));
    stopped.next().await?;
    stop.cancel();
    serving.await?;
    Ok(ExitCode::SUCCESS)
}

async fn answer(agents: &Agents, method: &Method, target: &str) -> Page {
    if ![Method::GET, Method::HEAD].contains(method) {
        return Page::text(StatusCode::METHOD_NOT_ALLOWED, format!("{target} can only be read\n"));
    }
    match target.split('?').next().unwrap_or_default() {
        "/" => Page::html(StatusCode::OK, PAGE),
        "/agents.json" => {
            Page { status: StatusCode::OK, kind: "application/json", text: agents.all().await.to_string() }
        }
        path => match path.strip_prefix("/agents/").and_then(|rest| rest.split_once('/')) {
            // Only what a dashboard serves, and nothing else that may be behind a URL.
            Some((number, "" | "state.json" | "find.json" | "compare.json" | "trace.json")) => {
                let below = target.trim_start_matches("/agents/").split_once('/').map_or("", |(_, below)| below);
                agents.pass_on(number, below).await.unwrap_or_else(|| Page::missing(path))
            }
            _ => Page::missing(path),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_needs_nothing_from_elsewhere_and_builds_no_markup_from_data() {
        let page = Page::html(StatusCode::OK, PAGE).text;
        for bad in ["http://", "https://", "innerHTML", "document.write", "eval(", "/* shared */"] {
            assert!(!page.contains(bad), "{bad}");
        }
        assert!(page.contains("--ground:"), "it has no style");
        for good in ["<html lang=\"en\">", "<main", "aria-live=\"polite\"", "<caption>", "scope=\"col\"", "Skip to"] {
            assert!(PAGE.contains(good), "{good}");
        }
    }

    #[tokio::test]
    async fn only_dashboards_are_passed_on() {
        let agents = Agents::new(&[":1".to_owned()], ReaderFlags::default()).unwrap();
        for target in
            ["/agents/1/metrics", "/agents/1/a/state.json", "/agents/2/", "/agents/0/", "/agents/x/", "/other"]
        {
            assert_eq!(answer(&agents, &Method::GET, target).await.status, StatusCode::NOT_FOUND, "{target}");
        }
        assert_eq!(answer(&agents, &Method::POST, "/").await.status, StatusCode::METHOD_NOT_ALLOWED);
        assert_eq!(answer(&agents, &Method::GET, "/?x").await.status, StatusCode::OK);
        let down = answer(&agents, &Method::GET, "/agents/1/state.json?x").await;
        assert!(
            down.status == StatusCode::BAD_GATEWAY && down.text.contains("http://127.0.0.1:1/state.json: "),
            "{down:?}"
        );
    }
}
