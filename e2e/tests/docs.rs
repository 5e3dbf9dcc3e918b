//! Every tutorial, as a reader would run it: `cargo test --test docs [part of a page's name]`.

fn main() -> std::process::ExitCode {
    carrick_e2e::docs::run()
}
