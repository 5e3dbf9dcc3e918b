//! A file with the agent's flags.

use std::path::Path;

use anyhow::{Context, bail};
use serde_json::Value;

/// The flags in a file, as on a command line.
pub fn read(path: &Path) -> anyhow::Result<Vec<String>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    flags(&text).with_context(|| format!("cannot use {}", path.display()))
}

/// The flags in a text. Pure.
fn flags(text: &str) -> anyhow::Result<Vec<String>> {
    let settings = carrick_json::yaml::value(text).context("it is not valid YAML")?;
    let Value::Object(settings) = settings else {
        bail!("it must hold one \"name-of-the-flag: value\" in each line, such as \"namespace: kcp-system\"");
    };
    let mut flags = Vec::new();
    for (name, value) in settings {
        let name = name.trim_start_matches('-');
        match value {
            Value::Null => {}
            Value::String(value) => flags.push(format!("--{name}={value}")),
            Value::Bool(_) | Value::Number(_) => flags.push(format!("--{name}={value}")),
            Value::Array(several) if several.iter().all(Value::is_string) => {
                let several: Vec<&str> = several.iter().filter_map(Value::as_str).collect();
                flags.push(format!("--{name}={}", several.join(",")));
            }
            _ => bail!("{name} must be a text, a number, a boolean, or a list of texts"),
        }
    }
    Ok(flags)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_a_file_is_a_flag() {
        let text = "namespace: kcp-system\n--agent-name: mine\nenable-leader-election: true\ndisabled-controllers: [sync, apiexport]\nkubeconfig:\n";
        let wanted = [
            "--namespace=kcp-system",
            "--agent-name=mine",
            "--enable-leader-election=true",
            "--disabled-controllers=sync,apiexport",
        ];
        let mut found = flags(text).unwrap();
        found.sort_by_key(|flag| wanted.iter().position(|it| it == flag));
        assert_eq!(found, wanted);
        for (wrong, problem) in [("- a", "name-of-the-flag"), ("a: {b: c}", "a must be"), ("a: [", "not valid YAML")] {
            let error = format!("{:#}", flags(wrong).unwrap_err());
            assert!(error.contains(problem), "{wrong}: {error}");
        }
    }
}
