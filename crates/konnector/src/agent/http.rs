//! What the small HTTP server answers: probes for the kubelet, metrics for Prometheus.

use ::http::StatusCode;
use carrick_process::Page;

use super::health::Health;
use super::metrics::Metrics;

/// The answer to a request.
pub fn answer(target: &str, health: &Health, metrics: &Metrics) -> Page {
    match target.split('?').next().unwrap_or_default() {
        "/healthz" => {
            let (works, checks) = health.checks();
            let status = if works { StatusCode::OK } else { StatusCode::INTERNAL_SERVER_ERROR };
            Page { status, kind: "application/json", text: format!("{checks}\n") }
        }
        "/readyz" => match health.unready() {
            None => Page::text(StatusCode::OK, "ok\n"),
            Some(why) => Page::text(StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")),
        },
        "/metrics" => Page::text(StatusCode::OK, metrics.render()),
        path => Page::missing(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_answer_as_those_of_kube_bind_do() {
        let (health, metrics) = (Health::default(), Metrics::default());
        let answer = |path| answer(path, &health, &metrics);
        let works =
            Page { status: StatusCode::OK, kind: "application/json", text: "{\"leaderElection\":\"ok\"}\n".to_owned() };
        assert_eq!(answer("/healthz"), works);
        assert_eq!(answer("/readyz").status, StatusCode::OK);
        assert!(answer("/metrics?x").text.contains("konnector_leading 0"));
        assert_eq!(answer("/").status, StatusCode::NOT_FOUND);
    }
}
