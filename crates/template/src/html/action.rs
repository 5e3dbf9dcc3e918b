//! Which escapers an action gets.

use super::{
    Step,
    context::{Context, Delim, Place, Slash, UrlPart},
    escaper::Escaper,
    fail,
};
use crate::{
    fmt,
    functions::{Function, Type},
    tree::{Command, Pipe, Term},
    value::Value,
};

/// An action that prints: the context behind it, what is evaluated, and how the value is made safe.
pub(super) fn escape(context: &Context, pipe: &Pipe) -> Step<(Context, Pipe, Vec<Escaper>)> {
    let (next, escapers) = escapers(context.nudged(), pipe)?;
    let (pipe, escapers) = with_own_escaper(pipe.clone(), escapers);
    Ok((next, pipe, escapers))
}

/// How an action's value is made safe, and the context behind it.
fn escapers(context: Context, pipe: &Pipe) -> Step<(Context, Vec<Escaper>)> {
    let last = pipe.commands.len().saturating_sub(1);
    for (index, command) in pipe.commands.iter().enumerate() {
        let Some(name) = own_escaper(command) else { continue };
        let without_quotes = context.place == Place::Attr && context.delim == Delim::SpaceOrTagEnd && name == "html";
        if index < last || without_quotes {
            let message =
                format!("{name} may only stand at the end of an action, and not in attributes without quotes");
            return fail(command.span, message);
        }
    }
    let mut next = context;
    let mut escapers = Vec::with_capacity(3);
    match next.place {
        Place::Url
        | Place::CssDouble
        | Place::CssSingle
        | Place::CssDoubleUrl
        | Place::CssSingleUrl
        | Place::CssUrl => {
            if next.url == UrlPart::Start {
                escapers.push(Escaper::UrlFilter);
            }
            match next.url {
                UrlPart::Start | UrlPart::BeforeQuery if matches!(next.place, Place::CssDouble | Place::CssSingle) => {
                    escapers.push(Escaper::CssString);
                }
                UrlPart::Start | UrlPart::BeforeQuery => escapers.push(Escaper::UrlNormalize),
                UrlPart::QueryOrFragment => escapers.push(Escaper::UrlEscape),
                UrlPart::Unknown => {
                    return fail(
                        pipe.span,
                        "the value may stand before or in the query of a URL, depending on a branch",
                    );
                }
            }
        }
        Place::Text | Place::Rcdata => escapers.push(Escaper::Html),
        Place::Attr | Place::Meta => {}
        Place::MetaUrl => escapers.push(Escaper::UrlFilter),
        Place::Js => {
            escapers.push(Escaper::JsValue);
            next.slash = Slash::Division;
        }
        Place::JsDouble | Place::JsSingle => escapers.push(Escaper::JsString),
        Place::JsTemplate => escapers.push(Escaper::JsTemplate),
        Place::JsRegex => escapers.push(Escaper::JsRegex),
        Place::Css => escapers.push(Escaper::CssFilter),
        Place::Srcset => escapers.push(Escaper::Srcset),
        Place::Tag | Place::AttrName | Place::AfterName | Place::BeforeValue => {
            next.place = Place::AttrName;
            escapers.push(Escaper::AttrName);
        }
        _ => escapers.push(Escaper::Comment),
    }
    match next.delim {
        Delim::None => {}
        Delim::Double | Delim::Single => escapers.push(Escaper::Html),
        Delim::SpaceOrTagEnd => escapers.push(Escaper::NoSpace),
    }
    Ok((next, escapers))
}

/// The escaping function that a command calls, if it is one that Go knows as such.
fn own_escaper(command: &Command) -> Option<&'static str> {
    match command.first.term {
        Term::Function(function) if matches!(function.name, "html" | "urlquery") => Some(function.name),
        _ => None,
    }
}

/// Joins the arguments of an escaping function to one text.
static JOINED: Function =
    Function::variadic("print", &[], Type::Any, |heap, args| Ok(Value::Str(fmt::sprint(heap, args.all())?)));

/// Lets an escaping function at the end of the action take the place of the escaper that does the same.
fn with_own_escaper(mut pipe: Pipe, mut escapers: Vec<Escaper>) -> (Pipe, Vec<Escaper>) {
    let alone = pipe.commands.len() == 1;
    let Some(last) = pipe.commands.last_mut() else { return (pipe, escapers) };
    let Some(name) = own_escaper(last) else { return (pipe, escapers) };
    let own = if name == "html" { Escaper::HtmlFunction } else { Escaper::QueryFunction };
    let same = escapers.iter_mut().find(|escaper| match own {
        Escaper::HtmlFunction => **escaper == Escaper::Html,
        _ => matches!(escaper, Escaper::UrlEscape | Escaper::UrlNormalize),
    });
    match same {
        Some(same) => *same = own,
        None if alone && !last.arguments.is_empty() => escapers.insert(0, own),
        None => return (pipe, escapers),
    }
    if alone {
        last.first.term = Term::Function(&JOINED);
    } else {
        pipe.commands.pop();
    }
    (pipe, escapers)
}
