//! Where in an HTML document a value stands.

/// A kind of place, by what a reader of the document would take a value for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Place {
    #[default]
    Text,
    /// Inside a tag, between attributes.
    Tag,
    AttrName,
    AfterName,
    /// After the `=`.
    BeforeValue,
    HtmlComment,
    /// Content of `<title>` and `<textarea>`: text without tags.
    Rcdata,
    /// A value of an attribute without a meaning of its own.
    Attr,
    Url,
    Srcset,
    /// `content` of `<meta>`.
    Meta,
    /// The same, after `url=`.
    MetaUrl,
    Js,
    JsDouble,
    JsSingle,
    JsTemplate,
    JsRegex,
    JsBlockComment,
    JsLineComment,
    /// A line that `<!--` makes a comment.
    JsOpenComment,
    /// A line that `-->` makes a comment.
    JsCloseComment,
    Css,
    CssDouble,
    CssSingle,
    CssDoubleUrl,
    CssSingleUrl,
    CssUrl,
    CssBlockComment,
    CssLineComment,
}

impl Place {
    pub(super) fn is_comment(self) -> bool {
        matches!(
            self,
            Place::HtmlComment
                | Place::JsBlockComment
                | Place::JsLineComment
                | Place::JsOpenComment
                | Place::JsCloseComment
                | Place::CssBlockComment
                | Place::CssLineComment
        )
    }

    pub(super) fn is_script_literal(self) -> bool {
        matches!(self, Place::JsDouble | Place::JsSingle | Place::JsRegex | Place::JsTemplate)
    }
}

/// What ends the value of an attribute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Delim {
    /// This is not in such a value.
    #[default]
    None,
    Double,
    Single,
    /// The value has no quotes.
    SpaceOrTagEnd,
}

/// The part of a URL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum UrlPart {
    /// Nothing of it was written.
    #[default]
    Start,
    BeforeQuery,
    QueryOrFragment,
    /// Branches disagree.
    Unknown,
}

/// What a slash in JavaScript would mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Slash {
    #[default]
    Regex,
    Division,
    /// Branches disagree.
    Unknown,
}

/// Attributes whose values have a meaning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Attr {
    #[default]
    None,
    Script,
    ScriptType,
    Style,
    Url,
    Srcset,
    MetaContent,
}

impl Attr {
    /// The place where its value begins.
    pub(super) fn value(self) -> Place {
        match self {
            Attr::None | Attr::ScriptType => Place::Attr,
            Attr::Script => Place::Js,
            Attr::Style => Place::Css,
            Attr::Url => Place::Url,
            Attr::Srcset => Place::Srcset,
            Attr::MetaContent => Place::Meta,
        }
    }
}

/// Elements whose contents or attributes have a meaning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Element {
    #[default]
    None,
    Script,
    Style,
    Textarea,
    Title,
    Meta,
}

impl Element {
    pub(super) fn of(name: &[u8]) -> Element {
        match name.to_ascii_lowercase().as_slice() {
            b"script" => Element::Script,
            b"style" => Element::Style,
            b"textarea" => Element::Textarea,
            b"title" => Element::Title,
            b"meta" => Element::Meta,
            _ => Element::None,
        }
    }

    pub(super) fn name(self) -> &'static [u8] {
        match self {
            Element::None | Element::Meta => b"",
            Element::Script => b"script",
            Element::Style => b"style",
            Element::Textarea => b"textarea",
            Element::Title => b"title",
        }
    }

    /// The place inside the element.
    pub(super) fn content(self) -> Place {
        match self {
            Element::None | Element::Meta => Place::Text,
            Element::Script => Place::Js,
            Element::Style => Place::Css,
            Element::Textarea | Element::Title => Place::Rcdata,
        }
    }
}

/// Everything that decides how a value is escaped.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Context {
    pub(super) place: Place,
    pub(super) delim: Delim,
    pub(super) url: UrlPart,
    pub(super) slash: Slash,
    /// Open braces per `${` of JavaScript's template strings, outermost first.
    pub(super) braces: Vec<i32>,
    pub(super) attr: Attr,
    pub(super) element: Element,
}

impl Context {
    pub(super) fn at(place: Place) -> Context {
        Context { place, ..Context::default() }
    }

    /// Where a value written here stands: after a tag's name a value is an attribute's name, and so on.
    pub(super) fn nudged(&self) -> Context {
        let mut context = self.clone();
        match self.place {
            Place::Tag => context.place = Place::AttrName,
            Place::BeforeValue => {
                context.place = self.attr.value();
                context.delim = Delim::SpaceOrTagEnd;
                context.attr = Attr::None;
            }
            Place::AfterName => {
                context.place = Place::AttrName;
                context.attr = Attr::None;
            }
            _ => {}
        }
        context
    }

    /// The context after either of two branches, if it does not matter which one was taken.
    pub(super) fn join(&self, other: &Context) -> Option<Context> {
        if self == other {
            return Some(self.clone());
        }
        let like_url = Context { url: other.url, ..self.clone() };
        if like_url == *other {
            return Some(Context { url: UrlPart::Unknown, ..like_url });
        }
        let like_slash = Context { slash: other.slash, ..self.clone() };
        if like_slash == *other {
            return Some(Context { slash: Slash::Unknown, ..like_slash });
        }
        let nudged = (self.nudged(), other.nudged());
        if nudged.0 == *self && nudged.1 == *other { None } else { nudged.0.join(&nudged.1) }
    }

    /// How messages name the place.
    pub(super) fn describe(&self) -> &'static str {
        match self.place {
            Place::Text => "text",
            Place::Tag | Place::AttrName | Place::AfterName | Place::BeforeValue => "a tag",
            Place::Attr | Place::Url | Place::Srcset | Place::Meta | Place::MetaUrl => "the value of an attribute",
            Place::Rcdata => "a title or text area",
            place if place.is_comment() => "a comment",
            _ if self.delim != Delim::None => "the value of an attribute",
            _ if self.element == Element::Style => "a style sheet",
            _ => "a script",
        }
    }
}
