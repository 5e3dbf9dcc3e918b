//! How far each object has come on its way to being an engaged cluster. No client, no clock: times are given.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use super::super::roll::{Entry, Id, id};
use carrick_client::Object;

/// Time since any moment, the same for all calls.
pub(super) type Time = Duration;

/// A kubeconfig that could not be had is asked for again after this long.
const RETRY: Duration = Duration::from_secs(5);

/// What to do or to tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Ask for the kubeconfig of an object; the answer is to be given with this number.
    Ask { id: Id, number: u64, object: Object },
    /// A cluster takes part with this kubeconfig, from now on or anew.
    Engage { id: Id, kubeconfig: Arc<str> },
    /// A cluster takes part no more.
    Disengage { id: Id },
    /// The kubeconfig of an object cannot be had.
    Broken { id: Id, problem: String },
    /// Nothing is wrong with the object any more.
    Mended { id: Id },
    /// All objects of the start have been looked at.
    Synced,
}

/// All objects.
#[derive(Default)]
pub(super) struct Progress {
    objects: BTreeMap<Id, State>,
    /// Engaged clusters ask again after this long: what an object refers to may change without it.
    refresh: Option<Duration>,
    next: u64,
    listed: bool,
    /// Objects of the first list that have not been answered.
    awaited: HashSet<Id>,
    told_synced: bool,
}

struct State {
    object: Object,
    /// The question that is open, by number.
    asking: Option<u64>,
    /// When to ask again.
    ask_at: Option<Time>,
    /// Whether the cluster is engaged.
    engaged: bool,
    /// What it is engaged with, if that is what was had last.
    kubeconfig: Option<Arc<str>>,
    broken: Option<String>,
}

impl Progress {
    pub(super) fn new(refresh: Option<Duration>) -> Self {
        Self { refresh, ..Self::default() }
    }

    /// An object appeared, changed, or is gone. An object that was ready once stays, whatever becomes of its readiness.
    pub(super) fn on_entry(&mut self, entry: Entry, ready: impl Fn(&Object) -> bool) -> Vec<Step> {
        match entry {
            Entry::Present(object) => {
                let id = id(&object);
                if !self.objects.contains_key(&id) && !ready(&object) {
                    return Vec::new();
                }
                if !self.listed {
                    self.awaited.insert(id.clone());
                }
                self.next += 1;
                let number = self.next;
                let state = self.objects.entry(id.clone()).or_insert_with(|| State {
                    object: object.clone(),
                    asking: None,
                    ask_at: None,
                    engaged: false,
                    kubeconfig: None,
                    broken: None,
                });
                state.object = object.clone();
                state.asking = Some(number);
                vec![Step::Ask { id, number, object }]
            }
            Entry::Gone(id) => {
                let Some(state) = self.objects.remove(&id) else { return Vec::new() };
                let mut steps = Vec::new();
                if state.engaged {
                    steps.push(Step::Disengage { id: id.clone() });
                }
                if state.broken.is_some() {
                    steps.push(Step::Mended { id: id.clone() });
                }
                steps.extend(self.answered(&id));
                steps
            }
            Entry::Complete => {
                self.listed = true;
                self.synced().into_iter().collect()
            }
        }
    }

    /// The answer to a question: the kubeconfig, or why there is none.
    pub(super) fn on_answer(&mut self, id: &Id, number: u64, answer: Result<Arc<str>, String>, now: Time) -> Vec<Step> {
        let Some(state) = self.objects.get_mut(id).filter(|state| state.asking == Some(number)) else {
            return Vec::new();
        };
        state.asking = None;
        let mut steps = Vec::new();
        match answer {
            Ok(kubeconfig) => {
                state.ask_at = self.refresh.map(|refresh| now.saturating_add(refresh));
                if state.broken.take().is_some() {
                    steps.push(Step::Mended { id: id.clone() });
                }
                if state.kubeconfig.as_ref() != Some(&kubeconfig) {
                    state.engaged = true;
                    state.kubeconfig = Some(kubeconfig.clone());
                    steps.push(Step::Engage { id: id.clone(), kubeconfig });
                }
            }
            Err(problem) => steps.extend(state.fails(id, problem, now)),
        }
        steps.extend(self.answered(id));
        steps
    }

    /// A kubeconfig that was told to engage a cluster with cannot be used after all.
    pub(super) fn on_unusable(&mut self, id: &Id, problem: String, now: Time) -> Option<Step> {
        let state = self.objects.get_mut(id)?;
        state.kubeconfig = None;
        state.fails(id, problem, now)
    }

    /// What is due.
    pub(super) fn on_time(&mut self, now: Time) -> Vec<Step> {
        let mut steps = Vec::new();
        for (id, state) in &mut self.objects {
            if state.ask_at.is_some_and(|at| at <= now) {
                self.next += 1;
                state.asking = Some(self.next);
                state.ask_at = None;
                steps.push(Step::Ask { id: id.clone(), number: self.next, object: state.object.clone() });
            }
        }
        steps
    }

    /// When something is due next.
    pub(super) fn next_look(&self) -> Option<Time> {
        self.objects.values().filter_map(|state| state.ask_at).min()
    }

    fn answered(&mut self, id: &Id) -> Option<Step> {
        self.awaited.remove(id);
        self.synced()
    }

    fn synced(&mut self) -> Option<Step> {
        let complete = self.listed && self.awaited.is_empty();
        (complete && !std::mem::replace(&mut self.told_synced, true)).then_some(Step::Synced)
    }
}

impl State {
    fn fails(&mut self, id: &Id, problem: String, now: Time) -> Option<Step> {
        self.ask_at = Some(now.saturating_add(RETRY));
        let is_new = self.broken.as_ref() != Some(&problem);
        self.broken = Some(problem.clone());
        is_new.then(|| Step::Broken { id: id.clone(), problem })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn present(name: &str, ready: bool) -> Entry {
        let object = json!({"metadata": {"name": name}, "ready": ready});
        Entry::Present(Object::from_value(&object).unwrap())
    }

    fn gone(name: &str) -> Entry {
        Entry::Gone(("".into(), name.into()))
    }

    /// What happens to the objects.
    enum Do {
        See(Entry),
        /// The answer to the latest question about an object.
        Answer(&'static str, Result<&'static str, &'static str>),
        /// The answer to the question before that.
        LateAnswer(&'static str, &'static str),
        /// What an object was engaged with cannot be used.
        Unusable(&'static str, &'static str),
        Time(u64),
    }

    fn run(refresh: Option<u64>, script: Vec<Do>) -> Vec<String> {
        let mut progress = Progress::new(refresh.map(Duration::from_secs));
        let mut asked: BTreeMap<Id, Vec<u64>> = BTreeMap::new();
        let mut now = Time::ZERO;
        let mut told = Vec::new();
        for step in script {
            let answer = |progress: &mut Progress, name: &str, back: usize, answer: Result<&str, &str>, now| {
                let id = ("".into(), name.into());
                let numbers = &asked[&id];
                let number = numbers[numbers.len() - 1 - back];
                progress.on_answer(&id, number, answer.map(Into::into).map_err(Into::into), now)
            };
            let steps = match step {
                Do::See(entry) => progress.on_entry(entry, |object| object.value()["ready"] == true),
                Do::Answer(name, text) => answer(&mut progress, name, 0, text, now),
                Do::LateAnswer(name, text) => answer(&mut progress, name, 1, Ok(text), now),
                Do::Unusable(name, problem) => {
                    let id = ("".into(), name.into());
                    progress.on_unusable(&id, problem.to_owned(), now).into_iter().collect()
                }
                Do::Time(seconds) => {
                    now = Duration::from_secs(seconds);
                    progress.on_time(now)
                }
            };
            for step in steps {
                told.push(match step {
                    Step::Ask { id, number, .. } => {
                        let text = format!("ask {}", id.1);
                        asked.entry(id).or_default().push(number);
                        text
                    }
                    Step::Engage { id, kubeconfig } => format!("engage {} {kubeconfig}", id.1),
                    Step::Disengage { id } => format!("disengage {}", id.1),
                    Step::Broken { id, problem } => format!("broken {} {problem}", id.1),
                    Step::Mended { id } => format!("mended {}", id.1),
                    Step::Synced => "synced".to_owned(),
                });
            }
        }
        told
    }

    #[test]
    fn what_is_ready_is_engaged_and_the_start_is_over_when_all_have_answered() {
        let script = vec![
            Do::See(present("a", true)),
            Do::See(present("b", true)),
            Do::See(present("later", false)),
            Do::See(Entry::Complete),
            Do::Answer("a", Ok("1")),
            Do::Answer("b", Err("bad")),
            Do::See(present("later", true)),
            Do::Answer("later", Ok("1")),
            Do::See(present("later", false)),
            Do::Answer("later", Ok("1")),
            Do::See(gone("later")),
        ];
        let wanted = [
            "ask a",
            "ask b",
            "engage a 1",
            "broken b bad",
            "synced",
            "ask later",
            "engage later 1",
            "ask later",
            "disengage later",
        ];
        assert_eq!(run(None, script), wanted);
    }

    #[test]
    fn another_content_engages_anew_and_the_same_does_not() {
        let script = vec![
            Do::See(Entry::Complete),
            Do::See(present("a", true)),
            Do::Answer("a", Ok("1")),
            Do::See(present("a", true)),
            Do::Answer("a", Ok("1")),
            Do::See(present("a", true)),
            Do::Answer("a", Ok("2")),
        ];
        assert_eq!(run(None, script), ["synced", "ask a", "engage a 1", "ask a", "ask a", "engage a 2"]);
    }

    #[test]
    fn what_broke_stays_engaged_is_told_once_and_is_tried_again() {
        let script = vec![
            Do::See(Entry::Complete),
            Do::See(present("a", true)),
            Do::Answer("a", Ok("1")),
            Do::See(present("a", true)),
            Do::Answer("a", Err("bad")),
            Do::Time(4),
            Do::Time(5),
            Do::Answer("a", Err("bad")),
            Do::Time(10),
            Do::Answer("a", Ok("2")),
            Do::Time(100),
        ];
        let wanted =
            ["synced", "ask a", "engage a 1", "ask a", "broken a bad", "ask a", "ask a", "mended a", "engage a 2"];
        assert_eq!(run(None, script), wanted);
    }

    #[test]
    fn late_answers_and_answers_about_the_gone_do_not_count() {
        let script = vec![
            Do::See(present("a", true)),
            Do::See(present("a", true)),
            Do::LateAnswer("a", "old"),
            Do::Answer("a", Ok("new")),
            Do::See(present("b", true)),
            Do::See(gone("b")),
            Do::See(Entry::Complete),
            Do::Answer("b", Ok("1")),
        ];
        assert_eq!(run(None, script), ["ask a", "ask a", "engage a new", "ask b", "synced"]);
    }

    #[test]
    fn what_is_engaged_is_looked_at_again_if_asked_to() {
        let script = vec![
            Do::See(Entry::Complete),
            Do::See(present("a", true)),
            Do::Answer("a", Ok("1")),
            Do::Time(60),
            Do::Answer("a", Ok("2")),
        ];
        assert_eq!(run(Some(60), script), ["synced", "ask a", "engage a 1", "ask a", "engage a 2"]);
    }

    #[test]
    fn what_could_not_be_used_after_all_is_tried_again() {
        let script = vec![
            Do::See(Entry::Complete),
            Do::See(present("a", true)),
            Do::Answer("a", Ok("1")),
            Do::Unusable("a", "no such file"),
            Do::Time(5),
            Do::Answer("a", Ok("1")),
            Do::See(gone("a")),
        ];
        let wanted = [
            "synced",
            "ask a",
            "engage a 1",
            "broken a no such file",
            "ask a",
            "mended a",
            "engage a 1",
            "disengage a",
        ];
        assert_eq!(run(None, script), wanted);
    }

    #[test]
    fn a_refresh_after_all_eternity_is_none() {
        let script = vec![Do::See(Entry::Complete), Do::See(present("a", true)), Do::Time(5), Do::Answer("a", Ok("1"))];
        assert_eq!(run(Some(u64::MAX), script), ["synced", "ask a", "engage a 1"]);
    }
}
