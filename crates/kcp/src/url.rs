//! URLs of workspaces and virtual workspaces.

use thiserror::Error;

/// Why a server URL cannot be pointed at another workspace.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum UrlError {
    /// The URL has no `/clusters/<workspace>` part.
    #[error("URL must point to a cluster/workspace: {0}")]
    NoCluster(String),
    /// The URL has several `/clusters/<workspace>` parts.
    #[error("invalid URL: URL contains more than one cluster path: {0}")]
    ManyClusters(String),
}

/// Workspace path or cluster name that the URL points at.
pub fn workspace(url: &str) -> Result<&str, UrlError> {
    let (start, end) = segment(url)?;
    Ok(&url[start..end])
}

/// The same URL pointed at another workspace.
pub fn retarget(url: &str, workspace: &str) -> Result<String, UrlError> {
    let (start, end) = segment(url)?;
    Ok(format!("{}{workspace}{}", &url[..start], &url[end..]))
}

/// URL of a workspace on a server's base URL.
pub fn in_workspace(base: &str, workspace: &str) -> String {
    format!("{}/clusters/{workspace}", base.trim_end_matches('/'))
}

/// URL of one cluster (or of all, with `*`) below a virtual workspace's endpoint.
pub fn in_endpoint(endpoint: &str, cluster: &str) -> String {
    in_workspace(endpoint, cluster)
}

/// URL of an export's virtual workspace on a shard's base URL.
pub fn export_endpoint(base: &str, cluster: &str, export: &str) -> String {
    format!("{}/services/apiexport/{cluster}/{export}", base.trim_end_matches('/'))
}

/// Byte range of the workspace segment behind the one `/clusters/`.
fn segment(url: &str) -> Result<(usize, usize), UrlError> {
    const MARK: &str = "/clusters/";
    let mut found = url.match_indices(MARK);
    let Some((at, _)) = found.next() else { return Err(UrlError::NoCluster(url.to_owned())) };
    if found.next().is_some() {
        return Err(UrlError::ManyClusters(url.to_owned()));
    }
    let start = at + MARK.len();
    let end = url[start..].find('/').map_or(url.len(), |slash| start + slash);
    if start == end {
        return Err(UrlError::NoCluster(url.to_owned()));
    }
    Ok((start, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_and_replaces_the_workspace() {
        let url = "https://kcp.example:6443/clusters/root:a";
        assert_eq!(workspace(url), Ok("root:a"));
        assert_eq!(retarget(url, "root:b").as_deref(), Ok("https://kcp.example:6443/clusters/root:b"));
        assert_eq!(retarget("https://h/clusters/x/tail", "y").as_deref(), Ok("https://h/clusters/y/tail"));
    }

    #[test]
    fn refuses_urls_without_exactly_one_workspace() {
        assert_eq!(workspace("https://h"), Err(UrlError::NoCluster("https://h".into())));
        assert_eq!(workspace("https://h/clusters/"), Err(UrlError::NoCluster("https://h/clusters/".into())));
        let twice = "https://h/clusters/a/clusters/b";
        assert_eq!(workspace(twice), Err(UrlError::ManyClusters(twice.into())));
    }

    #[test]
    fn builds_virtual_workspace_urls() {
        let endpoint = export_endpoint("https://h:1/", "abc", "e.io");
        assert_eq!(endpoint, "https://h:1/services/apiexport/abc/e.io");
        assert_eq!(in_endpoint(&endpoint, "*"), "https://h:1/services/apiexport/abc/e.io/clusters/*");
    }
}
