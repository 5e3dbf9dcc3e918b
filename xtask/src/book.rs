//! The documentation as a book.

use std::process::Command;

use anyhow::Context;

use crate::tools;

#[cfg(test)]
mod words;

/// Builds the book with mdBook.
pub fn build() -> anyhow::Result<()> {
    let root = tools::root();
    tools::run(
        Command::new("mdbook").arg("build").arg(root.join("docs")).arg("--dest-dir").arg(tools::target().join("book")),
    )
    .context("is mdBook installed? cargo install mdbook --version 0.5.4 --locked --no-default-features")?;
    println!("open {}", tools::target().join("book/index.html").display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::*;

    /// Files outside of the book whose links must lead somewhere, too.
    const OTHERS: [&str; 7] = [
        "README.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "CODE_OF_CONDUCT.md",
        "charts/api-syncagent/README.md",
        "charts/konnector/README.md",
        "charts/kube-bind-backend/README.md",
    ];

    /// Every page, by its path.
    fn pages() -> BTreeMap<PathBuf, String> {
        let (mut pages, mut folders) = (BTreeMap::new(), vec![tools::root().join("docs")]);
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|end| end == "md") {
                    let text = fs::read_to_string(&path).unwrap();
                    pages.insert(path, text);
                }
            }
        }
        pages
    }

    /// Targets of links, without those in code.
    fn links(text: &str) -> Vec<&str> {
        let mut fenced = false;
        let lines = text.lines().filter(|line| {
            let fence = line.trim_start().starts_with("```");
            fenced ^= fence;
            !fenced && !fence
        });
        lines.flat_map(|line| line.split("](").skip(1).filter_map(|rest| rest.split(')').next())).collect()
    }

    /// The anchor that mdBook and GitHub give a heading.
    fn anchor(heading: &str) -> String {
        let text = heading.trim_start_matches('#').trim().to_lowercase();
        text.chars()
            .filter(|c| c.is_alphanumeric() || " -_".contains(*c))
            .map(|c| if c == ' ' { '-' } else { c })
            .collect()
    }

    /// Where a link of a page leads, and to which heading.
    fn target(page: &Path, link: &str) -> Option<(PathBuf, String)> {
        if link.contains("://") || link.starts_with("mailto:") {
            return None;
        }
        let (file, heading) = link.split_once('#').unwrap_or((link, ""));
        let path = if file.is_empty() { page.to_owned() } else { page.parent().unwrap().join(file) };
        Some((path, heading.to_owned()))
    }

    #[test]
    fn every_page_is_in_the_summary() {
        let pages = pages();
        let summary = tools::root().join("docs/SUMMARY.md");
        let listed: Vec<PathBuf> =
            links(&pages[&summary]).iter().map(|link| tools::root().join("docs").join(link)).collect();
        for page in pages.keys().filter(|page| **page != summary) {
            assert!(listed.contains(page), "{} is not in SUMMARY.md", page.display());
        }
    }

    #[test]
    fn every_link_leads_somewhere() {
        let mut pages = pages();
        for file in OTHERS {
            let path = tools::root().join(file);
            let text = fs::read_to_string(&path).unwrap();
            pages.insert(path, text);
        }
        let mut seen = 0;
        for (page, text) in &pages {
            for (path, heading) in links(text).iter().filter_map(|link| target(page, link)) {
                let path = fs::canonicalize(&path)
                    .unwrap_or_else(|_| panic!("{}: {} is not there", page.display(), path.display()));
                if !heading.is_empty() {
                    let text = fs::read_to_string(&path).unwrap();
                    let found = text.lines().filter(|line| line.starts_with('#')).any(|line| anchor(line) == heading);
                    assert!(found, "{}: {} has no heading {heading}", page.display(), path.display());
                }
                seen += 1;
            }
        }
        assert!(seen > 50, "only {seen} links were found");
    }

    #[test]
    fn figures_of_the_readme_are_those_of_the_benchmarks() {
        let read = |file: &str| fs::read_to_string(tools::root().join(file)).unwrap();
        let (page, readme) = (read("docs/benchmarks.md"), read("README.md"));
        let table = readme.split("| | kcp's agent | this agent |").nth(1).unwrap().split("\n\n").next().unwrap();
        let rows: Vec<&str> = table.lines().filter(|line| line.starts_with("| ") && !line.contains("---")).collect();
        assert!(rows.len() > 4, "{table}");
        for row in rows {
            assert!(page.lines().any(|line| line == row), "docs/benchmarks.md does not say {row}");
        }
    }

    #[test]
    fn contributors_find_every_crate() {
        let page = fs::read_to_string(tools::root().join("CONTRIBUTING.md")).unwrap();
        for folder in fs::read_dir(tools::root().join("crates")).unwrap() {
            let name = folder.unwrap().file_name().to_string_lossy().into_owned();
            assert!(page.contains(&format!("`crates/{name}`")), "CONTRIBUTING.md does not name crates/{name}");
        }
    }

    #[test]
    fn commands_of_pages_that_are_run_stand_in_blocks_that_are_run() {
        for (page, text) in pages().iter().filter(|(_, text)| text.contains("<!-- tested")) {
            for fence in text.lines().filter(|line| line.starts_with("```") && line.len() > 3) {
                let known = ["```sh", "```console", "```text", "```yaml"];
                assert!(known.contains(&fence), "{}: {fence} is not run; is it meant to be ```sh?", page.display());
            }
        }
    }
}
