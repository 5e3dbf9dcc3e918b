//! What the CRDs of public operators cost: `cargo xtask bench-corpus`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use carrick_e2e_stage::corpus::life::{self, Life};
use carrick_e2e_stage::corpus::lives;
use carrick_e2e_stage::stage::Stage;
use carrick_e2e_stage::world::{EmbeddedWorld, RealWorld, World};
use clap::Parser;

use super::field::{Servers, servers_folder};
use super::page;
use super::report::aligned;

/// Publish, order, change and delete kinds of public operators, one after the other, and print how long each stretch takes.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask bench-corpus", bin_name = "cargo xtask bench-corpus")]
pub struct Args {
    /// Which servers.
    #[arg(long, value_enum, default_value = "embedded")]
    world: Servers,
    /// Write all figures to a file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Replace the figures in this page of the documentation.
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,
}

/// Measures and prints.
pub async fn run(args: Args) -> anyhow::Result<()> {
    let load = page::load();
    let world: Arc<dyn World> = match args.world {
        Servers::Embedded => Arc::new(EmbeddedWorld::start().await?),
        Servers::Real => Arc::new(RealWorld::start(Path::new(&servers_folder()?)).await?),
    };
    let stage = Stage::bare(world).await?;
    stage.create_export().await?;
    stage.bind(&stage.team_a).await?;
    let agent = stage.start_agent()?;
    let lives = lives(&stage).await?;
    life::bound_at_once(&stage, &lives).await?;
    agent.stop().await?;
    let (machine, table) = (page::machine(&load), table(&lives));
    println!("{machine}\n\n{table}");
    if let Some(page) = &args.page {
        let name = if args.world == Servers::Embedded { "embedded corpus" } else { "real corpus" };
        page::replace(page, name, &format!("{}.\n{machine}.\n\n{table}", super::where_to(args.world)))?;
    }
    if let Some(file) = &args.json {
        std::fs::write(file, serde_json::to_string_pretty(&lives)?)?;
    }
    Ok(())
}

/// All lives, for people; the largest CRDs first.
fn table(lives: &[Life]) -> String {
    let head = [
        "kind",
        "CRD, KiB",
        "versions",
        "published, ms",
        "served, ms",
        "placed, ms",
        "status, ms",
        "changed, ms",
        "gone, ms",
    ];
    let ms = |time: Duration| format!("{:.0}", time.as_secs_f64() * 1e3);
    let kib = |bytes: usize| bytes.div_ceil(1024).to_string();
    let mut sorted: Vec<&Life> = lives.iter().collect();
    sorted.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.crd.cmp(&b.crd)));
    let lines: Vec<Vec<String>> = sorted
        .into_iter()
        .map(|life| {
            vec![
                format!("`{}`", life.crd),
                kib(life.bytes),
                life.versions.to_string(),
                ms(life.published),
                ms(life.served),
                ms(life.placed),
                life.reported.map_or_else(|| "–".to_owned(), ms),
                format!("{}{}", ms(life.changed), if life.content_changed { "" } else { " (a label)" }),
                ms(life.gone),
            ]
        })
        .collect();
    aligned(&head.map(str::to_owned), &lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn life(crd: &str, bytes: usize, reported: Option<Duration>, content_changed: bool) -> Life {
        let time = Duration::from_millis(7);
        Life {
            crd: crd.to_owned(),
            bytes,
            versions: 1,
            sample: None,
            published: time,
            served: time,
            placed: time,
            reported,
            changed: time,
            content_changed,
            gone: time,
        }
    }

    #[test]
    fn the_largest_come_first_and_what_is_not_there_is_not_counted() {
        let table = table(&[life("a.x", 2000, Some(Duration::from_millis(3)), true), life("b.x", 5000, None, false)]);
        let lines: Vec<Vec<&str>> = table.lines().map(|line| line.split('|').map(str::trim).collect()).collect();
        assert_eq!(lines[2][1..9], ["`b.x`", "5", "1", "7", "7", "7", "–", "7 (a label)"]);
        assert_eq!(lines[3][1..9], ["`a.x`", "2", "1", "7", "7", "7", "3", "7"]);
    }
}
