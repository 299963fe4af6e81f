//! Acknowledged changes survive `kill -9`, and unacknowledged changes are stored completely or not
//! at all.
//!
//! Eight clients create, change, delete and execute, each in its own project with a model of the
//! expected state. The server is killed at a random moment, restarted, and compared with the
//! models. A killed process keeps the page cache, so these tests check the order of operations
//! inside the process and not power failures.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use futures::future::join_all;
use harness::{
    Client, Dice, Guest, Host,
    client::Body,
    guest,
    host::{Setup, size},
    unique,
};
use reqwest::Method;
use serde_json::{Value, json};

use crate::given;

const CLIENT_COUNT: usize = 8;
/// Number of acknowledgements before each kill.
const ACKS_PER_CYCLE: usize = 50;

/// Extent of a test.
#[derive(Debug, Clone, Copy)]
struct Load {
    /// Minimum number of kills.
    kills: usize,
    /// Minimum number of acknowledgements.
    acks: usize,
    /// Maximum number of things that a client keeps.
    things: usize,
    /// Size of an account's note in bytes.
    note: usize,
}

/// State of a thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Absent,
    Enabled,
    Disabled,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Config,
    Account,
}

/// Key of a thing by the name its client gave it, so that an unacknowledged creation can be found.
type Name = (Kind, String);

struct Thing {
    id: String,
    state: State,
}

/// A change that has been sent.
struct Change {
    name: Name,
    to: State,
    method: Method,
    path: String,
    body: Value,
}

struct Worker {
    key: String,
    toolkit: String,
    things: BTreeMap<Name, Thing>,
    logs: Vec<Value>,
    /// Change that had no response when the server was killed.
    doubt: Option<(Name, State)>,
    load: Load,
    dice: Dice,
}

impl Worker {
    async fn new(host: &Host, toolkit: &str, load: Load, seed: u64) -> Self {
        let key = host.new_project().await.key().to_owned();
        Self {
            key,
            toolkit: toolkit.to_owned(),
            things: BTreeMap::new(),
            logs: Vec::new(),
            doubt: None,
            load,
            dice: Dice::new(seed),
        }
    }

    /// Sends changes until the server has ended.
    async fn work(&mut self, client: &Client, acks: &AtomicUsize) {
        loop {
            let done = match self.dice.below(10) {
                0 | 1 => self.execute(client).await,
                _ => {
                    let change = self.next_change();
                    self.make(client, change).await
                }
            };
            if !done {
                return;
            }
            acks.fetch_add(1, Ordering::Relaxed);
        }
    }

    async fn execute(&mut self, client: &Client) -> bool {
        let path = format!("/tools/execute/{}", guest::tool(&self.toolkit));
        let body = Body::Json(json!({ "arguments": {}, "version": "latest" }));
        let Ok(answer) = client.try_send(Method::POST, &path, body, &[]).await else {
            return false;
        };
        self.logs.push(answer.expect(200)["log_id"].clone());
        true
    }

    async fn make(&mut self, client: &Client, change: Change) -> bool {
        let Change {
            name,
            to,
            method,
            path,
            body,
        } = change;
        let sent = client.try_send(method, &path, Body::Json(body), &[]).await;
        let Ok(answer) = sent else {
            self.doubt = Some((name, to));
            return false;
        };
        if answer.status == 400 && name.0 == Kind::Account && to == State::Enabled {
            // An account without its auth config is not enabled again.
            return true;
        }
        assert!(
            [200, 201].contains(&answer.status),
            "{name:?} to {to:?}: {answer:#?}"
        );
        match self.things.get_mut(&name) {
            Some(thing) => thing.state = to,
            None => {
                let id = match name.0 {
                    Kind::Config => &answer["auth_config"]["id"],
                    Kind::Account => &answer["id"],
                };
                let id = id.as_str().unwrap().to_owned();
                self.things.insert(name, Thing { id, state: to });
            }
        }
        true
    }

    fn next_change(&mut self) -> Change {
        let alive: Vec<_> = self
            .things
            .iter()
            .filter(|(_, thing)| thing.state != State::Absent)
            .collect();
        let chosen = alive
            .get(self.dice.below(alive.len().max(1) as u64) as usize)
            .copied();
        let full = alive.len() >= self.load.things;
        match (if full { 0 } else { self.dice.below(10) }, chosen) {
            (0..=2, Some((name, thing))) => {
                let path = format!("{}/{}", root(name.0), thing.id);
                Change {
                    name: name.clone(),
                    to: State::Absent,
                    method: Method::DELETE,
                    path,
                    body: Value::Null,
                }
            }
            (3..=5, Some((name, thing))) => {
                let to = if thing.state == State::Enabled {
                    State::Disabled
                } else {
                    State::Enabled
                };
                let is_enabled = to == State::Enabled;
                let word = match (name.0, is_enabled) {
                    (Kind::Account, _) => "status",
                    (Kind::Config, true) => "ENABLED",
                    (Kind::Config, false) => "DISABLED",
                };
                let path = format!("{}/{}/{word}", root(name.0), thing.id);
                let body = match name.0 {
                    Kind::Config => json!({}),
                    Kind::Account => json!({ "enabled": is_enabled }),
                };
                Change {
                    name: name.clone(),
                    to,
                    method: Method::PATCH,
                    path,
                    body,
                }
            }
            _ => self.creation(),
        }
    }

    fn creation(&mut self) -> Change {
        let config = self
            .things
            .iter()
            .find_map(|(name, thing)| {
                (name.0 == Kind::Config && thing.state == State::Enabled).then(|| thing.id.clone())
            })
            .filter(|_| self.dice.below(4) > 0);
        let own = unique(8);
        let (kind, body) = match config {
            Some(config) => {
                let key = format!("k-01{}", harness::secret());
                let account = given::account_with_note(&config, &own, &key, self.load.note);
                (Kind::Account, account)
            }
            None => {
                let config = json!({ "type": "use_custom_auth", "authScheme": "API_KEY", "name": own, "credentials": {} });
                (
                    Kind::Config,
                    json!({ "toolkit": { "slug": self.toolkit }, "auth_config": config }),
                )
            }
        };
        Change {
            name: (kind, own),
            to: State::Enabled,
            method: Method::POST,
            path: root(kind).into(),
            body,
        }
    }

    /// Compares the stored things with the model, and adopts the found result of an unacknowledged
    /// change.
    async fn check(&mut self, client: &Client) {
        let mut found = BTreeMap::new();
        for kind in [Kind::Config, Kind::Account] {
            for item in everything(client, kind).await {
                let (name, thing) = read(kind, &item);
                assert!(
                    found.insert(name.clone(), thing).is_none(),
                    "{name:?} is there twice"
                );
            }
        }
        for (name, thing) in &mut self.things {
            let there = found.remove(name);
            let state = there.as_ref().map_or(State::Absent, |there| there.state);
            let open = self
                .doubt
                .take_if(|(doubted, _)| doubted == name)
                .map(|(_, to)| to);
            assert!(
                state == thing.state || Some(state) == open,
                "{name:?} is {state:?}, not {:?} {open:?}",
                thing.state
            );
            assert!(
                there.is_none_or(|there| there.id == thing.id),
                "{name:?} has another id"
            );
            thing.state = state;
        }
        // Only an unacknowledged creation may exist in addition to the model.
        if let Some((name, to)) = self.doubt.take()
            && let Some(thing) = found.remove(&name)
        {
            assert_eq!(thing.state, to, "{name:?}");
            self.things.insert(name, thing);
        }
        assert!(found.is_empty(), "nobody made {:?}", found.keys());
        for log in self.logs.drain(..) {
            client.log(&log).await;
        }
        self.check_indexes(client).await;
    }

    /// Asserts for some things that a filter finds exactly what the whole list shows.
    async fn check_indexes(&mut self, client: &Client) {
        let skip = self.dice.below(self.things.len().max(1) as u64) as usize;
        for ((_, user), thing) in self
            .things
            .iter()
            .skip(skip)
            .filter(|((kind, _), _)| *kind == Kind::Account)
            .take(3)
        {
            let path = format!("/connected_accounts?user_ids={user}");
            let page = client.get(&path).await.expect(200);
            let expected = usize::from(thing.state != State::Absent);
            assert_eq!(page["total_items"], expected, "{user}: {page:#?}");
            let items = page["items"].as_array().unwrap();
            assert_eq!(items.len(), expected, "{user}: {page:#?}");
        }
    }
}

fn root(kind: Kind) -> &'static str {
    match kind {
        Kind::Config => "/auth_configs",
        Kind::Account => "/connected_accounts",
    }
}

async fn everything(client: &Client, kind: Kind) -> Vec<Value> {
    // Lists of auth configs leave out disabled ones unless they are asked for.
    let path = match kind {
        Kind::Config => "/auth_configs?limit=1000&show_disabled=true",
        Kind::Account => "/connected_accounts?limit=1000",
    };
    let page = client.get(path).await.expect(200);
    let items = page["items"].as_array().unwrap().clone();
    // The count and the list agree.
    assert_eq!(page["total_items"], items.len());
    items
}

/// Reads a thing and asserts that every field of its creation is present.
fn read(kind: Kind, item: &Value) -> (Name, Thing) {
    let text = |value: &Value| {
        value
            .as_str()
            .unwrap_or_else(|| panic!("torn: {item:#}"))
            .to_owned()
    };
    let state = match item["status"].as_str() {
        Some("ENABLED" | "ACTIVE") => State::Enabled,
        Some("DISABLED" | "INACTIVE") => State::Disabled,
        _ => panic!("torn: {item:#}"),
    };
    text(&item["toolkit"]["slug"]);
    let name = match kind {
        Kind::Config => text(&item["name"]),
        Kind::Account => {
            assert_eq!(item["state"]["val"]["api_key"], "k-01...", "torn: {item:#}");
            text(&item["user_id"])
        }
    };
    (
        (kind, name),
        Thing {
            id: text(&item["id"]),
            state,
        },
    )
}

#[tokio::test]
async fn nothing_acknowledged_is_lost_and_nothing_is_torn() {
    let (kills, acks) = size((25, 1_250), (300, 20_000));
    let load = Load {
        kills,
        acks,
        things: usize::MAX,
        note: 8,
    };
    survive(Setup::new(), load).await;
}

/// Large records are created and deleted, so that the store reuses space in its file. The kill
/// comes during the reuse.
#[tokio::test]
async fn nothing_is_lost_while_space_is_reused() {
    let (kills, acks) = size((12, 700), (60, 3_500));
    let load = Load {
        kills,
        acks,
        things: 4,
        note: 60 << 10,
    };
    let host = survive(Setup::embedded(), load).await;
    let folder = host.data().join("store/sled");
    let file = std::fs::metadata(folder.join("db")).unwrap().len();
    // The name of a snapshot is the number of bytes ever written.
    let names = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let written = names
        .filter_map(|name| u64::from_str_radix(name.strip_prefix("snap.")?, 16).ok())
        .max()
        .unwrap();
    eprintln!(
        "{} MiB written into a file of {} MiB",
        written >> 20,
        file >> 20
    );
    assert!(
        written > file,
        "the file was not used again: {written} bytes written, {file} bytes long"
    );
}

fn clients_of(host: &Host, workers: &[Worker]) -> Vec<Client> {
    let keys = workers.iter().map(|worker| &worker.key);
    keys.map(|key| host.with_key(key)).collect()
}

/// Repeats changes, kills, restarts and comparisons. Returns the last server.
async fn survive(setup: Setup, load: Load) -> Host {
    let seed = Dice::seed();
    eprintln!("seed {seed}");
    let mut dice = Dice::new(seed);
    let mut host = setup.start().await;
    let mut manifest = given::manifest_with_note("crashing");
    manifest["tools"][0]["no_auth"] = json!(true);
    host.publish(Guest::echo().component(), &manifest).await;
    let seeds: Vec<_> = (0..CLIENT_COUNT).map(|_| dice.below(u64::MAX)).collect();
    let workers = seeds
        .into_iter()
        .map(|seed| Worker::new(&host, "crashing", load, seed));
    let mut workers = join_all(workers).await;
    let (mut cycles, mut total) = (0, 0);
    while cycles < load.kills || total < load.acks {
        let acks = AtomicUsize::new(0);
        let clients = clients_of(&host, &workers);
        let pairs = workers.iter_mut().zip(&clients);
        let work = join_all(pairs.map(|(worker, client)| worker.work(client, &acks)));
        let (setup, _) = futures::join!(kill(host, &acks, dice.below(500)), work);
        total += acks.load(Ordering::Relaxed);
        cycles += 1;
        if dice.below(10) == 0 {
            // The server is killed again while it starts.
            let soon = Duration::from_millis(dice.below(200));
            tokio::time::timeout(soon, setup.clone().try_start())
                .await
                .ok();
        }
        host = setup.start().await;
        let clients = clients_of(&host, &workers);
        let pairs = workers.iter_mut().zip(&clients);
        join_all(pairs.map(|(worker, client)| worker.check(client))).await;
    }
    let things: usize = workers.iter().map(|worker| worker.things.len()).sum();
    eprintln!("{cycles} kills, {total} acknowledgements, {things} things: none lost, none torn");
    let printed = host.output();
    assert!(!printed.contains("panicked at"), "{printed}");
    host
}

/// Lets the clients continue for a while after the first acknowledgements, then kills the server.
async fn kill(host: Host, acks: &AtomicUsize, after_ms: u64) -> Setup {
    harness::wait_until("enough was acknowledged", || async {
        acks.load(Ordering::Relaxed) >= ACKS_PER_CYCLE
    })
    .await;
    tokio::time::sleep(Duration::from_millis(after_ms)).await;
    host.kill()
}

#[tokio::test]
async fn publication_is_atomic_across_a_kill() {
    let seed = Dice::seed();
    eprintln!("seed {seed}");
    let mut dice = Dice::new(seed);
    let mut host = Setup::new().start().await;
    let mut published: Vec<String> = Vec::new();
    for _ in 0..size(5, 40) {
        let mut doubtful = None;
        let client = host.as_org();
        let publishing = async {
            for _ in 0..50 {
                let manifest = guest::manifest(&given::slug());
                let bytes = guest::with_manifest(Guest::echo().component(), &manifest);
                let slug = manifest["slug"].as_str().unwrap().to_owned();
                let body = Body::Raw("application/wasm", bytes);
                let address = guest::address(&manifest);
                let Ok(answer) = client.try_send(Method::PUT, &address, body, &[]).await else {
                    doubtful = Some(slug);
                    return;
                };
                answer.expect(201);
                published.push(slug);
            }
        };
        let wait = Duration::from_millis(200 + dice.below(1_500));
        let (setup, ()) = futures::join!(
            async move {
                tokio::time::sleep(wait).await;
                host.kill()
            },
            publishing
        );
        host = setup.start().await;
        let project = host.as_project();
        for slug in &published {
            let ran = project.execute(&guest::tool(slug), json!({ "a": 1 })).await;
            assert_eq!(ran.data(), json!({ "a": 1 }));
        }
        if let Some(slug) = doubtful {
            let known = project.get(&format!("/toolkits/{slug}")).await.status;
            let ran = project.execute(&guest::tool(&slug), json!({})).await;
            assert_eq!(known, ran.status, "{slug} is half there");
        }
    }
    assert!(!published.is_empty());
}
