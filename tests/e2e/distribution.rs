//! Distribution of components: signing, pushing to a registry, pulling, and acceptance by a server.

use std::path::PathBuf;

use harness::{
    Client, Finished, Guest, Host, Registry, guest,
    host::Setup,
    registry::{REGISTRY_PASSWORD, REGISTRY_USER},
    toolkit, unique, wait_until,
};
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::given::{self, string};

/// A folder with a component and signing keys.
struct Author {
    folder: TempDir,
    slug: String,
}

impl Author {
    fn new() -> Self {
        let author = Self {
            folder: tempfile::tempdir().unwrap(),
            slug: given::slug(),
        };
        author.write("a.wasm", Guest::echo());
        author
    }

    /// Writes a component of this author's toolkit, always with the same version.
    fn write(&self, file: &str, guest: Guest<'_>) {
        let bytes = guest::with_manifest(guest.component(), &guest::manifest(&self.slug));
        std::fs::write(self.path(file), bytes).unwrap();
    }

    fn path(&self, file: &str) -> PathBuf {
        self.folder.path().join(file)
    }

    fn read(&self, file: &str) -> Vec<u8> {
        std::fs::read(self.path(file)).unwrap()
    }

    fn run(&self, arguments: &[&str]) -> Finished {
        toolkit(self.folder.path(), &[], arguments)
    }

    fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.run(&[arguments, &["--json"]].concat()).succeeded()).unwrap()
    }

    /// Pulls a reference into a file.
    fn pull(&self, from: &str, file: &str) -> Finished {
        self.run(&["pull", from, "-o", file])
    }

    /// Generates a key pair and returns the public key and its id.
    fn key(&self, name: &str) -> (String, String) {
        let made = self.json(&["sign", "--generate", "--no-password", "--key", name]);
        (string(&made["public_key"]), string(&made["key"]))
    }

    fn sign(&self, file: &str, key: &str) {
        self.run(&["sign", file, "--key", key]).succeeded();
    }

    /// Pushes a file under a tag and returns the digest.
    fn push(&self, registry: &Registry, tag: &str, file: &str) -> String {
        string(&self.json(&["push", &self.at(registry, tag), file])["digest"])
    }

    /// Returns a reference to this author's toolkit.
    fn at(&self, registry: &Registry, tag: &str) -> String {
        format!("{}/tools/{}:{tag}", registry.host, self.slug)
    }

    fn pinned(&self, registry: &Registry, digest: &str) -> String {
        format!("{}/tools/{}@{digest}", registry.host, self.slug)
    }

    fn address(&self) -> String {
        guest::address(&guest::manifest(&self.slug))
    }

    /// Asserts the status with which a server answers a request for the toolkit.
    async fn assert_read(&self, host: &Host, status: u16) {
        let path = format!("/toolkits/{}", self.slug);
        host.as_project().get(&path).await.expect(status);
    }
}

/// Reads the manifest that a registry keeps under a digest.
fn manifest_of(registry: &Registry, digest: &str) -> Value {
    serde_json::from_slice(&std::fs::read(registry.file(digest)).unwrap()).unwrap()
}

fn base64(bytes: &[u8]) -> String {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

/// Publishes over HTTP with these headers.
async fn put(
    client: &Client,
    author: &Author,
    file: &str,
    headers: &[(&str, &str)],
) -> harness::Answer {
    let body = harness::client::Body::Raw("application/wasm", author.read(file));
    client
        .send(Method::PUT, &author.address(), body, headers)
        .await
}

#[tokio::test]
async fn pushed_component_is_pulled_with_its_signature() {
    let (registry, author) = (Registry::start().await, Author::new());
    let (public, id) = author.key("k.key");
    author.sign("a.wasm", "k.key");
    let reference = format!("{}/tools/{}", registry.host, author.slug);
    let pushed = author.json(&["push", &reference, "a.wasm"]);
    let digest = string(&pushed["digest"]);
    assert_eq!(
        pushed["reference"],
        format!("{reference}:20260101_00@{digest}"),
        "the version becomes the tag"
    );
    for from in [
        author.at(&registry, "20260101_00"),
        author.pinned(&registry, &digest),
        string(&pushed["reference"]),
    ] {
        let pulled = author.json(&["pull", &from, "-o", "b.wasm", "--key", &public]);
        assert_eq!(pulled["digest"], digest, "{from}");
        assert_eq!(pulled["signed_by"], id, "{from}");
        for end in [".wasm", ".wasm.minisig"] {
            let [source, copy] = ["a", "b"].map(|name| author.read(&format!("{name}{end}")));
            assert_eq!(copy, source, "{from}: {end}");
        }
    }
    assert_eq!(
        author.push(&registry, "again", "a.wasm"),
        digest,
        "the same bytes are the same artefact"
    );
}

#[tokio::test]
async fn a_pull_with_a_key_takes_nothing_else() {
    let (registry, author) = (Registry::start().await, Author::new());
    let ((ours, _), (other, _)) = (author.key("k.key"), author.key("l.key"));
    author.push(&registry, "unsigned", "a.wasm");
    author.sign("a.wasm", "k.key");
    author.push(&registry, "signed", "a.wasm");
    let pull = |tag: &str, key: &str| {
        let from = author.at(&registry, tag);
        author.run(&["pull", &from, "-o", "b.wasm", "--key", key])
    };
    for (tag, key, reason) in [
        ("unsigned", &ours, "is not signed"),
        ("signed", &other, "signature is not valid"),
    ] {
        assert!(pull(tag, key).failed().contains(reason), "{tag}");
    }
    assert!(
        !author.path("b.wasm").exists(),
        "nothing is written before it is judged"
    );
    pull("signed", "k.pub").succeeded();
}

#[tokio::test]
async fn tampered_registry_bytes_are_refused() {
    let (registry, author, host) = (Registry::start().await, Author::new(), Host::shared().await);
    let digest = author.push(&registry, "a", "a.wasm");
    let from = author.at(&registry, "a");
    let sha256 = string(&author.json(&["pull", &from, "-o", "b.wasm"])["sha256"]);
    let add = |from: &str| {
        let from = format!("oci://{from}");
        let server = ["--url", &host.url, "--org-key", &host.org_key];
        host.setup()
            .command(&[&["toolkits", "add", &from], &server[..]].concat())
    };
    let mut component = author.read("a.wasm");
    *component.last_mut().unwrap() ^= 1;
    std::fs::write(registry.file(&sha256), component).unwrap();
    for refused in [author.pull(&from, "c.wasm"), add(&from)] {
        assert!(refused.failed().contains("Invalid digest"), "{from}");
    }
    let manifest = registry.file(&digest);
    let described = std::fs::read_to_string(&manifest).unwrap();
    let other = described.replace("A toolkit of the tests", "A toolkit of somebody");
    std::fs::write(manifest, other).unwrap();
    let pinned = author.pinned(&registry, &digest);
    for refused in [author.pull(&pinned, "c.wasm"), add(&pinned)] {
        let said = refused.failed();
        assert!(said.contains(&digest), "{said}");
    }
    assert!(!author.path("c.wasm").exists());
    author.assert_read(host, 404).await;
}

#[tokio::test]
async fn moved_tag_is_refused_for_a_pinned_digest() {
    let (registry, author) = (Registry::start().await, Author::new());
    let before = author.push(&registry, "a", "a.wasm");
    author.write("other.wasm", Guest::constant());
    let after = author.push(&registry, "a", "other.wasm");
    let both = format!("{}@{before}", author.at(&registry, "a"));
    let said = author.pull(&both, "b.wasm").failed();
    assert!(
        said.contains("the tag was moved") && said.contains(&after),
        "{said}"
    );
    let pinned = author.pinned(&registry, &before);
    author.pull(&pinned, "b.wasm").succeeded();
    assert_eq!(
        author.read("b.wasm"),
        author.read("a.wasm"),
        "the digest alone still means the same bytes"
    );
}

#[tokio::test]
async fn missing_reference_error_lists_existing_ones() {
    let (registry, author) = (Registry::start().await, Author::new());
    author.push(&registry, "20260101_00", "a.wasm");
    let latest = author.at(&registry, "latest");
    for (from, reason) in [
        (&*latest, "its tags are 20260101_00"),
        ("hello", "names no registry"),
        ("127.0.0.1:1/tools/hello:a", "check the address"),
    ] {
        let said = author.run(&["pull", from]).failed();
        assert!(said.contains(reason), "{said}");
    }
}

#[tokio::test]
async fn non_component_artifact_is_refused() {
    let (registry, author) = (Registry::start().await, Author::new());
    let digest = author.push(&registry, "a", "a.wasm");
    let mut manifest = manifest_of(&registry, &digest);
    let layer = manifest["layers"][0].clone();
    let (mut text, mut large) = (layer.clone(), layer.clone());
    text["mediaType"] = json!("text/plain");
    large["size"] = json!(1_i64 << 40);
    let wrong = [
        (json!([layer, layer]), "2 layers"),
        (json!([]), "0 layers"),
        (json!([text]), "text/plain"),
        (json!([large]), "at most 24 MiB"),
    ];
    let repository = format!("tools/{}", author.slug);
    for (place, (layers, said)) in wrong.into_iter().enumerate() {
        manifest["layers"] = layers;
        let tag = format!("wrong{place}");
        registry.put_manifest(&repository, &tag, &manifest).await;
        let refused = author.run(&["pull", &author.at(&registry, &tag)]).failed();
        assert!(refused.contains(said), "{refused}");
    }
}

#[tokio::test]
async fn path_like_slug_is_refused() {
    let registry = Registry::start().await;
    let author = Author::new();
    let host = Setup::new().start().await;
    let repository = format!("tools/{}", author.slug);
    let digest = author.push(&registry, "a", "a.wasm");
    let mut artefact = manifest_of(&registry, &digest);
    for slug in ["../escaped", "a/b", ".."] {
        let mut manifest = guest::manifest("plain");
        manifest["slug"] = json!(slug);
        let bytes = guest::with_manifest(Guest::echo().component(), &manifest);
        std::fs::write(author.path("b.wasm"), &bytes).unwrap();
        artefact["layers"][0]["size"] = bytes.len().into();
        artefact["layers"][0]["digest"] = registry.put_blob(&repository, bytes).await.into();
        registry.put_manifest(&repository, "b", &artefact).await;
        let from = author.at(&registry, "b");
        let file = author.path("b.wasm").display().to_string();
        let server = ["--url", &host.url, "--org-key", &host.org_key];
        let add = |from: &str| host.setup().command(&["toolkits", "add", from]);
        for refused in [
            author.run(&["pull", &from]),
            author.run(&[&["publish", "b.wasm"], &server[..]].concat()),
            add(&format!("oci://{from}")),
            add(&file),
        ] {
            let said = refused.failed();
            assert!(said.contains("slug") && said.contains(slug), "{said}");
        }
    }
    assert!(!author.path("../escaped.wasm").exists());
}

#[tokio::test]
async fn registry_password_sources_are_tried() {
    let (registry, author) = (Registry::start_with_password().await, Author::new());
    let reference = author.at(&registry, "a");
    let push = ["push", &reference, "a.wasm"];
    let run = |variables: &[(&str, &str)], more: &[&str]| {
        toolkit(author.folder.path(), variables, &[&push[..], more].concat())
    };
    let said = run(&[], &[]).failed();
    assert!(said.contains("docker login"), "{said}");
    let [right, wrong] = [REGISTRY_PASSWORD, "wrong"]
        .map(|password| ["--username", REGISTRY_USER, "--password", password]);
    run(&[], &wrong).failed();
    run(&[], &right).succeeded();
    let variables = [
        ("OCI_USERNAME", REGISTRY_USER),
        ("OCI_PASSWORD", REGISTRY_PASSWORD),
    ];
    run(&variables, &[]).succeeded();
    let kept = json!({ "auths": { &registry.host: { "auth": base64(format!("{REGISTRY_USER}:{REGISTRY_PASSWORD}").as_bytes()) } } });
    std::fs::create_dir(author.path(".docker")).unwrap();
    std::fs::write(author.path(".docker/config.json"), kept.to_string()).unwrap();
    let home = author.folder.path().display().to_string();
    run(&[("HOME", &home)], &[]).succeeded();
    let pull = ["pull", &reference, "-o", "b.wasm"];
    let said = author.run(&pull).failed();
    assert!(
        said.contains("docker login") && !said.contains(REGISTRY_PASSWORD),
        "{said}"
    );
    toolkit(author.folder.path(), &[("HOME", &home)], &pull).succeeded();
}

#[tokio::test]
async fn component_is_added_from_a_registry() {
    let (registry, first, second) = (Registry::start().await, Author::new(), Author::new());
    let digest = first.push(&registry, "a", "a.wasm");
    second.push(&registry, "b", "a.wasm");
    let host = Setup::new().start().await;
    let add = |setup: &Setup, from: &str| {
        setup.command(&["toolkits", "add", &format!("oci://{from}"), "--json"])
    };
    let added: Value =
        serde_json::from_str(&add(host.setup(), &first.at(&registry, "a")).succeeded()).unwrap();
    assert_eq!(
        added["origin"],
        format!("oci://{}", first.pinned(&registry, &digest)),
        "the digest is shown, to be pinned"
    );
    assert_eq!(added["slug"], first.slug);
    assert_eq!(added["signed_by"], Value::Null);
    let [tool, other] = [&first, &second].map(|author| guest::tool(&author.slug));
    let assert_runs = async |host: &Host| {
        let ran = host.as_project().execute(&tool, json!({ "a": 1 })).await;
        assert_eq!(ran.data(), json!({ "a": 1 }));
    };
    assert_runs(&host).await;
    let (setup, _) = host.terminate().await;
    add(&setup, &second.at(&registry, "b")).succeeded();
    let listed = setup.command(&["toolkits", "list"]).succeeded();
    assert!(
        listed.contains(&first.slug) && listed.contains(&second.slug),
        "{listed}"
    );
    setup
        .command(&["toolkits", "remove", &second.slug, "20260101_00"])
        .succeeded();
    let host = setup.start().await;
    assert_runs(&host).await;
    let gone = host.as_project().execute(&other, json!({})).await;
    gone.expect(410);
    host.setup()
        .command(&["toolkits", "remove", &first.slug, "20260101_00"])
        .succeeded();
    let unknown = host
        .setup()
        .command(&["toolkits", "remove", &first.slug[1..], "20260101_00"])
        .failed();
    let question = format!("not found; did you mean `{}`?", first.slug);
    assert!(unknown.contains(&question), "{unknown}");
    let listed = host
        .setup()
        .command(&["toolkits", "list", "--json"])
        .succeeded();
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let served = host.as_org().get("/org/toolkits").await.expect(200);
    assert_eq!(listed, served["items"]);
    let mut versions = listed.as_array().unwrap().iter();
    let all = versions.all(|version| version["is_deprecated"] == true);
    assert!(all, "{listed}");
    let said = Setup::new().command(&["toolkits", "list"]).failed();
    assert!(
        said.contains("does not exist: create it with `toolhost serve`"),
        "{said}"
    );
}

#[tokio::test]
async fn only_components_signed_by_trusted_keys_publish() {
    let (registry, author) = (Registry::start().await, Author::new());
    let ((ours, id), _) = (author.key("k.key"), author.key("stranger.key"));
    let folder = author.path("folder");
    std::fs::create_dir(&folder).unwrap();
    let settings = |setup: Setup| {
        setup
            .with("publish.trusted_keys", &ours)
            .with("toolkits", folder.display().to_string())
    };
    let host = settings(Setup::new()).start().await;
    let missing = ("Toolkit_SignatureMissing", "is not signed");
    let invalid = ("Toolkit_SignatureInvalid", "did not sign these bytes");
    let stranger = ("Toolkit_SignerUnknown", "not among `publish.trusted_keys`");
    author.write("other.wasm", Guest::constant());
    for (slug, said) in [missing, invalid, stranger] {
        match slug {
            "Toolkit_SignatureMissing" => {}
            "Toolkit_SignerUnknown" => author.sign("a.wasm", "stranger.key"),
            _ => {
                author.sign("other.wasm", "k.key");
                let [from, to] = ["other.wasm.minisig", "a.wasm.minisig"];
                std::fs::copy(author.path(from), author.path(to)).unwrap();
            }
        }
        let signature = std::fs::read(author.path("a.wasm.minisig"))
            .map(|bytes| base64(&bytes))
            .ok();
        let headers: Vec<_> = signature
            .iter()
            .map(|value| ("x-toolkit-signature", value.as_str()))
            .collect();
        put(&host.as_org(), &author, "a.wasm", &headers)
            .await
            .expect_error(403, slug);
        let file = author.path("a.wasm").display().to_string();
        let refused = host.setup().command(&["toolkits", "add", &file]).failed();
        assert!(refused.contains(said), "{refused}");
        for name in ["a.wasm", "a.wasm.minisig"] {
            std::fs::copy(author.path(name), folder.join(name)).ok();
        }
        let started = settings(Setup::new()).start().await;
        // The server publishes the toolkits of the folder while it serves.
        wait_until(said, || async { started.output().contains(said) }).await;
        author.assert_read(&started, 404).await;
    }
    // The signature of an unknown key passes through the registry and is refused by the server.
    let from = format!("oci://{}", author.at(&registry, "a"));
    author.push(&registry, "a", "a.wasm");
    let said = host.setup().command(&["toolkits", "add", &from]).failed();
    assert!(said.contains(stranger.1), "{said}");
    author.sign("a.wasm", "k.key");
    author.push(&registry, "a", "a.wasm");
    let added = host
        .setup()
        .command(&["toolkits", "add", &from, "--json"])
        .succeeded();
    assert_eq!(
        serde_json::from_str::<Value>(&added).unwrap()["signed_by"],
        id
    );
    let (setup, _) = host.terminate().await;
    let host = setup.start().await;
    let listed = host.as_org().get("/org/toolkits").await.expect(200);
    assert_eq!(
        listed["items"][0]["signed_by"], id,
        "the record keeps who signed"
    );
    let garbage = [("x-toolkit-signature", "%%%")];
    let refused = put(&host.as_org(), &author, "a.wasm", &garbage).await;
    refused.expect_error(403, invalid.0);
    std::fs::copy(author.path("a.wasm.minisig"), folder.join("a.wasm.minisig")).unwrap();
    let started = settings(Setup::new()).start().await;
    author.assert_read(&started, 200).await;
}

#[tokio::test]
async fn publish_sends_the_adjacent_signature() {
    let author = Author::new();
    let (ours, id) = author.key("k.key");
    let setup = Setup::new().with("publish.trusted_keys", ours);
    let host = setup.start().await;
    let server = ["--url", &host.url, "--org-key", &host.org_key];
    let publish = || author.run(&[&["publish", "a.wasm", "--json"], &server[..]].concat());
    let refused: Value = serde_json::from_str(&publish().stdout).unwrap();
    assert_eq!(
        refused[0]["answer"]["error"]["slug"],
        "Toolkit_SignatureMissing"
    );
    author.sign("a.wasm", "k.key");
    let published: Value = serde_json::from_str(&publish().succeeded()).unwrap();
    assert_eq!(published[0]["status"], 201);
    assert_eq!(published[0]["answer"]["signed_by"], id);
    author.write("a.wasm", Guest::constant());
    assert!(
        publish().failed().contains("does not match the bytes"),
        "a signature that fits no more is not sent"
    );
}

#[tokio::test]
async fn invalid_trusted_key_prevents_start() {
    let refused = Setup::new()
        .with("publish.trusted_keys", "nonsense")
        .try_start()
        .await
        .unwrap_err();
    let reason = "`nonsense` is not a minisign public key";
    assert!(refused.output.contains(reason), "{refused:?}");
}

#[tokio::test]
async fn failing_case_keeps_toolkit_unpublished() {
    let host = Host::shared().await;
    let author = harness::Author::new();
    let name = format!("checked-{}", unique(4));
    author.new_toolkit(&name);
    let case = author.path(&format!("{name}/cases/greet/success.json"));
    let wrong = r#"{ "arguments": { "name": "Ada" }, "data": { "text": "Hello, Bob!" } }"#;
    std::fs::write(case, wrong).unwrap();
    let publish = |more: &[&str]| {
        let command = ["publish", &name, "--version", "20260101_00"];
        let server = ["--url", &host.url, "--org-key", &host.org_key];
        Finished::run(author.command(&[&command[..], &server, more].concat()))
    };
    let address = format!("/toolkits/{}/versions/20260101_00", name.replace('-', "_"));
    let refused = publish(&[]).failed();
    assert!(refused.contains("Hello, Bob!"), "{refused}");
    assert!(refused.contains("nothing was published"), "{refused}");
    host.as_org().get(&address).await.expect(404);

    let unchecked = publish(&["--no-check"]);
    assert!(
        unchecked.stderr.contains("without a check"),
        "{unchecked:?}"
    );
    unchecked.succeeded();
    host.as_org().get(&address).await.expect(200);
}

#[tokio::test]
async fn deprecation_is_undone() {
    let host = Host::shared().await;
    let author = Author::new();
    let server = ["--url", &host.url, "--org-key", &host.org_key];
    let run = |arguments: &[&str]| author.run(&[arguments, &server].concat());
    run(&["publish", "a.wasm"]).succeeded();
    let version = format!("{}@20260101_00", author.slug);
    let is_deprecated = async || {
        let read = host.as_org().get(&author.address()).await.expect(200);
        read["is_deprecated"].clone()
    };
    run(&["deprecate", &version]).succeeded();
    run(&["deprecate", &version]).succeeded();
    assert_eq!(is_deprecated().await, true);
    run(&["deprecate", &version, "--undo"]).succeeded();
    assert_eq!(is_deprecated().await, false);
    let missing = format!("{}@20260101_07", author.slug);
    assert!(
        run(&["deprecate", &missing])
            .failed()
            .contains("does not have")
    );
    let unnamed = run(&["deprecate", &author.slug]).failed();
    assert!(unnamed.contains("SLUG@VERSION"), "{unnamed}");
}
