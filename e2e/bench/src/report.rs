//! What was measured, and how it is shown.

use std::time::Duration;

use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::door::{Asked, Counts, sum};

/// All figures of one agent, or of the floor.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Name of the agent.
    pub name: String,
    /// Objects that were there before the agent.
    pub catch_up: CatchUp,
    /// A restart on them.
    pub restart: Option<Restart>,
    /// Orders at a steady rate.
    pub rested: Option<Rested>,
    /// One consumer's orders while those of others wait.
    pub crowded: Option<Latency>,
    /// Many orders at once.
    pub burst: Option<Burst>,
    /// Nothing to do.
    pub idle: Option<Idle>,
    /// The floor only: the three writes of an object in a row.
    pub in_a_row: Option<Latency>,
}

/// Requests to both servers.
#[derive(Debug, Serialize)]
pub struct Requests {
    /// To kcp.
    #[serde(serialize_with = "by_name")]
    pub kcp: Counts,
    /// To the service cluster.
    #[serde(serialize_with = "by_name")]
    pub service: Counts,
}

/// Catching up.
#[derive(Debug, Serialize)]
pub struct CatchUp {
    /// How many objects.
    pub objects: usize,
    /// In how many workspaces.
    pub workspaces: usize,
    /// From the start of the process until all are placed.
    pub seconds: f64,
    /// From the start of the process until the first is placed.
    pub first_seconds: f64,
    /// Processor time until the agent rests.
    pub processor_ms: Option<f64>,
    /// Resident memory when the agent rests, in bytes.
    pub memory: Option<u64>,
    /// Resident memory at its highest.
    pub peak: Option<u64>,
    /// Resident memory of the benchmark, embedded planes included.
    pub servers_memory: u64,
    /// Until the agent rests.
    pub requests: Requests,
}

impl CatchUp {
    /// Objects per second.
    pub fn rate(&self) -> f64 {
        count(self.objects) / self.seconds
    }
}

/// A restart.
#[derive(Debug, Serialize)]
pub struct Restart {
    /// From the start of the process until its last request.
    pub seconds: f64,
    /// Writes among the requests, leases aside.
    pub writes: u64,
    /// Processor time until the agent rests.
    pub processor_ms: f64,
    /// Resident memory when the agent rests, in bytes.
    pub memory: u64,
    /// Resident memory at its highest.
    pub peak: u64,
    /// Until the agent rests.
    pub requests: Requests,
}

/// Orders at a steady rate.
#[derive(Debug, Serialize)]
pub struct Rested {
    /// From the acknowledged order until the copy is seen.
    pub copy: Latency,
    /// From the moment the operator sends its status until the source shows it.
    pub status: Latency,
}

/// Many orders at once, for an agent that is at rest.
#[derive(Debug, Serialize)]
pub struct Burst {
    /// From each acknowledged order until its copy is seen.
    pub copy: Latency,
    /// Processor time until the agent rests again.
    pub processor_ms: f64,
    /// Resident memory then, in bytes.
    pub memory: u64,
}

/// An agent with nothing to do.
#[derive(Debug, Serialize)]
pub struct Idle {
    /// For how long.
    pub seconds: u64,
    /// Requests of any kind.
    pub requests: u64,
    /// Processor time.
    pub processor_ms: f64,
    /// Resident memory in bytes.
    pub memory: u64,
    /// Resident memory at its highest.
    pub peak: u64,
}

/// Durations in milliseconds.
#[derive(Debug, Clone, Serialize)]
pub struct Latency {
    /// How many were measured.
    pub samples: usize,
    /// Half of them are at most this.
    pub p50: f64,
    /// 99 of 100 are at most this.
    pub p99: f64,
}

impl Latency {
    /// Sorts and counts.
    pub fn of(samples: &mut [Duration]) -> Self {
        samples.sort_unstable();
        let at = |per_cent: usize| {
            let rank = (samples.len() * per_cent).div_ceil(100).max(1);
            samples.get(rank - 1).map_or(f64::NAN, |sample| sample.as_secs_f64() * 1e3)
        };
        Self { samples: samples.len(), p50: at(50), p99: at(99) }
    }
}

/// A number as a fraction; what is counted here is far below 2^52.
#[allow(clippy::cast_precision_loss)]
pub fn count(number: usize) -> f64 {
    number as f64
}

/// Bytes in MiB.
pub fn mib(bytes: u64) -> f64 {
    count(usize::try_from(bytes).unwrap_or(usize::MAX)) / 1024.0 / 1024.0
}

fn by_name<S: Serializer>(counts: &Counts, serializer: S) -> Result<S::Ok, S::Error> {
    let named: Map<String, Value> = counts
        .iter()
        .map(|(asked, count)| (format!("{} {}", asked.verb, asked.resource).trim().to_owned(), Value::from(*count)))
        .collect();
    named.serialize(serializer)
}

/// One line of the table: what, how exactly it is shown, and how to find it in a report.
type Row = (&'static str, usize, fn(&Report) -> Option<f64>);

const ROWS: [Row; 29] = [
    ("catch-up, objects/s", 1, |r| Some(r.catch_up.rate())),
    ("first object placed, s after start", 2, |r| Some(r.catch_up.first_seconds)),
    ("processor time per object, ms", 2, |r| Some(r.catch_up.processor_ms? / count(r.catch_up.objects))),
    ("memory after catch-up, MiB", 1, |r| r.catch_up.memory.map(mib)),
    ("memory at its highest, MiB", 1, |r| {
        Some(mib(r.idle.as_ref().map_or(r.catch_up.peak?, |idle| idle.peak.max(r.catch_up.peak.unwrap_or(0)))))
    }),
    ("kcp: reads per object", 2, |r| per_object(r, &r.catch_up.requests.kcp, is_read)),
    ("kcp: writes per object, events aside", 2, |r| per_object(r, &r.catch_up.requests.kcp, is_write)),
    ("kcp: events per object", 2, |r| per_object(r, &r.catch_up.requests.kcp, is_event)),
    ("service cluster: reads per object", 2, |r| per_object(r, &r.catch_up.requests.service, is_read)),
    ("service cluster: writes per object", 2, |r| per_object(r, &r.catch_up.requests.service, is_write)),
    ("restart until the last request, s", 2, |r| Some(r.restart.as_ref()?.seconds)),
    ("restart: requests", 0, |r| r.restart.as_ref().map(|restart| total(&restart.requests))),
    ("restart: writes", 0, |r| Some(count(usize::try_from(r.restart.as_ref()?.writes).ok()?))),
    ("restart: processor time, ms", 0, |r| Some(r.restart.as_ref()?.processor_ms)),
    ("restart: memory, MiB", 1, |r| Some(mib(r.restart.as_ref()?.memory))),
    ("source → copy, p50 ms", 1, |r| Some(r.rested.as_ref()?.copy.p50)),
    ("source → copy, p99 ms", 1, |r| Some(r.rested.as_ref()?.copy.p99)),
    ("status → source, p50 ms", 1, |r| Some(r.rested.as_ref()?.status.p50)),
    ("status → source, p99 ms", 1, |r| Some(r.rested.as_ref()?.status.p99)),
    ("source → copy behind others' backlog, p50 ms", 1, |r| Some(r.crowded.as_ref()?.p50)),
    ("source → copy behind others' backlog, p99 ms", 1, |r| Some(r.crowded.as_ref()?.p99)),
    ("burst: source → copy, p50 ms", 1, |r| Some(r.burst.as_ref()?.copy.p50)),
    ("burst: source → copy, p99 ms", 1, |r| Some(r.burst.as_ref()?.copy.p99)),
    ("burst: processor time per object, ms", 2, |r| {
        r.burst.as_ref().map(|burst| burst.processor_ms / count(burst.copy.samples))
    }),
    ("burst: memory, MiB", 1, |r| Some(mib(r.burst.as_ref()?.memory))),
    ("three writes in a row, p50 ms", 1, |r| Some(r.in_a_row.as_ref()?.p50)),
    ("idle: requests per minute", 1, |r| r.idle.as_ref().map(|idle| per_minute(idle, idle.requests))),
    ("idle: processor time per minute, ms", 0, |r| {
        r.idle.as_ref().map(|idle| idle.processor_ms * 60.0 / Duration::from_secs(idle.seconds).as_secs_f64())
    }),
    ("idle: memory, MiB", 1, |r| Some(mib(r.idle.as_ref()?.memory))),
];

fn is_read(asked: &Asked) -> bool {
    !asked.is_write() && !asked.is_routine()
}

fn is_write(asked: &Asked) -> bool {
    asked.is_write() && !asked.is_routine() && !is_event(asked)
}

fn is_event(asked: &Asked) -> bool {
    asked.is_write() && asked.resource == "events"
}

fn per_object(report: &Report, counts: &Counts, fits: fn(&Asked) -> bool) -> Option<f64> {
    Some(count(usize::try_from(sum(counts, fits)).ok()?) / count(report.catch_up.objects))
}

fn total(requests: &Requests) -> f64 {
    let all = sum(&requests.kcp, |_| true) + sum(&requests.service, |_| true);
    count(usize::try_from(all).unwrap_or(usize::MAX))
}

fn per_minute(idle: &Idle, number: u64) -> f64 {
    count(usize::try_from(number).unwrap_or(usize::MAX)) * 60.0 / Duration::from_secs(idle.seconds).as_secs_f64()
}

/// The table of all reports; with a second agent, how many times as much it needs as the first.
pub fn table(reports: &[Report]) -> String {
    table_of(reports, &[])
}

/// The same with other words for the two servers.
pub fn table_of(reports: &[Report], words: &[(&str, &str)]) -> String {
    let agents: Vec<&Report> = reports.iter().filter(|report| report.in_a_row.is_none()).collect();
    let mut head = vec![String::new()];
    head.extend(reports.iter().map(|report| report.name.clone()));
    if let [first, others @ ..] = agents.as_slice() {
        head.extend(others.iter().map(|other| format!("{} ÷ {}", other.name, first.name)));
    }
    let mut lines = Vec::new();
    for (what, digits, find) in ROWS {
        let mut line = vec![words.iter().fold(what.to_owned(), |what, (from, to)| what.replace(from, to))];
        let shown = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |value| format!("{value:.digits$}"));
        line.extend(reports.iter().map(|report| shown(find(report))));
        if let [first, others @ ..] = agents.as_slice() {
            let ratio = |other: &&Report| Some(find(other)? / find(first)?).filter(|ratio| ratio.is_finite());
            line.extend(others.iter().map(|other| shown_ratio(ratio(other))));
        }
        if reports.iter().any(|report| find(report).is_some()) {
            lines.push(line);
        }
    }
    aligned(&head, &lines)
}

fn shown_ratio(ratio: Option<f64>) -> String {
    match ratio {
        None => "–".to_owned(),
        Some(ratio) if ratio < 10.0 => format!("{ratio:.2}"),
        Some(ratio) => format!("{ratio:.0}"),
    }
}

/// The growth of several sizes.
pub fn growth(reports: &[Report]) -> String {
    let head = [
        "",
        "objects",
        "workspaces",
        "catch-up, s",
        "objects/s",
        "CPU per object, ms",
        "restart, s",
        "memory, MiB",
        "after restart, MiB",
        "highest, MiB",
        "per object, KiB",
        "servers, MiB",
    ]
    .map(str::to_owned);
    let mut lines = Vec::new();
    let mut smaller: Option<(&str, usize, u64)> = None;
    for report in reports {
        let all = &report.catch_up;
        let text =
            |value: Option<f64>, digits: usize| value.map_or_else(|| "–".into(), |value| format!("{value:.digits$}"));
        // What one more object costs, seen from the size before: the agent itself is not counted.
        let marginal = smaller.zip(all.memory).and_then(|((name, objects, memory), now)| {
            let more = all.objects.checked_sub(objects).filter(|more| *more > 0 && name == report.name)?;
            Some(mib(now.saturating_sub(memory)) * 1024.0 / count(more))
        });
        lines.push(vec![
            report.name.clone(),
            all.objects.to_string(),
            all.workspaces.to_string(),
            text(Some(all.seconds), 1),
            text(Some(all.rate()), 0),
            text(all.processor_ms.map(|ms| ms / count(all.objects)), 2),
            text(report.restart.as_ref().map(|restart| restart.seconds), 2),
            text(all.memory.map(mib), 1),
            text(report.restart.as_ref().map(|restart| mib(restart.memory)), 1),
            text(all.peak.map(mib), 1),
            text(marginal, 1),
            text(Some(mib(all.servers_memory)), 0),
        ]);
        smaller = all.memory.map(|memory| (report.name.as_str(), all.objects, memory));
    }
    aligned(&head, &lines)
}

/// A Markdown table whose columns line up, so that it can be read as it is.
pub fn aligned(head: &[String], lines: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = lines.iter().filter_map(|line| line.get(column)).chain(head.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0).max(3)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let show = |cells: &[String]| {
        let cells = cells.iter().zip(&widths).enumerate().map(|(column, (cell, width))| {
            let gap = " ".repeat(width - cell.chars().count());
            if column == 0 { format!("{cell}{gap}") } else { format!("{gap}{cell}") }
        });
        format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
    };
    let rule = widths
        .iter()
        .enumerate()
        .map(|(column, width)| if column == 0 { "-".repeat(*width) } else { format!("{}:", "-".repeat(width - 1)) });
    let rule: Vec<String> = rule.collect();
    let body: String = lines.iter().map(|line| show(line)).collect();
    format!("{}{}{body}", show(head), show(&rule))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_the_nearest_ranks() {
        let mut samples: Vec<Duration> = (1..=200).rev().map(Duration::from_millis).collect();
        let latency = Latency::of(&mut samples);
        assert_eq!((latency.samples, latency.p50, latency.p99), (200, 100.0, 198.0));
        assert!(Latency::of(&mut []).p50.is_nan());
    }

    #[test]
    fn columns_line_up() {
        let table = aligned(&["a".into(), "÷".into()], &[vec!["long".into(), "1".into()]]);
        assert_eq!(table, "| a    |   ÷ |\n| ---- | --: |\n| long |   1 |\n");
    }
}
