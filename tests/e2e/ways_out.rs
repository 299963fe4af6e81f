//! Server-side request forgery: every kind of outgoing request against every spelling of this
//! machine. No request reaches a forbidden address, and the caller gets an error.

use futures::future::join_all;
use harness::{
    Answer, Client, Guest, Host, Names, Sentinel, guest,
    host::Setup,
    names::{Record, spellings},
    unique, wait_until,
};
use serde_json::{Value, json};

use crate::given::{self, Oauth, open, status};

/// A kind of outgoing request whose destination an attacker controls.
#[derive(Debug, Clone, Copy)]
enum Way {
    /// A request of a guest.
    Guest,
    /// A proxy request with the credential of an account.
    Passed,
    /// A body that a proxy request fetches from an address.
    Body,
    /// The proxy of an auth config.
    Proxy,
    /// The token endpoint of a provider, in an address with a value that users fill in.
    Token,
    /// The metadata of an issuer, in an address with a value that users fill in.
    Metadata,
    /// The base address of an account, with a value that users fill in. It is sent with each call
    /// and not stored first.
    Base,
}

/// Kinds of request with a free choice of the whole address.
const FREE_WAYS: [Way; 4] = [Way::Guest, Way::Passed, Way::Body, Way::Proxy];
/// Kinds of request with a choice of a name below `example.com`.
const ALL_WAYS: [Way; 7] = [
    Way::Guest,
    Way::Passed,
    Way::Body,
    Way::Proxy,
    Way::Token,
    Way::Metadata,
    Way::Base,
];

/// A project with an account of each required kind.
struct Traveller {
    project: Client,
    /// A toolkit that may reach any name below `example.com`, with a key.
    slug: String,
    account: String,
    /// Another such toolkit, and its auth config, whose proxy is changed.
    proxied: (String, String),
    /// Toolkits with tokens from a token endpoint, and from a discovered issuer.
    token: String,
    metadata: String,
}

impl Traveller {
    async fn new(host: &Host) -> Self {
        let project = host.new_project().await;
        let publish = async |mut manifest: Value| {
            manifest["egress"] = json!([{ "host": "*.example.com" }]);
            host.publish(Guest::fetch().component(), &manifest).await;
            manifest["slug"].as_str().unwrap().to_owned()
        };
        let site = json!({ "name": "site", "title": "Site", "secret": false });
        let mut made = Vec::new();
        for _ in 0..2 {
            let mut keyed = guest::manifest_with_key(&given::slug(), given::bearer());
            keyed["auth"][0]["fields"]
                .as_array_mut()
                .unwrap()
                .push(site.clone());
            keyed["auth"][0]["base_url"] = "https://{site}.example.com".into();
            let slug = publish(keyed).await;
            let config = project.auth_config(&slug, "API_KEY", json!({})).await;
            let values = json!({ "api_key": harness::secret(), "site": "api" });
            let account = account(&project, &config, "API_KEY", &values)
                .await
                .expect(201);
            made.push((slug, config, account["id"].as_str().unwrap().to_owned()));
        }
        let ((slug, _, account), (proxied, config, _)) = (made.remove(0), made.remove(0));
        let proxied = (proxied, config);
        let credentials = json!({ "client_id": "c", "client_secret": harness::secret() });
        let mut of_flow = Vec::new();
        for flow in [
            json!({ "token_url": "https://{site}.example.com/token" }),
            json!({ "issuer": "https://{site}.example.com" }),
        ] {
            let request = json!([{ "in": "header", "name": "authorization", "value": "Bearer {access_token}" }]);
            let scheme = json!({ "mode": "S2S_OAUTH2", "name": "S2S", "fields": [site], "request": request, "oauth2": flow });
            let slug = publish(guest::manifest_with_scheme(&given::slug(), scheme)).await;
            of_flow.push(
                project
                    .auth_config(&slug, "S2S_OAUTH2", credentials.clone())
                    .await,
            );
        }
        let (metadata, token) = (of_flow.pop().unwrap(), of_flow.pop().unwrap());
        Self {
            project,
            slug,
            account,
            proxied,
            token,
            metadata,
        }
    }

    /// Sends a request to an authority (host and port) and returns the provider's response.
    ///
    /// # Errors
    /// The reason for which no request was sent.
    async fn goes(&self, way: Way, place: &str) -> Result<String, String> {
        let url = format!("https://{place}/echo/way");
        match way {
            Way::Guest => ran(self.fetch(&url).await),
            Way::Passed => passed(self.pass(json!({ "endpoint": url, "method": "GET" })).await),
            Way::Body => passed(
                self.pass(json!({ "endpoint": "/echo/x", "method": "POST", "binary_body": { "url": url } })).await,
            ),
            Way::Proxy => {
                let (slug, config) = &self.proxied;
                let proxy = json!({ "type": "custom", "proxy_config": { "proxy_url": format!("http://{place}") } });
                let set = self.project.patch(&format!("/auth_configs/{config}"), &proxy).await;
                if set.status != 200 {
                    return passed(set);
                }
                // An address redirected by the operator uses no proxy, so another name is
                // requested.
                let call = json!({ "url": "https://far.example.com/echo/way" });
                ran(self.project.execute(&guest::tool(slug), call).await)
            }
            Way::Token | Way::Metadata => {
                let config = if matches!(way, Way::Token) { &self.token } else { &self.metadata };
                passed(account(&self.project, config, "S2S_OAUTH2", &json!({ "site": site(place) })).await)
            }
            Way::Base => {
                let values = json!({ "api_key": harness::secret(), "site": site(place) });
                let brought = json!({ "authScheme": "API_KEY", "toolkitSlug": self.slug, "val": values });
                let body = json!({ "endpoint": "/echo/way", "method": "GET", "custom_connection_data": brought });
                passed(self.project.post("/tools/execute/proxy", &body).await)
            }
        }
    }

    async fn fetch(&self, url: &str) -> Answer {
        self.project
            .execute(&guest::tool(&self.slug), json!({ "url": url }))
            .await
    }

    async fn pass(&self, mut body: Value) -> Answer {
        body["connected_account_id"] = self.account.clone().into();
        self.project.post("/tools/execute/proxy", &body).await
    }
}

/// Returns the value to fill in for a name below `example.com`.
fn site(place: &str) -> &str {
    place.strip_suffix(".example.com").unwrap_or(place)
}

async fn account(project: &Client, config: &str, mode: &str, values: &Value) -> Answer {
    let connection =
        json!({ "user_id": "default", "state": { "authScheme": mode, "val": values } });
    project
        .post(
            "/connected_accounts",
            &json!({ "auth_config": { "id": config }, "connection": connection }),
        )
        .await
}

/// Returns the result of a call.
fn ran(answer: Answer) -> Result<String, String> {
    assert_eq!(answer.status, 200, "{answer:#?}");
    if answer["successful"] == true {
        Ok(answer.text)
    } else {
        Err(answer.failure().to_owned())
    }
}

/// Returns the result of a request to the server, whose status must attribute the error.
fn passed(answer: Answer) -> Result<String, String> {
    if answer.status < 300 {
        return Ok(answer.text);
    }
    answer.assert_envelope();
    Err(format!("{} {}", answer.status, answer.text))
}

/// Returns true if the destination itself was refused, and not an error that occurred there.
fn refused(way: Way, why: &str) -> bool {
    match way {
        Way::Guest => ["denied", "invalid_request"].contains(&why),
        Way::Proxy => why == "denied" || why.starts_with("400 "),
        Way::Passed | Way::Base => why.starts_with("400 ") || why.starts_with("403 "),
        Way::Body | Way::Token | Way::Metadata => why.starts_with("400 "),
    }
}

#[track_caller]
fn assert_refused(way: Way, place: &str, gone: &Result<String, String>) {
    let is_refused = gone.as_ref().is_err_and(|why| refused(way, why));
    assert!(is_refused, "{way:?} to {place}: {gone:?}");
}

#[tokio::test]
async fn no_spelling_of_private_address_is_reached() {
    let traveller = Traveller::new(Host::shared().await).await;
    let sentinel = Sentinel::default();
    let place = sentinel.watch([127, 0, 0, 1], 0).unwrap();
    // The same port of the IPv6 loopback address, if it exists.
    sentinel.watch([0, 0, 0, 0, 0, 0, 0, 1], place.port()).ok();
    let std::net::IpAddr::V4(address) = place.ip() else {
        panic!("{place} is what was asked for")
    };
    let spelt = spellings(address)
        .into_iter()
        .map(|host| format!("{host}:{}", place.port()));
    let hidden = [
        "api.example.com@HERE",
        "api.example.com:x@HERE",
        "HERE\\@api.example.com",
        "HERE#@api.example.com",
        "HERE?@api.example.com",
    ];
    let hidden = hidden.map(|text| text.replace("HERE", &place.to_string()));
    let others = [
        "10.0.0.1",
        "169.254.169.254",
        "192.168.1.1",
        "[fd00:ec2::254]",
        "api.example.com.",
        "100.64.0.1",
    ]
    .map(str::to_owned);
    for spelling in spelt.chain(hidden).chain(others) {
        let all = FREE_WAYS.map(|way| traveller.goes(way, &spelling));
        for (way, gone) in FREE_WAYS.into_iter().zip(join_all(all).await) {
            assert_refused(way, &spelling, &gone);
        }
    }
    // Filled-in values cannot leave the domain that the toolkit defines.
    for inside in [
        "HERE/", "HERE#", "HERE?", "HERE\\", "x@HERE/", "HERE", "", "a/b", "%2F", "HERE/x.",
    ] {
        let inside = inside.replace("HERE", &place.to_string());
        for way in [Way::Token, Way::Metadata, Way::Base] {
            let gone = traveller.goes(way, &inside).await;
            assert_refused(way, &inside, &gone);
        }
    }
    assert_eq!(sentinel.seen(), 0, "somebody came");
}

#[tokio::test]
async fn issuer_metadata_cannot_reach_private_addresses() {
    let (host, project) = Host::shared_with_project().await;
    let sentinel = Sentinel::default();
    let inside = format!("https://{}/x", sentinel.watch([127, 0, 0, 1], 0).unwrap());
    let says = async |member: &str| {
        let says = [(member.to_owned(), inside.as_str().into())];
        Oauth::of(host, &project, json!({}), |issuer| {
            issuer.set(|settings| settings.says.extend(says));
            issuer.discovered("DCR_OAUTH")
        })
        .await
    };

    let oauth = says("registration_endpoint").await;
    let body =
        json!({ "auth_config": { "id": oauth.config }, "connection": { "user_id": "default" } });
    project.post("/connected_accounts", &body).await.expect(400);

    let oauth = says("token_endpoint").await;
    let made = oauth.begin(&project, "https://app.example/done").await;
    let landed = open(&project, &oauth.visit(&made).await).await;
    assert!(
        landed.header("location").contains("status=failed"),
        "{landed:?}"
    );
    assert_eq!(
        status(&project, made["id"].as_str().unwrap()).await,
        "FAILED"
    );

    let oauth = says("revocation_endpoint").await;
    let id = oauth.connect(&project).await;
    project
        .post(&format!("/connected_accounts/{id}/revoke"), &json!({}))
        .await
        .expect(200);
    assert_eq!(status(&project, &id).await, "REVOKED", "erased here alone");
    assert_eq!(oauth.issuer.good(), 1, "erased here alone");

    assert_eq!(sentinel.seen(), 0, "somebody came");
}

#[tokio::test]
async fn redirects_cannot_reach_private_addresses() {
    let host = Host::shared().await;
    let traveller = Traveller::new(host).await;
    let sentinel = Sentinel::default();
    let place = sentinel.watch([127, 0, 0, 1], 0).unwrap();
    let other = sentinel.watch([127, 0, 0, 1], 0).unwrap();
    for code in [301, 302, 303, 307, 308] {
        for target in [
            format!("https://{place}/x"),
            format!("http://{place}/x"),
            format!("//{place}/x"),
            format!("https://api.example.com:{}/x", other.port()),
        ] {
            let url = format!("https://api.example.com/redirect{code}/x?to={target}");
            let guest = ran(traveller.fetch(&url).await);
            assert!(guest == Err("denied".to_owned()), "{url}: {guest:?}");
            let followed = json!({ "endpoint": url, "method": "GET" });
            let fetched =
                json!({ "endpoint": "/echo/x", "method": "POST", "binary_body": { "url": url } });
            let request = json!([{ "in": "header", "name": "authorization", "value": "Bearer {access_token}" }]);
            let scheme = json!({ "mode": "S2S_OAUTH2", "name": "S2S", "request": request, "oauth2": { "token_url": url } });
            let slug = given::slug();
            given::publish_with_scheme(host, &slug, scheme).await;
            let credentials = json!({ "client_id": "c", "client_secret": harness::secret() });
            let config = traveller
                .project
                .auth_config(&slug, "S2S_OAUTH2", credentials)
                .await;
            for (answer, status) in [
                (traveller.pass(followed).await, "403"),
                (traveller.pass(fetched).await, "400"),
                (
                    account(&traveller.project, &config, "S2S_OAUTH2", &json!({})).await,
                    "400",
                ),
            ] {
                let gone = passed(answer);
                let is_refused = gone.as_ref().is_err_and(|why| why.starts_with(status));
                assert!(is_refused, "{url}: {gone:?}");
            }
        }
    }
    for request in [
        format!("GET http://{place}/x HTTP/1.1\r\nhost: {place}\r\nconnection: close\r\n\r\n"),
        format!(
            "GET http://{place}/api/v3/toolkits HTTP/1.1\r\nhost: {place}\r\nconnection: close\r\n\r\n"
        ),
        format!("CONNECT {place} HTTP/1.1\r\nhost: {place}\r\nconnection: close\r\n\r\n"),
    ] {
        let said = host.anonymous().raw(request.as_bytes()).await;
        assert!(said.starts_with("HTTP/1.1 4"), "{request}: {said}");
    }
    assert_eq!(sentinel.seen(), 0, "somebody came");
}

#[tokio::test]
async fn resolved_names_cannot_reach_private_addresses() {
    let certified = ["good.example.com", "turning.example.com", "api.example.com"];
    let Some(names) = Names::start(Host::application(), &certified) else {
        eprintln!("nothing was tried: this user may use no low ports, or make no namespace");
        return;
    };
    let sentinel = Sentinel::default();
    let [inside, outside] = [names.forbidden, names.application].map(std::net::IpAddr::from);
    for port in [80, 443] {
        sentinel.watch(inside, port).unwrap();
        // Unless another process uses the port.
        sentinel.watch([0, 0, 0, 0, 0, 0, 0, 1], port).ok();
    }
    let host = names.hold(Setup::new()).start().await;
    let address = |text: &str| text.parse::<std::net::IpAddr>().unwrap();
    let to = |all: &[std::net::IpAddr]| Record::To(all.to_vec());
    let mapped = std::net::IpAddr::from(names.forbidden.to_ipv6_mapped());
    names.say("api.example.com", to(&[outside]));
    names.say("good.example.com", to(&[outside]));
    let traveller = Traveller::new(&host).await;
    for way in [Way::Guest, Way::Passed, Way::Base] {
        let gone = traveller.goes(way, "good.example.com").await;
        assert!(
            gone.as_ref().is_ok_and(|said| said.contains("/echo/way")),
            "{way:?}: {gone:?}"
        );
    }

    let cases = [
        ("inside", to(&[inside])),
        ("inside-last", to(&[outside, inside])),
        ("inside-first", to(&[inside, outside])),
        ("private", to(&[address("10.0.0.1")])),
        ("metadata", to(&[address("169.254.169.254")])),
        ("six", to(&[address("::1")])),
        ("six-beside-good", to(&[outside, address("fd00::1")])),
        ("mapped", to(&[mapped])),
        ("mapped-beside-good", to(&[outside, mapped])),
        ("translated", to(&[address("64:ff9b::7f00:1")])),
        ("tunnelled", to(&[address("2002:7f00:1::1")])),
        ("alias", Record::Alias("inside.example.net".to_owned())),
        (
            "alias-of-alias",
            Record::Alias("alias.example.com".to_owned()),
        ),
        (
            "turning-good",
            Record::InTurn(vec![to(&[inside]), to(&[outside])]),
        ),
    ];
    names.say("inside.example.net", to(&[inside]));
    for (name, record) in &cases {
        names.say(&format!("{name}.example.com"), record.clone());
    }
    for (name, record) in &cases {
        for way in ALL_WAYS {
            let name = format!("{name}.example.com");
            // Each kind of request uses a new name.
            let fresh = format!("{}.example.com", unique(6));
            let name = if matches!(record, Record::InTurn(_)) {
                names.say(&fresh, record.clone());
                fresh
            } else {
                name
            };
            let gone = traveller.goes(way, &name).await;
            assert_refused(way, &name, &gone);
            assert!(names.asked(&name) > 0, "{way:?} to {name}: nobody looked");
        }
    }

    // The first lookup returns an allowed address, and all later ones a forbidden one. Only the
    // first lookup may be used.
    names.say(
        "turning.example.com",
        Record::InTurn(vec![to(&[outside]), to(&[inside])]),
    );
    let gone = traveller.goes(Way::Guest, "turning.example.com").await;
    assert!(
        gone.is_ok() && names.asked("turning.example.com") == 1,
        "{gone:?}"
    );
    for way in [Way::Guest, Way::Passed, Way::Base]
        .into_iter()
        .cycle()
        .take(9)
    {
        // The request uses the existing connection or a new lookup.
        let gone = traveller.goes(way, "turning.example.com").await;
        assert!(
            gone.is_ok() || gone.as_ref().is_err_and(|why| refused(way, why)),
            "{way:?}: {gone:?}"
        );
    }

    names.say("stranger.example.com", to(&[outside]));
    assert_eq!(
        traveller.goes(Way::Guest, "stranger.example.com").await,
        Err("tls".to_owned())
    );
    assert_eq!(
        traveller.goes(Way::Guest, "nowhere.example.com").await,
        Err("dns".to_owned())
    );

    // Names outside the policy are never looked up, and a filled-in value cannot change the end of
    // the name.
    for name in ["evil.example.net", "example.com.evil.example.net"] {
        names.say(name, to(&[outside]));
        let filled = ["", "/", "#", "?", "\\", ":443/"].map(|end| format!("{name}{end}"));
        let tried = filled.iter().flat_map(|name| {
            [Way::Token, Way::Metadata, Way::Base].map(|way| (way, name.as_str()))
        });
        for (way, name) in [(Way::Guest, name), (Way::Passed, name)]
            .into_iter()
            .chain(tried)
        {
            let gone = traveller.goes(way, name).await;
            assert!(gone.is_err(), "{way:?} to {name}: {gone:?}");
        }
        assert_eq!(names.asked(name), 0, "{name}");
    }
    assert_eq!(sentinel.seen(), 0, "somebody came");
}

#[tokio::test]
async fn webhook_name_cannot_turn_to_private_address() {
    let Some(names) = Names::start(Host::application(), &["hooks.example.com"]) else {
        eprintln!("nothing was tried: this user may use no low ports, or make no namespace");
        return;
    };
    let sentinel = Sentinel::default();
    let [inside, outside] = [names.forbidden, names.application]
        .map(|address| Record::To(vec![std::net::IpAddr::from(address)]));
    sentinel.watch(names.forbidden, 443).unwrap();
    let setup = Setup::new().with("webhooks.retry_delays_s", "0.1");
    let host = names.hold(setup).start().await;
    let project = host.as_project();
    let tag = unique(8);
    let subscriptions = "/webhook_subscriptions";
    let body = json!({
        "webhook_url": format!("https://hooks.example.com/echo/{tag}"), "enabled_events": ["service.trigger.message"],
    });
    names.say("hooks.example.com", inside.clone());
    project.post(subscriptions, &body).await.expect(400);
    names.say("hooks.example.com", outside.clone());
    let made = project.post(subscriptions, &body).await.expect(201);
    let subscription = format!("{subscriptions}/{}", made["id"].as_str().unwrap());
    names.say("hooks.example.com", inside);
    let test = format!("{subscription}/test");
    let sent = project.post(&test, &json!({})).await.expect(201);
    let delivery = format!("{subscription}/deliveries/{}", sent["id"].as_str().unwrap());
    let ended = async |status: &str| project.get(&delivery).await["status"] == status;
    wait_until("the delivery has failed", async || ended("failed").await).await;
    let failed = project.get(&delivery).await.expect(200);
    for attempt in failed["attempts"].as_array().unwrap() {
        assert_eq!(attempt["status"], Value::Null, "{attempt}");
        given::assert_contains(&attempt["error"], "net.allow");
    }
    names.say("hooks.example.com", outside);
    let replay = format!("{delivery}/replay");
    project.post(&replay, &json!({})).await.expect(200);
    wait_until("the delivery has arrived", async || {
        ended("delivered").await
    })
    .await;
    assert_eq!(given::seen(&tag), 1);
    assert_eq!(sentinel.seen(), 0, "somebody came");
}
