//! Any text template: compiling and rendering never panics, keeps its bounds, and what is printed means the same.
#![no_main]

#[path = "shared/template.rs"]
mod shared;

use carrick_template::Template;

libfuzzer_sys::fuzz_target!(|text: &str| {
    if shared::is_slow(text) {
        return;
    }
    let Some(template) = shared::checked(text, Template::compile(text)) else { return };
    let outcome = shared::render(text, &template);

    // A brace may become an action of its own, so that a text at the limit grows beyond it.
    let printed = template.to_string();
    let Ok(again) = Template::compile(&printed) else {
        assert!(printed.len() > text.len(), "{text:?} prints as {printed:?}, which is refused");
        return;
    };
    assert_eq!(again.to_string(), printed, "{text:?}");
    if let (Ok(first), Ok(second)) = (outcome, shared::render(&printed, &again))
        && !shared::is_random(text)
    {
        assert_eq!(first, second, "{text:?} prints as {printed:?}");
    }
});
