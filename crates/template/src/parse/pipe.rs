//! Pipelines, commands and operands.

use super::{Parsed, Parser};
use crate::{
    error::CompileError,
    functions::Function,
    lex::{Kind, Span},
    literal,
    position::Position,
    sprig::refused,
    table,
    tree::{Command, Operand, Pipe, Term},
};

impl Parser<'_> {
    pub(super) fn pipe(&mut self, context: &str, end: &Kind) -> Parsed<Pipe> {
        let start = self.peek_solid().span;
        let mut pipe = Pipe { span: start, variables: Vec::new(), assigns: false, commands: Vec::new() };
        self.declarations(&mut pipe, context)?;
        loop {
            let token = self.peek_solid().clone();
            match token.kind {
                ref kind if kind == end => {
                    self.next();
                    break;
                }
                Kind::True
                | Kind::False
                | Kind::CharConstant
                | Kind::Dot
                | Kind::Field
                | Kind::Identifier
                | Kind::Number
                | Kind::Nil
                | Kind::Str
                | Kind::Variable
                | Kind::LeftParen => {
                    let command = self.command()?;
                    pipe.span = pipe.span.to(command.span);
                    pipe.commands.push(command);
                }
                _ => return self.unexpected(&token, context),
            }
        }
        if pipe.commands.is_empty() {
            return self.error(start, format!("missing value for {context}"));
        }
        for (stage, command) in pipe.commands.iter().enumerate().skip(1) {
            if matches!(command.first.term, Term::Bool(_) | Term::Dot | Term::Nil | Term::Number(_) | Term::Str(_)) {
                return self.error(
                    command.span,
                    format!(
                        "non executable command in pipeline stage {}; only functions can receive a value",
                        stage + 1
                    ),
                );
            }
        }
        Ok(pipe)
    }

    /// `$x :=`, `$x =` and, for loops, `$i, $x :=`.
    fn declarations(&mut self, pipe: &mut Pipe, context: &str) -> Parsed<()> {
        while self.peek_solid().kind == Kind::Variable {
            let before = self.pos;
            let variable = self.next();
            let name = self.source(variable.span).to_owned();
            let next = self.peek_solid().clone();
            let comma = next.kind == Kind::Char && self.source(next.span) == ",";
            if !comma && !matches!(next.kind, Kind::Assign | Kind::Declare) {
                self.pos = before;
                return Ok(());
            }
            self.next();
            pipe.variables.push(name.clone());
            self.variables.push(name);
            if !comma {
                pipe.assigns = next.kind == Kind::Assign;
                return Ok(());
            }
            if context != "range" || pipe.variables.len() > 1 {
                return self.error(next.span, format!("too many declarations in {context}"));
            }
            if !matches!(self.peek_solid().kind, Kind::Variable | Kind::RightDelim | Kind::RightParen) {
                return self.error(next.span, "range can only initialize variables");
            }
        }
        Ok(())
    }

    fn command(&mut self) -> Parsed<Command> {
        let mut operands = Vec::new();
        loop {
            self.skip_space();
            operands.extend(self.operand()?);
            let token = self.peek().clone();
            match token.kind {
                Kind::Space => {
                    self.next();
                }
                Kind::RightDelim | Kind::RightParen => break,
                Kind::Pipe => {
                    self.next();
                    break;
                }
                _ => return self.unexpected(&token, "operand"),
            }
        }
        let span = self.peek().span;
        let mut operands = operands.into_iter();
        let Some(first) = operands.next() else {
            return self.error(span, "empty command");
        };
        let arguments: Vec<Operand> = operands.collect();
        let span = arguments.last().map_or(first.span, |last| first.span.to(last.span));
        Ok(Command { span, first, arguments })
    }

    /// A term and the fields that follow it without a space.
    fn operand(&mut self) -> Parsed<Option<Operand>> {
        let Some(mut operand) = self.term()? else { return Ok(None) };
        let mut fields = Vec::new();
        let mut span = operand.span;
        while self.peek().kind == Kind::Field {
            let token = self.next();
            fields.push(self.source(token.span)[1..].to_owned());
            span = span.to(token.span);
        }
        if fields.is_empty() {
            return Ok(Some(operand));
        }
        match &mut operand.term {
            Term::Field(path) | Term::Variable(_, path) => path.append(&mut fields),
            Term::Bool(_) | Term::Str(_) | Term::Number(_) | Term::Nil | Term::Dot => {
                return self.error(span, format!("unexpected . after term {:?}", self.source(operand.span)));
            }
            Term::Function(_) | Term::Pipe(_) | Term::Chain(..) => {
                operand = Operand { span, term: Term::Chain(Box::new(operand), fields) };
            }
        }
        operand.span = span;
        Ok(Some(operand))
    }

    fn term(&mut self) -> Parsed<Option<Operand>> {
        let token = self.peek_solid().clone();
        let text = self.source(token.span);
        let mut span = token.span;
        self.pos += 1;
        let term = match token.kind {
            Kind::Identifier => Term::Function(self.function(text, span)?),
            Kind::Dot => Term::Dot,
            Kind::Nil => Term::Nil,
            Kind::Variable => {
                if !self.variables.iter().any(|name| name == text) {
                    return self.error(span, format!("undefined variable {text:?}"));
                }
                Term::Variable(text.to_owned(), Vec::new())
            }
            Kind::Field => Term::Field(vec![text[1..].to_owned()]),
            Kind::True => Term::Bool(true),
            Kind::False => Term::Bool(false),
            Kind::CharConstant => Term::Number(literal::character(text).or_else(|message| self.error(span, message))?),
            Kind::Number => Term::Number(literal::number(text).or_else(|message| self.error(span, message))?),
            Kind::Str => Term::Str(self.string(&token)?.into()),
            Kind::LeftParen => {
                self.deeper(span)?;
                let pipe = self.pipe("parenthesized pipeline", &Kind::RightParen)?;
                self.depth -= 1;
                span.end = self.tokens[self.pos - 1].span.end;
                Term::Pipe(Box::new(pipe))
            }
            _ => {
                self.pos -= 1;
                return Ok(None);
            }
        };
        Ok(Some(Operand { span, term }))
    }

    fn function(&self, name: &str, span: Span) -> Parsed<&'static Function> {
        let reason = refused::always(name).or_else(|| self.steady.then(|| refused::in_steady(name)).flatten());
        if let Some(reason) = reason {
            let (position, name) = (Position::of(self.text, span), name.to_owned());
            return Err(CompileError::Refused { position, name, reason });
        }
        table::lookup(name).ok_or_else(|| CompileError::UnknownFunction {
            position: Position::of(self.text, span),
            name: name.to_owned(),
        })
    }
}
