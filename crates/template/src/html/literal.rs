//! Literal text: where it leads, and what of it is written.

use super::{
    context::{Context, Delim, Place},
    scan, script,
};

/// Follows literal text, and rewrites what would be misread: comments go, and so does a `<` that begins no tag.
pub(super) fn escape(context: Context, text: &str) -> Result<(Context, String), String> {
    let bytes = text.as_bytes();
    let mut scanner = scan::Scanner::new(bytes);
    let mut context = context;
    let mut out = Vec::with_capacity(bytes.len());
    let mut from = 0;
    while from < bytes.len() {
        let (next, read) = scanner.step(&context, from)?;
        let segment = &bytes[from..from + read];
        from += read;
        let in_comment = |context: &Context| context.place.is_comment() && context.delim == Delim::None;
        if in_comment(&context) {
            match context.place {
                Place::JsBlockComment if script::line_end(segment).is_some() => out.push(b'\n'),
                Place::JsBlockComment | Place::CssBlockComment => out.push(b' '),
                _ => {}
            }
        } else {
            let opening = if context.place != next.place && in_comment(&next) { opening(next.place) } else { 0 };
            let kept = &segment[..segment.len().saturating_sub(opening)];
            match context.place {
                Place::Text | Place::Rcdata => {
                    text_segment(kept, context.place != next.place && opening == 0, &mut out);
                }
                place if place.is_script_literal() => script_segment(kept, &mut out),
                _ => out.extend_from_slice(kept),
            }
        }
        context = next;
    }
    // A comment that ends right at the start leaves its blank only if something else changes as well.
    if out.strip_prefix(b" ") == Some(bytes) {
        return Ok((context, text.to_owned()));
    }
    // Only whole ASCII characters were cut out or put in.
    Ok((context, String::from_utf8_lossy(&out).into_owned()))
}

/// Length of what opens a comment.
fn opening(place: Place) -> usize {
    match place {
        Place::HtmlComment | Place::JsOpenComment => 4,
        Place::JsCloseComment => 3,
        _ => 2,
    }
}

/// Text in which every `<` that begins no tag is escaped; the last one does if the segment ends in a tag.
fn text_segment(segment: &[u8], ends_in_tag: bool, out: &mut Vec<u8>) {
    let tag = segment.iter().rposition(|byte| *byte == b'<').filter(|_| ends_in_tag).unwrap_or(segment.len());
    for (index, byte) in segment[..tag].iter().enumerate() {
        if *byte == b'<' && !scan::starts_with_ignoring_case(&segment[index..], b"<!doctype") {
            out.extend_from_slice(b"&lt;");
        } else {
            out.push(*byte);
        }
    }
    out.extend_from_slice(&segment[tag..]);
}

/// A part of a script's string that must not look like a tag that begins or ends a script.
fn script_segment(segment: &[u8], out: &mut Vec<u8>) {
    for (index, byte) in segment.iter().enumerate() {
        let rest = &segment[index..];
        if [&b"<script"[..], b"</script", b"<!--"].iter().any(|tag| scan::starts_with_ignoring_case(rest, tag)) {
            out.extend_from_slice(b"\\x3C");
        } else {
            out.push(*byte);
        }
    }
}
