//! Pauses: what the annotation `syncagent.kcp.io/pause` says, and who may write it.
//!
//! ```text
//!  Spec | Status | All[; until=<RFC 3339>][; because=<text>]
//! ```

use std::fmt;

use jiff::Timestamp;

/// Who may pause an order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PausedBy {
    /// The provider, on the copy.
    #[default]
    ProviderOnly,
    /// The consumer too, on the order.
    Both,
}

impl PausedBy {
    /// Parses the value that users write.
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "ProviderOnly" => Some(Self::ProviderOnly),
            "Both" => Some(Self::Both),
            _ => None,
        }
    }
}

/// What rests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PausedPart {
    /// What goes from the order to its copy.
    Spec,
    /// What comes back.
    Status,
    /// Both, and the deletion of the copy.
    All,
}

impl PausedPart {
    fn parse(word: &str) -> Option<Self> {
        [Self::Spec, Self::Status, Self::All].into_iter().find(|part| part.to_string() == word)
    }
}

impl fmt::Display for PausedPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Spec => "Spec",
            Self::Status => "Status",
            Self::All => "All",
        })
    }
}

/// What one annotation says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pause {
    /// What rests.
    pub part: PausedPart,
    /// When it ends by itself, in whole seconds; `None` if somebody has to remove it.
    pub until: Option<Timestamp>,
    /// Why, in the words of whoever wrote it.
    pub because: Option<String>,
    /// What cannot be read of it, if anything. Nothing is guessed: it pauses `Spec`, without an end.
    pub problem: Option<String>,
}

impl Pause {
    /// Reads the value of the annotation. A value that cannot be read pauses the content of the copy, because somebody wanted it to rest.
    pub fn parse(value: &str) -> Self {
        read(value).unwrap_or_else(|problem| Self {
            part: PausedPart::Spec,
            until: None,
            because: None,
            problem: Some(problem),
        })
    }

    /// Whether its time has come.
    pub fn is_over(&self, now: Timestamp) -> bool {
        self.until.is_some_and(|until| until <= now)
    }
}

fn read(value: &str) -> Result<Pause, String> {
    let mut parts = value.split(';').map(str::trim);
    let word = parts.next().unwrap_or_default();
    let part = PausedPart::parse(word)
        .ok_or_else(|| format!("{word:?} is none of Spec, Status and All; write one of them"))?;
    let mut pause = Pause { part, until: None, because: None, problem: None };
    let mut rest = value.split_once(';').map(|(_, rest)| rest.trim()).unwrap_or_default();
    while !rest.is_empty() {
        // A reason may have semicolons of its own: it comes last.
        if let Some(text) = rest.strip_prefix("because=") {
            pause.because = Some(text.trim().to_owned()).filter(|text| !text.is_empty());
            break;
        }
        let (one, others) = rest.split_once(';').unwrap_or((rest, ""));
        let Some(time) = one.trim().strip_prefix("until=") else {
            return Err(format!("{:?} is neither until=<time> nor because=<text>", one.trim()));
        };
        let until: Timestamp =
            time.trim().parse().map_err(|_| format!("until={} is no time like 2026-12-31T18:00:00Z", time.trim()))?;
        pause.until = Timestamp::from_second(until.as_second()).ok();
        rest = others.trim();
    }
    Ok(pause)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_annotation_is_read() {
        let time = |text: &str| Some(text.parse::<Timestamp>().unwrap());
        for (value, part, until, because) in [
            ("Spec", PausedPart::Spec, None, None),
            (" Status ", PausedPart::Status, None, None),
            ("All", PausedPart::All, None, None),
            ("All;", PausedPart::All, None, None),
            ("All; until=2026-12-31T18:00:00Z", PausedPart::All, time("2026-12-31T18:00:00Z"), None),
            ("Spec;until=2026-12-31T18:00:00.7+01:00", PausedPart::Spec, time("2026-12-31T17:00:00Z"), None),
            ("All; because=the disks; are moved", PausedPart::All, None, Some("the disks; are moved")),
            (
                "Status; until=2026-12-31T18:00:00Z; because=ticket 7",
                PausedPart::Status,
                time("2026-12-31T18:00:00Z"),
                Some("ticket 7"),
            ),
            ("Spec; because=", PausedPart::Spec, None, None),
        ] {
            let because = because.map(str::to_owned);
            assert_eq!(Pause::parse(value), Pause { part, until, because, problem: None }, "{value}");
        }
    }

    #[test]
    fn what_cannot_be_read_pauses_the_content_without_an_end_and_says_so() {
        for (value, words) in [
            ("", "none of Spec"),
            ("all", "\"all\" is none of Spec"),
            ("True; until=2026-12-31T18:00:00Z", "\"True\" is none of"),
            ("All; until=tomorrow", "until=tomorrow is no time like"),
            ("All; untl=2026-12-31T18:00:00Z", "neither until=<time> nor because=<text>"),
        ] {
            let pause = Pause::parse(value);
            assert_eq!((pause.part, pause.until), (PausedPart::Spec, None), "{value}");
            let problem = pause.problem.unwrap();
            assert!(problem.contains(words), "{value}: {problem}");
        }
    }

    #[test]
    fn a_pause_is_over_when_its_time_has_come() {
        let now: Timestamp = "2026-12-31T18:00:00Z".parse().unwrap();
        let over = |value: &str| Pause::parse(value).is_over(now);
        assert!(over("All; until=2026-12-31T18:00:00Z") && over("All; until=2020-01-01T00:00:00Z"));
        assert!(!over("All; until=2026-12-31T18:00:01Z") && !over("All") && !over("rubbish"));
    }

    #[test]
    fn who_may_pause_is_read() {
        let read = ["ProviderOnly", "Both", "", "Nobody"].map(PausedBy::parse);
        assert_eq!(read, [Some(PausedBy::ProviderOnly), Some(PausedBy::Both), None, None]);
    }
}
