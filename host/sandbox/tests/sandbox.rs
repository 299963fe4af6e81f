//! Tests of the guarantees of the sandbox with hand-written guests.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test that cannot go on fails, and its tasks end with it"
)]

mod guest;

use std::{
    collections::BTreeMap,
    future::Future,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use bytes::Bytes;
use gate::Capacity;
use guest::{ECHO_CODE, component, foreign, plain};
use host_sandbox::{
    Action, Allocator, Call, Cause, Compiler, Context, Credential, Digest, File, Grant, GrantError,
    HandedOverSecret, Inbound, InstallError, Limits, MAX_SIGNED_MESSAGE_BYTES, Outcome, Output,
    Policy, Refusal, Sandbox, Settings, child::ChildLimits, kind,
};
use manifest::{EgressRule, Placement};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

const CANARY_SECRET: &str = "canary/4711+secret";
/// Body of `receive` in guests that are not asked to receive.
const UNREACHABLE_CODE: &str = "unreachable";

const SLEEP_IMPORT: &str =
    r#"(import "toolhost:toolkit/clock@1.0.0" "sleep" (func $sleep (param i32)))"#;
const NOW_IMPORT: &str =
    r#"(import "toolhost:toolkit/clock@1.0.0" "now" (func $now (result i64)))"#;
const LOG_IMPORT: &str =
    r#"(import "toolhost:toolkit/log@1.0.0" "write" (func $log (param i32 i32 i32)))"#;

struct Host {
    sandbox: Sandbox,
    folder: tempfile::TempDir,
}

fn settings(folder: &Path, upstream: Option<u16>) -> Settings {
    let rewrite = upstream.map(|port| net::Rewrite {
        from: "https://api.example.com".parse().unwrap(),
        to: format!("http://127.0.0.1:{port}").parse().unwrap(),
    });
    let net = net::Settings {
        rewrite: rewrite.into_iter().collect(),
        ..net::Settings::default()
    };
    Settings {
        live: 8,
        ..Settings::new(
            folder.join("cache"),
            [1; 32],
            net::Client::new(net).unwrap(),
        )
    }
}

fn open(change: impl FnOnce(&mut Settings)) -> Host {
    let folder = tempfile::tempdir().unwrap();
    let mut settings = settings(folder.path(), None);
    change(&mut settings);
    Host {
        sandbox: Sandbox::open(settings).unwrap(),
        folder,
    }
}

fn host() -> Host {
    open(|_| {})
}

fn call(component: Digest, arguments: &str) -> Call {
    Call {
        component,
        tenant: "tenant".into(),
        action: Action::Execute {
            tool: "HAND_RUN".into(),
            arguments: Bytes::copy_from_slice(arguments.as_bytes()),
        },
        context: Context {
            run_id: "log_1".to_owned(),
            ..Context::default()
        },
        policy: Arc::default(),
        grant: None,
        limits: Limits::default(),
        files: Vec::new(),
        files_memory: None,
        state: BTreeMap::new(),
        trace: None,
    }
}

impl Host {
    /// Installs a component and returns its digest.
    async fn install(&self, component: Bytes) -> Digest {
        self.sandbox.install(component).await.unwrap().digest
    }

    async fn run(&self, component: Bytes, change: impl FnOnce(&mut Call)) -> Outcome {
        let digest = self.install(component).await;
        let mut call = call(digest, "{}");
        change(&mut call);
        let outcome = self.sandbox.call(call).await.unwrap();
        let gauges = self.sandbox.gauges();
        assert_eq!(
            (gauges.live, gauges.queued, gauges.memory),
            (0, 0, 0),
            "a call left something behind"
        );
        outcome
    }

    /// Runs a guest that must fail and returns the kind of its failure.
    async fn fails(&self, component: Bytes, change: impl FnOnce(&mut Call)) -> String {
        let outcome = self.run(component, change).await;
        let failure = outcome.output.expect_err("the guest should have failed");
        // The failure must not affect the next guest.
        assert_eq!(data(&self.run(plain("", ECHO_CODE), |_| {}).await), "{}");
        failure.kind
    }
}

fn data(outcome: &Outcome) -> &str {
    match &outcome.output {
        Ok(Output::Data(bytes)) => std::str::from_utf8(bytes).unwrap(),
        other => panic!("{other:?}, log {:?}", outcome.log),
    }
}

#[tokio::test]
async fn guest_answers_and_usage_is_reported() {
    for allocator in [Allocator::Pooling, Allocator::OnDemand] {
        let host = open(|settings| settings.allocator = allocator);
        assert_eq!(host.sandbox.allocator(), allocator);
        let arguments = r#"{"text":"héllo","n":[1,2,3]}"#;
        let outcome = host
            .run(plain("", ECHO_CODE), |call| {
                *call = self::call(call.component, arguments)
            })
            .await;
        assert_eq!(data(&outcome), arguments);
        assert_eq!(outcome.usage.peak_memory, 2 << 16);
        assert!(outcome.usage.cpu > Duration::ZERO && outcome.usage.wall > Duration::ZERO);
        assert_eq!(host.sandbox.gauges().loaded, 1);
    }
}

#[tokio::test]
async fn two_calls_never_share_memory_or_tables() {
    let items = r#"(table $t 10 funcref) (elem declare func $mark)
        (func $mark)
        (func $seen (result i32) (local $at i32) (local $sum i32)
          (local.set $at (i32.const 131072))
          (block $done (loop $next
            (br_if $done (i32.ge_u (local.get $at) (i32.shl (memory.size) (i32.const 16))))
            (local.set $sum (i32.or (local.get $sum) (i32.load (local.get $at))))
            (local.set $at (i32.add (local.get $at) (i32.const 4)))
            (br $next)))
          (local.set $at (i32.const 0))
          (block $done (loop $next
            (br_if $done (i32.ge_u (local.get $at) (table.size $t)))
            (local.set $sum (i32.or (local.get $sum) (i32.eqz (ref.is_null (table.get $t (local.get $at))))))
            (local.set $at (i32.add (local.get $at) (i32.const 1)))
            (br $next)))
          (local.get $sum))
        (data (i32.const 2048) "\"dirty\"\"clean\"")"#;
    let execute = r#"(drop (memory.grow (i32.const 40))) (drop (table.grow $t (ref.null func) (i32.const 90)))
        (if (result i32) (call $seen)
          (then (call $ok (i32.const 2048) (i32.const 7)))
          (else
            (memory.fill (i32.const 131072) (i32.const 0xa5) (i32.const 2621440))
            (table.fill $t (i32.const 0) (ref.func $mark) (i32.const 100))
            (call $ok (i32.const 2055) (i32.const 7))))"#;
    for allocator in [Allocator::Pooling, Allocator::OnDemand] {
        let host = open(|settings| (settings.live, settings.allocator) = (1, allocator));
        let component = plain(items, execute);
        for _ in 0..20 {
            assert_eq!(
                data(&host.run(component.clone(), |_| {}).await),
                "\"clean\"",
                "{allocator:?}"
            );
        }
    }
}

#[tokio::test]
async fn spinning_guest_is_ended_by_processor_time() {
    let host = host();
    let short = |call: &mut Call| call.limits.cpu = Duration::from_millis(50);
    let spin = "(loop $l (br $l)) unreachable";
    assert_eq!(host.fails(plain("", spin), short).await, kind::CPU);
    let in_start = plain("(func $spin (loop $l (br $l))) (start $spin)", ECHO_CODE);
    assert_eq!(host.fails(in_start, short).await, kind::CPU);
    let after = r#"(func (export "cabi_post_toolhost:toolkit/entry@1.0.0#execute") (param i32) (loop $l (br $l)))"#;
    assert_eq!(host.fails(plain(after, ECHO_CODE), short).await, kind::CPU);
    let fill = "(loop $l (memory.fill (i32.const 2048) (i32.const 1) (i32.const 60000)) (br $l)) unreachable";
    assert_eq!(host.fails(plain("", fill), short).await, kind::CPU);
}

#[tokio::test]
async fn waiting_guest_is_ended_by_wall_time() {
    let host = host();
    let short = |call: &mut Call| call.limits.wall = Duration::from_millis(30);
    let sleep = component(
        SLEEP_IMPORT,
        "",
        "(call $sleep (i32.const 600000)) (call $ok (i32.const 0) (i32.const 0))",
    );
    assert_eq!(host.fails(sleep, short).await, kind::TIMEOUT);
    let spin_then_sleep = "(local.set $i (i32.const 40000000))
        (loop $l (br_if $l (local.tee $i (i32.sub (local.get $i) (i32.const 1))))) (call $sleep (i32.const 600000)) unreachable";
    let later = |call: &mut Call| call.limits.wall = Duration::from_millis(1500);
    assert_eq!(
        host.fails(component(SLEEP_IMPORT, "", spin_then_sleep), later)
            .await,
        kind::TIMEOUT
    );
    let naps = "(local.set $i (i32.const 20))
        (loop $l (call $sleep (i32.const 5)) (br_if $l (local.tee $i (i32.sub (local.get $i) (i32.const 1)))))";
    let outcome = host.run(
        component(SLEEP_IMPORT, "", &format!("{naps} {ECHO_CODE}")),
        |call| {
            call.limits.cpu = Duration::from_millis(50);
        },
    );
    let outcome = outcome.await;
    assert_eq!(data(&outcome), "{}");
    assert!(
        outcome.usage.cpu < outcome.usage.wall / 2,
        "{:?}",
        outcome.usage
    );
    assert_eq!(outcome.usage.host_calls, 20);
}

#[tokio::test(flavor = "current_thread")]
async fn spinning_guest_leaves_the_callers_thread() {
    let host = host();
    let digest = host
        .install(plain("", "(loop $l (br $l)) unreachable"))
        .await;
    let mut call = call(digest, "{}");
    call.limits.cpu = Duration::from_millis(300);
    let mut spinning = std::pin::pin!(host.sandbox.call(call));
    let mut turns = 0_u32;
    let outcome = loop {
        tokio::select! {
            biased;
            outcome = &mut spinning => break outcome.unwrap(),
            () = tokio::task::yield_now() => turns += 1,
        }
    };
    assert_eq!(outcome.output.unwrap_err().kind, kind::CPU);
    assert!(turns > 1_000, "the thread was free only {turns} times");
}

#[tokio::test]
async fn calls_beyond_the_limits_are_refused() {
    let host = open(|settings| {
        (settings.live_per_tenant, settings.queue_per_tenant) = (2, 0);
    });
    let waits = component(
        SLEEP_IMPORT,
        "",
        &format!("(call $sleep (i32.const 600000)) {ECHO_CODE}"),
    );
    let digest = host.install(waits).await;
    let echo = host.install(plain("", ECHO_CODE)).await;
    let running: Vec<_> = (0..2)
        .map(|_| {
            let sandbox = host.sandbox.clone();
            tokio::spawn(async move { sandbox.call(call(digest, "{}")).await.map(drop) })
        })
        .collect();
    until(|| host.sandbox.gauges().live == 2).await;
    assert_eq!(
        host.sandbox.call(call(echo, "{}")).await.err(),
        Some(Refusal::TenantBusy(Capacity::Calls))
    );
    let other = Call {
        tenant: "other".into(),
        ..call(echo, "{}")
    };
    assert_eq!(data(&host.sandbox.call(other).await.unwrap()), "{}");
    running.iter().for_each(tokio::task::JoinHandle::abort);
    until(|| host.sandbox.gauges().live == 0).await;
    assert_eq!(host.sandbox.gauges().memory, 0);
}

#[tokio::test]
async fn memory_of_files_is_held_during_their_call() {
    let host = open(|settings| settings.node_memory = 8 << 20);
    let size = 5 << 20;
    let give = |call: &mut Call| {
        call.files_memory = host.sandbox.try_reserve_memory(&call.tenant, size).ok();
        assert!(call.files_memory.is_some());
        let more = host.sandbox.try_reserve_memory(&call.tenant, size);
        assert_eq!(more.err(), Some(Refusal::TenantBusy(Capacity::Memory)));
        let other = host.sandbox.try_reserve_memory(&"other".into(), size);
        assert_eq!(other.err(), Some(Refusal::NodeBusy(Capacity::Memory)));
        call.files = vec![File {
            id: "file_1".into(),
            name: "a".into(),
            media_type: "text/plain".into(),
            bytes: vec![0; 5 << 20].into(),
        }];
    };
    let outcome = host.run(plain("", ECHO_CODE), give).await;
    assert_eq!(data(&outcome), "{}");

    let waits = format!("(call $sleep (i32.const 600000)) {ECHO_CODE}");
    let waits = component(SLEEP_IMPORT, "", &waits);
    let digest = host.install(waits).await;
    let mut waiting = call(digest, "{}");
    give(&mut waiting);
    let sandbox = host.sandbox.clone();
    let running = tokio::spawn(async move { sandbox.call(waiting).await.map(drop) });
    until(|| host.sandbox.gauges().live == 1).await;
    assert!(host.sandbox.gauges().memory >= size);
    running.abort();
    until(|| host.sandbox.gauges().live == 0).await;
    assert_eq!(host.sandbox.gauges().memory, 0);
}

#[tokio::test]
async fn dropped_call_reports_a_cancelled_outcome() {
    let host = host();
    let imports = format!("{SLEEP_IMPORT} {LOG_IMPORT}");
    let log = "(call $log (i32.const 1) (local.get $args) (local.get $args_len))";
    let sleeps = format!("{log} (call $sleep (i32.const 600000)) {ECHO_CODE}");
    let spins = format!("{log} (loop $l (br $l)) unreachable");
    for execute in [sleeps, spins] {
        let component = component(&imports, "", &execute);
        let digest = host.install(component).await;
        let loaded = host.sandbox.load(&digest).await.unwrap();
        let mut cancelled = None;
        let call = Box::new(call(digest, "{}"));
        let called = host
            .sandbox
            .call_or_cancel(loaded, call, None, |outcome| cancelled = Some(outcome));
        tokio::select! {
            ended = called => panic!("it goes on: {ended:?}"),
            () = until(|| host.sandbox.gauges().live == 1) => {}
        }
        let outcome = cancelled.unwrap();
        assert_eq!(outcome.output.unwrap_err().kind, kind::CANCELLED);
        assert_eq!(outcome.log[0].message, "{}");
        until(|| host.sandbox.gauges().live == 0).await;
    }
}

#[tokio::test]
async fn time_in_the_queue_is_not_the_guests() {
    let host = open(|settings| {
        (settings.live_per_tenant, settings.queue_wait) = (1, Duration::from_secs(60))
    });
    let naps = component(
        SLEEP_IMPORT,
        "",
        &format!("(call $sleep (i32.const 700)) {ECHO_CODE}"),
    );
    let naps = host.install(naps).await;
    let echo = host.install(plain("", ECHO_CODE)).await;
    let first = host.sandbox.call(call(naps, "{}"));
    let second = async {
        until(|| host.sandbox.gauges().live == 1).await;
        let mut call = call(echo, "{}");
        call.limits.wall = Duration::from_millis(300);
        host.sandbox.call(call).await
    };
    let (first, second) = tokio::join!(first, second);
    assert_eq!(
        (data(&first.unwrap()), data(&second.unwrap())),
        ("{}", "{}")
    );
}

#[tokio::test]
async fn time_that_neighbours_compute_is_not_the_guests() {
    let host = open(|settings| {
        // One tenant may have half of them.
        settings.live = 16;
        (settings.busy_per_tenant, settings.guest_threads) = (1, 1);
    });
    let spin = "(local.set $i (i32.const 300000000))
        (loop $l (br_if $l (local.tee $i (i32.sub (local.get $i) (i32.const 1)))))";
    let alone = host
        .run(plain("", &format!("{spin} {ECHO_CODE}")), |_| {})
        .await
        .usage
        .cpu;
    let digest = Digest::compute(&plain("", &format!("{spin} {ECHO_CODE}")));
    let calls = (0..8).map(|_| {
        let mut call = call(digest, "{}");
        // Eight guests in sequence take more than twice as long.
        (call.limits.cpu, call.limits.wall) = (4 * alone, 3 * alone);
        host.sandbox.call(call)
    });
    for outcome in futures::future::join_all(calls).await {
        let outcome = outcome.unwrap();
        assert_eq!(data(&outcome), "{}");
    }
}

#[tokio::test]
async fn memory_is_limited_per_guest_and_node() {
    let host = open(|settings| settings.node_memory = 8 << 20);
    let grow_all = "(loop $l (br_if $l (i32.ne (memory.grow (i32.const 1)) (i32.const -1))))";
    let small = |call: &mut Call| call.limits.memory = 1 << 20;
    let outcome = host
        .run(plain("", &format!("{grow_all} {ECHO_CODE}")), small)
        .await;
    assert_eq!((data(&outcome), outcome.usage.peak_memory), ("{}", 1 << 20));
    let outcome = host
        .run(plain("", &format!("{grow_all} {ECHO_CODE}")), |_| {})
        .await;
    assert_eq!(outcome.usage.peak_memory, 8 << 20);
    assert_eq!(
        host.fails(plain("", &format!("{grow_all} unreachable")), small)
            .await,
        kind::MEMORY
    );
    let forever = "(loop $l (drop (memory.grow (i32.const 1))) (br $l)) unreachable";
    assert_eq!(host.fails(plain("", forever), small).await, kind::MEMORY);
    let least = |call: &mut Call| call.limits.memory = 1 << 16;
    assert_eq!(
        host.fails(plain("", "unreachable"), least).await,
        kind::MEMORY
    );

    let other = "other".into();
    let held = host.sandbox.try_reserve_memory(&other, 4 << 20).unwrap();
    let greedy = plain("", &format!("{grow_all} unreachable"));
    let digest = host.install(greedy).await;
    let outcome = host.sandbox.call(call(digest, "{}")).await.unwrap();
    assert_eq!(outcome.output.unwrap_err().kind, kind::MEMORY_BUSY);
    held.try_grow(3 << 20).unwrap();
    let digest = Digest::compute(&plain("", "unreachable"));
    let refused = host.sandbox.call(call(digest, "{}")).await.err();
    assert_eq!(refused, Some(Refusal::NodeBusy(Capacity::Memory)));
}

#[tokio::test]
async fn panic_is_isolated() {
    let host = host();
    let recursion =
        "(func $deep (param i32) (result i32) (i32.add (i32.const 1) (call $deep (local.get 0))))";
    for (items, execute) in [
        ("", "unreachable"),
        (recursion, "(call $deep (i32.const 1))"),
        ("", "(i32.load (i32.const -4))"),
        ("", "(i32.div_u (i32.const 1) (i32.const 0))"),
        (
            "(table 1 funcref) (type $f (func))",
            "(call_indirect (type $f) (i32.const 0)) unreachable",
        ),
    ] {
        assert_eq!(
            host.fails(plain(items, execute), |_| {}).await,
            kind::TRAP,
            "{execute}"
        );
    }
}

#[tokio::test]
async fn floods_are_bounded() {
    let host = host();
    let flood = component(
        NOW_IMPORT,
        "",
        "(loop $l (drop (call $now)) (br $l)) unreachable",
    );
    assert_eq!(host.fails(flood, |_| {}).await, kind::HOST_CALLS);
    let lines = format!(
        "(local.set $i (i32.const 9000))
         (loop $l (call $log (i32.const 1) (i32.const 2048) (i32.const 20))
           (br_if $l (local.tee $i (i32.sub (local.get $i) (i32.const 1))))) {ECHO_CODE}"
    );
    let outcome = host.run(component(LOG_IMPORT, "", &lines), |_| {}).await;
    assert_eq!((data(&outcome), outcome.log.len()), ("{}", 1_001));
    let huge = "(loop $l (br_if $l (i32.ne (memory.grow (i32.const 16)) (i32.const -1))))
        (call $log (i32.const 1) (i32.const 2048) (i32.const 50000000)) unreachable";
    assert_eq!(
        host.fails(component(LOG_IMPORT, "", huge), |_| {}).await,
        kind::HOST_CALLS
    );
    let outside = "(call $log (i32.const 1) (i32.const -10) (i32.const 100)) unreachable";
    assert_eq!(
        host.fails(component(LOG_IMPORT, "", outside), |_| {}).await,
        kind::TRAP
    );
}

#[tokio::test]
async fn answers_are_bounded_and_json() {
    let host = host();
    let grown = "(drop (memory.grow (i32.const 400)))";
    for (bytes, execute, expected) in [
        (
            r#""\ff\fe""#,
            "(call $ok (i32.const 2048) (i32.const 2))",
            kind::OUTPUT_INVALID,
        ),
        (
            r#""NaN""#,
            "(call $ok (i32.const 2048) (i32.const 3))",
            kind::OUTPUT_INVALID,
        ),
        (
            r#""""#,
            "(call $ok (i32.const 2048) (i32.const 0))",
            kind::OUTPUT_INVALID,
        ),
        (
            r#""{}""#,
            "(call $ok (i32.const 2048) (i32.const 17000000))",
            kind::OUTPUT_TOO_LARGE,
        ),
        (
            r#""{}""#,
            "(call $ok (i32.const 2048) (i32.const 20000000))",
            kind::OUTPUT_TOO_LARGE,
        ),
        (
            r#""{}""#,
            "(call $ok (i32.const -8) (i32.const 100))",
            kind::OUTPUT_INVALID,
        ),
        (r#""{}""#, "(i32.const -8)", kind::OUTPUT_INVALID),
    ] {
        let items = format!("(data (i32.const 2048) {bytes})");
        assert_eq!(
            host.fails(plain(&items, &format!("{grown} {execute}")), |_| {})
                .await,
            expected,
            "{bytes} {execute}"
        );
    }
    let deep = "(memory.fill (i32.const 2048) (i32.const 91) (i32.const 10000)) (call $ok (i32.const 2048) (i32.const 10000))";
    assert_eq!(
        host.fails(plain("", deep), |_| {}).await,
        kind::OUTPUT_INVALID
    );
}

#[tokio::test]
async fn guest_error_is_returned_within_limits() {
    let host = host();
    let items = r#"(data (i32.const 2048) "not_foundNo such thing.Not A Kind")"#;
    let told = "(call $fail (i32.const 2048) (i32.const 9) (i32.const 2057) (i32.const 14))";
    let failure = host
        .run(plain(items, told), |_| {})
        .await
        .output
        .unwrap_err();
    assert_eq!(
        (failure.cause, &*failure.kind, &*failure.message),
        (Cause::Tool, "not_found", "No such thing.")
    );
    let odd = "(call $fail (i32.const 2071) (i32.const 10) (i32.const 2048) (i32.const 60000))";
    let failure = host
        .run(plain(items, odd), |_| {})
        .await
        .output
        .unwrap_err();
    assert_eq!(
        (&*failure.kind, failure.message.len() <= 4096),
        ("internal", true)
    );
}

#[tokio::test]
async fn untrusted_components_are_refused_with_all_problems() {
    let host = host();
    assert_eq!(
        host.sandbox
            .install(vec![0; 100 << 20].into())
            .await
            .unwrap_err(),
        InstallError::TooLarge
    );
    let good = plain("", ECHO_CODE);
    for bad in [
        Bytes::new(),
        good.slice(..good.len() / 2),
        vec![0; 1 << 20].into(),
        vec![0xa5; 5000].into(),
    ] {
        assert!(
            matches!(host.sandbox.install(bad).await, Err(InstallError::Refused(problems)) if problems.len() == 1)
        );
    }
    for (items, execute, word) in [
        ("(func $f (return_call $f))", ECHO_CODE, "tail"),
        (
            "(func (param v128) (result v128) (i8x16.relaxed_swizzle (local.get 0) (local.get 0)))",
            ECHO_CODE,
            "relaxed",
        ),
        ("(type $s (struct))", ECHO_CODE, "gc"),
        ("(memory $m 1)", ECHO_CODE, "memor"),
        ("(tag $t)", ECHO_CODE, "exceptions"),
    ] {
        let Err(InstallError::Refused(problems)) =
            host.sandbox.install(plain(items, execute)).await
        else {
            panic!("{items} was installed");
        };
        assert!(
            problems.join(" ").to_lowercase().contains(word),
            "{items}: {problems:?}"
        );
    }
    assert_eq!(
        std::fs::read_dir(host.folder.path().join("cache"))
            .unwrap()
            .count(),
        0
    );
}

#[tokio::test]
async fn installation_reports_sizes_and_imports() {
    let host = host();
    let component = component(NOW_IMPORT, "", &format!("(drop (call $now)) {ECHO_CODE}"));
    let installed = host.sandbox.install(component.clone()).await.unwrap();
    assert!(installed.artifact_size > 0);
    assert_eq!(installed.size, component.len() as u64);
    let imports = installed.imports;
    assert!(
        imports.contains(&"toolhost:toolkit/clock@1.0.0".to_owned()),
        "{imports:?}"
    );
    let mut names = imports.iter();
    assert!(
        names.all(|import| import.starts_with("toolhost:toolkit/")),
        "{imports:?}"
    );
}

/// A server compiles in a child process. Tests over HTTP show what the child compiles and refuses.
#[tokio::test]
async fn broken_compiler_is_told_from_bad_component() {
    for program in ["/nonexistent/compiler", "/bin/false"] {
        let limits = ChildLimits::default();
        let host = open(|settings| settings.compiler = Compiler::Child(program.into(), limits));
        let component = plain("", ECHO_CODE);
        let broken = host.sandbox.install(component).await.unwrap_err();
        assert!(
            matches!(broken, InstallError::Unavailable(_)),
            "{program}: {broken:?}"
        );
    }
}

#[tokio::test]
async fn tampered_compiled_form_is_compiled_again() {
    let host = host();
    let component = plain("", ECHO_CODE);
    let digest = host.install(component.clone()).await;
    let file = std::fs::read_dir(host.folder.path().join("cache"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let mut bytes = std::fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    assert_eq!(
        host.sandbox.call(call(digest, "{}")).await.err(),
        Some(Refusal::NotInstalled)
    );
    assert_eq!(host.install(component).await, digest);
    assert_eq!(
        data(&host.sandbox.call(call(digest, "{}")).await.unwrap()),
        "{}"
    );
}

#[tokio::test]
async fn only_so_many_components_are_kept_loaded() {
    let host = open(|settings| settings.resident_bytes = 512 << 10);
    for number in 0..4 {
        let outcome = host.run(numbered(number), |_| {}).await;
        assert_eq!(data(&outcome), number.to_string());
    }
    assert_eq!(host.sandbox.gauges().loaded, 2);
}

#[tokio::test]
async fn one_round_over_many_keeps_the_busy_component() {
    let host = open(|settings| settings.resident_bytes = 1 << 20);
    for _ in 0..3 {
        host.run(numbered(0), |_| {}).await;
    }
    for number in 1..10 {
        host.run(numbered(number), |_| {}).await;
    }
    let busy = host.install(numbered(0)).await;
    std::fs::remove_dir_all(host.folder.path().join("cache")).unwrap();
    let outcome = host.sandbox.call(call(busy, "{}")).await.unwrap();
    assert_eq!(data(&outcome), "0", "it is still loaded");
}

/// Returns a component of its own for each digit, which it returns.
fn numbered(digit: u8) -> Bytes {
    plain(
        &format!("(data (i32.const 2048) \"{digit}\")"),
        "(call $ok (i32.const 2048) (i32.const 1))",
    )
}

// Guests in other languages.

const WASI_INTERFACES: [&str; 2] = [
    "package wasi:cli@0.2.0 {
       interface environment { get-environment: func() -> list<tuple<string, string>>; }
       interface exit { exit: func(status: result); }
       interface stdout { use wasi:io/streams@0.2.0.{output-stream}; get-stdout: func() -> output-stream; }
     }
     package wasi:io@0.2.0 {
       interface error { resource error; }
       interface streams {
         use error.{error};
         variant stream-error { last-operation-failed(error), closed }
         resource output-stream { blocking-write-and-flush: func(contents: list<u8>) -> result<_, stream-error>; }
       }
     }
     package wasi:random@0.2.0 { interface random { get-random-u64: func() -> u64; } }
     package wasi:filesystem@0.2.0 {
       interface types { resource descriptor; }
       interface preopens {
         use types.{descriptor};
         get-directories: func() -> list<tuple<descriptor, string>>;
       }
     }",
    "import wasi:cli/environment@0.2.0; import wasi:cli/exit@0.2.0; import wasi:cli/stdout@0.2.0;
     import wasi:random/random@0.2.0; import wasi:filesystem/preopens@0.2.0;",
];

const WASI_IMPORTS: &str = r#"
    (import "wasi:cli/environment@0.2.0" "get-environment" (func $environment (param i32)))
    (import "wasi:cli/exit@0.2.0" "exit" (func $exit (param i32)))
    (import "wasi:cli/stdout@0.2.0" "get-stdout" (func $stdout (result i32)))
    (import "wasi:io/streams@0.2.0" "[method]output-stream.blocking-write-and-flush"
      (func $write (param i32 i32 i32 i32)))
    (import "wasi:random/random@0.2.0" "get-random-u64" (func $random (result i64)))
    (import "wasi:filesystem/preopens@0.2.0" "get-directories" (func $directories (param i32)))"#;

#[tokio::test]
async fn wasi_guest_sees_nothing_and_prints_to_log() {
    let host = host();
    let items = r#"(data (i32.const 2048) "one\0atwo, three")"#;
    let look = format!(
        "(call $environment (global.get $room)) (if (i32.load offset=4 (global.get $room)) (then unreachable))
         (call $directories (global.get $room)) (if (i32.load offset=4 (global.get $room)) (then unreachable))
         (if (i64.eq (call $random) (call $random)) (then unreachable))
         (local.set $i (call $stdout))
         (call $write (local.get $i) (i32.const 2048) (i32.const 7) (global.get $room))
         (call $write (local.get $i) (i32.const 2055) (i32.const 7) (global.get $room)) {ECHO_CODE}"
    );
    let outcome = host
        .run(
            foreign(
                WASI_INTERFACES,
                WASI_IMPORTS,
                items,
                [&look, UNREACHABLE_CODE],
            ),
            |_| {},
        )
        .await;
    assert_eq!(data(&outcome), "{}");
    assert_eq!(
        outcome
            .log
            .iter()
            .map(|line| &*line.message)
            .collect::<Vec<_>>(),
        ["one", "two, three"]
    );
    assert_eq!(outcome.usage.host_calls, 7);
    let flood = "(loop $l (drop (call $random)) (br $l)) unreachable";
    assert_eq!(
        host.fails(
            foreign(WASI_INTERFACES, WASI_IMPORTS, "", [flood, UNREACHABLE_CODE]),
            |_| {}
        )
        .await,
        kind::HOST_CALLS
    );
    let leave = format!("(call $exit (i32.const 0)) {ECHO_CODE}");
    assert_eq!(
        host.fails(
            foreign(
                WASI_INTERFACES,
                WASI_IMPORTS,
                "",
                [&leave, UNREACHABLE_CODE]
            ),
            |_| {}
        )
        .await,
        kind::TRAP
    );
}

#[tokio::test]
async fn wasi_randomness_is_recorded_and_replayed() {
    let host = host();
    // The guest returns a random number as a JSON string of sixteen letters.
    let letters = r#"(data (i32.const 2048) "\"") (data (i32.const 2065) "\"")"#;
    let spell = "(local $bits i64) (local.set $bits (call $random))
        (loop $next
          (i32.store8 offset=2049 (local.get $i)
            (i32.add (i32.const 97) (i32.wrap_i64 (i64.and (local.get $bits) (i64.const 15)))))
          (local.set $bits (i64.shr_u (local.get $bits) (i64.const 4)))
          (local.set $i (i32.add (local.get $i) (i32.const 1)))
          (br_if $next (i32.lt_u (local.get $i) (i32.const 16))))
        (call $ok (i32.const 2048) (i32.const 18))";
    let component = host
        .install(foreign(
            WASI_INTERFACES,
            WASI_IMPORTS,
            letters,
            [spell, UNREACHABLE_CODE],
        ))
        .await;
    let (first, cassette) = host
        .sandbox
        .record(call(component, "{}"), 1000)
        .await
        .unwrap();
    let cassette = cassette.unwrap();
    let (second, _) = host
        .sandbox
        .record(call(component, "{}"), 1000)
        .await
        .unwrap();
    assert_ne!(data(&first), data(&second));
    let again = host
        .sandbox
        .replay(component, Limits::default(), &cassette)
        .await
        .unwrap();
    assert_eq!(data(&again), data(&first));
    assert!(cassette.matches(&again) && !cassette.matches(&second));
}

const VERIFY_IMPORT: &str = r#"(import "toolhost:toolkit/webhook@1.0.0" "verify"
    (func $verify (param i32 i32 i32 i32 i32 i32 i32 i32)))"#;
/// Body of `receive` that takes the path as the name of the secret, the method as the message and
/// the body as its HMAC-SHA256. Its status is 200 if the host says that the signature is right, 401
/// if it is wrong, and 500 for an error, whose message is the body. It reports its configuration.
const VERIFY_CODE: &str = r#"(call $verify
        (i32.load offset=24 (local.get $input)) (i32.load offset=28 (local.get $input)) (i32.const 1)
        (i32.load offset=16 (local.get $input)) (i32.load offset=20 (local.get $input))
        (i32.load offset=40 (local.get $input)) (i32.load offset=44 (local.get $input)) (global.get $room))
    (i32.store16 offset=16 (global.get $answer)
      (if (result i32) (i32.load8_u (global.get $room))
        (then
          (i32.store offset=28 (global.get $answer) (i32.load offset=12 (global.get $room)))
          (i32.store offset=32 (global.get $answer) (i32.load offset=16 (global.get $room)))
          (i32.const 500))
        (else (if (result i32) (i32.load8_u offset=4 (global.get $room))
          (then (i32.const 200)) (else (i32.const 401))))))
    (call $report (local.get $input))"#;
/// Items of a guest that reports its configuration as an event with the id `1`.
const REPORT_CODE: &str = r#"(data (i32.const 2048) "1")
    (func $report (param $input i32) (result i32)
      (i32.store offset=8 (global.get $answer) (i32.const 2064))
      (i32.store offset=12 (global.get $answer) (i32.const 1))
      (i32.store (i32.const 2064) (i32.const 2048))
      (i32.store (i32.const 2068) (i32.const 1))
      (i32.store (i32.const 2072) (i32.load offset=8 (local.get $input)))
      (i32.store (i32.const 2076) (i32.load offset=12 (local.get $input)))
      (global.get $answer))"#;
/// Configuration with the canary as its secret, and HMAC-SHA256 of `POST` under the canary.
const SECRET_CONFIG: &str = r#"{"secret":"canary/4711+secret","team":"a"}"#;
const EXPECTED_SIGNATURE: &str = "b6b7e418097ecc47b74cc250e3be9ec71b0624ef96e1ff6af2e3575829b98fe1";

/// A webhook request for the guest, with this signature of this message.
fn receive(component: Digest, secret: &str, message: &str, signature: &str) -> Call {
    let request = Inbound {
        method: message.to_owned(),
        path: secret.to_owned(),
        headers: Vec::new(),
        body: hex::decode(signature).unwrap().into(),
    };
    let policy = Policy {
        write_only: ["secret".to_owned()].into(),
        ..Policy::default()
    };
    Call {
        action: Action::Receive {
            trigger: "HAND_NEWS".into(),
            config: Bytes::from_static(SECRET_CONFIG.as_bytes()),
            request,
        },
        policy: Arc::new(policy),
        ..call(component, "{}")
    }
}

/// Returns the status, the only event's payload and the body of an answer to a webhook request.
fn received(outcome: &Outcome) -> (u16, &str, &str) {
    match &outcome.output {
        Ok(Output::Received {
            events,
            status,
            body,
            ..
        }) => {
            let text = |bytes| std::str::from_utf8(bytes).unwrap();
            (*status, text(&events[0].payload), text(body))
        }
        other => panic!("{other:?}, log {:?}", outcome.log),
    }
}

#[tokio::test]
async fn guest_verifies_with_a_secret_unseen() {
    let host = host();
    let guest = foreign(
        ["", ""],
        VERIFY_IMPORT,
        REPORT_CODE,
        [ECHO_CODE, VERIFY_CODE],
    );
    let digest = host.install(guest.clone()).await;
    let seen = r#"{"secret":"secret","team":"a"}"#;
    let long = "x".repeat(MAX_SIGNED_MESSAGE_BYTES + 1);
    for (secret, message, signature, status, said) in [
        ("secret", "POST", EXPECTED_SIGNATURE, 200, ""),
        ("secret", "PUT", EXPECTED_SIGNATURE, 401, ""),
        ("secret", "POST", &EXPECTED_SIGNATURE[2..], 401, ""),
        (
            "team",
            "POST",
            EXPECTED_SIGNATURE,
            500,
            "this call has no secret `team`",
        ),
        (
            "secret",
            &long,
            EXPECTED_SIGNATURE,
            500,
            "a signed message has at most",
        ),
    ] {
        let outcome = host
            .run(guest.clone(), |call| {
                *call = receive(digest, secret, message, signature);
            })
            .await;
        let (answered, config, body) = received(&outcome);
        assert_eq!((answered, config), (status, seen), "{body}");
        assert!(body.starts_with(said), "{body}");
        assert_eq!(outcome.usage.host_calls, 1);
    }
}

#[tokio::test]
async fn guest_that_verifies_itself_keeps_its_secret() {
    let host = host();
    // The status tells how long the configuration was.
    let length = r#"(i32.store16 offset=16 (global.get $answer)
        (i32.add (i32.const 200) (i32.load offset=12 (local.get $input))))
        (call $report (local.get $input))"#;
    let guest = foreign(["", ""], "", REPORT_CODE, [ECHO_CODE, length]);
    let outcome = host
        .run(guest, |call| {
            *call = receive(call.component, "secret", "POST", EXPECTED_SIGNATURE);
        })
        .await;
    let (status, config, _) = received(&outcome);
    assert_eq!(usize::from(status), 200 + SECRET_CONFIG.len());
    assert_eq!(config, r#"{"secret":"[redacted]","team":"a"}"#);
}

#[tokio::test]
async fn recorded_verification_is_replayed_without_the_secret() {
    let host = host();
    let guest = foreign(
        ["", ""],
        VERIFY_IMPORT,
        REPORT_CODE,
        [ECHO_CODE, VERIFY_CODE],
    );
    let digest = host.install(guest).await;
    for (secret, status) in [("secret", 200), ("other", 500)] {
        let call = receive(digest, secret, "POST", EXPECTED_SIGNATURE);
        let (outcome, cassette) = host.sandbox.record(call, 4000).await.unwrap();
        assert_eq!(received(&outcome).0, status);
        let cassette = cassette.unwrap();
        assert!(!serde_json::to_string(&cassette).unwrap().contains("4711"));
        let limits = Limits::default();
        let again = host.sandbox.replay(digest, limits, &cassette).await;
        assert!(cassette.matches(&again.unwrap()));
    }
}

#[tokio::test]
async fn oversized_recording_leaves_no_cassette() {
    let host = host();
    let component = host.install(plain("", ECHO_CODE)).await;
    for (arguments, kept) in [(r#"{"a":1}"#, true), (r#"{"a":"0123456789"}"#, false)] {
        let (outcome, cassette) = host
            .sandbox
            .record(call(component, arguments), 20)
            .await
            .unwrap();
        assert_eq!((data(&outcome), cassette.is_some()), (arguments, kept));
    }
}

#[tokio::test]
async fn missing_import_is_refused_by_name() {
    let host = host();
    for (package, import) in [
        (
            "package wasi:sockets@0.2.0 { interface tcp { now: func() -> u64; } }",
            "wasi:sockets/tcp@0.2.0",
        ),
        (
            "package wasi:cli@0.2.0 { interface terminal-input { now: func() -> u64; } }",
            "wasi:cli/terminal-input@0.2.0",
        ),
        (
            "package other:thing@1.0.0 { interface api { now: func() -> u64; } }",
            "other:thing/api@1.0.0",
        ),
    ] {
        let needs = format!(r#"(import "{import}" "now" (func (result i64)))"#);
        let component = foreign(
            [package, &format!("import {import};")],
            &needs,
            "",
            [ECHO_CODE, UNREACHABLE_CODE],
        );
        let Err(InstallError::Refused(problems)) = host.sandbox.install(component).await else {
            panic!("{import} was given");
        };
        assert!(
            problems.len() == 1 && problems[0].contains(import),
            "{problems:?}"
        );
    }
    // A function whose type differs from the contract is detected at link time.
    let odd = foreign(
        [
            "package wasi:random@0.2.0 { interface random { get-random-u64: func() -> u32; } }",
            "import wasi:random/random@0.2.0;",
        ],
        r#"(import "wasi:random/random@0.2.0" "get-random-u64" (func (result i32)))"#,
        "",
        [ECHO_CODE, UNREACHABLE_CODE],
    );
    let refused = host.sandbox.install(odd).await.unwrap_err();
    assert!(
        matches!(&refused, InstallError::Refused(problems) if problems[0].contains("does not fit")),
        "{refused:?}"
    );
    assert_eq!(
        std::fs::read_dir(host.folder.path().join("cache"))
            .unwrap()
            .count(),
        0
    );
}

// Requests.

/// Guest that sends a GET request to the URL in the arguments. It returns the body or fails with
/// the host's kind and message, and logs everything it sees.
const FETCH_GUEST: [&str; 3] = [
    r#"(import "toolhost:toolkit/log@1.0.0" "write" (func $log (param i32 i32 i32)))
       (import "toolhost:toolkit/http@1.0.0" "send" (func $send
         (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32)))"#,
    r#"(data (i32.const 2048) "GET")"#,
    r#"(call $send (i32.const 2048) (i32.const 3) (local.get $args) (local.get $args_len) (i32.const 0) (i32.const 0)
         (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0)
         (global.get $room))
       (if (result i32) (i32.load8_u (global.get $room))
         (then (call $fail (i32.load offset=4 (global.get $room)) (i32.load offset=8 (global.get $room))
                           (i32.load offset=12 (global.get $room)) (i32.load offset=16 (global.get $room))))
         (else
           (local.set $i (i32.const 0))
           (block $done (loop $next
             (br_if $done (i32.ge_u (local.get $i) (i32.load offset=12 (global.get $room))))
             (call $log (i32.const 1)
               (i32.load offset=8 (i32.add (i32.load offset=8 (global.get $room)) (i32.shl (local.get $i) (i32.const 4))))
               (i32.load offset=12 (i32.add (i32.load offset=8 (global.get $room)) (i32.shl (local.get $i) (i32.const 4)))))
             (local.set $i (i32.add (local.get $i) (i32.const 1)))
             (br $next)))
           (call $log (i32.const 1) (i32.load offset=16 (global.get $room)) (i32.load offset=20 (global.get $room)))
           (call $ok (i32.load offset=16 (global.get $room)) (i32.load offset=20 (global.get $room)))))"#,
];

/// Returns true if a request has arrived with its whole body.
fn is_complete(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    body.len() >= length.and_then(|length| length.parse().ok()).unwrap_or(0)
}

/// Starts a provider that answers each request with the result of `answer` for its text.
async fn upstream(answer: impl Fn(&str) -> String + Send + Sync + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let answer = Arc::new(answer);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let answer = answer.clone();
            tokio::spawn(async move {
                let mut seen = Vec::new();
                let mut piece = [0; 4096];
                while let Ok(length @ 1..) = stream.read(&mut piece).await {
                    seen.extend_from_slice(&piece[..length]);
                    if is_complete(&seen) {
                        let _ = stream
                            .write_all(answer(&String::from_utf8_lossy(&seen)).as_bytes())
                            .await;
                        seen.clear();
                    }
                }
            });
        }
    });
    port
}

fn answer(status: &str, headers: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\n{headers}content-length: {}\r\n\r\n{body}",
        body.len()
    )
}

struct Key {
    placement: fn(&str) -> Placement,
    renewals: AtomicUsize,
}

impl Key {
    fn credential(&self, secret: &str) -> Arc<Credential> {
        Arc::new(Credential {
            placements: vec![(self.placement)(secret)],
            secrets: vec![secret.into()],
            ..Credential::default()
        })
    }
}

#[async_trait::async_trait]
impl Grant for Key {
    async fn credential(&self) -> Result<Arc<Credential>, GrantError> {
        Ok(self.credential(CANARY_SECRET))
    }

    async fn refresh(&self, _rejected: &Credential) -> Result<Option<Arc<Credential>>, GrantError> {
        self.renewals.fetch_add(1, Relaxed);
        Ok(Some(self.credential("fresh-canary-4712")))
    }
}

fn bearer(secret: &str) -> Placement {
    Placement::Header {
        name: "authorization".to_owned(),
        value: format!("Bearer {secret}"),
    }
}

/// Fetches `url` through a sandbox that sends requests for api.example.com to `port`.
async fn fetch(port: u16, url: &str, placement: fn(&str) -> Placement) -> (Outcome, usize) {
    let folder = tempfile::tempdir().unwrap();
    let host = Host {
        sandbox: Sandbox::open(settings(folder.path(), Some(port))).unwrap(),
        folder,
    };
    let key = Arc::new(Key {
        placement,
        renewals: AtomicUsize::new(0),
    });
    let grant = key.clone();
    // No manifest may name the second host. It represents any name that resolves to a private
    // address.
    let rule = |host: &str| EgressRule {
        host: host.to_owned(),
        port: None,
        methods: Vec::new(),
        path_prefix: None,
    };
    let egress = ["api.example.com", "localhost"].map(rule).into();
    let outcome = host
        .run(
            component(FETCH_GUEST[0], FETCH_GUEST[1], FETCH_GUEST[2]),
            |call| {
                *call = self::call(call.component, url);
                call.policy = Arc::new(Policy {
                    egress,
                    read_only: true,
                    ..Policy::default()
                });
                call.grant = Some(grant);
            },
        )
        .await;
    (outcome, key.renewals.load(Relaxed))
}

#[tokio::test]
async fn only_the_provider_sees_the_credential() {
    let placements: [fn(&str) -> Placement; 4] = [
        bearer,
        |secret| Placement::Query {
            name: "key".to_owned(),
            value: secret.to_owned(),
        },
        |secret| Placement::Basic {
            username: "user".to_owned(),
            password: secret.to_owned(),
        },
        |secret| Placement::Path {
            marker: "~key~".to_owned(),
            value: secret.to_owned(),
        },
    ];
    for placement in placements {
        let seen = Arc::new(std::sync::Mutex::new(String::new()));
        let told = Arc::new(AtomicUsize::new(0));
        let keep = seen.clone();
        let count = told.clone();
        let port = upstream(move |request| {
            keep.lock().unwrap().push_str(request);
            count.fetch_add(1, Relaxed);
            let echo = serde_json::to_string(request).unwrap();
            let first = request.lines().next().unwrap();
            answer(
                "200 OK",
                &format!("set-cookie: {CANARY_SECRET}\r\nx-echo: {CANARY_SECRET} {first}\r\n"),
                &echo,
            )
        })
        .await;
        let (outcome, _) = fetch(port, "https://api.example.com/a/~key~?x=1", placement).await;
        let sent = seen.lock().unwrap().clone();
        let raw = sent.contains(CANARY_SECRET);
        assert!(
            raw || sent.contains("canary%2F4711%2Bsecret")
                || sent.contains("Basic dXNlcjpjYW5hcnk"),
            "{sent}"
        );
        let all = format!("{outcome:?}");
        assert!(data(&outcome).contains("[redacted]"), "{all}");
        assert!(
            outcome
                .log
                .iter()
                .any(|line| line.message.starts_with("[redacted]")),
            "{all}"
        );
        for spelling in ["canary", "4711", "Y2FuYXJ5", "dXNlcjpj", "set-cookie"] {
            assert!(!all.contains(spelling), "{spelling} in {all}");
        }
        assert_eq!(
            (outcome.requests.len(), outcome.requests[0].status),
            (1, Some(200))
        );
    }
}

#[tokio::test]
async fn other_hosts_and_redirects_are_refused() {
    let port = upstream(|request| {
        let to = if request.contains("/away") {
            "https://evil.example/"
        } else {
            "https://127.0.0.1:1/"
        };
        answer(
            "302 Found",
            &format!("location: {to}\r\n"),
            "{\"moved\":true}",
        )
    })
    .await;
    for (url, kind) in [
        ("https://evil.example/", "denied"),
        ("https://127.0.0.1/", "denied"),
        ("https://api.example.com:8443/", "denied"),
        ("http://api.example.com/", "invalid_request"),
        ("https://user@api.example.com/", "invalid_request"),
        ("https://api.example.com./", "invalid_request"),
    ] {
        let (outcome, _) = fetch(port, url, bearer).await;
        assert_eq!(
            outcome.output.as_ref().unwrap_err().kind,
            kind,
            "{url}: {outcome:?}"
        );
        assert!(
            outcome
                .requests
                .iter()
                .all(|request| request.status.is_none()),
            "{url}"
        );
    }
    for url in [
        "https://api.example.com/away",
        "https://api.example.com/inside",
    ] {
        let (outcome, _) = fetch(port, url, bearer).await;
        assert_eq!(
            outcome.output.as_ref().unwrap_err().kind,
            "denied",
            "{url}: {outcome:?}"
        );
        assert_eq!(
            outcome.requests.len(),
            1,
            "nothing was sent to where the redirect leads"
        );
    }
}

#[tokio::test]
async fn allowed_name_with_private_address_is_refused() {
    let (outcome, _) = fetch(0, "https://localhost/", bearer).await;
    let failure = outcome.output.unwrap_err();
    assert!(
        failure.kind == "denied" && failure.message.contains("not public"),
        "{failure:?}"
    );
    assert!(
        outcome
            .requests
            .iter()
            .all(|request| request.status.is_none())
    );
}

#[tokio::test]
async fn rejected_credential_is_renewed_and_retried_once() {
    let port = upstream(|request| match request.contains("fresh-canary-4712") {
        true => answer("200 OK", "", &serde_json::to_string(request).unwrap()),
        false => answer("401 Unauthorized", "", "{}"),
    })
    .await;
    let (outcome, renewals) = fetch(port, "https://api.example.com/", bearer).await;
    assert_eq!((outcome.requests.len(), renewals), (2, 1));
    assert!(data(&outcome).contains("[redacted]") && !format!("{outcome:?}").contains("canary"));
    let port = upstream(|_| answer("401 Unauthorized", "", "{\"no\":1}")).await;
    let (outcome, renewals) = fetch(port, "https://api.example.com/", bearer).await;
    assert_eq!(
        (outcome.requests.len(), renewals, data(&outcome)),
        (2, 1, "{\"no\":1}")
    );
}

#[tokio::test]
async fn oversized_response_is_an_error() {
    let port = upstream(|_| answer("200 OK", "", &"x".repeat(11 << 20))).await;
    let (outcome, _) = fetch(port, "https://api.example.com/", bearer).await;
    assert_eq!(outcome.output.unwrap_err().kind, "too_large");
}

/// Grant whose host code panics.
struct Broken;

#[async_trait::async_trait]
impl Grant for Broken {
    async fn credential(&self) -> Result<Arc<Credential>, GrantError> {
        panic!("a mistake of the platform")
    }
    async fn refresh(&self, _rejected: &Credential) -> Result<Option<Arc<Credential>>, GrantError> {
        Ok(None)
    }
}

/// Changes a call so that it uses [`Broken`].
fn broken(call: &mut Call) {
    let rule = EgressRule {
        host: "api.example.com".to_owned(),
        port: None,
        methods: Vec::new(),
        path_prefix: None,
    };
    *call = self::call(call.component, "https://api.example.com/");
    call.policy = Arc::new(Policy {
        egress: vec![rule],
        read_only: false,
        ..Policy::default()
    });
    call.grant = Some(Arc::new(Broken));
}

#[tokio::test]
async fn only_the_provider_sees_the_webhook_secret() {
    const WEBHOOK_SECRET: &str = "webhook-canary-4713";
    let seen = Arc::new(std::sync::Mutex::new(String::new()));
    let keep = seen.clone();
    let port = upstream(move |request| {
        let body = request.split_once("\r\n\r\n").unwrap().1;
        body.clone_into(&mut keep.lock().unwrap());
        answer("200 OK", &format!("x-echo: {WEBHOOK_SECRET}\r\n"), body)
    })
    .await;
    // Sends the arguments to a fixed address.
    let send = r#"(call $send (i32.const 2048) (i32.const 4) (i32.const 2064) (i32.const 29) (i32.const 0) (i32.const 0)
        (i32.const 1) (i32.const 0) (local.get $args) (local.get $args_len)
        (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (global.get $room))"#;
    let (_, rest) = FETCH_GUEST[2].split_once("(global.get $room))").unwrap();
    let items =
        r#"(data (i32.const 2048) "POST") (data (i32.const 2064) "https://api.example.com/hooks")"#;
    let folder = tempfile::tempdir().unwrap();
    let host = Host {
        sandbox: Sandbox::open(settings(folder.path(), Some(port))).unwrap(),
        folder,
    };
    let body = format!(
        r#"{{"config":{{"secret":"{0}"}},"name":"{0}"}}"#,
        manifest::SECRET_PLACEHOLDER
    );
    let change = |call: &mut Call| {
        broken(call);
        *call = Call {
            action: self::call(call.component, &body).action,
            grant: Some(Arc::new(Key {
                placement: bearer,
                renewals: AtomicUsize::new(0),
            })),
            ..std::mem::replace(call, self::call(call.component, ""))
        };
        Arc::make_mut(&mut call.policy).webhook_secret = Some(HandedOverSecret {
            pointer: "/config/secret".to_owned(),
            secret: WEBHOOK_SECRET.into(),
        });
    };
    let guest = component(FETCH_GUEST[0], items, &format!("{send}{rest}"));
    let outcome = host.run(guest, change).await;
    let sent = seen.lock().unwrap().clone();
    let expected = format!(r#"{{"config":{{"secret":"{WEBHOOK_SECRET}"}},"#);
    assert!(sent.starts_with(&expected), "{sent}");
    assert!(sent.contains(manifest::SECRET_PLACEHOLDER), "{sent}");
    let told = format!("{:?} {:?}", outcome.output, outcome.log);
    assert!(told.contains("[redacted]"), "{told}");
    assert!(!told.contains("4713"), "{told}");
}

#[tokio::test]
async fn host_panic_ends_only_the_call() {
    let short = component(FETCH_GUEST[0], FETCH_GUEST[1], FETCH_GUEST[2]);
    assert_eq!(host().fails(short, broken).await, kind::HOST);
    // A guest that has computed for a long time runs on another thread than its requests.
    let spin = "(local.set $i (i32.const 30000000))
        (loop $l (local.set $i (i32.sub (local.get $i) (i32.const 1))) (br_if $l (local.get $i)))";
    let long = component(
        FETCH_GUEST[0],
        FETCH_GUEST[1],
        &format!("{spin} {}", FETCH_GUEST[2]),
    );
    assert_eq!(host().fails(long, broken).await, kind::HOST);
}

#[tokio::test]
async fn three_panics_quarantine_only_one_component() {
    let folder = tempfile::tempdir().unwrap();
    let open = || Host {
        sandbox: Sandbox::open(settings(folder.path(), None)).unwrap(),
        folder: tempfile::tempdir().unwrap(),
    };
    let host = open();
    let guest = component(FETCH_GUEST[0], FETCH_GUEST[1], FETCH_GUEST[2]);
    let digest = host.install(guest.clone()).await;
    let call = || {
        let mut call = call(digest, "{}");
        broken(&mut call);
        call
    };
    for _ in 0..3 {
        let ended = host.sandbox.call(call()).await.unwrap();
        assert!(matches!(ended.output, Err(failure) if failure.cause == Cause::Host));
    }
    assert_eq!(
        host.sandbox.call(call()).await.unwrap_err(),
        Refusal::Quarantined
    );
    // Another component still runs, and so does another version of this one: the same code in other
    // bytes.
    assert_eq!(data(&host.run(plain("", ECHO_CODE), |_| {}).await), "{}");
    let next = component(
        FETCH_GUEST[0],
        &format!("{} (global i32 (i32.const 2))", FETCH_GUEST[1]),
        FETCH_GUEST[2],
    );
    assert_eq!(host.fails(next, broken).await, kind::HOST);
    assert_eq!(
        host.sandbox.call(call()).await.unwrap_err(),
        Refusal::Quarantined
    );
    drop(host);
    assert_eq!(open().fails(guest, broken).await, kind::HOST);
}

/// Waits up to ten seconds until `holds` returns true.
async fn until(holds: impl Fn() -> bool) {
    let wait = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    within(wait).await;
}

async fn within<T>(wait: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(10), wait)
        .await
        .expect("it should have happened by now")
}
