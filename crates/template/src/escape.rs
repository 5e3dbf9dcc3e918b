//! Escapes for HTML, JavaScript and URLs.

use crate::{
    heap::{Heap, Outcome},
    runes,
    value::Value,
};

/// `template.HTMLEscapeString`
pub(crate) fn html(heap: &Heap, text: &[u8]) -> Outcome<Value> {
    let mut out = heap.builder();
    for byte in text {
        match byte {
            0 => out.text("\u{fffd}")?,
            b'"' => out.text("&#34;")?,
            b'\'' => out.text("&#39;")?,
            b'&' => out.text("&amp;")?,
            b'<' => out.text("&lt;")?,
            b'>' => out.text("&gt;")?,
            _ => out.push(&[*byte])?,
        }
    }
    out.value()
}

/// `template.JSEscapeString`
pub(crate) fn js(heap: &Heap, text: &[u8]) -> Outcome<Value> {
    let mut out = heap.builder();
    for (c, piece) in runes::pieces(text) {
        match c {
            '\\' => out.text("\\\\")?,
            '\'' => out.text("\\'")?,
            '"' => out.text("\\\"")?,
            '<' | '>' | '&' | '=' | '\0'..' ' => out.text(&format!("\\u{:04X}", u32::from(c)))?,
            ' '..='\x7f' => out.push(piece)?,
            _ if runes::is_print(c) => out.push(piece)?,
            _ => out.text(&format!("\\u{:04X}", u32::from(c)))?,
        }
    }
    out.value()
}

/// `url.QueryEscape`
pub(crate) fn query(heap: &Heap, text: &[u8]) -> Outcome<Value> {
    let mut out = heap.builder();
    for byte in text {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(&[*byte])?,
            b' ' => out.push(b"+")?,
            _ => out.text(&format!("%{byte:02X}"))?,
        }
    }
    out.value()
}
