//! Any HTML template: compiling and rendering never panics and keeps its bounds.
#![no_main]

#[path = "shared/template.rs"]
mod shared;

use carrick_template::Template;

libfuzzer_sys::fuzz_target!(|text: &str| {
    if shared::is_slow(text) {
        return;
    }
    if let Some(template) = shared::checked(text, Template::compile_html(text)) {
        let _ = shared::render(text, &template);
    }
});
