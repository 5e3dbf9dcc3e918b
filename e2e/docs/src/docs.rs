//! The tutorials in `docs/`, run as a reader would: every `sh` block, one after the other, in one shell.
//!
//! A page that says `<!-- tested -->` is run in an empty folder with the programs that it names in the path. One that says `<!-- tested after: other.md -->` is run
//! twice: on its own, by its block with `carrick tutorial`, and where that other page ends, after all pages before it in the summary. One that says `<!-- tested with: helm -->`
//! is left out where that program is missing. A comment that begins with `<!-- sh` is a block for the test alone: what a reader has before, and what a real cluster
//! does by itself. What is below `## Clean up` comes last.
//!
//! `cargo test --test docs [part of a page's name]`
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod proofs;

use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use carrick_e2e_stage::scratch::Scratch;
use carrick_e2e_stage::{binary, harness, ports};
use libtest_mimic::{Arguments, Trial};
use tokio::process::Command;

/// How long a page may take on a slow machine, and how long all pages one after the other. This ends pages that wait in vain.
const LIMIT: Duration = Duration::from_mins(6);
const LIMIT_OF_ALL: Duration = Duration::from_mins(20);
/// How long what a page leaves running may take to end.
const AT_THE_END: Duration = Duration::from_secs(30);
/// What leads to the end of the first page.
const SET_UP: &str = "$(carrick tutorial)";
/// Where hidden blocks find what readers have of the clone.
const SOURCE: &str = "CARRICK_SOURCE";
/// Ports that the pages name, which others may be using here.
const PORTS: [&str; 3] = ["7443", "7444", "7445"];

/// A page that is run.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Page {
    /// The page before it.
    after: Option<String>,
    /// A program it needs besides kubectl.
    with: Option<String>,
    blocks: Vec<String>,
    clean_up: Vec<String>,
}

/// Runs every page that says so, and what needs nothing but the pages' text.
fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    match trials() {
        Ok(trials) => libtest_mimic::run(&arguments, trials).exit_code(),
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn trials() -> anyhow::Result<Vec<Trial>> {
    let text_alone = |name: &str, holds: fn()| {
        Trial::test(name, move || {
            holds();
            Ok(())
        })
    };
    let mut trials = vec![
        text_alone("blocks_are_found_in_their_order", blocks_are_found_in_their_order),
        text_alone("every_test_that_a_page_names_exists", proofs::every_test_that_a_page_names_exists),
        text_alone(
            "no_page_asks_readers_for_what_only_this_test_has",
            no_page_asks_readers_for_what_only_this_test_has,
        ),
    ];
    let kubectl = std::process::Command::new("kubectl").args(["version", "--client"]).output();
    if !kubectl.is_ok_and(|answer| answer.status.success()) {
        eprintln!("skipped: the tutorials need kubectl, and there is none here");
        return Ok(trials);
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let (pages, skipped): (Vec<_>, Vec<_>) = find(&folder)?
        .into_iter()
        .partition(|(_, page)| page.with.as_deref().is_none_or(|program| binary::find(program).is_some()));
    for (name, page) in skipped {
        eprintln!("skipped: {name} needs {}, and there is none here", page.with.unwrap_or_default());
    }
    let in_order = in_order(&folder, &pages)?;
    let alone = pages.into_iter().map(|(name, page)| (name, page, LIMIT));
    trials.extend(alone.chain(in_order.map(|(name, page)| (name, page, LIMIT_OF_ALL))).map(|(name, page, limit)| {
        let folder = folder.clone();
        Trial::test(name, move || {
            let result = harness::runtime()?.block_on(play(&folder, page, limit));
            harness::verdict(result)
        })
    }));
    Ok(trials)
}

/// All pages that are run, by their names below the folder.
fn find(folder: &Path) -> anyhow::Result<Vec<(String, Page)>> {
    let (mut pages, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(&next).with_context(|| format!("cannot read {}", next.display()))? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "md")
                && let Some(page) = Page::read(&std::fs::read_to_string(&path)?)
            {
                pages.push((path.strip_prefix(folder)?.display().to_string(), page));
            }
        }
    }
    pages.sort_by(|(a, _), (b, _)| a.cmp(b));
    ensure!(!pages.is_empty(), "no page in {} is marked as tested", folder.display());
    Ok(pages)
}

/// A page and all that go on where it ends, in the order of the summary, as one page: what a reader types who reads on and on.
fn in_order(folder: &Path, pages: &[(String, Page)]) -> anyhow::Result<Option<(String, Page)>> {
    let Some(first) = pages.iter().find_map(|(_, page)| page.after.clone()) else { return Ok(None) };
    let known = |name: &str| pages.iter().find(|(page, _)| page == name).map(|(_, page)| page);
    let mut all = known(&first).with_context(|| format!("{first} is not marked as tested"))?.clone();
    let summary = std::fs::read_to_string(folder.join("SUMMARY.md")).context("cannot read SUMMARY.md")?;
    let names = summary.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    for page in names.filter_map(known).filter(|page| page.after.as_ref() == Some(&first)) {
        ensure!(
            page.blocks.iter().any(|block| block.contains(SET_UP)),
            "a page after {first} does not evaluate {SET_UP}"
        );
        all.blocks.extend(page.blocks.iter().chain(&page.clean_up).cloned());
    }
    Ok(Some((format!("{first}, and all pages after it"), all)))
}

impl Page {
    /// The page, if it is to be run.
    fn read(text: &str) -> Option<Self> {
        let mark = text.lines().find_map(|line| line.strip_prefix("<!-- tested")?.strip_suffix("-->"))?.trim();
        let told = |word: &str| mark.strip_prefix(word).map(|rest| rest.trim().to_owned());
        let (after, with) = (told("after:"), told("with:"));
        let (mut blocks, mut clean_up) = (Vec::new(), Vec::new());
        let (mut block, mut cleaning): (Option<String>, bool) = (None, false);
        for line in text.lines() {
            match (&mut block, line) {
                (None, "```sh" | "<!-- sh") => block = Some(String::new()),
                (None, "## Clean up") => cleaning = true,
                (None, _) => {}
                (Some(_), "```" | "-->") => {
                    let list = if cleaning { &mut clean_up } else { &mut blocks };
                    list.extend(block.take());
                }
                (Some(block), line) => block.extend([line, "\n"]),
            }
        }
        Some(Self { after, with, blocks, clean_up })
    }
}

/// What is outside of comments, for readers.
fn visible(text: &str) -> String {
    let mut parts = text.split("<!--");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |shown, part| shown + part.split_once("-->").map_or("", |(_, rest)| rest))
}

fn no_page_asks_readers_for_what_only_this_test_has() {
    assert_eq!(visible("a<!-- sh\nb-->c<!-- d --> e"), "ac e");
    let (mut pages, root) = (0, Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
    let mut open = vec![root.join("docs"), root.join("README.md")];
    while let Some(path) = open.pop() {
        if path.is_dir() {
            open.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else if path.extension().is_some_and(|end| end == "md") {
            let text = std::fs::read_to_string(&path).unwrap();
            assert!(!visible(&text).contains(SOURCE), "{} shows {SOURCE}", path.display());
            pages += 1;
        }
    }
    assert!(pages > 20, "{pages} pages");
}

/// Runs a page.
async fn play(folder: &Path, page: Page, limit: Duration) -> anyhow::Result<()> {
    let (blocks, clean_up) = (page.blocks, page.clean_up);
    let mut script = "set -euo pipefail\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n".to_owned();
    for (number, block) in blocks.iter().chain(&clean_up).enumerate() {
        script.extend(["\necho '== block ", &(number + 1).to_string(), "' >&2\n", block]);
    }
    let scratch = Scratch::new()?;
    // What readers have of the clone.
    let source = scratch.path().join("source");
    std::fs::create_dir(&source)?;
    std::os::unix::fs::symlink(folder.join("../charts").canonicalize()?, source.join("charts"))?;
    let mut elsewhere = "sed".to_owned();
    for (port, free) in PORTS.into_iter().zip(free_ports()?) {
        script = script.replace(port, &free.to_string());
        elsewhere.extend([" -e s/", port, "/", &free.to_string(), "/g"]);
    }
    script = script.replace(SET_UP, &SET_UP.replace(')', &format!(" | {elsewhere})")));
    let work = scratch.path().join("work");
    std::fs::create_dir(&work)?;
    let file = scratch.write("script.sh", &script)?;
    let mut programs: Vec<PathBuf> = vec![binary::carrick().await?, binary::agent().await?];
    if script.contains("konnector") {
        programs.extend(binary::kube_bind().await?);
    }
    if let Some((name, program)) = page.with.and_then(|name| binary::find(&name).map(|program| (name, program))) {
        // It may have another name where it is.
        let tools = scratch.path().join("tools");
        std::fs::create_dir(&tools)?;
        std::os::unix::fs::symlink(program, tools.join(&name))?;
        programs.push(tools.join(name));
    }
    let folders = programs.iter().filter_map(|program| program.parent().map(Path::to_owned));
    let path =
        std::env::join_paths(folders.chain(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())))?;
    let (said, complained) = (scratch.path().join("stdout"), scratch.path().join("stderr"));
    let mut run = Command::new("bash")
        .arg(&file)
        .current_dir(&work)
        .env("PATH", path)
        .env("HOME", scratch.path())
        .env_remove("XDG_STATE_HOME")
        .env(SOURCE, &source)
        .env_remove("KUBECONFIG")
        .stdin(Stdio::null())
        .stdout(std::fs::File::create(&said)?)
        .stderr(std::fs::File::create(&complained)?)
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .context("cannot start bash")?;
    let group = run.id().context("bash has ended already")?;
    let verdict = match tokio::time::timeout(limit, run.wait()).await {
        Ok(Ok(status)) if status.success() => match tokio::time::timeout(AT_THE_END, end_of(group)).await {
            Ok(()) => return Ok(()),
            Err(_) => format!("{} s after it was stopped, this still runs:\n{}", AT_THE_END.as_secs(), running(group)),
        },
        Ok(status) => format!("a command failed: {}", status?),
        Err(_) => format!("not at its end after {} s; running:\n{}", limit.as_secs(), running(group)),
    };
    let _ = std::process::Command::new("kill").args(["--", &format!("-{group}")]).status();
    let text = |path: &Path| String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).into_owned();
    let mut tails = String::new();
    for name in ["plane.log", "agent.log", "backend.log", "konnector.log"] {
        let log = text(&work.join(name));
        let tail: Vec<&str> = log.lines().rev().take(10).collect();
        if !tail.is_empty() {
            tails.extend(["\n", name, ", latest first:\n", &tail.join("\n")]);
        }
    }
    bail!("{verdict}\n{}\n{}{tails}", text(&said), text(&complained));
}

/// A free port for each of those that pages name. None has another one's digits in it: they are replaced one after the other.
fn free_ports() -> anyhow::Result<[u16; PORTS.len()]> {
    loop {
        let free: [u16; PORTS.len()] = ports::free()?;
        if !free.iter().any(|free| PORTS.iter().any(|port| free.to_string().contains(port))) {
            return Ok(free);
        }
    }
}

/// Returns when no program of this group runs any more: those that a page has started in the background are stopped with it.
async fn end_of(group: u32) {
    while !running(group).is_empty() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The programs of a group, one to a line, where the system can list them.
fn running(group: u32) -> String {
    let listed = std::process::Command::new("ps").args(["-e", "-o", "pgid=,stat=,args="]).output();
    let text = listed.map(|answer| String::from_utf8_lossy(&answer.stdout).into_owned()).unwrap_or_default();
    let of_group = |line: &str| {
        let (number, rest) = line.trim_start().split_once(' ')?;
        (number.parse() == Ok(group) && !rest.trim_start().starts_with('Z')).then(|| format!("{}\n", rest.trim_start()))
    };
    text.lines().filter_map(of_group).collect()
}

fn blocks_are_found_in_their_order() {
    let text =
        "<!-- tested after: a.md -->\n<!-- sh\none\ntwo\n-->\n```console\n$ no\n```\n## Clean up\n```sh\nend\n```\n";
    let page = Page::read(text).unwrap();
    assert_eq!(page.after.as_deref(), Some("a.md"));
    assert_eq!((page.blocks, page.clean_up), (vec!["one\ntwo\n".to_owned()], vec!["end\n".to_owned()]));
    assert_eq!(Page::read("```sh\none\n```"), None);
    assert_eq!(Page::read("<!-- tested -->").unwrap().after, None);
    assert_eq!(Page::read("<!-- tested with: helm -->").unwrap().with.as_deref(), Some("helm"));
}
