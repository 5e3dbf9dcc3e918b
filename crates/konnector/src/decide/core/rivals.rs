//! Several Connections and one API whose CRD somebody else has installed: nothing on it says for whom, so the bindings decide it among themselves.

/// A binding that lists an API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claimant {
    /// Kind and name.
    pub key: String,
    /// Its Connection.
    pub connection: String,
    /// The namespace that it is for; none for all.
    pub namespace: Option<String>,
    /// Whether it uses the API already, and may have copies.
    pub is_bound: bool,
    /// Whether its provider offers the API, so that it may use it.
    pub is_offered: bool,
    /// When it was created.
    pub since: String,
}

impl Claimant {
    fn is_before(&self, other: &Self) -> bool {
        (!self.is_bound, &self.since, &self.key) < (!other.is_bound, &other.since, &other.key)
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.namespace.is_none() || other.namespace.is_none() || self.namespace == other.namespace
    }
}

/// The binding of another Connection that has the same objects, if there is one: whoever uses them already, or else came first. Two would delete each
/// other's copies, and let go of objects that the other one still holds.
pub fn ahead<'c>(own: &Claimant, all: &'c [Claimant]) -> Option<&'c Claimant> {
    let rivals = all.iter().filter(|it| it.connection != own.connection && it.overlaps(own));
    let mut rivals = rivals.filter(|it| (it.is_bound || it.is_offered) && it.is_before(own));
    rivals.next()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claimant(key: &str, connection: &str, since: &str) -> Claimant {
        let (namespace, is_bound, is_offered) = (None, false, true);
        Claimant {
            key: key.to_owned(),
            connection: connection.to_owned(),
            namespace,
            is_bound,
            is_offered,
            since: since.to_owned(),
        }
    }

    #[test]
    fn whoever_uses_an_api_keeps_it_and_otherwise_whoever_came_first() {
        let (old, new) = (claimant("old", "west", "1"), claimant("new", "east", "2"));
        let ahead_of = |own: &Claimant, all: &[Claimant]| ahead(own, all).map(|it| it.key.clone());
        let all = [old.clone(), new.clone()];
        assert_eq!((ahead_of(&new, &all).as_deref(), ahead_of(&old, &all)), (Some("old"), None));
        let bound = Claimant { is_bound: true, ..new.clone() };
        let all = [old.clone(), bound.clone()];
        assert_eq!((ahead_of(&bound, &all), ahead_of(&old, &all).as_deref()), (None, Some("new")));
        let twin = claimant("a", "east", "1");
        let all = [twin.clone(), old.clone()];
        assert_eq!((ahead_of(&twin, &all), ahead_of(&old, &all).as_deref()), (None, Some("a")), "always the same one");
    }

    #[test]
    fn nobody_waits_for_a_binding_of_the_same_connection_of_another_namespace_or_without_the_api() {
        let own = Claimant { namespace: Some("team".to_owned()), ..claimant("own", "east", "2") };
        let first = claimant("first", "west", "1");
        assert!(ahead(&own, std::slice::from_ref(&first)).is_some());
        for other in [
            Claimant { connection: "east".to_owned(), ..first.clone() },
            Claimant { namespace: Some("other".to_owned()), ..first.clone() },
            Claimant { is_offered: false, ..first.clone() },
        ] {
            assert_eq!(ahead(&own, &[other]), None);
        }
        let uses = Claimant { is_offered: false, is_bound: true, ..first };
        assert!(ahead(&own, &[uses]).is_some(), "it may have copies, whatever its provider says now");
    }
}
