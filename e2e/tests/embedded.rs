//! Every scenario on the embedded plane: `cargo test -p carrick-e2e --test embedded`.

fn main() -> std::process::ExitCode {
    carrick_e2e::harness::embedded()
}
