//! A konnector on a consumer's cluster: what it consists of, whether it is installed, upgraded or left alone, and where it keeps kubeconfigs.

use carrick_go::semver::Version;
use serde_json::Value;

mod host_alias;
mod manifests;
mod secret;

pub use host_alias::{HostAlias, HostAliasError, HostAliases};
pub use manifests::{NAME, konnector, namespace, subject};
pub use secret::{OtherProvider, ProviderAccess, StoredSecret, stored};

/// Who writes, whichever program it is.
pub const MANAGER: &str = "kubectl-bind";
/// The version of all programs, and of our konnector.
const VERSION: &str = concat!("v", env!("CARGO_PKG_VERSION"));
/// Our konnector.
pub const IMAGE: &str = "ghcr.io/carrick/konnector";
/// Konnectors whose versions mean something to us, ours first.
const KNOWN: [&str; 3] = [IMAGE, "ghcr.io/kube-bind/konnector", "ghcr.io/kbind-dev/konnector"];

/// What to do about the konnector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Install {
    /// Apply the manifests with this image.
    Apply(String),
    /// Leave it as it is: why.
    Leave(String),
}

/// The image of our konnector.
pub fn image() -> String {
    format!("{IMAGE}:{VERSION}")
}

/// Decides about the konnector, given the Deployment that is there and the image that somebody asks for.
pub fn decide(deployment: Option<&Value>, asked: Option<&str>) -> Install {
    let ours = image();
    if let Some(asked) = asked {
        return Install::Apply(asked.to_owned());
    }
    let Some(deployment) = deployment else { return Install::Apply(ours) };
    let image = deployment["spec"]["template"]["spec"]["containers"][0]["image"].as_str().unwrap_or_default();
    let known = image.rsplit_once(':').filter(|(name, _)| KNOWN.contains(name));
    let Some((name, tag)) = known else {
        return Install::Leave(format!(
            "image {image:?} is not one that is known here; replace it with --konnector-image"
        ));
    };
    if name != IMAGE {
        return Install::Leave(format!("{image} works as well; replace it with --konnector-image"));
    }
    let (Some(there), Some(new)) = (version(tag), version(VERSION)) else {
        return Install::Leave(format!("tag {tag:?} is not a version; replace it with --konnector-image"));
    };
    match there.compare(&new) {
        std::cmp::Ordering::Less => Install::Apply(ours),
        std::cmp::Ordering::Equal => Install::Leave(format!("{tag} is installed")),
        std::cmp::Ordering::Greater => Install::Leave(format!("{tag} is installed, which is newer than {VERSION}")),
    }
}

fn version(text: &str) -> Option<Version> {
    Version::parse_strict(text.strip_prefix('v').unwrap_or(text)).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn konnectors_are_upgraded_and_never_downgraded() {
        let there = |image: &str| json!({"spec": {"template": {"spec": {"containers": [{"image": image}]}}}});
        let ours = image();
        assert_eq!(decide(None, None), Install::Apply(ours.clone()));
        assert_eq!(decide(Some(&there("x/y:v9")), Some("a/b:c")), Install::Apply("a/b:c".to_owned()));
        assert_eq!(decide(Some(&there(&format!("{IMAGE}:v0.0.9"))), None), Install::Apply(ours.clone()));
        for left in [
            ours,
            format!("{IMAGE}:v99.0.0"),
            format!("{IMAGE}:main"),
            "ghcr.io/kube-bind/konnector:v0.8.1".to_owned(),
            "ghcr.io/kbind-dev/konnector:v0.8.2".to_owned(),
            "example.io/konnector:v0.0.1".to_owned(),
            String::new(),
        ] {
            assert!(matches!(decide(Some(&there(&left)), None), Install::Leave(_)), "{left}");
        }
    }
}
