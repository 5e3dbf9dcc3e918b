//! Character references in values of attributes.

/// Replaces references. Of the named ones only those of ASCII characters, since no other character changes a context.
pub(super) fn decode(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.iter().position(|byte| *byte == b'&') {
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at..];
        let (c, length) = numeric(rest).or_else(|| named(rest)).unwrap_or(('&', 1));
        out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        rest = &rest[length..];
    }
    out.extend_from_slice(rest);
    out
}

/// A character and the length of the reference to it.
type Reference = Option<(char, usize)>;

fn numeric(text: &[u8]) -> Reference {
    let (radix, start) = match text {
        [b'&', b'#', b'x' | b'X', ..] => (16, 3),
        [b'&', b'#', ..] => (10, 2),
        _ => return None,
    };
    let digits = text[start..].iter().map_while(|byte| char::from(*byte).to_digit(radix));
    let (mut number, mut length) = (0_u32, start);
    for digit in digits {
        number = number.saturating_mul(radix).saturating_add(digit);
        length += 1;
    }
    if length == start {
        return None;
    }
    length += usize::from(text.get(length) == Some(&b';'));
    let c = char::from_u32(number).filter(|c| *c != '\0').unwrap_or(char::REPLACEMENT_CHARACTER);
    Some((c, length))
}

fn named(text: &[u8]) -> Reference {
    let name = text[1..].iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
    if text.get(1 + name) == Some(&b';')
        && let Some((_, c)) = NAMES.iter().find(|(known, _)| known.as_bytes() == &text[1..=name])
    {
        return Some((*c, name + 2));
    }
    OLD.iter().find(|(known, _)| text[1..].starts_with(known.as_bytes())).map(|(known, c)| (*c, 1 + known.len()))
}

/// Names that need no semicolon, not even before other letters.
const OLD: [(&str, char); 8] =
    [("amp", '&'), ("AMP", '&'), ("lt", '<'), ("LT", '<'), ("gt", '>'), ("GT", '>'), ("quot", '"'), ("QUOT", '"')];

const NAMES: [(&str, char); 53] = [
    ("AMP", '&'),
    ("DiacriticalGrave", '`'),
    ("GT", '>'),
    ("Hat", '^'),
    ("LT", '<'),
    ("NewLine", '\n'),
    ("QUOT", '"'),
    ("Tab", '\t'),
    ("UnderBar", '_'),
    ("VerticalLine", '|'),
    ("amp", '&'),
    ("apos", '\''),
    ("ast", '*'),
    ("bsol", '\\'),
    ("colon", ':'),
    ("comma", ','),
    ("commat", '@'),
    ("dollar", '$'),
    ("equals", '='),
    ("excl", '!'),
    ("grave", '`'),
    ("gt", '>'),
    ("lbrace", '{'),
    ("lbrack", '['),
    ("lcub", '{'),
    ("lowbar", '_'),
    ("lpar", '('),
    ("lsqb", '['),
    ("lt", '<'),
    ("midast", '*'),
    ("num", '#'),
    ("percnt", '%'),
    ("period", '.'),
    ("plus", '+'),
    ("quest", '?'),
    ("quot", '"'),
    ("rbrace", '}'),
    ("rbrack", ']'),
    ("rcub", '}'),
    ("rpar", ')'),
    ("rsqb", ']'),
    ("semi", ';'),
    ("sol", '/'),
    ("verbar", '|'),
    ("vert", '|'),
    // White space of JavaScript, where a slash after it means what it would mean before it.
    ("nbsp", '\u{a0}'),
    ("NonBreakingSpace", '\u{a0}'),
    ("ensp", '\u{2002}'),
    ("emsp", '\u{2003}'),
    ("numsp", '\u{2007}'),
    ("puncsp", '\u{2008}'),
    ("thinsp", '\u{2009}'),
    ("hairsp", '\u{200a}'),
];
