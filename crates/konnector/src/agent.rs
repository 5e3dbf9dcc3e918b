//! The shell: watches, and what carries out plans.

pub mod objects;
