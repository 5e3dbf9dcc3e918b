//! Ways from one version to another by rules that each lead from one to the next.

use std::collections::{BTreeMap, VecDeque};

/// The shortest way, as indices of steps; empty if both are the same, `None` if there is none.
pub fn way(steps: &[(&str, &str)], from: &str, to: &str) -> Option<Vec<usize>> {
    let mut reached: BTreeMap<&str, Vec<usize>> = BTreeMap::from([(from, Vec::new())]);
    let mut open = VecDeque::from([from]);
    while let Some(here) = open.pop_front() {
        if here == to {
            return reached.remove(here);
        }
        for (index, (_, next)) in steps.iter().enumerate().filter(|(_, (start, _))| *start == here) {
            if !reached.contains_key(next) {
                let mut taken = reached[here].clone();
                taken.push(index);
                reached.insert(next, taken);
                open.push_back(next);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_way_is_found_if_there_is_one() {
        let steps = [("a", "b"), ("b", "c"), ("c", "d"), ("b", "d"), ("d", "a")];
        for (from, to, expected) in [
            ("a", "a", Some(vec![])),
            ("a", "d", Some(vec![0, 3])),
            ("c", "b", Some(vec![2, 4, 0])),
            ("a", "e", None),
            ("e", "e", Some(vec![])),
        ] {
            assert_eq!(way(&steps, from, to), expected, "{from} {to}");
        }
    }
}
