//! Points in time, as Go's `time.Time`.
//!
//! There is no local zone: a template must not depend on the machine, so where Go says local, this says UTC.

mod layout;
mod point;

use std::fmt;

pub(crate) use point::{MONTHS, Time, WEEKDAYS};

impl Time {
    /// `Time.Format`
    pub(crate) fn format(&self, layout: &[u8]) -> Vec<u8> {
        layout::format(self, layout)
    }

    /// `time.Parse`
    pub(crate) fn parse(layout: &[u8], text: &[u8]) -> Result<Time, String> {
        layout::read::parse(layout, text)
    }

    /// The form of `encoding/json`.
    pub(crate) fn json(&self) -> String {
        String::from_utf8_lossy(&self.format(b"2006-01-02T15:04:05.999999999Z07:00")).into_owned()
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.format(b"2006-01-02 15:04:05.999999999 -0700 MST")))
    }
}
