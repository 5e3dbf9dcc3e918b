//! `/healthz`, `/livez` and `/readyz`: what is checked, one line each if asked for.

use http::{HeaderValue, header};

use super::reply::{self, Reply};
use super::request::Query;
use crate::api::Api;
use crate::config::Mode;

const PING: &str = "ping";
const SHUTDOWN: &str = "shutdown";
/// The checks of the real servers that mean something here. A plane that answers has read its data and runs its controllers.
const ALWAYS: [&str; 3] = [PING, "log", "etcd"];
const READY: [&str; 3] = ["etcd-readiness", "informer-sync", SHUTDOWN];

/// The answer for one of the three paths, which everybody may ask for. In kcp, each cluster has them too.
pub(super) fn answer(api: &Api, path: &str, query: &Query, stopping: bool) -> Option<Reply> {
    let local = match path.strip_prefix("/clusters/") {
        Some(rest) if api.mode == Mode::Kcp => rest.find('/').map_or("", |slash| &rest[slash..]),
        _ => path,
    };
    let endpoint = local.trim_matches('/');
    let fails = |name: &str| stopping && name == SHUTDOWN;
    let (code, text) = report(endpoint, &checks(endpoint)?, &query.all("exclude"), query.has("verbose"), fails);
    Some(reply(code, &text))
}

/// Whether a path is below one of the three.
pub(super) fn is_below(path: &str) -> bool {
    path.trim_matches('/').split_once('/').is_some_and(|(endpoint, _)| checks(endpoint).is_some())
}

/// The answer for a single check, such as `/readyz/ping`.
pub(super) fn check(path: &str, stopping: bool) -> Option<Reply> {
    let (endpoint, name) = path.trim_matches('/').split_once('/')?;
    if !checks(endpoint)?.contains(&name) {
        return None;
    }
    let fails = stopping && name == SHUTDOWN;
    let (code, text) = if fails { (500, "internal server error: process is shutting down\n") } else { (200, "ok") };
    Some(reply(code, text))
}

fn checks(endpoint: &str) -> Option<Vec<&'static str>> {
    match endpoint {
        "healthz" | "livez" => Some(ALWAYS.to_vec()),
        "readyz" => Some([ALWAYS, READY].concat()),
        _ => None,
    }
}

fn reply(code: u16, text: &str) -> Reply {
    let mut reply = reply::text(code, text);
    reply.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    reply
}

fn report(
    endpoint: &str,
    checks: &[&str],
    excluded: &[&str],
    verbose: bool,
    fails: impl Fn(&str) -> bool,
) -> (u16, String) {
    let mut text = String::new();
    let mut failed = false;
    for check in checks {
        let line = if excluded.contains(check) {
            format!("[+]{check} excluded: ok\n")
        } else if fails(check) {
            failed = true;
            format!("[-]{check} failed: reason withheld\n")
        } else {
            format!("[+]{check} ok\n")
        };
        text.push_str(&line);
    }
    let mut unknown: Vec<String> =
        excluded.iter().filter(|name| !checks.contains(name)).map(|name| format!("{name:?}")).collect();
    unknown.sort_unstable();
    unknown.dedup();
    if !unknown.is_empty() {
        text.push_str("warn: some health checks cannot be excluded: no matches for ");
        text.push_str(&unknown.join(","));
        text.push('\n');
    }
    if failed {
        (500, format!("{text}{endpoint} check failed\n"))
    } else if verbose {
        (200, format!("{text}{endpoint} check passed\n"))
    } else {
        (200, "ok".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_checks_are_known_by_name() {
        for path in ["/readyz/ping", "/livez/etcd", "/readyz/shutdown"] {
            assert!(is_below(path) && check(path, false).is_some_and(|reply| reply.status() == 200), "{path}");
        }
        for path in ["/readyz/nonsense", "/livez/shutdown"] {
            assert!(is_below(path) && check(path, false).is_none(), "{path}");
        }
        for path in ["/readyz", "/ping", "/api/ping"] {
            assert!(!is_below(path) && check(path, false).is_none(), "{path}");
        }
        assert!(check("/readyz/shutdown", true).is_some_and(|reply| reply.status() == 500));
    }

    #[test]
    fn reports_read_as_those_of_the_real_servers() {
        let fine = |_: &str| false;
        assert_eq!(report("livez", &["ping"], &[], false, fine), (200, "ok".into()));
        assert_eq!(
            report("livez", &["ping", "etcd"], &["etcd", "b", "a", "b"], true, fine).1,
            "[+]ping ok\n[+]etcd excluded: ok\nwarn: some health checks cannot be excluded: no matches for \"a\",\"b\"\n\
             livez check passed\n"
        );
        assert_eq!(
            report("readyz", &["ping", "shutdown"], &[], false, |name| name == "shutdown"),
            (500, "[+]ping ok\n[-]shutdown failed: reason withheld\nreadyz check failed\n".into())
        );
    }
}
