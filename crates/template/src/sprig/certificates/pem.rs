//! PEM: base64 between two lines of dashes.

const LINE: usize = 64;

/// A piece of PEM.
pub(super) struct Block {
    /// What the lines of dashes call it.
    pub(super) label: String,
    pub(super) bytes: Vec<u8>,
}

/// Writes a block.
pub(super) fn encode(label: &str, bytes: &[u8]) -> String {
    let text = data_encoding::BASE64.encode(bytes);
    let mut out = format!("-----BEGIN {label}-----\n");
    for line in text.as_bytes().chunks(LINE) {
        out.extend(line.iter().copied().map(char::from));
        out.push('\n');
    }
    out + "-----END " + label + "-----\n"
}

/// Finds the first block in a text. Header lines (`Name: value`) may come before the base64.
pub(super) fn decode(text: &[u8]) -> Option<Block> {
    let text = String::from_utf8_lossy(text);
    let mut lines = text.lines().map(str::trim_end);
    loop {
        let label = lines.by_ref().find_map(|line| line.strip_prefix("-----BEGIN ")?.strip_suffix("-----"))?;
        let mut base64 = String::new();
        let end = lines.by_ref().find(|line| {
            let is_end = line.starts_with("-----END ");
            if !is_end && !line.contains(':') {
                base64.extend(line.chars().filter(|c| !c.is_whitespace()));
            }
            is_end
        })?;
        if end.strip_prefix("-----END ")?.strip_suffix("-----") != Some(label) {
            continue;
        }
        if let Ok(bytes) = data_encoding::BASE64.decode(base64.as_bytes()) {
            return Some(Block { label: label.to_owned(), bytes });
        }
    }
}
