//! Prints the CRD of the PublishedResource kind: `cargo run -p carrick-syncagent --example crd`.

fn main() -> anyhow::Result<()> {
    println!("# The PublishedResource kind, printed by `cargo run -p carrick-syncagent --example crd`.");
    println!("# The agent never installs it by itself: apply it, or let the Helm chart do so.");
    print!("{}", serde_saphyr::to_string(&carrick_syncagent::api::crd())?);
    Ok(())
}
