//! How far each object is on its way to an engaged cluster. No client and no clock: times are handed in.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use super::super::known_objects::{ObjectChange, ObjectId, object_id};
use carrick_client::Object;

/// Time since the provider started.
pub(super) type Time = Duration;

/// A kubeconfig that could not be fetched is fetched again after this long.
const RETRY: Duration = Duration::from_secs(5);

/// What the shell has to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Command {
    /// Fetch the kubeconfig of an object. The answer is to be handed in with this number.
    FetchKubeconfig { id: ObjectId, number: u64, object: Object },
    /// Engage a cluster with this kubeconfig, or engage it again.
    Engage { id: ObjectId, kubeconfig: Arc<str> },
    /// Disengage a cluster.
    Disengage { id: ObjectId },
    /// Report that the kubeconfig of an object cannot be fetched or used.
    ReportFailing { id: ObjectId, problem: String },
    /// Report that nothing is wrong with the object any more.
    ReportRecovered { id: ObjectId },
    /// Report that all objects of the first list have been processed.
    ReportSynced,
}

/// The progress of all objects.
#[derive(Default)]
pub(super) struct Progress {
    objects: BTreeMap<ObjectId, ObjectProgress>,
    /// Kubeconfigs of engaged clusters are fetched again after this long: what an object refers to may change without it.
    refresh: Option<Duration>,
    next: u64,
    listed: bool,
    /// Objects of the first list whose kubeconfigs have not been fetched yet.
    awaited: HashSet<ObjectId>,
    reported_synced: bool,
}

struct ObjectProgress {
    object: Object,
    /// The number of the fetch that is under way.
    fetching: Option<u64>,
    /// When to fetch again.
    fetch_at: Option<Time>,
    /// Whether the cluster is engaged.
    engaged: bool,
    /// The kubeconfig it is engaged with, if that is the one fetched last.
    kubeconfig: Option<Arc<str>>,
    /// What is wrong, as it was reported.
    problem: Option<String>,
}

impl Progress {
    pub(super) fn new(refresh: Option<Duration>) -> Self {
        Self { refresh, ..Self::default() }
    }

    /// An object appeared, changed, or is gone. One that was ready once stays engaged even if it is not ready any more.
    pub(super) fn on_change(&mut self, change: ObjectChange, ready: impl Fn(&Object) -> bool) -> Vec<Command> {
        match change {
            ObjectChange::Present(object) => {
                let id = object_id(&object);
                if !self.objects.contains_key(&id) && !ready(&object) {
                    return Vec::new();
                }
                if !self.listed {
                    self.awaited.insert(id.clone());
                }
                self.next += 1;
                let number = self.next;
                let state = self.objects.entry(id.clone()).or_insert_with(|| ObjectProgress {
                    object: object.clone(),
                    fetching: None,
                    fetch_at: None,
                    engaged: false,
                    kubeconfig: None,
                    problem: None,
                });
                state.object = object.clone();
                state.fetching = Some(number);
                vec![Command::FetchKubeconfig { id, number, object }]
            }
            ObjectChange::Gone(id) => {
                let Some(state) = self.objects.remove(&id) else { return Vec::new() };
                let mut commands = Vec::new();
                if state.engaged {
                    commands.push(Command::Disengage { id: id.clone() });
                }
                if state.problem.is_some() {
                    commands.push(Command::ReportRecovered { id: id.clone() });
                }
                commands.extend(self.looked_at(&id));
                commands
            }
            ObjectChange::Complete => {
                self.listed = true;
                self.synced().into_iter().collect()
            }
        }
    }

    /// A fetch has ended: with the kubeconfig, or with why there is none.
    pub(super) fn on_fetched(
        &mut self,
        id: &ObjectId,
        number: u64,
        fetched: Result<Arc<str>, String>,
        now: Time,
    ) -> Vec<Command> {
        let Some(state) = self.objects.get_mut(id).filter(|state| state.fetching == Some(number)) else {
            return Vec::new();
        };
        state.fetching = None;
        let mut commands = Vec::new();
        match fetched {
            Ok(kubeconfig) => {
                state.fetch_at = self.refresh.map(|refresh| now.saturating_add(refresh));
                if state.problem.take().is_some() {
                    commands.push(Command::ReportRecovered { id: id.clone() });
                }
                if state.kubeconfig.as_ref() != Some(&kubeconfig) {
                    state.engaged = true;
                    state.kubeconfig = Some(kubeconfig.clone());
                    commands.push(Command::Engage { id: id.clone(), kubeconfig });
                }
            }
            Err(problem) => commands.extend(state.fails(id, problem, now)),
        }
        commands.extend(self.looked_at(id));
        commands
    }

    /// A kubeconfig that a cluster was to be engaged with cannot be used after all.
    pub(super) fn on_unusable(&mut self, id: &ObjectId, problem: String, now: Time) -> Option<Command> {
        let state = self.objects.get_mut(id)?;
        state.kubeconfig = None;
        state.fails(id, problem, now)
    }

    /// Fetches what is due.
    pub(super) fn on_time(&mut self, now: Time) -> Vec<Command> {
        let mut commands = Vec::new();
        for (id, state) in &mut self.objects {
            if state.fetch_at.is_some_and(|at| at <= now) {
                self.next += 1;
                state.fetching = Some(self.next);
                state.fetch_at = None;
                commands.push(Command::FetchKubeconfig {
                    id: id.clone(),
                    number: self.next,
                    object: state.object.clone(),
                });
            }
        }
        commands
    }

    /// When something is due next.
    pub(super) fn next_due(&self) -> Option<Time> {
        self.objects.values().filter_map(|state| state.fetch_at).min()
    }

    fn looked_at(&mut self, id: &ObjectId) -> Option<Command> {
        self.awaited.remove(id);
        self.synced()
    }

    fn synced(&mut self) -> Option<Command> {
        let complete = self.listed && self.awaited.is_empty();
        (complete && !std::mem::replace(&mut self.reported_synced, true)).then_some(Command::ReportSynced)
    }
}

impl ObjectProgress {
    fn fails(&mut self, id: &ObjectId, problem: String, now: Time) -> Option<Command> {
        self.fetch_at = Some(now.saturating_add(RETRY));
        let is_new = self.problem.as_ref() != Some(&problem);
        self.problem = Some(problem.clone());
        is_new.then(|| Command::ReportFailing { id: id.clone(), problem })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn present(name: &str, ready: bool) -> ObjectChange {
        let object = json!({"metadata": {"name": name}, "ready": ready});
        ObjectChange::Present(Object::from_value(&object).unwrap())
    }

    fn gone(name: &str) -> ObjectChange {
        ObjectChange::Gone(("".into(), name.into()))
    }

    /// What happens to the objects.
    enum Do {
        See(ObjectChange),
        /// The latest fetch of an object ends.
        Answer(&'static str, Result<&'static str, &'static str>),
        /// The fetch before that ends.
        LateAnswer(&'static str, &'static str),
        /// What an object was engaged with cannot be used.
        Unusable(&'static str, &'static str),
        Time(u64),
    }

    fn run(refresh: Option<u64>, script: Vec<Do>) -> Vec<String> {
        let mut progress = Progress::new(refresh.map(Duration::from_secs));
        let mut fetched: BTreeMap<ObjectId, Vec<u64>> = BTreeMap::new();
        let mut now = Time::ZERO;
        let mut done = Vec::new();
        for step in script {
            let answer = |progress: &mut Progress, name: &str, back: usize, answer: Result<&str, &str>, now| {
                let id = ("".into(), name.into());
                let numbers = &fetched[&id];
                let number = numbers[numbers.len() - 1 - back];
                progress.on_fetched(&id, number, answer.map(Into::into).map_err(Into::into), now)
            };
            let commands = match step {
                Do::See(change) => progress.on_change(change, |object| object.value()["ready"] == true),
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
            for command in commands {
                done.push(match command {
                    Command::FetchKubeconfig { id, number, .. } => {
                        let text = format!("fetch {}", id.1);
                        fetched.entry(id).or_default().push(number);
                        text
                    }
                    Command::Engage { id, kubeconfig } => format!("engage {} {kubeconfig}", id.1),
                    Command::Disengage { id } => format!("disengage {}", id.1),
                    Command::ReportFailing { id, problem } => format!("failing {} {problem}", id.1),
                    Command::ReportRecovered { id } => format!("recovered {}", id.1),
                    Command::ReportSynced => "synced".to_owned(),
                });
            }
        }
        done
    }

    #[test]
    fn ready_objects_are_engaged_and_synced_is_reported_after_all_answers() {
        let script = vec![
            Do::See(present("a", true)),
            Do::See(present("b", true)),
            Do::See(present("later", false)),
            Do::See(ObjectChange::Complete),
            Do::Answer("a", Ok("1")),
            Do::Answer("b", Err("bad")),
            Do::See(present("later", true)),
            Do::Answer("later", Ok("1")),
            Do::See(present("later", false)),
            Do::Answer("later", Ok("1")),
            Do::See(gone("later")),
        ];
        let wanted = [
            "fetch a",
            "fetch b",
            "engage a 1",
            "failing b bad",
            "synced",
            "fetch later",
            "engage later 1",
            "fetch later",
            "disengage later",
        ];
        assert_eq!(run(None, script), wanted);
    }

    #[test]
    fn another_content_engages_anew_and_the_same_does_not() {
        let script = vec![
            Do::See(ObjectChange::Complete),
            Do::See(present("a", true)),
            Do::Answer("a", Ok("1")),
            Do::See(present("a", true)),
            Do::Answer("a", Ok("1")),
            Do::See(present("a", true)),
            Do::Answer("a", Ok("2")),
        ];
        assert_eq!(run(None, script), ["synced", "fetch a", "engage a 1", "fetch a", "fetch a", "engage a 2"]);
    }

    #[test]
    fn a_failing_cluster_stays_engaged_is_reported_once_and_tried_again() {
        let script = vec![
            Do::See(ObjectChange::Complete),
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
        let wanted = [
            "synced",
            "fetch a",
            "engage a 1",
            "fetch a",
            "failing a bad",
            "fetch a",
            "fetch a",
            "recovered a",
            "engage a 2",
        ];
        assert_eq!(run(None, script), wanted);
    }

    #[test]
    fn late_answers_and_answers_for_deleted_objects_do_not_count() {
        let script = vec![
            Do::See(present("a", true)),
            Do::See(present("a", true)),
            Do::LateAnswer("a", "old"),
            Do::Answer("a", Ok("new")),
            Do::See(present("b", true)),
            Do::See(gone("b")),
            Do::See(ObjectChange::Complete),
            Do::Answer("b", Ok("1")),
        ];
        assert_eq!(run(None, script), ["fetch a", "fetch a", "engage a new", "fetch b", "synced"]);
    }

    #[test]
    fn kubeconfigs_of_engaged_clusters_are_fetched_again_if_wanted() {
        let script = vec![
            Do::See(ObjectChange::Complete),
            Do::See(present("a", true)),
            Do::Answer("a", Ok("1")),
            Do::Time(60),
            Do::Answer("a", Ok("2")),
        ];
        assert_eq!(run(Some(60), script), ["synced", "fetch a", "engage a 1", "fetch a", "engage a 2"]);
    }

    #[test]
    fn a_kubeconfig_that_cannot_be_used_after_all_is_tried_again() {
        let script = vec![
            Do::See(ObjectChange::Complete),
            Do::See(present("a", true)),
            Do::Answer("a", Ok("1")),
            Do::Unusable("a", "no such file"),
            Do::Time(5),
            Do::Answer("a", Ok("1")),
            Do::See(gone("a")),
        ];
        let wanted = [
            "synced",
            "fetch a",
            "engage a 1",
            "failing a no such file",
            "fetch a",
            "recovered a",
            "engage a 1",
            "disengage a",
        ];
        assert_eq!(run(None, script), wanted);
    }

    #[test]
    fn a_refresh_after_a_very_long_time_never_comes() {
        let script =
            vec![Do::See(ObjectChange::Complete), Do::See(present("a", true)), Do::Time(5), Do::Answer("a", Ok("1"))];
        assert_eq!(run(Some(u64::MAX), script), ["synced", "fetch a", "engage a 1"]);
    }
}
