//! The explorer: small worlds, explored whole over the real pure functions.
//!
//! ```text
//!  World ──▶ moves: what can happen next, by itself or by a fault ──▶ worlds after them
//!    │
//!    └─ a move that breaks a promise, a rest in which something is wrong, or a world from which no rest can be
//!       reached without further faults ends the search, with the shortest story that leads there
//! ```
//!
//! Only servers and wires are modelled. What an agent does about what it sees is decided by the functions that run in production. Each model has to
//! find the defects that are planted for it: an explorer that finds nothing may be blind.

mod drift;
mod models;
mod order;
mod planted;
mod sent;
mod servers;

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// A world that can be explored.
pub trait World: Clone + Hash {
    /// Everything that can happen next. A world in which nothing happens by itself rests.
    fn moves(&self) -> Vec<Move<Self>>;

    /// What is wrong if it rests.
    fn at_rest(&self) -> Result<(), String>;
}

/// Something that can happen.
pub struct Move<W> {
    /// In words.
    pub story: String,
    /// Whether it is no fault and nobody's will: what goes on by itself.
    pub by_itself: bool,
    /// The world afterwards, or the promise that it breaks.
    pub next: Result<W, String>,
}

/// How far an exploration went.
#[derive(Debug)]
pub struct Explored {
    /// How many different worlds there are.
    pub worlds: usize,
    /// In how many of them everything rests.
    pub rests: usize,
}

/// A way to something that must not be.
#[derive(Debug)]
pub struct Counterexample {
    /// What is wrong.
    pub wrong: String,
    /// What happened, from the beginning.
    pub story: Vec<String>,
}

/// How each world was reached.
#[derive(Default)]
struct Ways {
    known: HashMap<u64, usize>,
    /// The world before, and what happened then.
    from: Vec<Option<(usize, String)>>,
}

impl Ways {
    /// The number of a world, and whether it is new.
    fn number<W: Hash>(&mut self, world: &W, from: Option<(usize, String)>) -> (usize, bool) {
        let mut hasher = DefaultHasher::new();
        world.hash(&mut hasher);
        let number = *self.known.entry(hasher.finish()).or_insert(self.from.len());
        let is_new = number == self.from.len();
        if is_new {
            self.from.push(from);
        }
        (number, is_new)
    }

    fn story(&self, mut at: usize, last: Option<String>, wrong: String) -> Counterexample {
        let mut story: Vec<String> = last.into_iter().collect();
        while let Some((before, what)) = &self.from[at] {
            story.push(what.clone());
            at = *before;
        }
        story.reverse();
        Counterexample { wrong, story }
    }
}

/// Explores a world, breadth first.
pub fn explore<W: World>(start: W) -> Result<Explored, Counterexample> {
    let mut ways = Ways::default();
    ways.number(&start, None);
    let (mut layer, mut rests) = (vec![(0, start)], Vec::new());
    // By which worlds each world is reached without a fault.
    let mut before: Vec<Vec<usize>> = vec![Vec::new()];
    while !layer.is_empty() {
        let mut next_layer = Vec::new();
        for (number, world) in layer {
            let moves = world.moves();
            if !moves.iter().any(|one| one.by_itself) {
                world.at_rest().map_err(|wrong| ways.story(number, None, format!("at rest {wrong}")))?;
                rests.push(number);
            }
            for Move { story, by_itself, next } in moves {
                let next = match next {
                    Ok(next) => next,
                    Err(wrong) => return Err(ways.story(number, Some(story), wrong)),
                };
                let (reached, is_new) = ways.number(&next, Some((number, story)));
                if is_new {
                    before.push(Vec::new());
                    next_layer.push((reached, next));
                }
                if by_itself {
                    before[reached].push(number);
                }
            }
        }
        layer = next_layer;
    }
    let explored = Explored { worlds: ways.from.len(), rests: rests.len() };
    match without_rest(&before, rests) {
        Some(number) => Err(ways.story(number, None, "no rest can be reached from here".to_owned())),
        None => Ok(explored),
    }
}

/// The first world from which nothing leads to a rest by itself.
fn without_rest(before: &[Vec<usize>], mut rests: Vec<usize>) -> Option<usize> {
    let mut good = vec![false; before.len()];
    while let Some(number) = rests.pop() {
        if !std::mem::replace(&mut good[number], true) {
            rests.extend(&before[number]);
        }
    }
    good.iter().position(|good| !good)
}

/// A counter that must not pass two, rests at its end, and may turn in circles.
#[derive(Clone, Hash)]
struct Toy {
    count: u8,
    end: u8,
    turns: Option<bool>,
}

impl World for Toy {
    fn moves(&self) -> Vec<Move<Self>> {
        let to = |story: &str, by_itself: bool, next: Self| Move { story: story.into(), by_itself, next: Ok(next) };
        if let Some(turns) = self.turns {
            return vec![to("turn", true, Self { turns: Some(!turns), ..*self })];
        }
        let mut moves = Vec::new();
        if self.count < self.end {
            let mut up = to("up", true, Self { count: self.count + 1, ..*self });
            if self.count == 2 {
                up.next = Err("too many".into());
            }
            moves.push(up);
        }
        if self.end == 1 {
            moves.push(to("begin to turn", false, Self { turns: Some(false), ..*self }));
        }
        moves
    }

    fn at_rest(&self) -> Result<(), String> {
        if self.end == 0 { Err("nothing was counted".into()) } else { Ok(()) }
    }
}

#[test]
fn the_shortest_way_to_what_is_wrong_is_told() {
    let found = |end| explore(Toy { count: 0, end, turns: None });
    let explored = found(2).unwrap();
    assert_eq!((explored.worlds, explored.rests), (3, 1));
    let told = |end| found(end).map_err(|found| (found.wrong, found.story.join(", "))).unwrap_err();
    assert_eq!(told(3), ("too many".into(), "up, up, up".into()));
    assert_eq!(told(1), ("no rest can be reached from here".into(), "begin to turn".into()));
    assert_eq!(told(0), ("at rest nothing was counted".into(), String::new()));
}
