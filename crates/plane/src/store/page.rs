//! Pages of the sorted objects of a kind, at the current or a past revision.

use std::collections::BTreeMap;
use std::ops::Bound;

use super::contents::{Contents, ObjectAddress, Objects, key_at, place};
use super::error::Expired;
use super::key::{Key, Kind};
use super::log::Log;
use super::object::Object;

/// Which objects of a kind are meant.
#[derive(Debug, Clone, Copy)]
pub struct Selection<'a> {
    /// The kind.
    pub kind: &'a Kind,
    /// In one cluster, or in all of them.
    pub cluster: Option<&'a str>,
    /// In one namespace, or in all of them.
    pub namespace: Option<&'a str>,
}

/// One page of objects, in order.
#[derive(Debug)]
pub struct Page {
    /// The state this shows.
    pub revision: u64,
    /// The objects.
    pub items: Vec<(Key, Object)>,
    /// Whether more objects follow.
    pub more: bool,
    /// How many objects follow; known for the first page of the current state.
    pub rest: Option<usize>,
}

impl Selection<'_> {
    /// The common prefix of the addresses of all selected objects.
    fn prefix(&self) -> String {
        match (self.cluster, self.namespace) {
            (Some(cluster), Some(namespace)) => format!("{cluster}\0{namespace}\0"),
            (Some(cluster), None) => format!("{cluster}\0"),
            (None, _) => String::new(),
        }
    }

    /// Whether an address with the prefix is selected.
    fn fits(&self, place: &str) -> bool {
        match (self.cluster, self.namespace) {
            (None, Some(wanted)) => place.split('\0').nth(1) == Some(wanted),
            _ => true,
        }
    }

    fn selects(&self, key: &Key) -> bool {
        key.kind == *self.kind
            && self.cluster.is_none_or(|wanted| *key.cluster == *wanted)
            && self.namespace.is_none_or(|wanted| *key.namespace == *wanted)
    }
}

/// The selected objects after an address.
pub(super) fn range<'a>(
    objects: &'a Objects,
    selection: &'a Selection<'a>,
    behind: Option<&str>,
) -> impl Iterator<Item = (&'a ObjectAddress, &'a Object)> {
    let prefix = selection.prefix();
    let start = match behind {
        Some(behind) if *behind >= *prefix => Bound::Excluded(behind),
        _ => Bound::Included(prefix.as_str()),
    };
    objects
        .range::<str, _>((start, Bound::Unbounded))
        .take_while(move |(place, _)| place.starts_with(&prefix))
        .filter(|(place, _)| selection.fits(place))
}

pub(super) fn all(contents: &Contents, selection: &Selection<'_>) -> Vec<(Key, Object)> {
    let Some(objects) = contents.objects.get(selection.kind) else { return Vec::new() };
    let found = range(objects, selection, None);
    found.map(|(place, object)| (key_at(selection.kind, place), object.clone())).collect()
}

/// The cost depends only on the size of the page and, for a past revision, on the changes since then.
pub(super) fn read(
    contents: &Contents,
    log: &Log,
    selection: &Selection<'_>,
    at: Option<u64>,
    behind: Option<&Key>,
    limit: usize,
) -> Result<Page, Expired> {
    let revision = at.unwrap_or(contents.revision);
    let behind = behind.map(place);
    let none = Objects::new();
    let objects = contents.objects.get(selection.kind).unwrap_or(&none);
    let mut past = past(log, selection, revision)?;
    if let Some(behind) = &behind {
        past = past.split_off(behind);
        past.remove(behind);
    }
    let mut past = past.into_iter().peekable();
    let mut present = range(objects, selection, behind.as_deref()).peekable();
    let mut items = Vec::new();
    let mut more = false;
    loop {
        let next = match (past.peek(), present.peek()) {
            (None, None) => break,
            // Objects that have changed since then are shown as they were.
            (Some((old, _)), Some((new, _))) if *old == **new => {
                present.next();
                past.next()
            }
            (Some((old, _)), Some((new, _))) if *old < **new => past.next(),
            (Some(_), None) => past.next(),
            (_, Some(_)) => present.next().map(|(place, object)| (place.clone(), Some(object.clone()))),
        };
        let Some((place, Some(object))) = next else { continue };
        if items.len() == limit {
            more = true;
            break;
        }
        items.push((key_at(selection.kind, &place), object));
    }
    let first = at.is_none() && behind.is_none();
    let rest = first.then(|| count(objects, selection) - items.len());
    Ok(Page { revision, items, more, rest })
}

fn count(objects: &Objects, selection: &Selection<'_>) -> usize {
    match (selection.cluster, selection.namespace) {
        (None, None) => objects.len(),
        _ => range(objects, selection, None).count(),
    }
}

/// The objects that have changed since a revision, as they were then.
fn past(
    log: &Log,
    selection: &Selection<'_>,
    revision: u64,
) -> Result<BTreeMap<ObjectAddress, Option<Object>>, Expired> {
    if revision < log.oldest() {
        return Err(Expired { asked: revision, oldest: log.oldest() });
    }
    let since = log.newest_first().take_while(|change| change.revision > revision);
    // The oldest change comes last and wins.
    Ok(since
        .filter(|change| selection.selects(&change.key))
        .map(|change| (place(&change.key), change.before.clone()))
        .collect())
}
