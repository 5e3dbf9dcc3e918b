//! Definitions in files, and which of them belong together.

use std::io::Read;

use anyhow::Context;
use carrick_json::manifest;
use carrick_schema::evolution::Definition;

/// Two definitions that belong together.
pub enum Pair {
    /// The one before and the one after.
    Both(Box<Definition>, Box<Definition>),
    /// One that is there no longer.
    Gone(Box<Definition>),
}

/// All definitions in a file, or in standard input.
pub fn read(file: &str) -> anyhow::Result<Vec<Definition>> {
    let mut bytes = Vec::new();
    let name = if file == "-" { "standard input" } else { file };
    if file == "-" {
        std::io::stdin().read_to_end(&mut bytes).context("cannot read standard input")?;
    } else {
        bytes = std::fs::read(file).with_context(|| format!("cannot read {file}"))?;
    }
    let found = parse(&bytes).with_context(|| name.to_owned())?;
    anyhow::ensure!(!found.is_empty(), "{name} has no CustomResourceDefinition and no APIResourceSchema");
    Ok(found)
}

/// All definitions in the content of a file.
pub fn parse(bytes: &[u8]) -> anyhow::Result<Vec<Definition>> {
    let objects = manifest::objects(&manifest::text(bytes))?;
    objects.iter().filter(|object| Definition::is_one(object)).map(|object| Ok(Definition::read(object)?)).collect()
}

/// One with one; of several, those of the same resource, or else of the same kind.
pub fn pairs(old: Vec<Definition>, mut new: Vec<Definition>) -> Vec<Pair> {
    if let ([_], [_]) = (old.as_slice(), new.as_slice()) {
        return old.into_iter().zip(new).map(|(old, new)| Pair::Both(Box::new(old), Box::new(new))).collect();
    }
    let mut pairs = Vec::new();
    for old in old {
        let same = new.iter().position(|new| new.resource() == old.resource());
        let same = same.or_else(|| new.iter().position(|new| new.kind == old.kind && new.group == old.group));
        pairs.push(match same {
            Some(at) => Pair::Both(Box::new(old), Box::new(new.remove(at))),
            None => Pair::Gone(Box::new(old)),
        });
    }
    pairs
}
