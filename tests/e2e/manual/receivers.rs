//! The page about events: both programs that it shows receive signed messages, and refuse others.

use std::fs;

use harness::{
    free_port,
    host::Setup,
    manual::{Shell, Step, steps},
};

use super::{page, variables_with_node};

/// Requests without a signature, with a wrong one, and with an old timestamp; prints their statuses.
const UNSIGNED_REQUESTS: &str = r#"
status() { curl -sS -o /dev/null -w '%{http_code} ' -d '{"type": "forged", "data": 1}' -H 'webhook-id: 1' "$@" "http://127.0.0.1:$PORT"; }
signature() { printf '%s' "1.$1."'{"type": "forged", "data": 1}' | openssl dgst -sha256 -hmac "$WEBHOOK_SECRET" -binary | base64; }
now=$(date +%s)
status
status -H "webhook-timestamp: $now" -H 'webhook-signature: v1,AAAA v1,é'
status -H 'webhook-timestamp: 1000' -H "webhook-signature: v1,$(signature 1000)"
"#;

#[tokio::test]
async fn receivers_of_events_page_check_signatures() {
    let folder = tempfile::tempdir().unwrap();
    let host = Setup::new()
        .with("webhooks.retry_delays_s", "1,1,1,1,1,1")
        .with("net.allow", "127.0.0.1/32")
        .start()
        .await;
    let keys = format!(
        "export TOOLHOST_URL={} TOOLHOST_API_KEY={}\n",
        host.url, host.project_key
    );
    fs::write(folder.path().join("toolhost-data.env"), keys).unwrap();
    let mut shell = Shell::open(folder.path(), &variables_with_node());
    let steps = steps(&page("docs/events.md"));
    let first = steps
        .iter()
        .position(|step| matches!(step, Step::Write(..)));
    let [
        python,
        script,
        Step::Type(subscribe),
        Step::Type(start),
        Step::Type(send),
        ..,
    ] = &steps[first.expect("the page shows programs")..]
    else {
        panic!("the receivers are new: {steps:?}");
    };
    shell.follow(python).await;
    shell.follow(script).await;
    let port = free_port().to_string();
    shell.run(&format!("export PORT={port}")).await;
    shell.run(&subscribe.replace("9000", &port)).await;
    assert_eq!(start, "python3 receiver.py\n");
    for start in [start, "node receiver.ts"] {
        let terminal = shell.leave(start, "").await;
        shell.run(send).await;
        shell
            .until(&terminal, "service.trigger.message {\"hello\":")
            .await;
        let statuses = shell.run(UNSIGNED_REQUESTS).await;
        assert_eq!(statuses.trim(), "401 401 401", "{start}");
        assert!(!fs::read_to_string(&terminal).unwrap().contains("forged"));
        shell.run("kill $!; wait $! || true").await;
    }
}
