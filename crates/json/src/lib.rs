//! gjson/sjson paths, JSON merge patches and JSON as Go encodes it. No I/O.
