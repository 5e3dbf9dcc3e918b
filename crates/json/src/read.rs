//! Reading JSON that is nested deeper than serde_json allows.
//!
//! serde_json gives up at 128 levels, Go at 10 000. Whatever walks through a document takes some stack for every level (reading, cloning,
//! comparing and dropping a [`serde_json::Value`] each up to 0.6 KiB, without optimisation 2 KiB), so there is a limit here as well: one that
//! fits several times into the stack of a thread.

use serde::de::{DeserializeOwned, Error as _};

/// How many levels objects may nest.
pub const DEEPEST: usize = 1_000;

/// The stack size for threads that handle such objects, which run code of their own for each level. Memory is used only as far as it is
/// written to.
pub const STACK: usize = 16 << 20;

/// How many levels are read: an object comes wrapped in others, and its `managedFields` nest deeper than itself.
const WRAPPED: usize = DEEPEST + 24;

/// serde_json reads this many levels by itself.
const SHALLOW: usize = 127;

/// Reads JSON of up to [`DEEPEST`] levels, and a few more for what it is wrapped in.
///
/// ```
/// let deep = format!("{}1{}", "[".repeat(500), "]".repeat(500));
/// assert!(serde_json::from_str::<serde_json::Value>(&deep).is_err());
/// let value: serde_json::Value = carrick_json::from_slice(deep.as_bytes()).unwrap();
/// assert_eq!(value.to_string(), deep);
/// ```
pub fn from_slice<T: DeserializeOwned>(json: &[u8]) -> Result<T, serde_json::Error> {
    let shallow = match serde_json::from_slice(json) {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    match depth(json) {
        levels if levels <= SHALLOW => Err(shallow),
        levels if levels <= WRAPPED => {
            let mut reader = serde_json::Deserializer::from_slice(json);
            reader.disable_recursion_limit();
            let value = T::deserialize(&mut reader)?;
            reader.end()?;
            Ok(value)
        }
        levels => Err(serde_json::Error::custom(TooDeep { levels })),
    }
}

/// The same for text.
pub fn from_str<T: DeserializeOwned>(json: &str) -> Result<T, serde_json::Error> {
    from_slice(json.as_bytes())
}

/// How deeply arrays and objects are nested. Text that is not JSON gives some number.
///
/// ```
/// assert_eq!(carrick_json::depth(br#"{"a": [1, "[[["], "b": 2}"#), 2);
/// ```
pub fn depth(json: &[u8]) -> usize {
    let (mut now, mut most) = (0_usize, 0);
    let mut bytes = json.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'{' | b'[' => {
                now += 1;
                most = most.max(now);
            }
            b'}' | b']' => now = now.saturating_sub(1),
            b'"' => {
                while let Some(byte) = bytes.next() {
                    match byte {
                        b'\\' => drop(bytes.next()),
                        b'"' => break,
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    most
}

/// A document is nested too deeply to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is nested {levels} levels deep; at most {DEEPEST} are supported")]
pub struct TooDeep {
    /// How deep it nests.
    pub levels: usize,
}

impl TooDeep {
    /// Whether an object nests deeper than [`DEEPEST`].
    pub fn check(json: &[u8]) -> Result<(), Self> {
        // Every level takes two bytes at least.
        if json.len() <= 2 * DEEPEST {
            return Ok(());
        }
        let levels = depth(json);
        if levels > DEEPEST { Err(Self { levels }) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn lists(levels: usize) -> String {
        format!("{}1{}", "[".repeat(levels), "]".repeat(levels))
    }

    fn maps(levels: usize) -> String {
        format!("{}1{}", r#"{"a":"#.repeat(levels), "}".repeat(levels))
    }

    /// Threads of tests are small, and code is not optimised there.
    fn on_a_large_stack(test: impl FnOnce() + Send + 'static) {
        std::thread::Builder::new().stack_size(STACK).spawn(test).unwrap().join().unwrap();
    }

    #[test]
    fn depth_is_counted_without_regard_to_what_is_in_strings() {
        for (text, levels) in [
            ("1", 0),
            ("[]", 1),
            (r#"{"a":{"b":[]},"c":[[]]}"#, 3),
            (r#"["[[[","\"[[","\\"]"#, 1),
            (r#"["\\",["]"]]"#, 2),
            ("]]][", 1),
            (r#"["\"#, 1),
        ] {
            assert_eq!(depth(text.as_bytes()), levels, "{text}");
        }
        assert_eq!(depth(maps(20_000).as_bytes()), 20_000);
    }

    #[test]
    fn a_thousand_levels_are_read_cloned_compared_and_written_again() {
        on_a_large_stack(|| {
            for levels in [1, 127, 128, DEEPEST, WRAPPED] {
                for text in [lists(levels), maps(levels)] {
                    let value: Value = from_str(&text).unwrap();
                    assert_eq!(value.clone(), value);
                    assert_eq!(value.to_string(), text);
                }
            }
        });
    }

    #[test]
    fn what_nests_deeper_is_refused_with_its_depth() {
        for text in [lists(WRAPPED + 1), maps(9_999), lists(1_000_000)] {
            let problem = from_str::<Value>(&text).unwrap_err().to_string();
            assert!(problem.contains(&format!("{} levels", depth(text.as_bytes()))), "{problem}");
        }
        assert_eq!(TooDeep::check(maps(DEEPEST).as_bytes()), Ok(()));
        assert_eq!(TooDeep::check(maps(1001).as_bytes()), Err(TooDeep { levels: 1001 }));
    }

    #[test]
    fn what_is_no_json_is_refused_at_any_depth() {
        on_a_large_stack(|| {
            for text in ["", "{", "[1,]", "1 2"] {
                assert!(from_str::<Value>(text).is_err(), "{text}");
                assert!(
                    from_str::<Value>(&format!("{}{text}{}", "[".repeat(300), "]".repeat(300))).is_err()
                        || text.is_empty()
                );
            }
            assert!(from_str::<Value>(&format!("{} 1", lists(300))).is_err());
        });
    }

    #[test]
    fn numbers_and_duplicate_keys_are_what_go_makes_of_them() {
        // What Go writes for a float comes back as the same float, to the last bit.
        for float in
            [0.1, 1e21, 1e-7, 1.797_693_134_862_315_7e308, 5e-324, 9_007_199_254_740_993.0, 123_456.789_012_345_67]
        {
            let text = crate::go::to_string(&json!(float)).unwrap();
            let value: Value = from_str(&text).unwrap();
            assert_eq!(value.as_f64().map(f64::to_bits), Some(f64::to_bits(float)), "{text}");
        }
        for integer in [i64::MAX, i64::MIN, -1] {
            assert_eq!(from_str::<Value>(&integer.to_string()).unwrap(), json!(integer));
        }
        assert_eq!(from_str::<Value>(r#"{"a":1,"a":{"b":2}}"#).unwrap(), json!({"a": {"b": 2}}));
    }
}
