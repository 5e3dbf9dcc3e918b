//! Splits a template text into tokens.

/// A place in the template text: byte offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Span {
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl Span {
    /// From the start of this to the end of that.
    pub(crate) fn to(self, other: Span) -> Span {
        Span { start: self.start, end: other.end.max(self.end) }
    }
}

/// Words with a meaning of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keyword {
    Block,
    Break,
    Continue,
    Define,
    Else,
    End,
    If,
    Range,
    Template,
    With,
}

/// What a token is. The text of names, numbers and strings is the token's span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Literal text; the span excludes trimmed white space.
    Text,
    LeftDelim,
    RightDelim,
    Space,
    Assign,
    Declare,
    Pipe,
    LeftParen,
    RightParen,
    /// Any other single character, for example a comma.
    Char,
    Dot,
    /// `.name`
    Field,
    /// `$` or `$name`
    Variable,
    Identifier,
    Keyword(Keyword),
    True,
    False,
    Nil,
    Number,
    CharConstant,
    /// `"..."` or `` `...` ``
    Str,
    /// The text cannot be split any further; this is the last token.
    Error(String),
    Eof,
}

#[derive(Clone, Debug)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) span: Span,
}

const SPACES: [char; 4] = [' ', '\t', '\r', '\n'];

fn is_space(c: char) -> bool {
    SPACES.contains(&c)
}

fn is_name(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

/// Splits the whole text. The last token is an end or an error.
pub(crate) fn tokens(text: &str) -> Vec<Token> {
    let mut lexer = Lexer { text, pos: 0, start: 0, parens: 0, tokens: Vec::new() };
    if let Err(message) = lexer.run() {
        lexer.emit(Kind::Error(message));
    } else {
        lexer.start = lexer.pos;
        lexer.emit(Kind::Eof);
    }
    lexer.tokens
}

struct Lexer<'t> {
    text: &'t str,
    pos: usize,
    /// Where the token under way began.
    start: usize,
    parens: usize,
    tokens: Vec<Token>,
}

impl Lexer<'_> {
    fn rest(&self) -> &str {
        &self.text[self.pos..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.pos += c.len_utf8();
        Some(c)
    }

    fn accept(&mut self, valid: &str) -> bool {
        let hit = self.peek().is_some_and(|c| valid.contains(c));
        if hit {
            self.next();
        }
        hit
    }

    fn accept_while(&mut self, valid: impl Fn(char) -> bool) {
        while self.peek().is_some_and(&valid) {
            self.next();
        }
    }

    fn emit(&mut self, kind: Kind) {
        self.tokens.push(Token { kind, span: Span { start: self.start, end: self.pos } });
        self.start = self.pos;
    }

    fn run(&mut self) -> Result<(), String> {
        while self.pos < self.text.len() {
            let Some(offset) = self.rest().find("{{") else {
                self.pos = self.text.len();
                self.emit(Kind::Text);
                return Ok(());
            };
            let delim = self.pos + offset;
            let trims = marks_left_trim(&self.text[delim + 2..]);
            let literal = &self.text[self.pos..delim];
            let kept = if trims { literal.trim_end_matches(SPACES).len() } else { literal.len() };
            if kept > 0 {
                self.pos += kept;
                self.emit(Kind::Text);
            }
            self.start = delim;
            self.pos = delim + 2;
            let body = self.pos + if trims { 2 } else { 0 };
            if self.text[body..].starts_with("/*") {
                self.pos = body;
                self.comment()?;
            } else {
                self.emit(Kind::LeftDelim);
                self.pos = body;
                self.start = body;
                self.action()?;
            }
        }
        Ok(())
    }

    /// The length of a right delimiter here (with its trim marker), if there is one, and whether it trims.
    fn right_delim(&self) -> Option<(usize, bool)> {
        let rest = self.rest();
        if rest.starts_with(SPACES) && rest[1..].starts_with("-}}") {
            Some((4, true))
        } else if rest.starts_with("}}") {
            Some((2, false))
        } else {
            None
        }
    }

    fn skip_right_delim(&mut self, (length, trims): (usize, bool)) {
        self.pos += length;
        self.emit(Kind::RightDelim);
        if trims {
            self.accept_while(is_space);
        }
        self.start = self.pos;
    }

    fn comment(&mut self) -> Result<(), String> {
        let opening = "/*".len();
        let end = self.rest()[opening..].find("*/").ok_or("unclosed comment")?;
        self.pos += opening + end + 2;
        let delim = self.right_delim().ok_or("comment ends before closing delimiter")?;
        self.skip_right_delim(delim);
        // Comments leave no trace.
        self.tokens.pop();
        Ok(())
    }

    fn action(&mut self) -> Result<(), String> {
        self.parens = 0;
        loop {
            if let Some(delim) = self.right_delim() {
                if self.parens > 0 {
                    return Err("unclosed left paren".to_owned());
                }
                self.skip_right_delim(delim);
                return Ok(());
            }
            self.start = self.pos;
            self.token()?;
        }
    }

    fn token(&mut self) -> Result<(), String> {
        let c = self.next().ok_or("unclosed action")?;
        match c {
            _ if is_space(c) => self.space(),
            '=' => self.emit(Kind::Assign),
            ':' => {
                if !self.accept("=") {
                    return Err("expected :=".to_owned());
                }
                self.emit(Kind::Declare);
            }
            '|' => self.emit(Kind::Pipe),
            '"' => {
                self.quoted('"', "unterminated quoted string")?;
                self.emit(Kind::Str);
            }
            '`' => {
                let end = self.rest().find('`').ok_or("unterminated raw quoted string")?;
                self.pos += end + 1;
                self.emit(Kind::Str);
            }
            '\'' => {
                self.quoted('\'', "unterminated character constant")?;
                self.emit(Kind::CharConstant);
            }
            '$' => self.name(Kind::Variable)?,
            '.' if !self.peek().is_some_and(|c| c.is_ascii_digit()) => {
                if self.pos == self.text.len() {
                    return Err("unclosed action".to_owned());
                }
                let kind = if self.at_terminator() { Kind::Dot } else { Kind::Field };
                self.name(kind)?;
            }
            '.' | '+' | '-' | '0'..='9' => {
                self.pos = self.start;
                self.number()?;
            }
            _ if is_name(c) => {
                self.name(Kind::Identifier)?;
            }
            '(' => {
                self.parens += 1;
                self.emit(Kind::LeftParen);
            }
            ')' => {
                self.parens = self.parens.checked_sub(1).ok_or("unexpected right paren")?;
                self.emit(Kind::RightParen);
            }
            ' '..='~' => self.emit(Kind::Char),
            _ => return Err(format!("unrecognized character in action: {c:?}")),
        }
        Ok(())
    }

    fn space(&mut self) {
        self.accept_while(is_space);
        // The last space may belong to a trimming delimiter.
        let rest = self.rest();
        if rest.starts_with("-}}") {
            self.pos -= 1;
        }
        if self.pos > self.start {
            self.emit(Kind::Space);
        }
    }

    fn at_terminator(&self) -> bool {
        match self.peek() {
            None => true,
            Some(c) => is_space(c) || ".,|:)(".contains(c) || self.rest().starts_with("}}"),
        }
    }

    fn name(&mut self, kind: Kind) -> Result<(), String> {
        self.accept_while(is_name);
        if !self.at_terminator() {
            let c = self.peek().unwrap_or_default();
            return Err(format!("bad character {c:?}"));
        }
        let word = &self.text[self.start..self.pos];
        let kind = if kind == Kind::Identifier { word_kind(word) } else { kind };
        self.emit(kind);
        Ok(())
    }

    fn quoted(&mut self, quote: char, problem: &str) -> Result<(), String> {
        loop {
            match self.next() {
                Some('\\') => {
                    if matches!(self.next(), None | Some('\n')) {
                        return Err(problem.to_owned());
                    }
                }
                None | Some('\n') => return Err(problem.to_owned()),
                Some(c) if c == quote => return Ok(()),
                Some(_) => {}
            }
        }
    }

    fn number(&mut self) -> Result<(), String> {
        let mut well_formed = self.scan_number();
        // A complex number such as `1+2i`.
        if well_formed && self.peek().is_some_and(|c| c == '+' || c == '-') {
            well_formed = self.scan_number() && self.text[..self.pos].ends_with('i');
        }
        if !well_formed {
            return Err(format!("bad number syntax: {:?}", &self.text[self.start..self.pos]));
        }
        self.emit(Kind::Number);
        Ok(())
    }

    fn scan_number(&mut self) -> bool {
        self.accept("+-");
        let mut radix = 10;
        if self.accept("0") {
            if self.accept("xX") {
                radix = 16;
            } else if self.accept("oO") {
                radix = 8;
            } else if self.accept("bB") {
                radix = 2;
            }
        }
        self.accept_while(|c| c == '_' || c.is_digit(radix));
        if self.accept(".") {
            self.accept_while(|c| c == '_' || c.is_digit(radix));
        }
        let exponent = match radix {
            10 => "eE",
            16 => "pP",
            _ => "",
        };
        if self.accept(exponent) {
            self.accept("+-");
            self.accept_while(|c| c == '_' || c.is_ascii_digit());
        }
        self.accept("i");
        if self.peek().is_some_and(is_name) {
            self.next();
            return false;
        }
        true
    }
}

fn marks_left_trim(rest: &str) -> bool {
    rest.starts_with('-') && rest[1..].starts_with(SPACES)
}

fn word_kind(word: &str) -> Kind {
    match word {
        "block" => Kind::Keyword(Keyword::Block),
        "break" => Kind::Keyword(Keyword::Break),
        "continue" => Kind::Keyword(Keyword::Continue),
        "define" => Kind::Keyword(Keyword::Define),
        "else" => Kind::Keyword(Keyword::Else),
        "end" => Kind::Keyword(Keyword::End),
        "if" => Kind::Keyword(Keyword::If),
        "range" => Kind::Keyword(Keyword::Range),
        "template" => Kind::Keyword(Keyword::Template),
        "with" => Kind::Keyword(Keyword::With),
        "nil" => Kind::Nil,
        "true" => Kind::True,
        "false" => Kind::False,
        _ => Kind::Identifier,
    }
}
