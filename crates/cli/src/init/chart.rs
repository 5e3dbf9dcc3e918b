//! The agent's Helm chart in commands that are printed. It lies in carrick's repository, which is not where everybody works.

use std::path::Path;

/// Where the chart is in a clone of the repository.
const FOLDER: &str = "charts/api-syncagent";

/// The chart of a printed command, and whether it leads anywhere.
#[derive(Debug, PartialEq, Eq)]
pub struct Chart {
    /// As helm takes it.
    pub reference: String,
    /// Whether nobody has named it, and it is not where it would be in a clone.
    pub is_missing: bool,
}

impl Chart {
    /// The one that was named, else that of the clone in which the command runs.
    pub fn new(named: Option<&str>, here: &Path) -> Self {
        match named {
            Some(named) => Self { reference: named.to_owned(), is_missing: false },
            None => Self { reference: FOLDER.to_owned(), is_missing: !here.join(FOLDER).is_dir() },
        }
    }

    /// What to do if it is not here; `deployment` prints a Deployment instead.
    pub fn way_out(&self, deployment: &str) -> Option<String> {
        self.is_missing.then(|| {
            format!(
                "There is no folder {FOLDER} here: run helm in a clone of carrick's repository, or name the chart with --chart. \
                 Without Helm: {deployment} --image <image> --print-manifests"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_that_is_not_here_is_not_passed_over_in_silence() {
        let clone = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        assert_eq!(Chart::new(None, &clone).way_out("it"), None);
        assert_eq!(Chart::new(Some("oci://r/c"), Path::new("/")).way_out("it"), None);
        let missing = Chart::new(None, &clone.join("crates"));
        assert_eq!(missing.reference, FOLDER);
        let text = missing.way_out("carrick provider up …").unwrap();
        assert!(text.contains("--chart") && text.ends_with("up … --image <image> --print-manifests"), "{text}");
    }
}
