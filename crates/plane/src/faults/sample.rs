//! Which of many cases a test tries today.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

/// Set to anything, all cases are tried.
const WIDE: &str = "CARRICK_WIDE";
/// The number that decides which cases are tried, to run a failed test again.
const SAMPLE: &str = "CARRICK_SAMPLE";

/// Some of the points at which a test could strike: about one in a few, others every day, all of them with `CARRICK_WIDE=1`.
///
/// Tests that kill an agent at each of its writes take minutes; over the days a sample finds the same.
#[derive(Debug, Clone, Copy)]
pub struct Sample {
    seed: u64,
    one_in: u64,
}

impl Sample {
    /// About one case in `one_in`.
    pub fn one_in(one_in: u64) -> Self {
        let wide = std::env::var_os(WIDE).is_some();
        let given = std::env::var(SAMPLE).ok().and_then(|text| text.parse().ok());
        let days = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() / (24 * 60 * 60));
        Self::new(given.unwrap_or_else(days), if wide { 1 } else { one_in })
    }

    fn new(seed: u64, one_in: u64) -> Self {
        Self { seed, one_in: one_in.max(1) }
    }

    /// Whether all cases are tried.
    pub fn is_whole(&self) -> bool {
        self.one_in == 1
    }

    /// Whether this case is tried. Of `one_in` cases in a row it is exactly one, a different one each day.
    pub fn takes(&self, case: u64) -> bool {
        // Not the same place of every row, so that what comes in pairs is not always missed by half.
        let row = case / self.one_in;
        let mut mixed = (self.seed ^ row.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed ^= mixed >> 31;
        // The day itself moves the place by one, so that each case has its turn.
        (mixed % self.one_in + self.seed) % self.one_in == case % self.one_in
    }
}

/// For messages: how to try the same again.
impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_whole() {
            write!(f, "every case")
        } else {
            write!(f, "one case in {}; the same again with {SAMPLE}={}, all with {WIDE}=1", self.one_in, self.seed)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_every_row_one_case_is_taken() {
        for seed in 0..50 {
            for row in 0..20 {
                let taken = (row * 4..row * 4 + 4).filter(|case| Sample::new(seed, 4).takes(*case)).count();
                assert_eq!(taken, 1, "seed {seed}, row {row}");
            }
        }
    }

    #[test]
    fn every_case_has_its_turn_within_a_few_days() {
        for case in 0..100 {
            assert!((20_000..20_040).any(|day| Sample::new(day, 4).takes(case)), "case {case}");
        }
    }

    #[test]
    fn a_whole_sample_takes_all() {
        assert!((0..100).all(|case| Sample::new(7, 1).takes(case)));
    }
}
