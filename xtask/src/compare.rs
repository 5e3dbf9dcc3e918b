//! Asks Go and Carrick the same random questions and compares the answers.
//!
//! ```text
//!  seeds (recorded questions) ─▶ generate ─┬─▶ carrick toolkit … --batch ─┬─▶ equal, a listed deviation,
//!                       random ───┘        └─▶ oracle …                  ─┘   or a difference
//! ```

mod deviations;
mod generate;
mod mutate;
mod random;
mod seeds;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail, ensure};
use clap::ValueEnum;
use serde_json::Value;

use crate::tools;

/// How often Go is asked again where the answers differ: what it answers at random proves nothing.
const AGAIN: usize = 30;

/// Ask Go and Carrick the same random questions and compare the answers.
///
/// The same seed gives the same questions. Questions and answers are left in the target folder, below compare/.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Where the random numbers start.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many questions for each language.
    #[arg(long, default_value_t = 10_000)]
    count: usize,
    /// Only this language.
    #[arg(long, value_enum)]
    language: Option<Language>,
    /// How many differences are shown.
    #[arg(long, default_value_t = 20)]
    show: usize,
    /// A carrick that is already built.
    #[arg(long, value_name = "PROGRAM")]
    carrick: Option<PathBuf>,
    /// An oracle that is already built.
    #[arg(long, value_name = "PROGRAM")]
    oracle: Option<PathBuf>,
}

/// The languages that the toolkit answers questions about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Language {
    /// Go templates.
    Template,
    /// CEL expressions.
    Cel,
    /// Paths into JSON.
    Path,
}

impl Language {
    fn name(self) -> &'static str {
        match self {
            Language::Template => "template",
            Language::Cel => "cel",
            Language::Path => "path",
        }
    }
}

/// Compares, prints what differs, and fails if something does.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let carrick = args.carrick.clone().map_or_else(tools::carrick, Ok)?;
    let oracle = args.oracle.clone().map_or_else(tools::oracle, Ok)?;
    let folder = tools::target().join("compare");
    fs::create_dir_all(&folder)?;
    let mut different = 0;
    for language in Language::value_variants() {
        if args.language.is_none_or(|only| only == *language) {
            let ours =
                Program { name: "carrick", file: &carrick, arguments: vec!["toolkit", language.name(), "--batch"] };
            let theirs = Program { name: "go", file: &oracle, arguments: vec![language.name()] };
            let file = folder.join(language.name()).with_extension("jsonl");
            different += compare(*language, args, &ours, &theirs, &file)?;
        }
    }
    if different > 0 {
        bail!(
            "{different} answers differ; the same questions come again with --seed {} --count {}",
            args.seed,
            args.count
        );
    }
    Ok(())
}

/// Compares one language; returns how many answers differ.
fn compare(language: Language, args: &Args, ours: &Program, theirs: &Program, file: &Path) -> anyhow::Result<usize> {
    let questions = generate::questions(language, args.seed, args.count)?;
    let (our_answers, their_answers) = (ours.ask(&questions, file)?, theirs.ask(&questions, file)?);
    let answered = their_answers.iter().filter(|answer| answer.get("error").is_none()).count();
    let listed =
        |at: &usize| deviations::reason(language, &questions[*at], &our_answers[*at], &their_answers[*at]).is_some();
    let unequal = (0..questions.len()).filter(|at| !equal(&our_answers[*at], &their_answers[*at]));
    let (on_purpose, suspects): (Vec<usize>, Vec<usize>) = unequal.partition(listed);
    // Both are asked again. What is different for us before and after Go has answered depends on the time.
    let repeated = |times: usize| -> Vec<Value> {
        suspects.iter().flat_map(|at| std::iter::repeat_n(questions[*at].clone(), times)).collect()
    };
    let file = file.with_extension("again.jsonl");
    let before = ours.ask(&repeated(1), &file)?;
    let again = theirs.ask(&repeated(AGAIN), &file)?;
    let after = ours.ask(&repeated(1), &file)?;
    let differs = |index: usize| {
        let answers = &again[index * AGAIN..][..AGAIN];
        let steady = answers.iter().all(|answer| equal(answer, &answers[0])) && equal(&before[index], &after[index]);
        steady && !equal(&before[index], &answers[0])
    };
    let different: Vec<usize> =
        (0..suspects.len()).filter(|index| differs(*index)).map(|index| suspects[index]).collect();
    println!(
        "{}: {} questions, Go answers {answered} of them without error; {} deviations on purpose, {} that depend on time or chance, {} differences",
        language.name(),
        questions.len(),
        on_purpose.len(),
        suspects.len() - different.len(),
        different.len()
    );
    for at in different.iter().take(args.show) {
        println!(
            "  {}\n    Go      {}\n    Carrick {}",
            generate::short(&questions[*at]),
            their_answers[*at],
            our_answers[*at]
        );
    }
    Ok(different.len())
}

/// A program that answers questions.
struct Program<'a> {
    name: &'static str,
    file: &'a Path,
    arguments: Vec<&'a str>,
}

impl Program<'_> {
    fn ask(&self, questions: &[Value], file: &Path) -> anyhow::Result<Vec<Value>> {
        let answers = file.with_extension(format!("{}.jsonl", self.name));
        let lines: Vec<String> = questions.iter().map(|question| format!("{question}\n")).collect();
        fs::write(file, lines.concat())?;
        tools::run(
            Command::new(self.file)
                .args(&self.arguments)
                .stdin(Stdio::from(File::open(file)?))
                .stdout(Stdio::from(File::create(&answers)?)),
        )?;
        let told = fs::read_to_string(&answers)?;
        let answers: Vec<Value> =
            told.lines().map(serde_json::from_str).collect::<Result<_, _>>().context("an answer is no JSON")?;
        ensure!(
            answers.len() == questions.len(),
            "{} answers to {} questions in {}",
            answers.len(),
            questions.len(),
            file.display()
        );
        Ok(answers)
    }
}

/// Whether two answers agree: both are errors, in whatever words, or both are the same value. Numbers are the same if they are
/// equal, however they are written.
fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) if a.contains_key("error") && b.contains_key("error") => {
            a.len() == b.len()
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, value)| b.get(key).is_some_and(|other| equal(value, other)))
        }
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b)),
        (Value::Number(x), Value::Number(y)) => x == y || x.as_f64() == y.as_f64(),
        _ => a == b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn answers_are_equal_by_value_and_errors_by_being_errors() {
        for (a, b, wanted) in [
            (json!({"error": "a"}), json!({"error": "b"}), true),
            (json!({"error": "a"}), json!({"output": "a"}), false),
            (json!({"result": 1}), json!({"result": 1.0}), true),
            (json!({"result": [1, {"a": 2}]}), json!({"result": [1, {"a": 3}]}), false),
            (json!({"result": "1"}), json!({"result": 1}), false),
            (json!({"result": null}), json!({"result": null}), true),
        ] {
            assert_eq!(equal(&a, &b), wanted, "{a} {b}");
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_questions() {
        for language in Language::value_variants() {
            let questions = generate::questions(*language, 5, 50).unwrap();
            assert_eq!(questions, generate::questions(*language, 5, 50).unwrap());
            assert_ne!(questions, generate::questions(*language, 6, 50).unwrap());
        }
    }
}
