//! Turns tokens into a tree.

mod pipe;

use std::collections::HashMap;

use crate::{
    error::CompileError,
    lex::{self, Keyword, Kind, Span, Token},
    limits, literal,
    position::Position,
    tree::{Branch, Node, Tree},
};

type Parsed<T> = Result<T, CompileError>;

/// Parses a whole template text; a steady one may call no random functions.
pub(crate) fn parse(text: &str, steady: bool) -> Parsed<Tree> {
    let mut parser = Parser {
        text,
        steady,
        tokens: lex::tokens(text),
        pos: 0,
        variables: vec!["$".to_owned()],
        loops: 0,
        depth: 0,
        templates: HashMap::new(),
    };
    let body = parser.top()?;
    Ok(Tree { body, templates: parser.templates })
}

/// What ended a body.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    End,
    Else,
}

enum Item {
    Node(Node),
    Ending(Ending),
}

struct Parser<'t> {
    text: &'t str,
    steady: bool,
    tokens: Vec<Token>,
    pos: usize,
    /// Names in scope, outermost first.
    variables: Vec<String>,
    loops: usize,
    depth: usize,
    templates: HashMap<Vec<u8>, Vec<Node>>,
}

impl<'t> Parser<'t> {
    fn peek(&self) -> &Token {
        &self.tokens[self.pos.min(self.tokens.len() - 1)]
    }

    fn next(&mut self) -> Token {
        let token = self.peek().clone();
        self.pos += 1;
        token
    }

    fn skip_space(&mut self) {
        while self.peek().kind == Kind::Space {
            self.pos += 1;
        }
    }

    fn peek_solid(&mut self) -> &Token {
        self.skip_space();
        self.peek()
    }

    fn next_solid(&mut self) -> Token {
        self.skip_space();
        self.next()
    }

    fn source(&self, span: Span) -> &'t str {
        &self.text[span.start..span.end]
    }

    fn error<T>(&self, span: Span, message: impl Into<String>) -> Parsed<T> {
        Err(CompileError::Syntax { position: Position::of(self.text, span), message: message.into() })
    }

    fn unexpected<T>(&self, token: &Token, context: &str) -> Parsed<T> {
        match &token.kind {
            Kind::Error(message) => self.error(token.span, message.clone()),
            Kind::Eof => self.error(token.span, format!("unexpected end of text in {context}")),
            _ => self.error(token.span, format!("unexpected {:?} in {context}", self.source(token.span))),
        }
    }

    fn deeper(&mut self, span: Span) -> Parsed<()> {
        self.depth += 1;
        if self.depth > limits::MAX_PARSE_DEPTH {
            return self.error(span, format!("nested deeper than {} levels", limits::MAX_PARSE_DEPTH));
        }
        Ok(())
    }

    fn top(&mut self) -> Parsed<Vec<Node>> {
        let mut nodes = Vec::new();
        while self.peek().kind != Kind::Eof {
            if self.at_definition() {
                self.definition()?;
                continue;
            }
            let span = self.peek().span;
            match self.item()? {
                Item::Node(node) => nodes.push(node),
                Item::Ending(Ending::End) => return self.error(span, "unexpected {{end}}"),
                Item::Ending(Ending::Else) => return self.error(span, "unexpected {{else}}"),
            }
        }
        Ok(nodes)
    }

    fn at_definition(&self) -> bool {
        let mut rest = self.tokens.iter().skip(self.pos).filter(|t| t.kind != Kind::Space);
        rest.next().is_some_and(|t| t.kind == Kind::LeftDelim)
            && rest.next().is_some_and(|t| t.kind == Kind::Keyword(Keyword::Define))
    }

    fn definition(&mut self) -> Parsed<()> {
        self.next_solid();
        self.next_solid();
        let name = self.template_name("define clause")?;
        let delim = self.next_solid();
        if delim.kind != Kind::RightDelim {
            return self.unexpected(&delim, "define clause");
        }
        self.defined_body(name, delim.span, "define clause")
    }

    /// Parses a body with a scope of its own and remembers it.
    fn defined_body(&mut self, name: Vec<u8>, span: Span, context: &str) -> Parsed<()> {
        let outer_variables = std::mem::replace(&mut self.variables, vec!["$".to_owned()]);
        let outer_loops = std::mem::take(&mut self.loops);
        self.deeper(span)?;
        let (body, ending) = self.body()?;
        if ending != Ending::End {
            return self.error(span, format!("unexpected {{{{else}}}} in {context}"));
        }
        self.depth -= 1;
        self.variables = outer_variables;
        self.loops = outer_loops;
        // An empty body never replaces another one.
        match self.templates.get(&name) {
            Some(old) if !is_blank(old) => {
                if !is_blank(&body) {
                    let name = String::from_utf8_lossy(&name);
                    return self.error(span, format!("template {name:?} is defined twice"));
                }
            }
            _ => {
                self.templates.insert(name, body);
            }
        }
        Ok(())
    }

    fn template_name(&mut self, context: &str) -> Parsed<Vec<u8>> {
        let token = self.next_solid();
        if token.kind != Kind::Str {
            return self.unexpected(&token, context);
        }
        self.string(&token)
    }

    fn string(&self, token: &Token) -> Parsed<Vec<u8>> {
        literal::string(self.source(token.span)).or_else(|message| self.error(token.span, message))
    }

    fn body(&mut self) -> Parsed<(Vec<Node>, Ending)> {
        let mut nodes = Vec::new();
        loop {
            if self.peek_solid().kind == Kind::Eof {
                let span = self.peek().span;
                return self.error(span, "unexpected end of text; an {{end}} is missing");
            }
            match self.item()? {
                Item::Node(node) => nodes.push(node),
                Item::Ending(ending) => return Ok((nodes, ending)),
            }
        }
    }

    fn item(&mut self) -> Parsed<Item> {
        let token = self.next_solid();
        match token.kind {
            Kind::Text => Ok(Item::Node(Node::Text(token.span, self.source(token.span).to_owned()))),
            Kind::LeftDelim => self.action(),
            _ => self.unexpected(&token, "input"),
        }
    }

    fn action(&mut self) -> Parsed<Item> {
        let Kind::Keyword(keyword) = self.peek_solid().kind else {
            return Ok(Item::Node(Node::Action(self.pipe("command", &Kind::RightDelim)?)));
        };
        let token = self.next();
        let node = match keyword {
            Keyword::Block => self.block()?,
            Keyword::Break => self.jump(&token, "{{break}}", Node::Break(token.span))?,
            Keyword::Continue => self.jump(&token, "{{continue}}", Node::Continue(token.span))?,
            Keyword::Define => return self.unexpected(&token, "command"),
            Keyword::Else => {
                // What follows `else` decides; the branch that this ends looks at it.
                if !matches!(self.peek_solid().kind, Kind::Keyword(Keyword::If | Keyword::With)) {
                    self.right_delim("else")?;
                }
                return Ok(Item::Ending(Ending::Else));
            }
            Keyword::End => {
                self.right_delim("end")?;
                return Ok(Item::Ending(Ending::End));
            }
            Keyword::If => Node::If(self.branch("if")?),
            Keyword::Range => Node::Range(self.branch("range")?),
            Keyword::Template => self.template()?,
            Keyword::With => Node::With(self.branch("with")?),
        };
        Ok(Item::Node(node))
    }

    fn right_delim(&mut self, context: &str) -> Parsed<()> {
        let token = self.next_solid();
        if token.kind == Kind::RightDelim { Ok(()) } else { self.unexpected(&token, context) }
    }

    fn jump(&mut self, token: &Token, name: &str, node: Node) -> Parsed<Node> {
        self.right_delim(name)?;
        if self.loops == 0 {
            return self.error(token.span, format!("{name} outside {{{{range}}}}"));
        }
        Ok(node)
    }

    fn block(&mut self) -> Parsed<Node> {
        let span = self.peek_solid().span;
        let name = self.template_name("block clause")?;
        let pipe = self.pipe("block clause", &Kind::RightDelim)?;
        self.defined_body(name.clone(), span, "block clause")?;
        Ok(Node::Template { span, name, pipe: Some(pipe) })
    }

    fn template(&mut self) -> Parsed<Node> {
        let span = self.peek_solid().span;
        let name = self.template_name("template clause")?;
        let pipe = if self.peek_solid().kind == Kind::RightDelim {
            self.next();
            None
        } else {
            Some(self.pipe("template clause", &Kind::RightDelim)?)
        };
        Ok(Node::Template { span, name, pipe })
    }

    fn branch(&mut self, context: &str) -> Parsed<Branch> {
        let scope = self.variables.len();
        let span = self.peek().span;
        self.deeper(span)?;
        let pipe = self.pipe(context, &Kind::RightDelim)?;
        let in_loop = usize::from(context == "range");
        self.loops += in_loop;
        let (body, ending) = self.body()?;
        self.loops -= in_loop;
        let mut otherwise = Vec::new();
        if ending == Ending::Else {
            let next = self.peek().kind.clone();
            if context == "if" && next == Kind::Keyword(Keyword::If) {
                self.next();
                otherwise.push(Node::If(self.branch("if")?));
            } else if context == "with" && next == Kind::Keyword(Keyword::With) {
                self.next();
                otherwise.push(Node::With(self.branch("with")?));
            } else {
                let (nodes, ending) = self.body()?;
                if ending != Ending::End {
                    return self.error(span, format!("a second {{{{else}}}} in {context}; expected {{{{end}}}}"));
                }
                otherwise = nodes;
            }
        }
        self.depth -= 1;
        self.variables.truncate(scope);
        Ok(Branch { pipe, body, otherwise })
    }
}

/// Whether a body is only white space.
fn is_blank(body: &[Node]) -> bool {
    body.iter().all(|node| matches!(node, Node::Text(_, text) if text.trim().is_empty()))
}
