//! One JSON question per line, one JSON answer per line, in order.

use std::io::{self, BufRead, BufReader, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::complaint::Complaint;

/// The answer to one question, which may be an error.
#[derive(Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// What a template renders or a path gives.
    Output(String),
    /// What an expression evaluates to.
    Result(Value),
    /// Why there is no answer.
    Error(String),
}

impl Answer {
    /// The error of a question.
    #[expect(clippy::needless_pass_by_value, reason = "stands where functions take the error itself")]
    pub fn error(error: impl ToString) -> Self {
        Answer::Error(error.to_string())
    }
}

/// Answers the lines of standard input until it ends.
pub fn serve<Q: DeserializeOwned>(answer: impl Fn(Q) -> Answer) -> Result<(), Complaint> {
    super::written(answer_lines(io::stdin().lock(), io::stdout().lock(), answer))
}

/// All answers are sent before waiting for more input, so that a conversation works; while questions are waiting, answers are sent in
/// batches.
fn answer_lines<Q: DeserializeOwned>(
    input: impl io::Read,
    output: impl Write,
    answer: impl Fn(Q) -> Answer,
) -> io::Result<()> {
    let mut questions = BufReader::with_capacity(1 << 16, input);
    let mut answers = io::BufWriter::with_capacity(1 << 16, output);
    let mut line = Vec::new();
    while questions.read_until(b'\n', &mut line)? > 0 {
        serde_json::to_writer(&mut answers, &answer_line(&line, &answer))?;
        answers.write_all(b"\n")?;
        if !questions.buffer().contains(&b'\n') {
            answers.flush()?;
        }
        line.clear();
    }
    answers.flush()
}

fn answer_line<Q: DeserializeOwned>(line: &[u8], answer: impl Fn(Q) -> Answer) -> Answer {
    match serde_json::from_slice(line) {
        // Even a question that causes a panic must not end the conversation.
        Ok(question) => catch_unwind(AssertUnwindSafe(|| answer(question)))
            .unwrap_or_else(|_| Answer::error("this question made the program panic: please report it")),
        Err(error) => Answer::Error(format!("this line is not a question: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(lines: &str) -> String {
        let mut answers = Vec::new();
        answer_lines(lines.as_bytes(), &mut answers, |question: Vec<u8>| {
            assert_ne!(question, [7], "as ordered");
            Answer::Output(question.len().to_string())
        })
        .unwrap();
        String::from_utf8(answers).unwrap()
    }

    #[test]
    fn every_line_has_its_answer_whatever_it_says() {
        let answers = ask("[1,2]\n{\n\n[7]\n\u{0}\n[1]");
        let answers: Vec<&str> = answers.lines().collect();
        assert_eq!(answers.len(), 6);
        assert_eq!((answers[0], answers[5]), (r#"{"output":"2"}"#, r#"{"output":"1"}"#));
        assert!(answers[1].starts_with(r#"{"error":"this line is not a question: "#), "{answers:?}");
        assert!(answers[3].contains("panic"), "{answers:?}");
    }

    #[test]
    fn nothing_is_answered_with_nothing() {
        assert_eq!(ask(""), "");
    }
}
