//! Reads dashboards: where they are, whose certificates are trusted, and the token.

use std::path::PathBuf;

use anyhow::{Context, bail};
use bytes::Bytes;
use carrick_client::{Web, WebTrust};
use http::Request;
use http::header::{ACCEPT, AUTHORIZATION, LOCATION, USER_AGENT};

/// Holds a token, if no file does.
const TOKEN: &str = "CARRICK_DASHBOARD_TOKEN";

/// How dashboards are reached, and as whom.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct ReaderFlags {
    /// File with a token, for agents that ask to log in; read again at every request. Without it, $CARRICK_DASHBOARD_TOKEN is the token
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// File with the certificate authorities to trust for https URLs, instead of the system's
    #[arg(long, value_name = "FILE")]
    pub certificate_authority: Option<PathBuf>,
    /// Do not check certificates of https URLs: whoever answers is believed, and gets the token
    #[arg(long, conflicts_with = "certificate_authority")]
    pub insecure_skip_tls_verify: bool,
}

/// Reads dashboards.
pub struct Reader {
    web: Web,
    token_file: Option<PathBuf>,
}

impl Reader {
    /// Nothing is asked yet.
    pub fn new(flags: ReaderFlags) -> anyhow::Result<Self> {
        let trust = WebTrust { ca_file: flags.certificate_authority, insecure: flags.insecure_skip_tls_verify };
        let web = Web::new(&trust).context("--certificate-authority cannot be used")?;
        Ok(Self { web, token_file: flags.token_file })
    }

    /// The status and the text of what is at a URL.
    pub async fn get(&self, url: &str) -> anyhow::Result<(u16, String)> {
        let mut request = Request::get(url)
            .header(USER_AGENT, concat!("carrick/", env!("CARGO_PKG_VERSION")))
            .header(ACCEPT, "application/json");
        if let Some(token) = self.token()? {
            request = request.header(AUTHORIZATION, format!("Bearer {token}"));
        }
        let request =
            request.body(Bytes::new()).with_context(|| format!("{url} is not a URL, or the token is none"))?;
        let sent = self.web.send(request).await;
        let answer = sent.map_err(|error| anyhow::anyhow!("{error}; {}", advice(&error.to_string())))?;
        if answer.status().is_redirection() {
            let to = answer.headers().get(LOCATION).and_then(|to| to.to_str().ok()).unwrap_or("somewhere else");
            bail!("{url} redirects to {to}; pass that URL");
        }
        Ok((answer.status().as_u16(), String::from_utf8_lossy(answer.body()).into_owned()))
    }

    fn token(&self) -> anyhow::Result<Option<String>> {
        let Some(file) = &self.token_file else {
            return Ok(std::env::var(TOKEN)
                .ok()
                .map(|token| token.trim().to_owned())
                .filter(|token| !token.is_empty()));
        };
        let text = std::fs::read_to_string(file);
        let text = text.with_context(|| format!("cannot read --token-file {}", file.display()))?;
        Ok(Some(text.trim().to_owned()))
    }
}

/// What to do about an answer that did not come.
fn advice(error: &str) -> &'static str {
    if error.contains("certificate") {
        "pass the authority that signed it: --certificate-authority FILE"
    } else if carrick_client::wording::is_no_http(error) {
        "if it speaks https, pass the URL with https://"
    } else {
        "start the agent with --dashboard-address, and pass that address"
    }
}

/// Where a dashboard is, given what people copy from a browser or a log. Pure.
pub fn dashboard_url(given: &str) -> anyhow::Result<String> {
    let base = match given.split_once("://") {
        Some(("http" | "https", _)) => given.to_owned(),
        Some((scheme, _)) => bail!("{given}: a dashboard speaks http or https, not {scheme}"),
        None if given.starts_with(':') => format!("http://127.0.0.1{given}"),
        None => format!("http://{given}"),
    };
    let base = base.split(['#', '?']).next().unwrap_or_default();
    Ok(base.trim_end_matches("state.json").trim_end_matches('/').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_names_a_dashboard_is_understood() {
        for (given, wanted) in [
            ("127.0.0.1:8086", "http://127.0.0.1:8086"),
            (":8086", "http://127.0.0.1:8086"),
            ("http://h:1", "http://h:1"),
            ("https://h/agents/a/", "https://h/agents/a"),
            ("http://h:1/#orders", "http://h:1"),
            ("http://h:1/state.json", "http://h:1"),
            (
                "http://127.0.0.1:8001/api/v1/namespaces/a/pods/b:8086/proxy/",
                "http://127.0.0.1:8001/api/v1/namespaces/a/pods/b:8086/proxy",
            ),
        ] {
            assert_eq!(dashboard_url(given).unwrap(), wanted);
        }
        assert_eq!(
            dashboard_url("ftp://h").unwrap_err().to_string(),
            "ftp://h: a dashboard speaks http or https, not ftp"
        );
    }
}
