//! Providers of clusters.

pub mod kcp;
