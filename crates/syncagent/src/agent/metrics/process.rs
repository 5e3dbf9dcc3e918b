//! Memory, processor time, open files and threads of this process, where the system reports them.

use std::fs;

use carrick_multicluster::metrics::Page;

use super::family;

/// Linux counts processor time in hundredths of a second.
const TICKS: f64 = 100.0;

pub(super) fn show(page: &mut Page) {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let field = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name))?;
        line.split_whitespace().nth(1)?.parse::<u64>().ok()
    };
    if let Some(seconds) = fs::read_to_string("/proc/self/stat").ok().as_deref().and_then(processor_seconds) {
        page.sample(&family::PROCESSOR, &[], seconds);
    }
    if let Some(kib) = field("VmRSS:") {
        page.sample(&family::MEMORY, &[], kib * 1024);
    }
    if let Ok(files) = fs::read_dir("/proc/self/fd") {
        page.sample(&family::OPEN_FILES, &[], files.count());
    }
    if let Some(threads) = field("Threads:") {
        page.sample(&family::THREADS, &[], threads);
    }
}

fn processor_seconds(stat: &str) -> Option<f64> {
    // The name of the program is in parentheses; user and system time are the 12th and 13th field behind it.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let (user, system) = (fields.next()?.parse::<u32>().ok()?, fields.next()?.parse::<u32>().ok()?);
    Some((f64::from(user) + f64::from(system)) / TICKS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_is_read_behind_any_program_name() {
        let stat = "12 (a b) c) S 1 2 3 4 5 6 7 8 9 10 150 50 0 0 20 0 3 0";
        assert_eq!(processor_seconds(stat), Some(2.0));
        assert_eq!(processor_seconds("12 (a"), None);
    }
}
