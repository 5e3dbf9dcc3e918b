//! Random choices that can be made again.

/// How many runs with new seeds each trial makes.
const RUNS: &str = "CARRICK_RUNS";
/// The one seed to run with, to replay a failure, or several: `7` or `1-60`.
const SEED: &str = "CARRICK_SEED";

/// Set to anything, all combinations are tried instead of a selection.
const WIDE: &str = "CARRICK_WIDE";

/// Whether all combinations are to be tried.
pub fn is_wide() -> bool {
    std::env::var_os(WIDE).is_some()
}

/// Choices that follow from a seed.
pub struct Choices(u64);

impl Choices {
    /// The choices of a seed.
    pub fn of(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below a limit.
    pub fn below(&mut self, limit: u64) -> u64 {
        // splitmix64
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % limit.max(1)
    }

    /// One of several.
    pub fn one<T: Copy>(&mut self, of: &[T]) -> Option<T> {
        let count = u64::try_from(of.len()).unwrap_or(u64::MAX);
        usize::try_from(self.below(count)).ok().and_then(|index| of.get(index).copied())
    }
}

/// The seeds to run with: always the same few, as many new ones as asked for, or the one to be replayed.
pub fn seeds(default: u64) -> Vec<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    if let Some((first, last)) = std::env::var(SEED).ok().as_deref().and_then(range) {
        return (first..=last).collect();
    }
    // The same ones every time, so that a change that breaks something is the one that is blamed; new ones for whoever asks for more.
    let Some(runs) = number(RUNS) else { return (1..=default).collect() };
    // Short enough to be typed again.
    let new = || uuid::Uuid::new_v4().as_u64_pair().0 % 1_000_000;
    (0..runs).map(|_| new()).collect()
}

fn range(text: &str) -> Option<(u64, u64)> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    Some((first.parse().ok()?, last.parse().ok()?))
}

/// How to run a failed trial again.
pub fn replay(seed: u64) -> String {
    format!("seed {seed}; again with {SEED}={seed}")
}
