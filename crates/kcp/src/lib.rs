//! kcp API types, workspace paths, URLs and hashes. No I/O.
