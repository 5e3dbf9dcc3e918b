//! CEL for mutations and CRD validation rules, on the cel crate. No I/O.
