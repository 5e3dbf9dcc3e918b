//! Whose an order is: a broker copies orders of many consumers into staging workspaces, one for each consumer and provider. Pure.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use carrick_kcp::path::is_label;

/// Annotation of a broker on the orders that it copies into a staging workspace: `<slice>#<logical cluster of the consumer>`. It arrives one
/// write after the order.
pub const CONSUMER_CLUSTER: &str = "broker.platform-mesh.io/consumer-cluster";

/// The workspace below which a broker makes its staging workspaces. Its word on consumers counts only there: everywhere else consumers can
/// write the same annotation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StagingRoot {
    path: Arc<str>,
    release_after: Option<Duration>,
}

/// Whose an order is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Consumer {
    /// Whoever has the workspace that the order is in.
    Owner,
    /// Whoever has this logical cluster: the order is a broker's copy of hers.
    Behind(String),
    /// It is not known yet, because the broker or kcp has not said so.
    Unknown,
}

impl StagingRoot {
    /// The workspace at a path such as `root:platform:broker:staging`.
    pub fn at(path: &str) -> Result<Self, String> {
        let (first, rest) = path.split_once(':').unwrap_or((path, ""));
        if first != "root" || rest.is_empty() || !rest.split(':').all(is_label) {
            return Err("must be the path of a workspace, such as root:platform:broker:staging".to_owned());
        }
        Ok(Self { path: path.into(), release_after: None })
    }

    /// The same for a provider who lets deleted orders go although their copies cannot be reached for so long.
    #[must_use]
    pub fn releasing_after(self, time: Duration) -> Self {
        Self { release_after: Some(time), ..self }
    }

    /// Whether a deleted order in the workspace at that path is let go although the service cluster cannot be reached for so long.
    pub fn releases(&self, path: &str, lost_for: Duration) -> bool {
        self.is_above(path) && self.release_after.is_some_and(|time| lost_for >= time)
    }

    /// Whether an order in the workspace at that path may have been let go before its copy was deleted; that of any workspace if the path is not
    /// known.
    pub fn may_have_released(&self, path: Option<&str>) -> bool {
        self.release_after.is_some() && path.is_none_or(|path| self.is_above(path))
    }

    /// Whether a workspace is one of the broker's: directly below, because whoever may work in a staging workspace could make others in it.
    pub fn is_above(&self, path: &str) -> bool {
        let name = path.strip_prefix(&*self.path).and_then(|rest| rest.strip_prefix(':'));
        name.is_some_and(|name| !name.is_empty() && !name.contains(':'))
    }

    /// Whose an order is in the workspace at that path, by the broker's annotation on it.
    pub fn consumer(&self, path: Option<&str>, annotation: Option<&str>) -> Consumer {
        match path {
            None | Some("") => Consumer::Unknown,
            Some(path) if !self.is_above(path) => Consumer::Owner,
            Some(_) => annotation.and_then(read).map_or(Consumer::Unknown, Consumer::Behind),
        }
    }
}

impl Consumer {
    /// Her logical cluster, if that is not the one of the order.
    pub fn behind(self) -> Option<String> {
        match self {
            Self::Behind(cluster) => Some(cluster),
            Self::Owner | Self::Unknown => None,
        }
    }
}

impl fmt::Display for StagingRoot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path)
    }
}

/// The logical cluster that the annotation names. A broker calls a consumer by the slice through which it sees her, too.
fn read(annotation: &str) -> Option<String> {
    let cluster = annotation.split_once('#').map_or(annotation, |(_, cluster)| cluster);
    is_label(cluster).then(|| cluster.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn behind(cluster: &str) -> Consumer {
        Consumer::Behind(cluster.to_owned())
    }

    #[test]
    fn the_broker_is_believed_directly_below_its_root_and_nowhere_else() {
        let root = StagingRoot::at("root:platform:broker:staging").unwrap();
        let claimed = Some("platform#victim");
        for (path, wanted) in [
            (Some("root:platform:broker:staging:staging-1"), behind("victim")),
            (Some("root:platform:broker:staging"), Consumer::Owner),
            (Some("root:platform:broker:staging:staging-1:mine"), Consumer::Owner),
            (Some("root:platform:broker:staging-mine:x"), Consumer::Owner),
            (Some("root:orgs:acme"), Consumer::Owner),
            (Some(""), Consumer::Unknown),
            (None, Consumer::Unknown),
        ] {
            assert_eq!(root.consumer(path, claimed), wanted, "{path:?}");
        }
    }

    #[test]
    fn a_consumer_is_called_by_her_logical_cluster() {
        let root = StagingRoot::at("root:staging").unwrap();
        for (annotation, wanted) in [
            (Some("platform.example#2h3k"), behind("2h3k")),
            (Some("2h3k"), behind("2h3k")),
            (Some("platform.example#"), Consumer::Unknown),
            (Some("a#b#c"), Consumer::Unknown),
            (Some("a#../../x"), Consumer::Unknown),
            (Some(""), Consumer::Unknown),
            (None, Consumer::Unknown),
        ] {
            assert_eq!(root.consumer(Some("root:staging:s"), annotation), wanted, "{annotation:?}");
        }
    }

    #[test]
    fn orders_are_let_go_only_where_a_broker_waits_and_only_if_the_provider_has_said_so() {
        let (root, minute) = (StagingRoot::at("root:staging").unwrap(), Duration::from_mins(1));
        assert!(!root.releases("root:staging:s", minute * 100) && !root.may_have_released(None));
        let root = root.releasing_after(minute);
        assert!(root.may_have_released(Some("root:staging:s")) && root.may_have_released(None));
        assert!(!root.may_have_released(Some("root:orgs:acme")));
        assert!(root.releases("root:staging:s", minute));
        assert!(!root.releases("root:staging:s", minute / 2));
        assert!(!root.releases("root:orgs:acme", minute * 100));
    }

    #[test]
    fn a_root_is_a_path_below_root() {
        for good in ["root:a", "root:platform:broker:staging"] {
            assert_eq!(StagingRoot::at(good).unwrap().to_string(), good);
        }
        for bad in ["", "root", "root:", "root::a", "root:a:", "orgs:a", "/orgs/a", "root:A"] {
            assert!(StagingRoot::at(bad).is_err(), "{bad}");
        }
    }
}
