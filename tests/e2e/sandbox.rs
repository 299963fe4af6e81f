//! Containment of hostile guests: they harm neither the server nor neighboring projects.

use std::os::unix::fs::{MetadataExt, chown};

use futures::future::join_all;
use harness::{
    Guest, Host, guest,
    host::{Setup, size},
    wait_until,
};
use serde_json::json;

use crate::{
    given,
    hostile::{self, Ends, Hostile},
};

async fn start(allocator: &str) -> Host {
    let application = Host::application();
    Setup::new()
        .with("sandbox.allocator", allocator)
        .with_application(&["api.example.com"], application)
        .start()
        .await
}

/// Publishes a guest and returns the error if it was refused.
async fn publish(host: &Host, guest: &Hostile) -> Option<String> {
    let bytes = guest::with_manifest(guest.component.clone(), &guest.manifest);
    let answer = host
        .as_org()
        .put(&guest::address(&guest.manifest), bytes)
        .await;
    if answer.status == 201 {
        return None;
    }
    assert!(
        [400, 413, 422].contains(&answer.status),
        "{}: {answer:#?}",
        guest.name
    );
    answer.assert_envelope();
    Some(answer["error"]["message"].to_string() + &answer.problems().join("\n"))
}

/// Publishes a guest and returns the correct endings of its run, or `None` if it was correctly
/// refused.
async fn right_ends(
    host: &Host,
    guest: &Hostile,
) -> Result<Option<&'static [&'static str]>, String> {
    match (guest.ends, publish(host, guest).await) {
        (Ends::AtPublish | Ends::AtPublishOr(_), Some(_)) => Ok(None),
        (Ends::AtPublish, None) => Err(format!("{} was published", guest.name)),
        (_, Some(why)) => Err(format!("{} was refused: {why}", guest.name)),
        (Ends::Well, None) => Ok(Some(&[""])),
        (Ends::With(kinds) | Ends::AtPublishOr(kinds), None) => Ok(Some(kinds)),
    }
}

/// Runs a guest and returns its ending if it is not correct.
async fn wrong_end(host: &Host, guest: &Hostile, right: &[&str]) -> Option<String> {
    let tool = guest::tool(guest.manifest["slug"].as_str().unwrap());
    let answer = host
        .as_project()
        .execute(&tool, guest.arguments.clone())
        .await;
    let is_right = answer.status == 200 && right.contains(&answer.failure());
    (!is_right).then(|| {
        format!(
            "{}: {} {}, not {right:?}",
            guest.name, answer.status, answer.text
        )
    })
}

/// Publishes and runs each guest once. Returns those that run, and a list of failures.
async fn first_runs(
    host: &Host,
    guests: Vec<Hostile>,
) -> (Vec<(Hostile, &'static [&'static str])>, Vec<String>) {
    let (mut running, mut wrong) = (Vec::new(), Vec::new());
    for guest in guests {
        match right_ends(host, &guest).await {
            Ok(None) => {}
            Ok(Some(right)) => {
                wrong.extend(wrong_end(host, &guest, right).await);
                running.push((guest, right));
            }
            Err(why) => wrong.push(why),
        }
    }
    (running, wrong)
}

#[tokio::test]
async fn each_hostile_guest_is_contained() {
    let host = start("pooling").await;
    let echo = given::echo(&host).await;
    let project = host.as_project();
    let (running, mut wrong) = first_runs(&host, hostile::all()).await;
    assert!(running.len() >= 50, "{} guests run", running.len());
    // A loaded component holds a file descriptor. No new component is loaded after this point.
    project.execute(&echo, json!({})).await.data();
    let before = host.footprint();
    // Rare races need more runs.
    for _ in 1..size(3, 10) {
        for (guest, right) in &running {
            wrong.extend(wrong_end(&host, guest, right).await);
            let next = project.execute(&echo, json!({ "after": guest.name })).await;
            assert_eq!(next.data(), json!({ "after": guest.name }));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} went wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    for turn in 0..100 {
        assert_eq!(
            project.execute(&echo, json!({ "turn": turn })).await.data(),
            json!({ "turn": turn })
        );
    }
    let back = async || {
        let now = host.footprint();
        now.files <= before.files + 2 && now.threads <= before.threads + 2
    };
    wait_until("descriptors and threads are back where they began", back).await;
    let printed = host.output();
    assert!(!printed.contains("panicked at"), "{printed}");
}

#[tokio::test]
async fn the_on_demand_allocator_holds_the_same_line() {
    let host = start("on_demand").await;
    // Spinning and blocking guests behave the same under both allocators and take the longest.
    let slow = |guest: &Hostile| guest.name.starts_with("spin") || guest.name.starts_with("block");
    let guests = hostile::all()
        .into_iter()
        .filter(|guest| !matches!(guest.ends, Ends::AtPublish) && !slow(guest));
    let (_, wrong) = first_runs(&host, guests.collect()).await;
    assert!(
        wrong.is_empty(),
        "{} went wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[tokio::test]
async fn log_flood_is_truncated_with_a_marker() {
    let (host, project) = Host::shared_with_project().await;
    let flood = hostile::all()
        .into_iter()
        .find(|guest| guest.name == "flood_log_bytes")
        .unwrap();
    assert_eq!(publish(host, &flood).await, None);
    let ran = project
        .execute(&guest::tool("hostile_flood_log_bytes"), json!({}))
        .await;
    let log = project.log(&ran["log_id"]).await;
    // Zero bytes are stored escaped, with six characters each.
    assert!(
        log.text.len() < 6 * (256 << 10) + (64 << 10),
        "{} bytes of log were kept",
        log.text.len()
    );
    let lines = log["data"]["log"].as_array().unwrap();
    let marker = lines.last().unwrap()["message"].as_str().unwrap();
    assert!(lines.len() > 1 && marker.contains("dropped"), "{marker}");
}

#[tokio::test]
async fn other_projects_are_served_beside_spinning_guests() {
    let host = start("pooling").await;
    let echo = given::echo(&host).await;
    let mut spinner = hostile::spin().remove(0);
    // Eight concurrent guests together need twice the time that one may take. Time used by other
    // guests does not count against a guest, but that of other programs on the machine does.
    spinner.manifest["limits"] = json!({ "cpu_ms": 500, "wall_ms": 1000 });
    assert_eq!(publish(&host, &spinner).await, None);
    let (attacker, victim) = (host.new_project().await, host.new_project().await);
    let tool = guest::tool("hostile_spin_export");
    let spinning = (0..16).map(|_| {
        let (attacker, tool) = (attacker.clone(), tool.clone());
        async move {
            for _ in 0..3 {
                let answer = attacker.execute(&tool, json!({})).await;
                if answer.status == 429 {
                    assert!(!answer.header("retry-after").is_empty(), "{answer:#?}");
                } else {
                    let failure = answer.failure();
                    let is_limit = ["tool_cpu_limit", "tool_timeout"].contains(&failure);
                    assert!(is_limit, "{answer:#?}");
                }
            }
        }
    });
    let calling = async {
        for turn in 0..100 {
            assert_eq!(
                victim.execute(&echo, json!({ "turn": turn })).await.data(),
                json!({ "turn": turn })
            );
            victim.get("/auth/session/info").await.expect(200);
        }
    };
    futures::join!(join_all(spinning), calling);
}

#[tokio::test]
async fn calls_share_no_memory() {
    // Both grow to the same size. One fills every byte and every table slot, and the other searches
    // for such content.
    let items = "(table $t 1000 funcref) (elem declare func $realloc)";
    let memory = r#"(memory (export "memory") 16)"#;
    let fill = "(drop (memory.grow (i32.const 900)))
        (memory.fill (i32.const 131072) (i32.const 171) (i32.sub (i32.shl (memory.size) (i32.const 16)) (i32.const 131072)))
        (table.fill $t (i32.const 0) (ref.func $realloc) (i32.const 1000))
        (call $ok (local.get $args) (local.get $args_len))";
    let look = "(drop (memory.grow (i32.const 900)))
        (local.set $i (i32.const 131072))
        (loop $next
            (if (i64.ne (i64.load (local.get $i)) (i64.const 0)) (then unreachable))
            (local.set $i (i32.add (local.get $i) (i32.const 8)))
            (br_if $next (i32.lt_u (local.get $i) (i32.shl (memory.size) (i32.const 16)))))
        (loop $next
            (if (i32.eqz (ref.is_null (table.get $t (local.get $j)))) (then unreachable))
            (local.set $j (i32.add (local.get $j) (i32.const 1)))
            (br_if $next (i32.lt_u (local.get $j) (i32.const 1000))))
        (call $ok (local.get $args) (local.get $args_len))";
    for allocator in ["pooling", "on_demand"] {
        let host = start(allocator).await;
        for (slug, execute) in [("marker", fill), ("seeker", look)] {
            let guest = Guest {
                items,
                memory,
                execute,
                ..Guest::default()
            };
            host.publish(guest.component(), &guest::manifest(slug))
                .await;
        }
        let (one, other) = (host.new_project().await, host.new_project().await);
        for _ in 0..20 {
            let marks = (0..4).map(|_| one.execute("MARKER_RUN", json!({})));
            for answer in join_all(marks).await {
                assert_eq!(answer.data(), json!({}), "{allocator}");
            }
            let seeks = (0..4).map(|_| other.execute("SEEKER_RUN", json!({})));
            for answer in join_all(seeks).await {
                assert_eq!(
                    answer.data(),
                    json!({}),
                    "{allocator}: a byte of another project was seen"
                );
            }
        }
    }
}

#[tokio::test]
async fn written_pages_are_found_without_privileges() {
    let setup = Setup::new();
    let user = 65_534;
    let mut runner = Vec::new();
    // Other users have no privileges that the server could be run without.
    if std::fs::metadata("/proc/self").unwrap().uid() == 0 {
        let folder = setup.data();
        let folder = folder.parent().unwrap();
        chown(folder, Some(user), Some(user)).unwrap();
        let groups = [format!("--reuid={user}"), format!("--regid={user}")];
        runner.extend(["setpriv".to_owned(), "--clear-groups".to_owned()]);
        runner.extend(groups);
    }
    let host = setup.run_by(runner).start().await;
    let is_missing = |host: &Host| {
        let output = host.output();
        output.contains("the kernel does not report written pages")
    };
    assert_eq!(is_missing(&host), is_missing(Host::shared().await));
}
