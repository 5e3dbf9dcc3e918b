//! `carrick withdraw`: a kind leaves the export on a date that its consumers know.

use std::process::ExitCode;

use carrick_process::printable::one_line;
use carrick_syncagent::withdraw::{Offer, Usage, Withdrawer};
use jiff::{SignedDuration, Timestamp};

use crate::agent_flags::AgentFlags;
use crate::logs;
use crate::ui::{Output, confirmed, print, print_error, print_json, waiting};

/// Withdraw a kind from its consumers, on a date that they know.
///
/// Shows who still uses it: APIBindings and objects, by workspace. With a date, asks, and then annotates the PublishedResource. A running agent tells
/// consumers, by an event and an annotation on each of their objects. When the date comes, it releases their objects and takes the kind out of the
/// APIExport, with the permission claims that nobody needs any more. Copies stay as they are.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The kind, or the name of its PublishedResource
    #[arg(value_name = "KIND")]
    kind: String,
    /// When: a time such as 2026-12-31T12:00:00Z
    #[arg(long, value_name = "TIME")]
    at: Option<Timestamp>,
    /// When, from now: 30d, 12h, 90m, 45s
    #[arg(long = "in", value_name = "DURATION", value_parser = duration, conflicts_with = "at")]
    after: Option<SignedDuration>,
    /// What consumers are told, for example what to use instead
    #[arg(short, long, value_name = "TEXT")]
    message: Option<String>,
    /// Take the date back, before it comes
    #[arg(long, conflicts_with_all = ["at", "after", "message"])]
    undo: bool,
    #[command(flatten)]
    agent: AgentFlags,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
}

const EXAMPLES: &str = "\
Examples:
  carrick withdraw Bucket
      who uses it; nothing is changed, and the agent is found by its Deployment
  carrick withdraw Bucket --in 30d --message 'use Vaults instead' …
  carrick withdraw Bucket --undo …";

/// Shows who uses a kind, and sets or takes back the date of its withdrawal.
pub async fn run(args: Args, verbose: bool) -> anyhow::Result<ExitCode> {
    logs::init(logs::Quiet::Silent, verbose);
    let date = args.at.or(args.after.map(|after| Timestamp::now() + after));
    anyhow::ensure!(
        args.message.is_none() || date.is_some(),
        "there is nothing to say without a date; set one with --in or --at"
    );
    let agent = args.agent.identify_export().await?;
    let config = agent.options.clone().into_config()?;
    let (withdrawer, pr, offer) = waiting(
        "asking who uses it",
        Box::pin(async {
            let withdrawer = Withdrawer::connect(&config).await?;
            let pr = withdrawer.find(&args.kind).await?;
            let offer = withdrawer.offer(&pr).await?;
            anyhow::Ok((withdrawer, pr, offer))
        }),
    )
    .await?;
    let changed = match date {
        _ if args.undo => Some(withdrawer.undo(&pr).await?),
        Some(date) => {
            let question = format!("Withdraw {} at {}?", offer.resource, shown(date));
            // Whoever is asked has to know what about; standard output is for the answer.
            match args.output {
                _ if args.yes => {}
                Output::Text => print(&text(&offer)),
                Output::Json => print_error(&text(&offer)),
            }
            if !args.yes && !confirmed(&question)? {
                anyhow::bail!("{} is not withdrawn", offer.resource);
            }
            Some(withdrawer.announce(&pr, date, args.message.as_deref()).await?)
        }
        None => None,
    };
    let offer = offer.as_of(changed.as_ref().unwrap_or(&pr));
    match args.output {
        Output::Json => print_json(&offer)?,
        Output::Text => print(&format!("{}{}", text(&offer), outlook(&offer))),
    }
    Ok(ExitCode::SUCCESS)
}

/// Who uses a kind.
fn text(offer: &Offer) -> String {
    let users = offer.workspaces.len();
    let workspaces = if users == 1 { "workspace" } else { "workspaces" };
    let objects = if offer.objects() == 1 { "object" } else { "objects" };
    let head = format!("{}: {} {objects} in {users} {workspaces}\n", offer.resource, offer.objects());
    let lines = offer.workspaces.iter().map(|usage| format!("  {}\n", one_line(&line(usage))));
    head + &lines.collect::<String>()
}

fn line(usage: &Usage) -> String {
    let place = usage.workspace.as_deref().unwrap_or(&usage.cluster);
    let bound = if usage.bindings.is_empty() {
        "not bound".to_owned()
    } else {
        format!("APIBinding {}", usage.bindings.join(", "))
    };
    let objects = match usage.objects.as_slice() {
        [] => "no object".to_owned(),
        [first] => first.clone(),
        [first, second] => format!("{first}, {second}"),
        [first, second, rest @ ..] => format!("{first}, {second} and {} more", rest.len()),
    };
    format!("{place}: {bound}; {objects}")
}

/// What happens next.
fn outlook(offer: &Offer) -> String {
    match &offer.withdraw_at {
        None => "It is not withdrawn.\n".to_owned(),
        Some(at) if offer.withdrawn => format!("It is withdrawn since {at}.\n"),
        Some(at) => format!(
            "It is withdrawn at {at} by a running agent, which tells consumers now. To take that back: --undo.\n"
        ),
    }
}

fn shown(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// A whole number of days, hours, minutes or seconds.
pub fn duration(text: &str) -> Result<SignedDuration, String> {
    let wrong = || format!("{text:?} is no duration; write it as 30d, 12h, 90m or 45s");
    let digits = text.find(|letter: char| !letter.is_ascii_digit()).ok_or_else(wrong)?;
    let number: i64 = text[..digits].parse().map_err(|_| wrong())?;
    let unit = match &text[digits..] {
        "d" => 24 * 3600,
        "h" => 3600,
        "m" => 60,
        "s" => 1,
        _ => return Err(wrong()),
    };
    number.checked_mul(unit).filter(|seconds| *seconds < 1 << 35).map(SignedDuration::from_secs).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_whole_numbers_of_one_unit() {
        for (text, seconds) in [("30d", Some(30 * 86400)), ("2h", Some(7200)), ("5m", Some(300)), ("0s", Some(0))] {
            assert_eq!(duration(text).ok().map(|it| it.as_secs()), seconds, "{text}");
        }
        for text in ["", "d", "3", "1.5h", "-1d", "1y", "99999999999999999999d", "999999999d"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn no_name_forges_a_line() {
        let forged = || "x\n  root:b: \u{1b}[32mnot bound; no object".to_owned();
        let usage =
            Usage { cluster: forged(), workspace: None, bindings: vec![forged()], objects: vec![forged(), forged()] };
        let offer = Offer {
            published_resource: "buckets".to_owned(),
            resource: "buckets.example.com".to_owned(),
            withdraw_at: None,
            message: None,
            withdrawn: false,
            workspaces: vec![usage],
        };
        let text = text(&offer);
        assert!(text.lines().count() == 2 && !text.contains('\u{1b}'), "{text:?}");
    }

    #[test]
    fn everyone_who_uses_it_is_named() {
        let usage = |workspace: Option<&str>, bindings: &[&str], objects: usize| Usage {
            cluster: "1a2b".to_owned(),
            workspace: workspace.map(str::to_owned),
            bindings: bindings.iter().map(|name| (*name).to_owned()).collect(),
            objects: (0..objects).map(|number| format!("default/{number}")).collect(),
        };
        let offer = Offer {
            published_resource: "buckets".to_owned(),
            resource: "buckets.example.com".to_owned(),
            withdraw_at: None,
            message: None,
            withdrawn: false,
            workspaces: vec![usage(Some("root:a"), &["b"], 4), usage(None, &[], 1), usage(Some("root:c"), &["b"], 0)],
        };
        let wanted = "buckets.example.com: 5 objects in 3 workspaces\n  \
                      root:a: APIBinding b; default/0, default/1 and 2 more\n  \
                      1a2b: not bound; default/0\n  \
                      root:c: APIBinding b; no object\n";
        assert_eq!(text(&offer), wanted);
        assert_eq!(outlook(&offer), "It is not withdrawn.\n");
    }
}
