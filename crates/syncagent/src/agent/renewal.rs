//! Renews the token for kcp that the agent logs in with: a token of a ServiceAccount, in a kubeconfig, in a Secret.
//!
//! ```text
//!  Secret ──▶ rules::renewal  ─▶ a token that is not the one in use ──▶ used from now on, whenever its file comes
//!    ▲                        └▶ half of its time is over ──▶ TokenRequest in kcp, with this very token
//!    └──────────────────────────── the kubeconfig with the new token ◀──┘   only the leader, and only if nobody else wrote
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use carrick_client::{Client, ConnectError, Error, Resource, Server};
use carrick_kcp::token::AccountToken;
use jiff::Timestamp;
use serde_json::Value;
use thiserror::Error;
use tokio::sync::watch::Receiver;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::metrics::{Metrics, family};
use super::retry::Retry;
use crate::rules::renewal::{HeldToken, HeldTokenError, held, holding};

/// Name of this controller in numbers.
const CONTROLLER: &str = "syncagent-token";
/// The flag that turns it on.
const FLAG: &str = "--renew-kcp-token";
/// What the metric shows as long as nothing is known.
const UNKNOWN: i64 = i64::MIN;

/// Why a token is not renewed.
#[derive(Debug, Error)]
enum RenewalError {
    /// The Secret is not there.
    #[error("there is no Secret {0}; name the one that holds the agent's kubeconfig in {FLAG}")]
    NoSecret(String),
    /// The Secret cannot be read or written.
    #[error("cannot {verb} Secret {secret}: {source}; let the agent get and update it")]
    Secret {
        /// What was tried.
        verb: &'static str,
        /// Which one.
        secret: String,
        /// What the service cluster said.
        source: Error,
    },
    /// There is no token in the Secret that could be renewed.
    #[error(
        "Secret {secret}: {problem}; put a kubeconfig there with a token of kubectl create token, or run carrick provider up again"
    )]
    Content {
        /// Which one.
        secret: String,
        /// What is wrong with it.
        problem: HeldTokenError,
    },
    /// The kubeconfig in the Secret cannot be used.
    #[error("the kubeconfig in Secret {secret} cannot be used: {source}")]
    Kubeconfig {
        /// Which one.
        secret: String,
        /// What is wrong with it.
        source: ConnectError,
    },
    /// The kubeconfig in the Secret is for something else.
    #[error(
        "the kubeconfig in Secret {secret} does not lead to where --kcp-kubeconfig leads; name the Secret that this file is mounted from in {FLAG}"
    )]
    Elsewhere {
        /// Which one.
        secret: String,
    },
    /// kcp does not give another token.
    #[error("cannot get another token for {account}: {source}; {}", way_out(source, account))]
    Refused {
        /// Of whom.
        account: String,
        /// What kcp said.
        source: Error,
    },
    /// kcp gave a token of somebody else.
    #[error("kcp gave a token that is not one of {0}; run carrick provider up again")]
    Somebody(String),
}

/// What to do if kcp gives no token.
fn way_out(error: &Error, account: &str) -> String {
    match error.status().map(|status| status.code) {
        Some(401) => "its token has ended, or the account was made anew: run carrick provider up again".to_owned(),
        Some(403 | 404) => {
            format!(
                "let {account} create serviceaccounts/token for itself, as carrick provider up does when it is run again"
            )
        }
        _ => "this is tried again until it works".to_owned(),
    }
}

/// Renews the token in one Secret.
pub(super) struct Renewal {
    /// The service cluster.
    local: Client,
    /// kcp, as the agent uses it.
    kcp: Server,
    namespace: String,
    name: String,
    /// How often to look.
    interval: Duration,
    metrics: Arc<Metrics>,
    /// When the token ends.
    ends: Arc<AtomicI64>,
    /// The token that the agent was given last.
    used: Option<String>,
    /// What was told last.
    told: Option<String>,
}

impl Renewal {
    /// For the Secret of that name in the agent's namespace.
    pub(super) fn new(config: &super::AgentConfig, name: &str, metrics: &Arc<Metrics>) -> Self {
        Self {
            local: config.local.client(),
            kcp: config.kcp.clone(),
            namespace: config.namespace.clone(),
            name: name.to_owned(),
            interval: config.timing.token,
            metrics: Arc::clone(metrics),
            ends: Arc::new(AtomicI64::new(UNKNOWN)),
            used: None,
            told: None,
        }
    }

    /// Looks at the Secret now and then until told to stop, and renews the token while this replica leads.
    pub(super) async fn run(mut self, mut leads: Receiver<bool>, stop: CancellationToken) {
        let ends = Arc::clone(&self.ends);
        let _shown = Arc::clone(&self.metrics).show(move |page| {
            let ends = ends.load(Ordering::Relaxed);
            if ends != UNKNOWN {
                page.sample(&family::TOKEN_SECONDS, &[], ends - now());
            }
        });
        let mut retry = Retry::for_tokens();
        loop {
            let leading = *leads.borrow_and_update();
            // A stop does not break off a write.
            match self.look(leading).await {
                Ok(()) => {
                    retry.succeeded();
                    self.works();
                    retry.set(Some(Instant::now() + self.interval));
                }
                Err(error) => {
                    retry.failed();
                    self.fails(&error);
                }
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = retry.due() => {}
                Ok(()) = leads.changed() => {}
            }
        }
    }

    /// Looks at the Secret once.
    async fn look(&mut self, leading: bool) -> Result<(), RenewalError> {
        let found = self.local.get(&secrets(), Some(&self.namespace), &self.name).await;
        let found = found.map_err(|source| self.refused("get", source))?;
        let found = found.ok_or_else(|| RenewalError::NoSecret(self.secret()))?;
        let present = held(&found).map_err(|problem| RenewalError::Content { secret: self.secret(), problem })?;
        self.ends.store(present.about.ends, Ordering::Relaxed);
        let due = leading && present.is_due(now());
        if self.used.as_deref() == Some(&present.token) && !due {
            return Ok(());
        }
        let unusable = |source| RenewalError::Kubeconfig { secret: self.secret(), source };
        let server = Server::from_kubeconfig_yaml(&present.kubeconfig).map_err(unusable)?;
        if self.used.as_deref() != Some(&present.token) {
            // The file may have a better one: the agent is not to lose its login over a Secret that is out of date.
            server.client().raw_get("/api").await.map_err(|source| asked(&present, source))?;
            self.use_from_now_on(&present)?;
        }
        if due { self.renew(&found, &present, &server).await } else { Ok(()) }
    }

    /// Gets another token and writes it to the Secret.
    async fn renew(&mut self, secret: &Value, present: &HeldToken, server: &Server) -> Result<(), RenewalError> {
        let AccountToken { cluster, namespace, name, .. } = &present.about;
        let home = carrick_kcp::url::retarget(server.url(), cluster).unwrap_or_else(|_| server.url().to_owned());
        let unusable = |source| RenewalError::Kubeconfig { secret: self.secret(), source };
        let client = server.at_url(&home).map_err(unusable)?;
        let token = client.request_token(namespace, name, present.seconds()).await;
        let token = token.map_err(|source| asked(present, source))?;
        let about = AccountToken::read(&token).ok().filter(|about| about.is_of_the_same_account(&present.about));
        let about = about.ok_or_else(|| RenewalError::Somebody(account(&present.about)))?;
        let renewed = HeldToken { kubeconfig: present.replaced_by(&token), token, about };
        // The Secret has the resourceVersion that it was read with: what somebody else has written meanwhile is not undone.
        let written = holding(secret, &renewed.kubeconfig);
        let written = self.local.replace(&secrets(), Some(&self.namespace), &written).await;
        written.map_err(|source| self.refused("update", source))?;
        self.ends.store(renewed.about.ends, Ordering::Relaxed);
        self.use_from_now_on(&renewed)?;
        tracing::info!(secret = self.secret(), until = shown(renewed.about.ends), "Renewed the token for kcp.");
        Ok(())
    }

    /// Lets the agent use a token although its file may not have it yet.
    fn use_from_now_on(&mut self, held: &HeldToken) -> Result<(), RenewalError> {
        let unusable = |source| RenewalError::Kubeconfig { secret: self.secret(), source };
        if !self.kcp.borrow_from_kubeconfig_yaml(&held.kubeconfig).map_err(unusable)? {
            return Err(RenewalError::Elsewhere { secret: self.secret() });
        }
        self.used = Some(held.token.clone());
        Ok(())
    }

    fn works(&mut self) {
        self.metrics.recent.healed(&self.about());
        if self.told.take().is_some() {
            tracing::info!(secret = self.secret(), "The token for kcp can be renewed again.");
        }
    }

    /// The same problem is logged once, and counted each time.
    fn fails(&mut self, error: &RenewalError) {
        let problem = error.to_string();
        let reason = super::metrics::reason(error).unwrap_or_else(|| "Token".to_owned());
        self.metrics.failed(CONTROLLER, &reason, &self.about(), &problem);
        if self.told.as_ref() != Some(&problem) {
            tracing::warn!(problem, "The token for kcp is not renewed, trying again until it is.");
            self.told = Some(problem);
        }
    }

    fn refused(&self, verb: &'static str, source: Error) -> RenewalError {
        RenewalError::Secret { verb, secret: self.secret(), source }
    }

    fn about(&self) -> String {
        format!("the token for kcp in Secret {}", self.secret())
    }

    fn secret(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }
}

fn asked(held: &HeldToken, source: Error) -> RenewalError {
    RenewalError::Refused { account: account(&held.about), source }
}

fn account(about: &AccountToken) -> String {
    format!("ServiceAccount {}/{}", about.namespace, about.name)
}

fn now() -> i64 {
    Timestamp::now().as_second()
}

fn shown(second: i64) -> String {
    Timestamp::from_second(second).map(|time| time.to_string()).unwrap_or_default()
}

fn secrets() -> Resource {
    Resource::namespaced("", "v1", "Secret", "secrets")
}
