//! What happens to orders that have gone back in time, because kcp was restored from a backup.

/// What happens to an order that has gone back in time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AfterRestore {
    /// It is held: what is on the service cluster stays as it is until somebody decides.
    #[default]
    Hold,
    /// It is carried out as it stands in kcp.
    Follow,
}

impl AfterRestore {
    /// The value by which an order is held.
    pub const HOLD: &str = "Hold";
    /// The value by which an order is let go on.
    pub const FOLLOW: &str = "Follow";

    /// Parses the value that users write.
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            Self::HOLD => Some(Self::Hold),
            Self::FOLLOW => Some(Self::Follow),
            _ => None,
        }
    }
}
