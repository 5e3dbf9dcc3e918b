//! What prints one value after the other.

use carrick_go::semver::Version;

use crate::{
    heap::{Builder, Heap, Outcome},
    value::{Uint, Value},
};

/// Flags, width and precision of a directive.
#[derive(Clone, Default)]
#[expect(clippy::struct_excessive_bools, reason = "Go has that many independent flags")]
pub(super) struct Flags {
    pub(super) width: Option<usize>,
    pub(super) precision: Option<usize>,
    pub(super) minus: bool,
    pub(super) plus: bool,
    pub(super) sharp: bool,
    pub(super) space: bool,
    pub(super) zero: bool,
    /// `%+v`
    pub(super) plus_v: bool,
    /// `%#v`
    pub(super) sharp_v: bool,
}

/// Prints values into one text.
pub(super) struct Printer<'h> {
    pub(super) heap: &'h Heap,
    pub(super) out: Builder<'h>,
    pub(super) flags: Flags,
    /// Whether a container is being printed.
    pub(super) inside: bool,
}

impl<'h> Printer<'h> {
    pub(super) fn new(heap: &'h Heap) -> Printer<'h> {
        Printer { heap, out: heap.builder(), flags: Flags::default(), inside: false }
    }

    /// Prints one operand.
    pub(super) fn value(&mut self, value: &Value, verb: char) -> Outcome<()> {
        match (value, verb) {
            (Value::Missing | Value::Nil, 'T' | 'v') => self.pad(b"<nil>"),
            (_, 'T') => self.string(value.type_name().as_bytes(), 's'),
            // Only for errors, which templates do not have.
            (_, 'w') => self.bad_verb(value, verb),
            _ => self.nested(value, verb),
        }
    }

    pub(super) fn bad_verb(&mut self, value: &Value, verb: char) -> Outcome<()> {
        self.out.text("%!")?;
        self.out.char(verb)?;
        self.out.text("(")?;
        if value.is_nothing() {
            self.out.text("<nil>")?;
        } else {
            self.out.text(&value.type_name())?;
            self.out.text("=")?;
            self.nested(value, 'v')?;
        }
        self.out.text(")")
    }

    /// Prints a value that is not an absent operand.
    fn nested(&mut self, value: &Value, verb: char) -> Outcome<()> {
        self.heap.step(1)?;
        match value {
            Value::Bool(b) if matches!(verb, 't' | 'v') => self.pad(if *b { b"true" } else { b"false" }),
            Value::Int(i) | Value::Int64(i) => self.integer(value, i.unsigned_abs(), *i < 0, verb),
            Value::Uint(_, u) => self.unsigned(value, *u, verb),
            Value::Float(f) => self.float(value, *f, verb),
            Value::Complex(real, imaginary) => self.complex(value, *real, *imaginary, verb),
            Value::Str(text) if matches!(verb, 'v' | 's' | 'x' | 'X' | 'q') => self.string(text.as_bytes(), verb),
            Value::Time(time) if self.flags.sharp_v => self.out.text(&time.expression()),
            // Inside a container Go shows where the version lies in memory, which is a new place every time.
            Value::Version(_) if self.flags.sharp_v && self.inside => self.out.text("(*semver.Version)(0xc000000000)"),
            Value::Version(version) if self.flags.sharp_v || !matches!(verb, 'v' | 's' | 'x' | 'X' | 'q') => {
                self.version(version, verb)
            }
            Value::Time(time) if matches!(verb, 'v' | 's' | 'x' | 'X' | 'q') => {
                self.string(time.to_string().as_bytes(), if verb == 'v' { 's' } else { verb })
            }
            Value::Version(version) if matches!(verb, 'v' | 's' | 'x' | 'X' | 'q') => {
                self.string(version.to_string().as_bytes(), if verb == 'v' { 's' } else { verb })
            }
            Value::Found(found) if matches!(verb, 'v' | 's' | 'x' | 'X' | 'q') => {
                let text = found.text(self.heap)?;
                self.string(text.as_bytes(), if verb == 'v' { 's' } else { verb })
            }
            Value::Named(named) if !self.flags.sharp_v && matches!(verb, 'v' | 's' | 'x' | 'X' | 'q') => {
                self.string(named.name().as_bytes(), if verb == 'v' { 's' } else { verb })
            }
            Value::Named(named) => self.integer(value, named.number().unsigned_abs(), named.number() < 0, verb),
            Value::List(_) | Value::Map(_) | Value::Root(_) => self.container(value, verb),
            _ => self.bad_verb(value, verb),
        }
    }

    fn container(&mut self, value: &Value, verb: char) -> Outcome<()> {
        // Containers may hold themselves; the depth ends the printing.
        let heap = self.heap;
        let _level = heap.enter()?;
        let sharp = self.flags.sharp_v;
        let (open, separator, close) = if sharp { ("{", ", ", "}") } else { ("[", " ", "]") };
        if sharp {
            self.out.text(&value.type_name())?;
        }
        match value {
            Value::List(list) if sharp && list.is_nil() => self.out.text("(nil)")?,
            Value::Map(map) if sharp && map.is_nil() => self.out.text("(nil)")?,
            Value::List(list) => {
                self.out.text(open)?;
                for (index, item) in list.items().iter().enumerate() {
                    if index > 0 {
                        self.out.text(separator)?;
                    }
                    self.element(item, verb)?;
                }
                self.out.text(close)?;
            }
            Value::Map(map) => {
                self.out.text(if sharp { "{" } else { "map[" })?;
                for (index, (key, item)) in map.entries().iter().enumerate() {
                    if index > 0 {
                        self.out.text(separator)?;
                    }
                    self.nested(&Value::Str(key.clone()), verb)?;
                    self.out.text(":")?;
                    self.element(item, verb)?;
                }
                self.out.text(close)?;
            }
            Value::Root(fields) => {
                let entries = fields.entries();
                self.fields(entries.iter().map(|(name, item)| (name.as_bytes(), item.clone())), verb)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Prints the fields of a struct.
    fn fields<'f>(&mut self, fields: impl Iterator<Item = (&'f [u8], Value)>, verb: char) -> Outcome<()> {
        let separator = if self.flags.sharp_v { ", " } else { " " };
        self.out.text("{")?;
        for (index, (name, item)) in fields.enumerate() {
            if index > 0 {
                self.out.text(separator)?;
            }
            if self.flags.plus_v || self.flags.sharp_v {
                self.out.push(name)?;
                self.out.text(":")?;
            }
            self.element(&item, verb)?;
        }
        self.out.text("}")
    }

    /// Prints an element of a container.
    fn element(&mut self, value: &Value, verb: char) -> Outcome<()> {
        let outer = std::mem::replace(&mut self.inside, true);
        match value {
            Value::Missing | Value::Nil if self.flags.sharp_v => self.out.text("interface {}(nil)")?,
            Value::Missing | Value::Nil => self.out.text("<nil>")?,
            _ => self.nested(value, verb)?,
        }
        self.inside = outer;
        Ok(())
    }

    /// Prints the fields of a version.
    fn version(&mut self, version: &Version, verb: char) -> Outcome<()> {
        let Version { major, minor, patch, pre, metadata, original } = version;
        let number = |number: &u64| Value::Uint(Uint::U64, *number);
        let fields: [(&[u8], Value); 6] = [
            (b"major", number(major)),
            (b"minor", number(minor)),
            (b"patch", number(patch)),
            (b"pre", pre.as_str().into()),
            (b"metadata", metadata.as_str().into()),
            (b"original", original.as_str().into()),
        ];
        self.out.text(if self.flags.sharp_v { "&semver.Version" } else { "&" })?;
        self.fields(fields.into_iter(), verb)
    }
}
