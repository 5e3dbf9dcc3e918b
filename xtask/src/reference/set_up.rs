//! The script that leads to where the first tutorial ends, for the pages that go on from there.

use std::fs;

use crate::tools;

const HEAD: &str = "\
# Made by `cargo xtask reference` from getting-started.md. Edit that.
#
# `carrick tutorial` prints it, to be evaluated in an empty folder. Leads to where that page ends: a plane and an agent in the background, a consumer with an order. Where you are there already, it does nothing.
if ! { command -v team && service get publishedresource buckets; } >/dev/null 2>&1; then
";

/// The script.
pub fn script() -> String {
    let page = fs::read_to_string(tools::root().join("docs/getting-started.md")).unwrap_or_default();
    format!("{HEAD}{}\nfi\n", blocks(&page).join("\n"))
}

/// Blocks that are run, before those that clean up.
fn blocks(page: &str) -> Vec<&str> {
    let page = page.split("\n## Clean up\n").next().unwrap_or_default();
    page.split("\n```sh\n").skip(1).filter_map(|rest| rest.split("\n```\n").next()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cleans_up_is_left_out() {
        let page =
            "text\n```sh\none\ntwo\n```\n```yaml\nno\n```\n\n```sh\nthree\n```\n\n## Clean up\n\n```sh\nend\n```\n";
        assert_eq!(blocks(page), ["one\ntwo", "three"]);
    }
}
