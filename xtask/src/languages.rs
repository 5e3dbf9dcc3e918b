//! Times the same work in Go and in Rust.

use std::fs;
use std::hint::black_box;
use std::process::Command;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use carrick_cel::Mutation;
use carrick_go::regex::GoRegex;
use carrick_json::go;
use carrick_json::path::{self, text};
use carrick_template::Template;
use serde_json::{Map, Value, json};

use crate::tools;

/// What both languages are timed with.
const WORK: &str = include_str!("../../e2e/oracle/bench.json");

/// A sample takes at least this much processor time; the best of so many counts, because what disturbs the machine only makes
/// it slower.
const SAMPLE: Duration = Duration::from_millis(300);
const SAMPLES: usize = 3;

/// Time the same work in Go and in Rust, and print a table of both.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only Rust, as JSON lines, with the optimisation this program was built with.
    #[arg(long)]
    rust: bool,
}

/// Prints the table.
pub fn run(args: &Args) -> anyhow::Result<()> {
    if args.rust {
        return work();
    }
    let go = measured(Command::new(tools::oracle()?).arg("bench"))?;
    let xtask = ["run", "--quiet", "--profile", "dist", "--package", "xtask", "--", "bench-languages", "--rust"];
    let rust = measured(tools::cargo().args(xtask))?;
    println!("| work | Go | Rust | times faster |\n| --- | ---: | ---: | ---: |");
    for ((name, go), (same, rust)) in go.iter().zip(&rust) {
        ensure!(name == same, "Go measured {name:?} where Rust measured {same:?}");
        println!("| {name} | {} | {} | {:.1} |", duration(*go), duration(*rust), go / rust);
    }
    ensure!(go.len() == rust.len(), "Go measured {} things, Rust {}", go.len(), rust.len());
    Ok(())
}

/// The names and nanoseconds that a program prints.
fn measured(command: &mut Command) -> anyhow::Result<Vec<(String, f64)>> {
    let output = command.stderr(std::process::Stdio::inherit()).output()?;
    ensure!(output.status.success(), "{} ended with {}", command.get_program().display(), output.status);
    let lines = String::from_utf8(output.stdout)?;
    lines
        .lines()
        .map(|line| {
            let line: Value = serde_json::from_str(line)?;
            let name = line["name"].as_str().context("a measurement has no name")?.to_owned();
            Ok((name, line["ns"].as_f64().context("a measurement has no time")?))
        })
        .collect()
}

/// Nanoseconds, or microseconds from a thousand on.
fn duration(ns: f64) -> String {
    if ns < 1000.0 { format!("{ns:.0} ns") } else { format!("{:.1} µs", ns / 1000.0) }
}

fn measure(name: &str, mut work: impl FnMut()) {
    let (mut runs, mut taken, mut best) = (1_u32, 0, f64::INFINITY);
    while taken < SAMPLES {
        let start = processor_time();
        for _ in 0..runs {
            work();
        }
        let took = processor_time().saturating_sub(start);
        if took < SAMPLE {
            runs *= 2;
            continue;
        }
        taken += 1;
        best = best.min(took.as_secs_f64() * 1e9 / f64::from(runs));
    }
    println!("{}", json!({"name": name, "ns": best}));
}

/// What all threads of this process have used; where the system does not tell, the time that has passed.
fn processor_time() -> Duration {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    let used = fs::read_to_string("/proc/self/stat").ok().and_then(|stat| {
        // The name of the program is in parentheses; user and system time are the 12th and 13th field behind it, in 1/100 s.
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
        let user: u64 = fields.next()?.parse().ok()?;
        let system: u64 = fields.next()?.parse().ok()?;
        Some(Duration::from_millis(10 * (user + system)))
    });
    used.unwrap_or_else(|| START.elapsed())
}

fn get(value: &Value, path: &str) -> Option<Value> {
    let found = path::get(value, path);
    found.exists().then(|| found.into_value())
}

/// Measures, in the order of the Go program.
fn work() -> anyhow::Result<()> {
    let inputs: Value = serde_json::from_str(WORK)?;
    templates(&inputs["template"])?;
    expressions(&inputs["cel"])?;
    paths(&inputs["json"])
}

/// A text of the inputs.
fn text_of<'a>(inputs: &'a Value, name: &str) -> anyhow::Result<&'a str> {
    inputs[name].as_str().with_context(|| format!("the inputs lack {name}"))
}

fn templates(inputs: &Value) -> anyhow::Result<()> {
    let object = &inputs["object"];
    let naming =
        fields(json!({"Object": object, "ClusterName": inputs["cluster"], "ClusterPath": inputs["cluster_path"]}));
    for (name, text) in [("the default name", "default"), ("a provider's name", "provider")] {
        let text = text_of(inputs, text)?;
        let compiled = Template::compile(text)?;
        compiled.render(&naming)?;
        measure(&format!("template: compile and render {name}"), || {
            black_box(Template::compile(black_box(text)).map(|template| template.render(&naming)).is_ok());
        });
        measure(&format!("template: render {name}"), || {
            black_box(compiled.render(black_box(&naming)).is_ok());
        });
    }
    let mutation = fields(json!({"LocalObject": object, "RemoteObject": object}));
    let (text, value) = (text_of(inputs, "mutation")?, Some(&inputs["value"]));
    let compiled = Template::compile(text)?;
    compiled.render_mutation(value, get, &mutation)?;
    measure("template: compile and render a mutation", || {
        let template = Template::compile(black_box(text));
        black_box(template.map(|template| template.render_mutation(value, get, &mutation)).is_ok());
    });
    measure("template: render a mutation", || {
        black_box(compiled.render_mutation(black_box(value), get, &mutation).is_ok());
    });
    Ok(())
}

fn expressions(inputs: &Value) -> anyhow::Result<()> {
    let (object, other, text) = (&inputs["object"], json!({}), text_of(inputs, "expression")?);
    let compiled = Mutation::compile(text)?;
    compiled.eval(&Value::Null, object, &other)?;
    measure("cel: compile and evaluate a mutation", || {
        let mutation = Mutation::compile(black_box(text));
        black_box(mutation.map(|mutation| mutation.eval(&Value::Null, object, &other)).is_ok());
    });
    measure("cel: evaluate a mutation", || {
        black_box(compiled.eval(&Value::Null, black_box(object), &other).is_ok());
    });
    Ok(())
}

fn paths(inputs: &Value) -> anyhow::Result<()> {
    let object = &inputs["object"];
    let json = go::to_string(object)?;
    for (name, path) in [
        ("read a field", "field"),
        ("read in a list", "element"),
        ("read with a query", "query"),
        ("collect from lists", "collect"),
    ] {
        let path = text_of(inputs, path)?;
        measure(&format!("path: {name}"), || {
            black_box(text::get(black_box(&json), path));
        });
    }
    let (element, value, unwanted) = (text_of(inputs, "element")?, &inputs["value"], text_of(inputs, "delete")?);
    let raw = value.to_string();
    measure("path: write", || {
        black_box(text::set(black_box(&json), element, &raw).is_ok());
    });
    measure("path: delete", || {
        black_box(text::delete(black_box(&json), unwanted).is_ok());
    });
    measure("path: read from an object in memory", || {
        black_box(path::get(black_box(object), element));
    });
    let mut changed = object.clone();
    measure("path: write to an object in memory", || {
        black_box(path::set(black_box(&mut changed), element, value.clone()).is_ok());
    });
    measure("json: encode", || {
        black_box(go::to_string(black_box(object)).is_ok());
    });
    let (pattern, replacement, text) =
        (text_of(inputs, "pattern")?, text_of(inputs, "replacement")?, text_of(inputs, "text")?);
    measure("regex: compile", || {
        black_box(GoRegex::compile(black_box(pattern)).is_ok());
    });
    let compiled = GoRegex::compile(pattern)?;
    measure("regex: replace", || {
        black_box(compiled.replace_all(black_box(text), replacement));
    });
    Ok(())
}

fn fields(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_readable() {
        assert_eq!((duration(12.4), duration(12_345.0)), ("12 ns".into(), "12.3 µs".into()));
    }
}
