//! Which slot a cluster is in, and which process a slot belongs to.
//!
//! Both are plain arithmetic on names, so that all processes come to the same answer without asking each other. They must never change:
//! during an update old and new processes share the work.

use crate::name::ClusterName;

/// The slot of a cluster.
pub(super) fn slot_of(cluster: &ClusterName, slots: usize) -> usize {
    let slots = u64::try_from(slots.max(1)).unwrap_or(u64::MAX);
    usize::try_from(hash(&[cluster.as_str()]) % slots).unwrap_or_default()
}

/// The process a slot belongs to, of those given with their weights: by weighted rendezvous hashing, so that a process that comes or
/// goes moves only the slots it gains or loses, and gets a share in proportion to its weight.
pub(super) fn owner<'a>(slot: usize, processes: impl IntoIterator<Item = (&'a str, f64)>) -> Option<&'a str> {
    let scored = processes.into_iter().map(|(id, weight)| (score(slot, id, weight), id));
    let best = scored.max_by(|(score, id), (other_score, other)| score.total_cmp(other_score).then(id.cmp(other)));
    best.map(|(_, id)| id)
}

/// `-weight / ln(u)` with `u` evenly spread over (0, 1): the chance to score highest is the weight over the sum of all weights.
fn score(slot: usize, id: &str, weight: f64) -> f64 {
    let hash = hash(&[&slot.to_string(), id]);
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
    let u = ((hash >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
    -weight / u.ln()
}

/// FNV-1a over the parts, with a last step that spreads the bits of short names over the whole number.
fn hash(parts: &[&str]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for part in parts {
        // A byte that no name has keeps ("a", "b") and ("ab", "") apart.
        for byte in part.bytes().chain([0xff]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(processes: &[(&'static str, f64)], slots: usize) -> Vec<usize> {
        let owners: Vec<&str> = (0..slots).filter_map(|slot| owner(slot, processes.iter().copied())).collect();
        processes.iter().map(|(id, _)| owners.iter().filter(|owner| *owner == id).count()).collect()
    }

    #[test]
    fn answers_are_the_same_in_every_release() {
        let slots = ["a", "b", "2hrqj6q1dn8mkyur", "local"].map(|name| slot_of(&name.parse().unwrap(), 64));
        assert_eq!(slots, [53, 56, 34, 38]);
        let owners: Vec<_> = (0..8).filter_map(|slot| owner(slot, [("p", 1.0), ("q", 1.0), ("r", 1.0)])).collect();
        assert_eq!(owners.concat(), "rrpprqqq");
    }

    #[test]
    fn clusters_spread_evenly_over_slots() {
        let mut counts = vec![0_usize; 64];
        for n in 0..64_000 {
            counts[slot_of(&format!("cluster-{n}").parse().unwrap(), 64)] += 1;
        }
        assert!(counts.iter().all(|count| (850..1150).contains(count)), "{counts:?}");
    }

    #[test]
    fn shares_follow_weights() {
        let equal = shares(&[("p", 1.0), ("q", 1.0)], 10_000);
        assert!(equal.iter().all(|share| (4800..5200).contains(share)), "{equal:?}");
        let unequal = shares(&[("p", 3.0), ("q", 1.0)], 10_000);
        assert!((7300..7700).contains(&unequal[0]), "{unequal:?}");
    }

    #[test]
    fn a_process_that_leaves_moves_only_its_own_slots() {
        let all = [("p", 1.0), ("q", 2.0), ("r", 0.5)];
        for slot in 0..1000 {
            let before = owner(slot, all);
            let after = owner(slot, all.into_iter().filter(|(id, _)| *id != "r"));
            assert!(before == after || before == Some("r"), "slot {slot}");
        }
    }

    #[test]
    fn without_processes_there_is_no_owner() {
        assert_eq!(owner(0, []), None);
    }
}
