//! Go text/template with sprig functions. No I/O, bounded time and output.
