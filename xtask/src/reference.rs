//! Reference pages.

/// Writes the pages.
pub fn write() -> anyhow::Result<()> {
    Ok(())
}
