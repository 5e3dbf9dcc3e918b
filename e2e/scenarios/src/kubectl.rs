//! kubectl as a user types it: the commands of `e2e/kubectl/commands.txt`, and what the real servers answer.
//!
//! ```text
//!  commands.txt ──▶ kubectl ──▶ normal form ──▶ equal to kube.golden or kcp.golden, which real servers wrote
//!                                               on planes: or to *.known, which tells every difference and its reason
//! ```
//!
//! `CARRICK_RECORD=1` writes the files anew: the golden ones on real servers, those of differences on planes. What kubectl prints depends
//! on its version, so other versions than the one that recorded are not compared.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use anyhow::{Context, ensure};
use carrick_e2e_stage::scratch::Scratch;
use carrick_e2e_stage::stage::Stage;
use carrick_e2e_stage::world::{User, World};
use regex::{Captures, Regex};
use serde_json::Value;
use tokio::process::Command;

pub(super) async fn kubectl_says_on_a_service_cluster_what_was_recorded(world: Arc<dyn World>) -> anyhow::Result<()> {
    let kubeconfig = world.service_kubeconfig(User::Admin);
    play(world.name(), "kube", &kubeconfig, "").await
}

pub(super) async fn kubectl_says_in_a_workspace_what_was_recorded(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = Stage::bare(world.clone()).await?;
    let path = &stage.team_a.path;
    play(world.name(), "kcp", &world.kcp_kubeconfig(User::Admin, path), &format!("/clusters/{path}")).await
}

/// Runs all commands and compares.
async fn play(world: &str, kind: &str, kubeconfig: &str, base: &str) -> anyhow::Result<()> {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../kubectl"));
    let desk = Desk::new(&folder, kubeconfig, base)?;
    let Some(version) = desk.version().await else {
        println!("kubectl is not installed: nothing is compared");
        return Ok(());
    };
    let (golden, known) = (folder.join(format!("{kind}.golden")), folder.join(format!("{kind}.known")));
    let record = std::env::var_os("CARRICK_RECORD").is_some();
    let real = world == "real servers";
    let recorded = Transcript::read(&golden)?;
    if recorded.version != version && !(record && real) {
        println!(
            "{} was recorded with kubectl {}, and this is {version}: nothing is compared",
            golden.display(),
            recorded.version
        );
        return Ok(());
    }
    let mut said = Transcript { version, answers: Vec::new() };
    for command in commands(&folder, kind)? {
        let answer = desk.run(&command).await?;
        said.answers.push(Answer { command, text: answer, reason: String::new() });
    }
    let differences = Transcript::read(&known)?;
    if record {
        return if real { said.write(&golden) } else { said.differing(&recorded, &differences).write(&known) };
    }
    let expected = if real { recorded } else { recorded.but(&differences)? };
    said.equals(&expected)
}

/// The commands for one kind of server.
fn commands(folder: &Path, kind: &str) -> anyhow::Result<Vec<String>> {
    let text = std::fs::read_to_string(folder.join("commands.txt"))?;
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    Ok(lines
        .filter_map(|line| match line.strip_prefix('[').and_then(|rest| rest.split_once("] ")) {
            Some((only, line)) => (only == kind).then(|| line.to_owned()),
            None => Some(line.to_owned()),
        })
        .collect())
}

/// Where the commands are typed.
struct Desk {
    folder: PathBuf,
    base: String,
    home: Scratch,
}

impl Desk {
    fn new(folder: &Path, kubeconfig: &str, base: &str) -> anyhow::Result<Self> {
        let mut config: Value = serde_json::from_str(kubeconfig)?;
        config["contexts"][0]["context"]["namespace"] = "desk".into();
        let home = Scratch::new()?;
        home.write("config", &config.to_string())?;
        Ok(Self { folder: folder.to_owned(), base: base.to_owned(), home })
    }

    /// What kubectl says about itself, if there is one.
    async fn version(&self) -> Option<String> {
        let said = self.shell("kubectl version --client -o json").await.ok()?;
        let about: Value = serde_json::from_str(&said.0).ok()?;
        about["clientVersion"]["gitVersion"].as_str().map(str::to_owned)
    }

    /// A line of the list: with kubectl in front unless it begins with something else.
    async fn run(&self, line: &str) -> anyhow::Result<String> {
        let plain = ["sed ", "echo ", "until ", "EDITOR="].iter().any(|word| line.starts_with(word));
        let command = if plain { line.to_owned() } else { format!("kubectl {line}") };
        let (text, code) = self.shell(&command).await.with_context(|| format!("kubectl {line}"))?;
        let mut text = normal(&text, &self.base);
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        Ok(format!("{text}[{code}]\n"))
    }

    async fn shell(&self, command: &str) -> anyhow::Result<(String, i32)> {
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(format!("{{ {command}\n}} 2>&1")).current_dir(&self.folder).kill_on_drop(true);
        shell.env("KUBECONFIG", self.home.path().join("config")).env("HOME", self.home.path()).env("BASE", &self.base);
        shell.stdin(std::process::Stdio::null());
        let output = tokio::time::timeout(Duration::from_mins(2), shell.output()).await??;
        Ok((String::from_utf8_lossy(&output.stdout).into_owned(), output.status.code().unwrap_or(-1)))
    }
}

/// Replaces what differs from run to run, and puts in order what has none.
fn normal(text: &str, base: &str) -> String {
    static RULES: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
        let rules = [
            (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "UID"),
            (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "TIME"),
            (r#"(resourceVersion\\?"?: ?\\?"?)\d+"#, "${1}RV"),
            (r#"(storageVersionHash"?: ?"?)[A-Za-z0-9+/=]+"#, "${1}HASH"),
            (r#"(kcp\.io/cluster\\?"?: ?\\?"?)[a-z0-9]+"#, "${1}CLUSTER"),
            (r"https://127\.0\.0\.1:\d+", "SERVER"),
            (r"127\.0\.0\.1:\d+", "ADDRESS"),
            (r"/tmp/\S+", "FILE"),
            (r"(\s)(\d+[dhms])+(\s|$)", "${1}AGE${3}"),
            (r"(\S) {2,}", "${1}  "),
            (r"(?m) +$", ""),
        ];
        rules.into_iter().filter_map(|(rule, by)| Some((Regex::new(rule).ok()?, by))).collect()
    });
    let text = if base.is_empty() { text.to_owned() } else { text.replace(base, "/clusters/WORKSPACE") };
    // The keys of a document may come in any order.
    let text = match serde_json::from_str::<Value>(text.trim()) {
        Ok(value @ (Value::Object(_) | Value::Array(_))) => serde_json::to_string_pretty(&value).unwrap_or(text),
        _ => within_quotes(&text),
    };
    let text = RULES.iter().fold(text, |text, (rule, by)| rule.replace_all(&text, *by).into_owned());
    let (mut lines, mut causes): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    for line in text.lines() {
        if line.starts_with("* ") {
            causes.push(line);
            continue;
        }
        causes.sort_unstable();
        lines.append(&mut causes);
        lines.push(line);
    }
    causes.sort_unstable();
    lines.append(&mut causes);
    lines.iter().fold(String::new(), |mut text, line| {
        let _ = writeln!(text, "{line}");
        text
    })
}

/// Documents inside of messages, as JSON in a JSON text, get their keys in order too.
fn within_quotes(text: &str) -> String {
    static QUOTED: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r#""(\{(?:[^"\\]|\\.)*\})""#).ok());
    let sorted = |found: &Captures<'_>| {
        let whole = found[0].to_owned();
        let inner: Option<Value> =
            serde_json::from_str::<String>(&whole).ok().and_then(|text| serde_json::from_str(&text).ok());
        inner.map_or(whole, |inner| Value::String(inner.to_string()).to_string())
    };
    QUOTED.as_ref().map_or_else(|| text.to_owned(), |quoted| quoted.replace_all(text, sorted).into_owned())
}

/// Commands and answers.
#[derive(Default)]
struct Transcript {
    version: String,
    answers: Vec<Answer>,
}

struct Answer {
    command: String,
    text: String,
    /// Why a plane answers so, if not as the real server.
    reason: String,
}

impl Transcript {
    fn read(path: &Path) -> anyhow::Result<Self> {
        let mut found = Self::default();
        if !path.exists() {
            return Ok(found);
        }
        let mut reason = String::new();
        for line in std::fs::read_to_string(path)?.lines() {
            if let Some(version) = line.strip_prefix("kubectl ")
                && found.answers.is_empty()
            {
                version.clone_into(&mut found.version);
            } else if let Some(why) = line.strip_prefix("#! ") {
                why.clone_into(&mut reason);
            } else if let Some(command) = line.strip_prefix("$ ") {
                let (command, reason) = (command.to_owned(), std::mem::take(&mut reason));
                found.answers.push(Answer { command, text: String::new(), reason });
            } else if let Some(answer) = found.answers.last_mut() {
                answer.text.push_str(line);
                answer.text.push('\n');
            }
        }
        for answer in &mut found.answers {
            answer.text = format!("{}\n", answer.text.trim_end());
        }
        Ok(found)
    }

    fn write(&self, path: &Path) -> anyhow::Result<()> {
        let mut text = format!("kubectl {}\n", self.version);
        for Answer { command, text: said, reason } in &self.answers {
            let reason = if reason.is_empty() { String::new() } else { format!("#! {reason}\n") };
            write!(text, "\n{reason}$ {command}\n{said}")?;
        }
        Ok(std::fs::write(path, text)?)
    }

    /// The answers that differ from the recorded ones, with the reasons known so far.
    fn differing(self, recorded: &Self, known: &Self) -> Self {
        let reasons: BTreeMap<&str, &str> =
            known.answers.iter().map(|a| (a.command.as_str(), a.reason.as_str())).collect();
        let same = |index: usize, answer: &Answer| {
            recorded.answers.get(index).is_some_and(|other| other.text.trim_end() == answer.text.trim_end())
        };
        let answers = self.answers.into_iter().enumerate().filter(|(index, answer)| !same(*index, answer));
        let answers = answers.map(|(_, mut answer)| {
            answer.reason = (*reasons.get(answer.command.as_str()).unwrap_or(&"?")).to_owned();
            answer
        });
        Self { version: self.version, answers: answers.collect() }
    }

    /// The recorded answers with some of them replaced, in the same order.
    fn but(mut self, differences: &Self) -> anyhow::Result<Self> {
        let mut from = 0;
        for difference in &differences.answers {
            ensure!(
                !difference.reason.is_empty() && difference.reason != "?",
                "{} differs for no reason",
                difference.command
            );
            let place = self.answers[from..].iter().position(|answer| answer.command == difference.command);
            let place = from + place.with_context(|| format!("{} is not among the commands", difference.command))?;
            ensure!(self.answers[place].text != difference.text, "{} does not differ any more", difference.command);
            self.answers[place].text.clone_from(&difference.text);
            from = place + 1;
        }
        Ok(self)
    }

    fn equals(&self, expected: &Self) -> anyhow::Result<()> {
        let mut told = String::new();
        let mut differ = 0;
        for (said, wanted) in self.answers.iter().zip(&expected.answers) {
            ensure!(said.command == wanted.command, "{} was not recorded here; record anew", said.command);
            if said.text.trim_end() != wanted.text.trim_end() {
                differ += 1;
                write!(told, "\n$ {}\n--- expected\n{}--- said\n{}", said.command, wanted.text, said.text)?;
            }
        }
        ensure!(self.answers.len() == expected.answers.len(), "other commands were recorded; record anew");
        ensure!(differ == 0, "{differ} of {} answers differ:\n{told}", self.answers.len());
        Ok(())
    }
}
