//! A proxy that a kubeconfig or the environment names.

use http::{HeaderValue, Uri};

/// A proxy between here and a server.
#[derive(Clone, Debug)]
pub(crate) enum Proxy {
    /// An HTTP proxy that opens tunnels, and the credentials for it.
    Http(Uri, Option<HeaderValue>),
    /// A SOCKS 5 proxy, and user and password for it.
    Socks(Uri, Option<(String, String)>),
}

impl Proxy {
    /// Reads a `proxy-url`. The error does not quote it, because it may hold a password.
    pub(crate) fn parse(url: &str) -> Result<Self, String> {
        let uri: Uri = url.parse().map_err(|error: http::uri::InvalidUri| error.to_string())?;
        let scheme = uri.scheme_str().unwrap_or_default().to_owned();
        let authority = uri.authority().map(|authority| authority.as_str().to_owned()).unwrap_or_default();
        let (user, host) = match authority.rsplit_once('@') {
            Some((user, host)) => (Some(user.to_owned()), host.to_owned()),
            None => (None, authority),
        };
        if host.is_empty() {
            return Err("it names no host".to_owned());
        }
        let port = if uri.port().is_some() {
            ""
        } else if scheme == "http" {
            ":80"
        } else {
            ":1080"
        };
        let place = format!("http://{host}{port}").parse().map_err(|error: http::uri::InvalidUri| error.to_string())?;
        match scheme.as_str() {
            "http" => Ok(Self::Http(place, user.as_deref().map(basic).transpose()?)),
            "socks5" | "socks5h" => {
                let user = user.map(|user| {
                    let (name, password) = user.split_once(':').unwrap_or((user.as_str(), ""));
                    (name.to_owned(), password.to_owned())
                });
                Ok(Self::Socks(place, user))
            }
            other => Err(format!("its scheme is {other:?}")),
        }
    }
}

fn basic(user: &str) -> Result<HeaderValue, String> {
    let user = if user.contains(':') { user.to_owned() } else { format!("{user}:") };
    let encoded = data_encoding::BASE64.encode(user.as_bytes());
    let mut value = HeaderValue::from_str(&format!("Basic {encoded}")).map_err(|error| error.to_string())?;
    value.set_sensitive(true);
    Ok(value)
}
