//! What is known about an object of another cluster.

/// What is known about something that was looked for.
///
/// The difference between the first two is what keeps data alive: a provider that does not answer, or answers 403, has lost nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen<T> {
    /// It could not be read: the reason.
    Unknown(String),
    /// It is certain not to be there.
    Absent,
    /// It is there.
    Present(T),
}

impl<T> Seen<T> {
    /// The thing, if it is there.
    pub fn present(&self) -> Option<&T> {
        match self {
            Self::Present(found) => Some(found),
            Self::Unknown(_) | Self::Absent => None,
        }
    }

    /// The same about a reference to it.
    pub fn as_ref(&self) -> Seen<&T> {
        match self {
            Self::Unknown(why) => Seen::Unknown(why.clone()),
            Self::Absent => Seen::Absent,
            Self::Present(found) => Seen::Present(found),
        }
    }
}
