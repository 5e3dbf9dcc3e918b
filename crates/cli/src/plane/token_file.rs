//! Kubernetes' static token file: `token,user,uid,"group1,group2"` in each line.

use std::io;
use std::path::Path;

use carrick_plane::User;

/// What is wrong with a token file, in the words of the real servers.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum TokenFileError {
    /// The file cannot be read.
    #[error("open {path}: {why}")]
    Open {
        /// The file.
        path: String,
        /// What the system says.
        why: String,
    },
    /// A line has no user or no uid.
    #[error("token file '{path}' must have at least 3 columns (token, user name, user uid), found {found}")]
    Columns {
        /// The file.
        path: String,
        /// How many columns it has.
        found: usize,
    },
    /// A quote is where none may be, or missing.
    #[error("{}parse error on line {line}, column {column}: {why}", start.map(|start| format!("record on line {start}; ")).unwrap_or_default())]
    Quote {
        /// Where the record begins, if not in the same line.
        start: Option<usize>,
        /// Line, from 1.
        line: usize,
        /// Byte in the line, from 1.
        column: usize,
        /// What is wrong.
        why: &'static str,
    },
}

/// What the system says about a file, as Go prints it.
pub fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split_once(" (os error").map_or(text.as_str(), |(text, _)| text);
    let mut letters = text.chars();
    letters.next().map(|first| first.to_lowercase().chain(letters).collect()).unwrap_or_default()
}

/// The users in a file. Of two lines with the same token, the last one counts.
pub fn read(path: &Path) -> Result<Vec<User>, TokenFileError> {
    let shown = path.display().to_string();
    let text = std::fs::read_to_string(path)
        .map_err(|error| TokenFileError::Open { path: shown.clone(), why: reason(&error) })?;
    let mut users: Vec<User> = Vec::new();
    for record in records(&text)? {
        let [token, name, uid, rest @ ..] = record.as_slice() else {
            return Err(TokenFileError::Columns { path: shown, found: record.len() });
        };
        if token.is_empty() {
            continue;
        }
        users.retain(|user| user.token != *token);
        let groups = rest.first().map(|groups| groups.split(',').map(str::to_owned).collect()).unwrap_or_default();
        users.push(User { token: token.clone(), name: name.clone(), uid: uid.clone(), groups });
    }
    Ok(users)
}

/// Comma-separated records as Go reads them: quotes only around a whole field, doubled inside; empty lines are skipped.
fn records(text: &str) -> Result<Vec<Vec<String>>, TokenFileError> {
    const BARE: &str = "bare \" in non-quoted-field";
    const EXTRA: &str = "extraneous or missing \" in quoted-field";
    let mut records = Vec::new();
    let mut lines = text.lines().enumerate().map(|(number, line)| (number + 1, line));
    while let Some((start, mut line)) = lines.next() {
        if line.is_empty() {
            continue;
        }
        let (mut number, mut record, mut at) = (start, Vec::new(), 0);
        let wrong = |number: usize, column: usize, why| TokenFileError::Quote {
            start: (number != start).then_some(start),
            line: number,
            column,
            why,
        };
        loop {
            let rest = &line[at..];
            if rest.starts_with('"') {
                let mut field = String::new();
                at += 1;
                loop {
                    let Some(quote) = line[at..].find('"') else {
                        field.push_str(&line[at..]);
                        field.push('\n');
                        let end = line.len() + 1 + usize::from(text.ends_with('\n'));
                        (number, line) = lines.next().ok_or_else(|| wrong(number, end, EXTRA))?;
                        at = 0;
                        continue;
                    };
                    field.push_str(&line[at..at + quote]);
                    at += quote + 1;
                    match line[at..].chars().next() {
                        Some('"') => {
                            field.push('"');
                            at += 1;
                        }
                        None | Some(',') => break,
                        Some(_) => return Err(wrong(number, at, EXTRA)),
                    }
                }
                record.push(field);
            } else {
                let end = rest.find(',').unwrap_or(rest.len());
                if let Some(quote) = rest[..end].find('"') {
                    return Err(wrong(number, at + quote + 1, BARE));
                }
                record.push(rest[..end].to_owned());
                at += end;
            }
            if at >= line.len() {
                break;
            }
            at += 1;
        }
        records.push(record);
    }
    Ok(records)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_as_go_reads_them() {
        let one = |text: &str| records(text).unwrap();
        assert_eq!(one("a,b,c\n\r\n\nd,e,f,\"g,h\"\r\n"), [vec!["a", "b", "c"], vec!["d", "e", "f", "g,h"]]);
        assert_eq!(one("a,\"b \"\"x\"\"\",\"c\nd\",\n"), [["a", "b \"x\"", "c\nd", ""]]);
        assert_eq!(one(",,"), [["", "", ""]]);
        assert_eq!(one(" a , b"), [[" a ", " b"]]);
        for (text, wanted) in [
            ("a,b\"c,d", "parse error on line 1, column 4: bare \" in non-quoted-field"),
            ("a\nb,\"c\"d", "parse error on line 2, column 5: extraneous or missing \" in quoted-field"),
            ("a,\"b", "parse error on line 1, column 5: extraneous or missing \" in quoted-field"),
            ("a,\"b\n", "parse error on line 1, column 6: extraneous or missing \" in quoted-field"),
            ("a,\"b\nc", "record on line 1; parse error on line 2, column 2: extraneous or missing \" in quoted-field"),
        ] {
            assert_eq!(records(text).unwrap_err().to_string(), wanted, "{text:?}");
        }
    }

    #[test]
    fn a_token_file_names_users_groups_and_ids() {
        let path = std::env::temp_dir().join(format!("carrick-tokens-{}", std::process::id()));
        std::fs::write(&path, "t1,ann,1,\"dev,ops\"\n,nobody,0\nt2,bob,2\nt1,eve,3\n").unwrap();
        let users = read(&path).unwrap();
        let eve = User { uid: "3".into(), ..User::new("t1", "eve", &[]) };
        let bob = User { uid: "2".into(), ..User::new("t2", "bob", &[]) };
        assert_eq!(users, [bob, eve]);
        std::fs::write(&path, "t1,ann,1,\"dev,ops\"").unwrap();
        assert_eq!(read(&path).unwrap()[0].groups, ["dev", "ops"]);
        std::fs::write(&path, "t1,ann").unwrap();
        let told = read(&path).unwrap_err().to_string();
        assert!(told.ends_with("must have at least 3 columns (token, user name, user uid), found 2"), "{told}");
        std::fs::remove_file(&path).unwrap();
        let told = read(&path).unwrap_err().to_string();
        assert_eq!(told, format!("open {}: no such file or directory", path.display()));
    }
}
