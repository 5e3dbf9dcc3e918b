//! How to get at the dashboard of an agent that runs as a Deployment, as a command to be pasted.
//!
//! A proxy of the API server leads to the address of a pod, not to its loopback, and takes the token of whoever asks away: it can pass neither
//! of the two doors that a dashboard may have. A forwarded port leads through both.

use serde_json::Value;

use super::deployment::flag;
use super::quoted;

/// The audience of tokens that open dashboards and nothing else.
const AUDIENCE: &str = "dashboard.syncagent.kcp.io";

/// Where an agent serves its dashboard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dashboard {
    /// The port of the pod.
    port: u16,
    /// For whom a token must be, where people have to log in.
    audience: Option<String>,
    /// The ServiceAccount of the agent, which may see what the dashboard shows.
    account: String,
}

/// The dashboard that an agent with these flags serves, if it serves one. Pure.
pub fn dashboard(flags: &[String], deployment: &Value) -> Option<Dashboard> {
    let address = flag(flags, "--dashboard-address").filter(|address| !address.is_empty() && address != "0")?;
    let (host, port) = address.rsplit_once(':')?;
    let is_loopback = ["", "localhost"].contains(&host) || host.starts_with("127.") || host == "[::1]";
    let audience = flag(flags, "--dashboard-audience").filter(|audience| !audience.is_empty());
    let account = deployment.pointer("/spec/template/spec/serviceAccountName").and_then(Value::as_str);
    Some(Dashboard {
        port: port.parse().ok()?,
        audience: (!is_loopback).then(|| audience.unwrap_or_else(|| AUDIENCE.to_owned())),
        account: account.unwrap_or("default").to_owned(),
    })
}

impl Dashboard {
    /// What to run to look at it, one command in each line. `local` is a port on this machine, `kubectl` what leads to the cluster. Pure.
    pub fn commands(&self, (kubectl, deployment): (&str, &str), local: u16) -> String {
        let (namespace, name) = deployment.split_once('/').unwrap_or(("default", deployment));
        let Self { port, account, .. } = self;
        let ports = if *port == local { port.to_string() } else { format!("{local}:{port}") };
        let login = self.audience.as_ref().map(|audience| {
            let audience = quoted(audience);
            format!("  {kubectl} -n {namespace} create token {account} --audience {audience} >token\n")
        });
        let token = if login.is_some() { " --token-file token" } else { "" };
        format!(
            "{}  {kubectl} -n {namespace} port-forward deployment/{name} {ports} &\n  carrick top 127.0.0.1:{local}{token}\n",
            login.unwrap_or_default()
        )
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_commands_lead_to_the_dashboard_that_the_agent_serves() {
        let deployment = json!({ "spec": { "template": { "spec": { "serviceAccountName": "agent" } } } });
        let commands = |flags: &[&str]| {
            let flags: Vec<String> = flags.iter().map(|flag| (*flag).to_owned()).collect();
            let found = dashboard(&flags, &deployment)?;
            Some(found.commands(("kubectl --context c", "kcp-system/storage"), 8086))
        };
        for off in [&[][..], &["--dashboard-address="], &["--dashboard-address", "0"]] {
            assert_eq!(commands(off), None, "{off:?}");
        }
        let forwarded = "  kubectl --context c -n kcp-system port-forward deployment/storage 8086 &\n";
        let plain = format!("{forwarded}  carrick top 127.0.0.1:8086\n");
        assert_eq!(commands(&["--dashboard-address", ":8086"]), Some(plain.clone()));
        assert_eq!(commands(&["--dashboard-address=127.0.0.1:8086"]), Some(plain));
        let moved = commands(&["--dashboard-address=:7445"]).unwrap();
        assert!(moved.contains("deployment/storage 8086:7445 &"), "{moved}");
        let token =
            "  kubectl --context c -n kcp-system create token agent --audience dashboard.syncagent.kcp.io >token\n";
        let open = format!("{token}{forwarded}  carrick top 127.0.0.1:8086 --token-file token\n");
        assert_eq!(commands(&["--dashboard-address=*:8086"]), Some(open));
        let other = commands(&["--dashboard-address=*:8086", "--dashboard-audience=ours"]).unwrap();
        assert!(other.contains("--audience ours >token"), "{other}");
    }
}
