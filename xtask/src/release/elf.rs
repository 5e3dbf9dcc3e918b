//! What an ELF program needs from the system it runs on: its interpreter and its shared libraries. Pure.

use anyhow::{Context, ensure};

const PT_DYNAMIC: u32 = 2;
const PT_INTERP: u32 = 3;
const PT_LOAD: u32 = 1;
const DT_NEEDED: u64 = 1;
const DT_STRTAB: u64 = 5;

/// Interpreter and libraries by name; empty for a program that needs nothing.
pub fn needs(file: &[u8]) -> anyhow::Result<Vec<String>> {
    ensure!(file.starts_with(b"\x7fELF\x02\x01"), "not a 64-bit little-endian ELF program");
    let segments = usize::try_from(number(file, 32, 8)?)?;
    let (size, count) = (number(file, 54, 2)?, number(file, 56, 2)?);
    let (mut found, mut loads, mut dynamic) = (Vec::new(), Vec::new(), None);
    for index in 0..count {
        let at = segments + usize::try_from(index * size)?;
        let (kind, offset) = (u32::try_from(number(file, at, 4)?)?, number(file, at + 8, 8)?);
        let (address, length) = (number(file, at + 16, 8)?, number(file, at + 32, 8)?);
        match kind {
            PT_INTERP => found.push(text(file, usize::try_from(offset)?)?),
            PT_LOAD => loads.push((address, offset, length)),
            PT_DYNAMIC => dynamic = Some((offset, length)),
            _ => {}
        }
    }
    let Some((start, length)) = dynamic else { return Ok(found) };
    let (mut names, mut strings) = (Vec::new(), None);
    for at in (start..start + length).step_by(16) {
        let at = usize::try_from(at)?;
        match number(file, at, 8)? {
            0 => break,
            DT_NEEDED => names.push(number(file, at + 8, 8)?),
            DT_STRTAB => strings = Some(number(file, at + 8, 8)?),
            _ => {}
        }
    }
    if names.is_empty() {
        return Ok(found);
    }
    let strings = strings.context("there are libraries, but no names")?;
    let in_file = |address: u64| {
        let load = loads.iter().find(|(start, _, length)| (*start..*start + *length).contains(&address));
        load.map(|(start, offset, _)| address - start + offset)
    };
    let strings = in_file(strings).context("the names are not in the file")?;
    for name in names {
        found.push(text(file, usize::try_from(strings + name)?)?);
    }
    Ok(found)
}

/// The processor a program is for, as Rust and QEMU call it.
pub fn processor(file: &[u8]) -> Option<&'static str> {
    match number(file, 18, 2).ok()? {
        0x3e => Some("x86_64"),
        0xb7 => Some("aarch64"),
        _ => None,
    }
}

fn number(file: &[u8], at: usize, length: usize) -> anyhow::Result<u64> {
    let bytes = file.get(at..at + length).context("the program is cut off")?;
    Ok(bytes.iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte)))
}

fn text(file: &[u8], at: usize) -> anyhow::Result<String> {
    let rest = file.get(at..).context("the program is cut off")?;
    let end = rest.iter().position(|byte| *byte == 0).context("a name has no end")?;
    Ok(String::from_utf8_lossy(&rest[..end]).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    fn this_test_needs_the_c_library() {
        let program = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        assert_eq!(processor(&program), Some(std::env::consts::ARCH));
        let needs = needs(&program).unwrap();
        assert!(needs.iter().any(|name| name.starts_with("libc.so")), "{needs:?}");
        assert!(needs.iter().any(|name| name.contains("ld-linux")), "{needs:?}");
    }

    #[test]
    fn other_files_are_refused() {
        for file in [&b""[..], b"#!/bin/sh", b"\x7fELF\x02\x01"] {
            assert!(needs(file).is_err());
        }
    }
}
