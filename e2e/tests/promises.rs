//! Every promise on the embedded plane: `cargo test -p carrick-e2e --test promises`.

fn main() -> std::process::ExitCode {
    carrick_e2e::promises::run()
}
