//! Unbinding: copies first, then the finalizers of their sources, then the CRD, then the binding.
//!
//! Each step waits for the one before to be done for certain. A provider that does not answer stops everything; the annotation [`KEEP_COPIES`] is the
//! way out for those whose provider is gone for good.

use carrick_bind_api::v1alpha2::ApiServiceBinding;

use super::Seen;

pub use carrick_bind_api::names::{BINDING_FINALIZER, KEEP_COPIES_ANNOTATION as KEEP_COPIES};

/// What unbinding is decided on.
#[derive(Clone, Debug)]
pub struct UnbindView<'a> {
    /// The binding.
    pub binding: &'a ApiServiceBinding,
    /// How many copies with our mark are left on the provider.
    pub copies: Seen<usize>,
    /// How many objects here still have our finalizer.
    pub held: Seen<usize>,
    /// The names of the CRDs here that the binding owns.
    pub crds: Seen<&'a [String]>,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// The binding stays; put the finalizer on it before its first CRD.
    AddFinalizer,
    /// Nothing: the binding stays, or is none of ours any more.
    Nothing,
    /// Delete the copies with our mark.
    DeleteCopies(usize),
    /// Take our finalizer off the objects here.
    ReleaseObjects(usize),
    /// Delete these CRDs, and with them the objects.
    DeleteCrds(Vec<String>),
    /// Take the finalizer off the binding.
    RemoveFinalizer,
    /// Something is not known: the reason, and the way out.
    Wait(String),
}

/// Decides what comes next.
pub fn decide(view: &UnbindView<'_>) -> Next {
    let metadata = &view.binding.metadata;
    match (metadata.is_deleting(), metadata.has_finalizer(BINDING_FINALIZER)) {
        (false, false) => return Next::AddFinalizer,
        (false, true) | (true, false) => return Next::Nothing,
        (true, true) => {}
    }
    let keeps = metadata.annotation(KEEP_COPIES) == Some("true");
    match (&view.copies, keeps) {
        (_, true) | (Seen::Present(0), _) => {}
        (Seen::Present(count), _) => return Next::DeleteCopies(*count),
        (Seen::Unknown(why), _) => return Next::Wait(provider_unknown(why)),
        (Seen::Absent, _) => return Next::Wait(provider_unknown("it does not serve this API any more")),
    }
    match &view.held {
        // Without the CRD there are no objects.
        Seen::Present(0) | Seen::Absent => {}
        Seen::Present(count) => return Next::ReleaseObjects(*count),
        Seen::Unknown(why) => return Next::Wait(format!("the objects here could not be read: {why}")),
    }
    match &view.crds {
        Seen::Present(names) if !names.is_empty() => Next::DeleteCrds(names.to_vec()),
        Seen::Present(_) | Seen::Absent => Next::RemoveFinalizer,
        Seen::Unknown(why) => Next::Wait(format!("the CRDs here could not be read: {why}")),
    }
}

fn provider_unknown(why: &str) -> String {
    format!(
        "the copies on the provider could not be read: {why}; annotate the binding with {KEEP_COPIES}=true to leave them there"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn binding(deleting: bool, finalizer: bool, keeps: bool) -> ApiServiceBinding {
        let mut binding = ApiServiceBinding::new("b");
        if deleting {
            "2026-01-01T00:00:00Z".clone_into(&mut binding.metadata.deletion_timestamp);
        }
        if finalizer {
            binding.metadata.add_finalizer(BINDING_FINALIZER);
        }
        if keeps {
            binding.metadata.annotate(KEEP_COPIES, "true");
        }
        binding
    }

    fn ask(binding: &ApiServiceBinding, copies: Seen<usize>, held: Seen<usize>, crds: &[String]) -> Next {
        decide(&UnbindView { binding, copies, held, crds: Seen::Present(crds) })
    }

    #[test]
    fn copies_go_first_then_finalizers_then_crds_then_the_binding() {
        let binding = binding(true, true, false);
        let crds = vec!["widgets.example.io".to_owned()];
        let (mut copies, mut held, mut left) = (2, 3, crds.clone());
        let mut order = Vec::new();
        loop {
            match ask(&binding, Seen::Present(copies), Seen::Present(held), &left) {
                Next::DeleteCopies(_) => copies -= 1,
                Next::ReleaseObjects(_) => held -= 1,
                Next::DeleteCrds(_) => left.clear(),
                Next::RemoveFinalizer => break,
                other => panic!("{other:?}"),
            }
            order.push((copies, held, left.len()));
        }
        assert_eq!(order, [(1, 3, 1), (0, 3, 1), (0, 2, 1), (0, 1, 1), (0, 0, 1), (0, 0, 0)]);
    }

    #[test]
    fn a_binding_gets_its_finalizer_before_anything_else_and_only_ours_counts() {
        let ask =
            |deleting, finalizer| ask(&binding(deleting, finalizer, false), Seen::Present(1), Seen::Present(1), &[]);
        assert_eq!(ask(false, false), Next::AddFinalizer);
        assert_eq!(ask(false, true), Next::Nothing);
        assert_eq!(ask(true, false), Next::Nothing);
    }

    #[test]
    fn what_is_not_known_stops_everything_but_there_is_a_way_out() {
        let unknown = || Seen::Unknown("403 Forbidden".to_owned());
        let crds = vec!["widgets.example.io".to_owned()];
        for copies in [unknown(), Seen::Absent] {
            let Next::Wait(why) = ask(&binding(true, true, false), copies.clone(), Seen::Present(1), &crds) else {
                panic!()
            };
            assert!(why.ends_with("kube-bind.io/keep-copies=true to leave them there"), "{why}");
            assert_eq!(ask(&binding(true, true, true), copies, Seen::Present(1), &crds), Next::ReleaseObjects(1));
        }
        assert!(matches!(ask(&binding(true, true, true), Seen::Present(5), unknown(), &crds), Next::Wait(_)));
        let binding = binding(true, true, false);
        let view = UnbindView {
            binding: &binding,
            copies: Seen::Present(0),
            held: Seen::Absent,
            crds: Seen::Unknown(String::new()),
        };
        assert!(matches!(decide(&view), Next::Wait(_)));
    }
}
