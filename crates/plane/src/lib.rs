//! An embedded, kcp-like control plane for development and tests.
