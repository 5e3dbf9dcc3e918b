//! A plane that is killed at any moment has every write it acknowledged.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use carrick_plane::{Config, Durability, Mode, Plane, User};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::client::{Client, MAPS, map};

const FOLDER: &str = "CARRICK_KILLED_FOLDER";
/// How often the server is killed.
const KILLS: &str = "CARRICK_KILLS";
const TOKEN: &str = "killed-token";
const WRITERS: usize = 4;

/// Not a test of its own: the process that gets killed runs this.
#[tokio::test]
async fn serves_until_it_is_killed() {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else { return };
    let mut config = Config::new(Mode::Kube);
    config.users = vec![User::new(TOKEN, "writer", &["system:masters"])];
    // Small, so that the file is rewritten all the time.
    config.durability = Durability { fsync: false, compact_at: 50_000 };
    config.data_dir = Some(folder.join("data"));
    let plane = Plane::start(config).await.unwrap();
    let about = json!({"url": plane.url(), "ca": plane.ca_pem()}).to_string();
    std::fs::write(folder.join("about.new"), about).unwrap();
    std::fs::rename(folder.join("about.new"), folder.join("about")).unwrap();
    std::future::pending::<()>().await;
}

async fn start(folder: &Path) -> (Child, Client) {
    let about = folder.join("about");
    let _ = std::fs::remove_file(&about);
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "api::killed::serves_until_it_is_killed", "--nocapture"])
        .env(FOLDER, folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    loop {
        if let Ok(text) = std::fs::read_to_string(&about) {
            let about: Value = serde_json::from_str(&text).unwrap();
            let (url, ca) = (about["url"].as_str().unwrap(), about["ca"].as_str().unwrap());
            return (child, Client::at(url, ca, Some(TOKEN.to_owned())));
        }
        assert!(child.try_wait().unwrap().is_none(), "the server does not start");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// What a writer knows of one object.
#[derive(Debug, Clone, Copy, Default)]
struct Known {
    /// The last acknowledged number; zero when it was deleted.
    acknowledged: u64,
    /// A number that was sent and may have arrived; zero for a deletion.
    sent: Option<u64>,
}

#[derive(Default)]
struct Ledger {
    objects: BTreeMap<String, Known>,
    newest_revision: u64,
    acknowledged: u64,
}

async fn write(client: Client, writer: usize, ledger: Arc<Mutex<Ledger>>) {
    let headers = [("content-type", "application/json")];
    for round in 0_u64.. {
        let name = format!("w{writer}-{}", round % 5);
        let known = ledger.lock().objects.get(&name).copied().unwrap_or_default();
        let number = if round % 11 == 10 && known.acknowledged > 0 { 0 } else { known.acknowledged.max(round) + 1 };
        let (method, path) = match (number, known.acknowledged) {
            (0, _) => ("DELETE", format!("{MAPS}/{name}")),
            (_, 0) => ("POST", MAPS.to_owned()),
            _ => ("PUT", format!("{MAPS}/{name}")),
        };
        let body =
            if number == 0 { Vec::new() } else { map(&name, json!({"n": number.to_string()})).to_string().into() };
        ledger.lock().objects.entry(name.clone()).or_default().sent = Some(number);
        let Some(answer) = client.try_call(method, &path, &headers, body).await else { return };
        assert!(answer.code < 300, "{method} {path}: {}", answer.text);
        let mut ledger = ledger.lock();
        ledger.objects.insert(name, Known { acknowledged: number, sent: None });
        ledger.acknowledged += 1;
        let revision = answer.body["metadata"]["resourceVersion"].as_str().and_then(|text| text.parse().ok());
        ledger.newest_revision = ledger.newest_revision.max(revision.unwrap_or(0));
    }
}

fn check(list: &Value, ledger: &mut Ledger) {
    let revision: u64 = list["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
    assert!(revision >= ledger.newest_revision, "revision {revision} is older than one acknowledged before");
    let found: BTreeMap<&str, u64> = list["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|item| item["data"]["n"].is_string())
        .map(|item| (item["metadata"]["name"].as_str().unwrap(), item["data"]["n"].as_str().unwrap().parse().unwrap()))
        .collect();
    for (name, known) in &mut ledger.objects {
        let now = found.get(name.as_str()).copied().unwrap_or(0);
        assert!(
            now == known.acknowledged || Some(now) == known.sent,
            "{name} is {now}, but {} was acknowledged (sent {:?})",
            known.acknowledged,
            known.sent
        );
        *known = Known { acknowledged: now, sent: None };
    }
}

#[tokio::test]
async fn every_acknowledged_write_survives_sudden_death() {
    let kills: u32 = std::env::var(KILLS).ok().and_then(|text| text.parse().ok()).unwrap_or(15);
    let folder = std::env::temp_dir().join(format!("carrick-killed-{}", uuid::Uuid::new_v4()));
    std::fs::create_dir_all(&folder).unwrap();
    let ledger = Arc::new(Mutex::new(Ledger::default()));
    for round in 0..kills {
        let (mut child, client) = start(&folder).await;
        let list = client.get(MAPS).await.expect(200);
        check(&list, &mut ledger.lock());
        let writers: Vec<_> =
            (0..WRITERS).map(|writer| tokio::spawn(write(client.clone(), writer, ledger.clone()))).collect();
        // Any moment will do.
        tokio::time::sleep(Duration::from_millis(u64::from(round * 37 % 400))).await;
        child.kill().unwrap();
        child.wait().unwrap();
        for writer in writers {
            writer.await.unwrap();
        }
    }
    let (mut child, client) = start(&folder).await;
    let list = client.get(MAPS).await.expect(200);
    check(&list, &mut ledger.lock());
    child.kill().unwrap();
    child.wait().unwrap();
    println!("{} acknowledged writes survived {kills} kills", ledger.lock().acknowledged);
    assert!(ledger.lock().acknowledged > u64::from(kills));
    std::fs::remove_dir_all(folder).unwrap();
}
