//! The meta tool that waits until a user has connected toolkits: what ends a wait, on one server and
//! on two, and how many calls may wait.

use futures::future::join_all;
use harness::{Answer, BucketService, Client, Guest, Host, Postgres, host::Setup, wait_until};
use serde_json::{Value, json};

use crate::{
    given,
    tool_router_sessions::{SESSION_PATH, create, execute_meta, keyed},
};

/// Number of calls of one project that may wait.
const MAX_WAITS: usize = 10;

/// A project whose user `amy` has a link to connect a toolkit, and a session that waits.
struct Scene {
    project: Client,
    session: String,
    toolkit: String,
}

/// Returns the configuration of a session of `amy` that waits for connections.
fn config() -> Value {
    json!({ "user_id": "amy", "manage_connections": { "enable_wait_for_connections": true } })
}

async fn wait(project: &Client, session: &str, arguments: Value) -> Answer {
    execute_meta(project, session, "SERVICE_WAIT_FOR_CONNECTIONS", arguments).await
}

impl Scene {
    async fn new(host: &Host) -> Self {
        let project = host.new_project().await;
        let toolkit = keyed(host).await;
        project.connect_with_key(&toolkit, "bob").await;
        let session = create(&project, config()).await;
        let scene = Self {
            project,
            session,
            toolkit,
        };
        scene.create_link(&scene.toolkit).await;
        scene
    }

    async fn create_link(&self, toolkit: &str) {
        let link = format!("{SESSION_PATH}/{}/link", self.session);
        let body = json!({ "toolkit": toolkit });
        self.project.post(&link, &body).await.expect(201);
    }

    async fn wait(&self, arguments: Value) -> Value {
        self.answer(arguments).await.expect(200)["data"].clone()
    }

    async fn answer(&self, arguments: Value) -> Answer {
        loop {
            let answer = wait(&self.project, &self.session, arguments.clone()).await;
            // A call of `until_full` takes the slot of another one for a moment.
            if answer.status != 429 {
                return answer;
            }
        }
    }

    /// Waits for the toolkit in as many calls as may wait, while `act` is done once they wait.
    async fn while_waiting(&self, act: impl Future<Output = ()>) -> Vec<Value> {
        let arguments = json!({ "toolkits": [self.toolkit] });
        let waits = (0..MAX_WAITS).map(|_| self.wait(arguments.clone()));
        let act = async {
            self.until_full(true).await;
            act.await;
        };
        let (results, ()) = tokio::join!(join_all(waits), act);
        results
    }

    /// Waits until no further call may wait, or until one may.
    async fn until_full(&self, is_full: bool) {
        let asked = async || {
            let arguments = json!({ "toolkits": ["nonesuch"] });
            let answer = wait(&self.project, &self.session, arguments).await;
            let is_refused = answer.status == 429;
            if is_refused {
                assert_eq!(answer["error"]["slug"], "ToolRouterV2_TooManyWaits");
            } else {
                answer.expect(200);
            }
            is_refused
        };
        wait_until("the calls wait", async || asked().await == is_full).await;
    }
}

/// Starts a server on which only a connection ends a wait.
async fn patient_host() -> Host {
    let setup = Setup::new().with("sessions.connection_wait_s", "600");
    setup.start().await
}

#[tokio::test]
async fn connection_made_meanwhile_ends_waits() {
    let host = patient_host().await;
    let scene = Scene::new(&host).await;
    let toolkit = &scene.toolkit;
    let connect = async {
        scene.project.connect_with_key(toolkit, "amy").await;
    };
    for data in scene.while_waiting(connect).await {
        let result = &data["results"][toolkit];
        assert_eq!(result["status"], "ACTIVE");
        assert_eq!(result["has_active_connection"], true);
        let account = result["connected_account_id"].as_str().unwrap();
        let path = format!("/connected_accounts/{account}");
        let account = scene.project.get(&path).await.expect(200);
        assert_eq!(account["user_id"], "amy");
    }
}

#[tokio::test]
async fn disconnected_client_waits_no_longer() {
    let host = patient_host().await;
    let scene = Scene::new(&host).await;
    let full = scene.until_full(true);
    let arguments = json!({ "toolkits": [scene.toolkit] });
    let waits = (0..MAX_WAITS).map(|_| scene.wait(arguments.clone()));
    tokio::select! {
        ended = join_all(waits) => panic!("nothing was connected: {ended:?}"),
        () = full => {}
    }
    scene.until_full(false).await;
    let other = Scene::new(&host).await;
    other.until_full(false).await;
}

#[tokio::test]
async fn closed_session_ends_waits() {
    let host = patient_host().await;
    let off = json!({ "manage_connections": { "enable_wait_for_connections": false } });
    for (change, status) in [(None, 404), (Some(off), 403)] {
        let scene = Scene::new(&host).await;
        let arguments = json!({ "toolkits": [scene.toolkit] });
        let waits = (0..MAX_WAITS).map(|_| scene.answer(arguments.clone()));
        let close = async {
            scene.until_full(true).await;
            let path = format!("{SESSION_PATH}/{}", scene.session);
            let closed = match &change {
                Some(change) => scene.project.patch(&path, change).await,
                None => scene.project.delete(&path).await,
            };
            closed.expect(200);
        };
        let (answers, ()) = tokio::join!(join_all(waits), close);
        for answer in answers {
            answer.expect(status);
        }
    }
}

#[tokio::test]
async fn wait_ends_at_its_time_limit() {
    let setup = Setup::new().with("sessions.connection_wait_s", "1");
    let host = setup.start().await;
    let scene = Scene::new(&host).await;
    let arguments = json!({ "toolkits": [scene.toolkit], "session_id": "plan" });
    let data = scene.wait(arguments).await;
    let result = &data["results"][&scene.toolkit];
    assert_eq!(result["status"], "INITIATED");
    assert_eq!(result["has_active_connection"], false);
    given::assert_contains(&data["message"], "within 1 s");
    assert_eq!(data["session"]["id"], "plan");
}

#[tokio::test]
async fn mode_decides_which_toolkits_must_be_connected() {
    let host = Setup::new().with("sessions.connection_wait_s", "1");
    let host = host.start().await;
    let scene = Scene::new(&host).await;
    let pending = &scene.toolkit;
    let [connected, paused, unknown] = [(); 3].map(|()| keyed(&host));
    let (connected, paused, unknown) = (connected.await, paused.await, unknown.await);
    scene.project.connect_with_key(&connected, "amy").await;
    let account = scene.project.connect_with_key(&paused, "amy").await;
    let path = format!("/connected_accounts/{account}/status");
    let pause = json!({ "enabled": false });
    scene.project.patch(&path, &pause).await.expect(200);
    for (toolkits, mode, is_over) in [
        (json!([pending, connected]), "any", false),
        (json!([pending, paused]), "any", false),
        (json!([pending, connected]), "all", true),
        (json!([pending, unknown]), "any", true),
        (json!([connected, paused, unknown]), "all", false),
    ] {
        let arguments = json!({ "toolkits": toolkits, "mode": mode });
        let data = scene.wait(arguments).await;
        let message = data["message"].as_str().unwrap();
        assert_eq!(message.contains("within 1 s"), is_over, "{toolkits} {mode}");
    }
    let arguments = json!({ "toolkits": [connected, paused, unknown, "nonesuch"] });
    let data = scene.wait(arguments).await;
    let status = |slug: &str| data["results"][slug]["status"].clone();
    assert_eq!(status(&connected), "ACTIVE");
    assert_eq!(status(&paused), "FAILED");
    assert_eq!(data["results"][&paused]["connected_account_id"], account);
    assert_eq!(status(&unknown), "NOT_FOUND");
    assert_eq!(status("nonesuch"), "NOT_FOUND");
    for toolkits in [
        json!([]),
        json!((0..21).map(|n| format!("t{n}")).collect::<Vec<_>>()),
    ] {
        let arguments = json!({ "toolkits": toolkits });
        let refused = wait(&scene.project, &scene.session, arguments).await;
        assert_eq!(refused.expect(400)["error"]["code"], 1820);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn connection_on_another_server_ends_waits() {
    let bucket = BucketService::start();
    let setup = Setup::embedded()
        .on(Postgres::shared().database(None))
        .in_bucket(&bucket)
        .with("sessions.connection_wait_s", "600");
    let one = setup.start().await;
    let two = one.setup().another().start().await;
    let (toolkit, manifest) = given::manifest_with_key();
    one.publish(Guest::echo().component(), &manifest).await;
    let path = format!("/toolkits/{toolkit}");
    two.as_project().wait_for(&path).await;
    let project = one.as_project();
    project.connect_with_key(&toolkit, "bob").await;
    let scene = Scene {
        session: create(&project, config()).await,
        project: two.as_project(),
        toolkit,
    };
    scene.create_link(&scene.toolkit).await;
    let connect = async {
        project.connect_with_key(&scene.toolkit, "amy").await;
    };
    for data in scene.while_waiting(connect).await {
        assert_eq!(data["results"][&scene.toolkit]["status"], "ACTIVE");
    }
}
