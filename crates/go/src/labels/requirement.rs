//! What is required of one label.

/// What a selector requires of one label.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Requirement {
    /// The key of the label.
    pub key: String,
    /// What must be true of its value.
    pub condition: Condition,
}

/// What must be true of the value of a label.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Condition {
    /// It is one of these.
    In(Vec<String>),
    /// It is none of these, or there is no such label.
    NotIn(Vec<String>),
    /// There is such a label.
    Exists,
    /// There is no such label.
    DoesNotExist,
    /// It is a number above this one.
    GreaterThan(i64),
    /// It is a number below this one.
    LessThan(i64),
}

impl Requirement {
    /// One of the `matchLabels` of a selector in an object.
    pub fn equals(key: &str, value: &str) -> Self {
        Self { key: key.to_owned(), condition: Condition::In(vec![value.to_owned()]) }
    }

    /// One of the `matchExpressions` of a selector in an object; none if there is no such operator.
    pub fn expression(key: &str, operator: &str, values: Vec<String>) -> Option<Self> {
        let condition = match operator {
            "In" => Condition::In(values),
            "NotIn" => Condition::NotIn(values),
            "Exists" => Condition::Exists,
            "DoesNotExist" => Condition::DoesNotExist,
            _ => return None,
        };
        Some(Self { key: key.to_owned(), condition })
    }
}

impl Condition {
    pub(super) fn holds(&self, value: Option<&str>) -> bool {
        let one_of = |values: &[String]| value.is_some_and(|value| values.iter().any(|wanted| wanted == value));
        let number = || value.and_then(|value| value.parse::<i64>().ok());
        match self {
            Self::In(values) => one_of(values),
            Self::NotIn(values) => !one_of(values),
            Self::Exists => value.is_some(),
            Self::DoesNotExist => value.is_none(),
            Self::GreaterThan(limit) => number().is_some_and(|found| found > *limit),
            Self::LessThan(limit) => number().is_some_and(|found| found < *limit),
        }
    }
}
