//! The page on what follows when a server refuses.

use carrick_client::wording;
use carrick_sync::Role;
use carrick_sync::executor::refusal::{Access, Refusal, Ruling, ruling};

use super::MADE_OF_CODE;
use super::markdown::sentence;

const TITLE: &str = "\
# When a server refuses

What the agents do when kcp or a service cluster does not do what it was asked for. The code reads the same table, so that every agent does the same.

*Consumer's side* is kcp, or the consumer's cluster of kube-bind; *provider's side* is the service cluster. *Let go* is taking a finalizer off, or deleting, what came along
with an order that ends. Where another way is named, it is tried at once; the next column is what happens if it does not help. Growing pauses begin below a second and end
at some minutes; a server that asks to wait, with 429 and `Retry-After`, is not asked before.
What is *given up*: a status is not sent again until it changes; what came along with an order that ends is left behind, with an event, once the binding is seen not to accept the claim for it, or
the same refusal has lasted for a while.

Who is informed of something gets the server's own words. A consumer whose order waits for something else learns that a provider-side issue has occurred, and nothing of the
provider's servers, accounts and rights. What happens to a watch while it fails: what was seen before stays known, and nothing is deleted because of it.
";

const WORDS: &str = "
## What depends on a server's wording

Codes and reasons decide, with these exceptions, where servers give neither: whether a 403 is about a missing right or about the object (the authorizer's `User … cannot …`), whether
admission or a quota speaks (`denied the request`, `exceeded quota`), whether an apply names a field that the schema lacks, and whether a certificate is not trusted. The words
stand in one file, `crates/client/src/wording.rs`. They are those of
";

/// One row for each refusal and everything that is decided alike.
pub(super) fn page() -> String {
    let mut page = format!(
        "{MADE_OF_CODE}\n\n{TITLE}\n| answer | what it means | attempt | side | another way | then | informed |\n"
    );
    page += "| --- | --- | --- | --- | --- | --- | --- |\n";
    for refusal in Refusal::ALL {
        let (code, meaning) = refusal.describe();
        for (number, (attempts, side, ruling)) in rows(refusal).into_iter().enumerate() {
            let (code, meaning) = if number == 0 { (code, sentence(meaning)) } else { ("", String::new()) };
            let other_way = ruling.fallback.map_or("", |fallback| fallback.describe());
            let (then, informed) = (ruling.then.describe(), ruling.inform.describe());
            page += &["| ", code, " | ", &meaning, " | ", &attempts, " | ", side, " | ", other_way].concat();
            page += &[" | ", then, " | ", informed, " |\n"].concat();
        }
    }
    let versions = wording::CHECKED_ON.map(|(program, version)| format!("{program} {version}"));
    page + WORDS + &versions.join(", ") + ".\n"
}

/// What is decided alike, together.
fn rows(refusal: Refusal) -> Vec<(String, &'static str, Ruling)> {
    let mut rows: Vec<(Vec<&str>, &'static str, Ruling)> = Vec::new();
    let mut add = |attempt, side, ruling| match rows.iter_mut().find(|row| (row.1, row.2) == (side, ruling)) {
        Some(row) => row.0.push(attempt),
        None => rows.push((vec![attempt], side, ruling)),
    };
    for access in Access::ALL {
        let [consumer, provider] = [Role::Consumer, Role::Provider].map(|side| ruling(refusal, access, side));
        if consumer == provider {
            add(access.describe(), "both", consumer);
        } else {
            add(access.describe(), "consumer's", consumer);
            add(access.describe(), "provider's", provider);
        }
    }
    let named =
        |attempts: Vec<&str>| if attempts.len() == Access::ALL.len() { "any".to_owned() } else { attempts.join(", ") };
    rows.into_iter().map(|(attempts, side, ruling)| (named(attempts), side, ruling)).collect()
}
