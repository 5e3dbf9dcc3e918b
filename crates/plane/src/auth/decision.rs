//! What an authorizer says about a request.

/// Whether a request is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is allowed.
    Allow,
    /// It is refused, whatever other authorizers say.
    Deny,
    /// Nothing allows it, so it is refused.
    NoOpinion,
}

/// A verdict with its reason, as access reviews show both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// Whether the request is allowed.
    pub verdict: Verdict,
    /// Why; may be empty.
    pub reason: String,
}

impl Decision {
    /// A verdict with a reason.
    pub fn new(verdict: Verdict, reason: impl Into<String>) -> Self {
        Self { verdict, reason: reason.into() }
    }

    /// Whether the request is allowed.
    pub fn is_allowed(&self) -> bool {
        self.verdict == Verdict::Allow
    }
}
