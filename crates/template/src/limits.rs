//! Bounds on what a template may cost. Templates are tenant input, so each one ends within milliseconds; what reaches a bound
//! ends with [`RenderError::Limit`](crate::RenderError::Limit) or, when compiling, with a [`CompileError`](crate::CompileError).

/// Longest template text that is compiled.
pub const MAX_SOURCE_BYTES: usize = 256 * 1024;
/// Deepest nesting of actions and parentheses in a template text.
pub const MAX_PARSE_DEPTH: usize = 60;
/// Units of work per rendering: about one per evaluated node, loop turn or visited element, and one per 16 to 256 bytes that a
/// function reads. Compiling a regular expression costs 2000, `derivePassword` half of all: it takes 50 to 200 ms.
pub const MAX_STEPS: usize = 100_000;
/// Deepest nesting of blocks, parentheses, template calls and nested values while rendering.
pub const MAX_DEPTH: usize = 150;
/// Bytes of strings, lists and maps that functions of one rendering may create altogether.
pub const MAX_MEMORY: usize = 8 * 1024 * 1024;
/// Bytes of output.
pub const MAX_OUTPUT: usize = 1024 * 1024;
