//! Label selectors as Kubernetes reads them: `a=b,c in (d,e),!f`.

mod parse;
mod requirement;

use crate::names::{self, Words};

pub use requirement::{Condition, Requirement};

/// Why a text is not a label selector, in the words of Kubernetes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SelectorError(String);

/// Which objects are meant, by their labels; all requirements must hold, so the empty one selects everything.
///
/// ```
/// use carrick_go::labels::Selector;
///
/// let selector = Selector::parse("app in (web, db), !canary").unwrap();
/// assert!(selector.matches(|key| (key == "app").then_some("web")));
/// assert!(!selector.matches(|_| None));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Selector {
    requirements: Vec<Requirement>,
}

impl Selector {
    /// Reads the text form: `labels.Parse`.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        Self::parse_in(names::V1_34, text)
    }

    /// The same with the complaints of a release of Kubernetes.
    pub fn parse_in(words: Words, text: &str) -> Result<Self, SelectorError> {
        let requirements = parse::requirements(text, words).map_err(SelectorError)?;
        Ok(Self { requirements })
    }

    /// Whether it selects everything.
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Whether an object is meant, given the values of its labels by key.
    pub fn matches<'a>(&self, get: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.requirements.iter().all(|requirement| requirement.condition.holds(get(&requirement.key)))
    }
}

impl FromIterator<Requirement> for Selector {
    fn from_iter<T: IntoIterator<Item = Requirement>>(requirements: T) -> Self {
        Self { requirements: requirements.into_iter().collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_match_as_in_kubernetes() {
        let labels = |key: &str| [("app", "web"), ("tier", "1"), ("x.io/y", "")].into_iter().find(|l| l.0 == key);
        for (text, expected) in [
            ("", true),
            ("app=web", true),
            ("app==web,tier", true),
            ("app!=web", false),
            ("missing!=web", true),
            ("app in (web, db)", true),
            ("app notin (web,db)", false),
            ("missing notin (a)", true),
            ("!missing", true),
            ("!app", false),
            ("x.io/y=", true),
            ("x.io/y in ()", true),
            ("tier>0", true),
            ("tier<1", false),
            ("app>0", false),
        ] {
            assert_eq!(Selector::parse(text).unwrap().matches(|key| labels(key).map(|l| l.1)), expected, "{text}");
        }
    }

    #[test]
    fn releases_complain_in_their_own_words() {
        let reported = |words: Words, text: &str| Selector::parse_in(words, text).unwrap_err().to_string();
        assert!(reported(names::V1_34, "a/b/c").contains(": a qualified name must"));
        assert!(reported(names::V1_37, "a/b/c").contains(": a valid label key must"));
        let long = format!("a={}", "b".repeat(64));
        assert!(reported(names::V1_34, &long).ends_with("must be no more than 63 characters"));
        assert!(reported(names::V1_37, &long).ends_with("must be no more than 63 bytes"));
    }

    #[test]
    fn selectors_in_objects_have_four_operators() {
        let selects = |operator: &str, values: &[&str], found: Option<&'static str>| {
            let values = values.iter().map(|&value| value.to_owned()).collect();
            let selector: Selector = Requirement::expression("a", operator, values).into_iter().collect();
            !selector.is_empty() && selector.matches(|_| found)
        };
        assert!(selects("In", &["1", "2"], Some("2")) && !selects("In", &["1"], None));
        assert!(selects("NotIn", &["1"], None) && !selects("NotIn", &["1"], Some("1")));
        assert!(selects("Exists", &[], Some("")) && !selects("Exists", &[], None));
        assert!(selects("DoesNotExist", &[], None) && !selects("DoesNotExist", &[], Some("")));
        assert!(!selects("Near", &[], None));
        assert!([Requirement::equals("a", "1")].into_iter().collect::<Selector>().matches(|_| Some("1")));
    }
}
