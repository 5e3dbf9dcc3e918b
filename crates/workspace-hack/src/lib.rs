//! No code: `Cargo.toml` lists the features with which the whole workspace builds its dependencies.
