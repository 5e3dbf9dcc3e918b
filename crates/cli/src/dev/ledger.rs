//! What the files say, what was done about it, and what is still to be done. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use carrick_client::Resource;
use serde_json::Value;

use super::documents::{self, Document, ObjectId};
use super::sources::{FileChange, Side};

/// How long until something that was refused is retried: what it depends on may have changed.
const RETRY: Duration = Duration::from_secs(2);
/// How long a kind may take to be served before that counts as a problem.
const PATIENCE: Duration = Duration::from_secs(4);

/// What to do next.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// No file contains this object any more.
    Remove(ObjectId),
    /// A file has new content for this object.
    Apply(PathBuf, Document),
}

/// Where an object is.
#[derive(Debug, Clone)]
pub struct ObjectLocation {
    /// What its kind is called.
    pub resource: Resource,
    /// Its namespace.
    pub namespace: Option<String>,
    /// Whether we created it.
    pub ours: bool,
}

/// Why something could not be applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApplyError {
    /// What went wrong.
    pub text: String,
    /// Whether waiting is likely to help.
    pub passes: bool,
}

/// What files contain, what was applied, and what failed.
#[derive(Debug, Default)]
pub struct Ledger {
    /// The objects of each file, from the last version that was valid.
    files: BTreeMap<PathBuf, Vec<Document>>,
    /// Files that cannot be used as they are, and why.
    broken: BTreeMap<PathBuf, String>,
    /// What was applied, and where.
    done: BTreeMap<ObjectId, AppliedObject>,
    /// What could not be applied.
    failing: BTreeMap<ObjectId, Failure>,
    /// Whether every CRD is offered as it is.
    offers_all: bool,
}

/// Stands in for the file of PublishedResources that are in no file.
const MADE: &str = "(made from the CRD)";

#[derive(Debug)]
struct AppliedObject {
    place: ObjectLocation,
    /// The file that had it last.
    file: PathBuf,
    /// What was applied; `None` while that is under way.
    object: Option<Value>,
}

#[derive(Debug)]
struct Failure {
    object: Value,
    trouble: ApplyError,
    since: Instant,
    last: Instant,
}

impl Ledger {
    /// A ledger that offers every CRD as it is.
    pub fn offering_all() -> Self {
        Self { offers_all: true, ..Self::default() }
    }

    /// Records what a file contains now. An invalid file leaves everything as it was.
    pub fn take(&mut self, change: FileChange) {
        let FileChange { file, side, content } = change;
        match content.map(|content| content.and_then(|text| documents::read(&text, side))) {
            None => {
                self.broken.remove(&file);
                self.files.remove(&file);
            }
            Some(Ok(documents)) => {
                self.broken.remove(&file);
                for document in &documents {
                    if let Some(deed) = self.done.get_mut(&document.id) {
                        deed.file.clone_from(&file);
                    }
                }
                self.files.insert(file, documents);
            }
            Some(Err(problem)) => {
                self.broken.insert(file, problem);
            }
        }
        if self.offers_all {
            let made = self.objects("CustomResourceDefinition").filter_map(documents::offer).collect();
            self.files.insert(PathBuf::from(MADE), made);
        }
    }

    /// What to do now, in order. Nothing that a file no longer has is removed while anything in the file is still to be applied: who mistypes
    /// a kind or a namespace wants neither the old object deleted nor, with its CRD, all objects of a kind.
    pub fn steps(&self, now: Instant) -> Vec<Action> {
        let (wanted, _) = self.wanted();
        let unsettled = self.unsettled(&wanted);
        let mut gone: Vec<&ObjectId> = self.gone(&wanted).filter(|id| !self.stays(id, &unsettled)).collect();
        gone.sort_by_key(|id| std::cmp::Reverse(rank(id)));
        let is_due = |id: &ObjectId, document: &Document| {
            let done = self.is_applied(document);
            let waits = self.failing.get(id).is_some_and(|failure| {
                let pause = if failure.trouble.passes { Duration::ZERO } else { RETRY };
                failure.object == document.object && now < failure.last + pause
            });
            !done && !waits
        };
        let mut due: Vec<(&Path, &Document)> =
            wanted.into_iter().filter(|(id, (_, document))| is_due(id, document)).map(|(_, found)| found).collect();
        due.sort_by_key(|(_, document)| rank(&document.id));
        let removals = gone.into_iter().map(|id| Action::Remove(id.clone()));
        removals
            .chain(due.into_iter().map(|(file, document)| Action::Apply(file.to_owned(), document.clone())))
            .collect()
    }

    fn is_applied(&self, document: &Document) -> bool {
        self.done.get(&document.id).is_some_and(|deed| deed.object.as_ref() == Some(&document.object))
    }

    /// What was applied and is in no file any more.
    fn gone<'a>(&'a self, wanted: &BTreeMap<&ObjectId, (&Path, &Document)>) -> impl Iterator<Item = &'a ObjectId> {
        self.done.keys().filter(|id| !wanted.contains_key(id))
    }

    /// Files that cannot be used as they are, or with objects that are not applied yet.
    fn unsettled<'a>(&'a self, wanted: &BTreeMap<&ObjectId, (&'a Path, &Document)>) -> BTreeSet<&'a Path> {
        let open = wanted.values().filter(|(_, document)| !self.is_applied(document)).map(|(file, _)| *file);
        self.broken.keys().map(PathBuf::as_path).chain(open).collect()
    }

    /// Whether an object that is in no file any more stays for now.
    fn stays(&self, id: &ObjectId, unsettled: &BTreeSet<&Path>) -> bool {
        let file = self.done.get(id).map(|deed| deed.file.as_path());
        // What was made from a CRD goes with it, whichever file that was in.
        file.is_some_and(|file| unsettled.contains(file) || file == Path::new(MADE) && !unsettled.is_empty())
    }

    /// Where an object was applied.
    pub fn place(&self, id: &ObjectId) -> Option<&ObjectLocation> {
        self.done.get(id).map(|deed| &deed.place)
    }

    /// Records that an object is about to be applied: whatever happens from here on, it may exist.
    pub fn begun(&mut self, id: ObjectId, place: ObjectLocation, file: PathBuf) {
        let ours = self.done.get(&id).map_or(place.ours, |deed| deed.place.ours);
        self.done.insert(id, AppliedObject { place: ObjectLocation { ours, ..place }, file, object: None });
    }

    /// It was applied.
    pub fn applied(&mut self, document: Document) {
        self.failing.remove(&document.id);
        if let Some(deed) = self.done.get_mut(&document.id) {
            deed.object = Some(document.object);
        }
    }

    /// It could not be applied.
    pub fn failed(&mut self, document: &Document, trouble: ApplyError, now: Instant) {
        let same = self.failing.get(&document.id).filter(|failure| failure.object == document.object);
        let since = same.map_or(now, |failure| failure.since);
        let failure = Failure { object: document.object.clone(), trouble, since, last: now };
        self.failing.insert(document.id.clone(), failure);
    }

    /// It was removed.
    pub fn removed(&mut self, id: &ObjectId) {
        self.failing.remove(id);
        self.done.remove(id);
    }

    /// Everything that was applied, in the best order for removal.
    pub fn places(&self) -> Vec<(&ObjectId, &ObjectLocation)> {
        let mut all: Vec<_> = self.done.iter().map(|(id, deed)| (id, &deed.place)).collect();
        all.sort_by_key(|(id, _)| std::cmp::Reverse(rank(id)));
        all
    }

    /// The latest objects of a kind.
    pub fn objects<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Value> {
        let all = self.files.values().flatten();
        all.filter(move |document| document.id.kind == kind).map(|document| &document.object)
    }

    /// What is wrong with the files: file, object, reason.
    pub fn problems(&self, now: Instant) -> BTreeSet<String> {
        let (wanted, twice) = self.wanted();
        let broken = self.broken.iter().map(|(file, problem)| format!("{}: {problem}", file.display()));
        let refused = self.failing.iter().filter_map(|(id, failure)| {
            let (file, document) = wanted.get(id)?;
            let counts = failure.object == document.object
                && (!failure.trouble.passes || now.saturating_duration_since(failure.since) > PATIENCE);
            let text = &failure.trouble.text;
            counts.then(|| format!("{}: {id}: {text}{}", file.display(), self.kept(file, &wanted)))
        });
        broken.chain(refused).chain(twice).collect()
    }

    /// What stays because something in its file is refused, for people.
    fn kept(&self, file: &Path, wanted: &BTreeMap<&ObjectId, (&Path, &Document)>) -> String {
        let gone = self.gone(wanted).filter(|id| self.done.get(id).is_some_and(|deed| deed.file == file));
        let gone: Vec<String> = gone.map(ToString::to_string).collect();
        match gone.as_slice() {
            [] => String::new(),
            gone => format!("; until it is accepted, nothing is removed: {}", gone.join(", ")),
        }
    }

    /// The objects that the files contain, and the conflicts where several files contain the same object.
    fn wanted(&self) -> (BTreeMap<&ObjectId, (&Path, &Document)>, Vec<String>) {
        let mut wanted: BTreeMap<&ObjectId, (&Path, &Document)> = BTreeMap::new();
        let mut twice = Vec::new();
        for (file, documents) in &self.files {
            for document in documents.iter().filter(|document| !is_agents_own(&document.id)) {
                match wanted.get(&document.id) {
                    None => drop(wanted.insert(&document.id, (file, document))),
                    Some((first, _)) => {
                        twice.push(format!(
                            "{}: {}: it is in {} too, which wins",
                            file.display(),
                            document.id,
                            first.display()
                        ));
                    }
                }
            }
        }
        (wanted, twice)
    }
}

/// The CRD of PublishedResources comes with the agent.
fn is_agents_own(id: &ObjectId) -> bool {
    id.kind == "CustomResourceDefinition" && id.name == "publishedresources.syncagent.kcp.io"
}

/// Objects that others need come first.
fn rank(id: &ObjectId) -> u8 {
    match (id.side, id.kind.as_str()) {
        (Side::Service, "CustomResourceDefinition" | "Namespace") => 0,
        (Side::Service, "PublishedResource") => 2,
        (Side::Service, _) => 1,
        (Side::Consumer, "Namespace") => 3,
        (Side::Consumer, _) => 4,
    }
}

#[cfg(test)]
mod tests {
    use carrick_client::Resource;

    use super::*;

    fn change(file: &str, side: Side, text: Option<&str>) -> FileChange {
        FileChange { file: file.into(), side, content: text.map(|text| Ok(text.to_owned())) }
    }

    fn place() -> ObjectLocation {
        ObjectLocation { resource: Resource::namespaced("", "v1", "X", "xs"), namespace: None, ours: true }
    }

    /// Does everything that is due, and returns what it did.
    fn work(ledger: &mut Ledger, now: Instant) -> Vec<String> {
        let steps = ledger.steps(now).into_iter().map(|step| match step {
            Action::Remove(id) => {
                ledger.removed(&id);
                format!("- {id}")
            }
            Action::Apply(file, document) => {
                ledger.begun(document.id.clone(), place(), file);
                let told = format!("+ {}", document.id);
                ledger.applied(document);
                told
            }
        });
        steps.collect()
    }

    const CRD: &str = "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: xs}}";
    const PR: &str = "{apiVersion: syncagent.kcp.io/v1alpha1, kind: PublishedResource, metadata: {name: p}}";

    #[test]
    fn changes_become_steps_in_an_order_that_works() {
        let (mut ledger, now) = (Ledger::default(), Instant::now());
        ledger.take(change("1", Side::Consumer, Some("{apiVersion: e/v1, kind: X, metadata: {name: x}}")));
        ledger.take(change("2", Side::Service, Some(PR)));
        ledger.take(change("3", Side::Service, Some(CRD)));
        let everything = ["+ CustomResourceDefinition xs", "+ PublishedResource p", "+ X x"];
        assert_eq!(work(&mut ledger, now), everything);
        assert!(work(&mut ledger, now).is_empty(), "nothing changed");
        ledger.take(change("2", Side::Service, Some(&PR.replace("name: p", "name: p, labels: {a: b}"))));
        assert_eq!(work(&mut ledger, now), ["+ PublishedResource p"]);
        let all: Vec<String> = ledger.places().iter().map(|(id, _)| id.to_string()).collect();
        assert_eq!(all, ["X x", "PublishedResource p", "CustomResourceDefinition xs"]);
        for file in ["1", "2", "3"] {
            ledger.take(change(file, Side::Service, None));
        }
        assert_eq!(work(&mut ledger, now), ["- X x", "- PublishedResource p", "- CustomResourceDefinition xs"]);
    }

    #[test]
    fn a_broken_file_leaves_everything_as_it_was() {
        let (mut ledger, now) = (Ledger::default(), Instant::now());
        ledger.take(change("f.yaml", Side::Service, Some(CRD)));
        work(&mut ledger, now);
        ledger.take(change("f.yaml", Side::Service, Some("a: [")));
        assert!(work(&mut ledger, now).is_empty());
        let problems = ledger.problems(now);
        assert!(problems.first().unwrap().starts_with("f.yaml: this is not valid YAML: "), "{problems:?}");
        ledger.take(change("f.yaml", Side::Service, Some(CRD)));
        assert!(work(&mut ledger, now).is_empty() && ledger.problems(now).is_empty());
    }

    #[test]
    fn a_mistyped_kind_or_namespace_removes_nothing() {
        let order = "{apiVersion: e/v1, kind: X, metadata: {name: x, namespace: default}}";
        for (file, side, text, typo) in [
            ("order.yaml", Side::Consumer, order, order.replace("kind: X", "kind: Xx")),
            ("order.yaml", Side::Consumer, order, order.replace("default", "defautl")),
            ("crd.yaml", Side::Service, CRD, CRD.replace("CustomResourceDefinition", "CustomResourceDefinitoin")),
        ] {
            let (mut ledger, now) = (Ledger::default(), Instant::now());
            ledger.take(change(file, side, Some(text)));
            assert_eq!(work(&mut ledger, now).len(), 1);
            ledger.take(change(file, side, Some(&typo)));
            let steps = ledger.steps(now);
            let [Action::Apply(_, document)] = steps.as_slice() else { panic!("{typo}: {steps:?}") };
            ledger.failed(document, ApplyError { text: "no such thing".to_owned(), passes: false }, now);
            assert!(ledger.steps(now).is_empty(), "{typo}: something is removed");
            let problem = ledger.problems(now).pop_first().unwrap();
            assert!(problem.contains("no such thing; until it is accepted, nothing is removed: "), "{problem}");
            // The typo is mended.
            ledger.take(change(file, side, Some(text)));
            assert!(work(&mut ledger, now).is_empty() && ledger.problems(now).is_empty());
            // Renamed on purpose: the new one first.
            ledger.take(change(file, side, Some(&text.replace("name: x", "name: z"))));
            assert_eq!(work(&mut ledger, now).len(), 1);
            assert!(matches!(ledger.steps(now).as_slice(), [Action::Remove(_)]), "the old one stays");
        }
    }

    #[test]
    fn a_mistyped_crd_is_offered_on() {
        let (mut ledger, now) = (Ledger::offering_all(), Instant::now());
        let crd = "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: xs.e}, \
                   spec: {group: e, names: {kind: X}, versions: [{name: v1, served: true}]}}";
        ledger.take(change("f.yaml", Side::Service, Some(crd)));
        assert_eq!(work(&mut ledger, now).len(), 2);
        ledger.take(change("f.yaml", Side::Service, Some(&crd.replace("Definition", "Definitoin"))));
        assert!(matches!(ledger.steps(now).as_slice(), [Action::Apply(..)]), "something is removed");
    }

    #[test]
    fn what_was_refused_is_reported_and_retried() {
        let (mut ledger, now) = (Ledger::default(), Instant::now());
        ledger.take(change("f.yaml", Side::Service, Some(CRD)));
        let Some(Action::Apply(_, document)) = ledger.steps(now).pop() else { panic!("nothing to do") };
        ledger.failed(&document, ApplyError { text: "no".to_owned(), passes: false }, now);
        let wanted = BTreeSet::from(["f.yaml: CustomResourceDefinition xs: no".to_owned()]);
        assert_eq!(ledger.problems(now), wanted);
        assert!(ledger.steps(now).is_empty(), "not at once");
        assert_eq!(ledger.steps(now + RETRY).len(), 1);
        ledger.take(change("f.yaml", Side::Service, Some(&CRD.replace("v1", "v2"))));
        assert_eq!(ledger.steps(now).len(), 1, "another text is tried at once");
        assert!(ledger.problems(now).is_empty());

        let Some(Action::Apply(_, document)) = ledger.steps(now).pop() else { panic!("nothing to do") };
        ledger.failed(&document, ApplyError { text: "not yet".to_owned(), passes: true }, now);
        assert!(ledger.problems(now).is_empty(), "waiting is no problem at first");
        assert_eq!(ledger.steps(now).len(), 1);
        assert_eq!(ledger.problems(now + PATIENCE * 2).len(), 1);
    }

    #[test]
    fn without_published_resources_every_crd_is_offered_as_it_is() {
        let (mut ledger, now) = (Ledger::offering_all(), Instant::now());
        let crd = "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: xs.e}, \
                   spec: {group: e, names: {kind: X}, versions: [{name: v1, served: true}, {name: v0, served: false}]}}";
        ledger.take(change("f.yaml", Side::Service, Some(crd)));
        let offer = ledger.objects("PublishedResource").next().unwrap()["spec"]["resource"].clone();
        assert_eq!(offer, serde_json::json!({ "apiGroup": "e", "kind": "X", "versions": ["v1"] }));
        assert_eq!(work(&mut ledger, now), ["+ CustomResourceDefinition xs.e", "+ PublishedResource xs.e"]);
        ledger.take(change("f.yaml", Side::Service, None));
        assert_eq!(work(&mut ledger, now), ["- PublishedResource xs.e", "- CustomResourceDefinition xs.e"]);
    }

    #[test]
    fn of_two_files_with_one_object_the_first_counts() {
        let (mut ledger, now) = (Ledger::default(), Instant::now());
        ledger.take(change("a.yaml", Side::Service, Some(PR)));
        ledger.take(change("b.yaml", Side::Service, Some(PR)));
        assert_eq!(work(&mut ledger, now), ["+ PublishedResource p"]);
        assert_eq!(
            ledger.problems(now),
            BTreeSet::from(["b.yaml: PublishedResource p: it is in a.yaml too, which wins".to_owned()])
        );
        ledger.take(change("a.yaml", Side::Service, None));
        assert!(work(&mut ledger, now).is_empty(), "the other file has it still");
    }
}
