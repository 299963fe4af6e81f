//! Recurring jobs over several servers on one database: only the holder of a job's lease does it.
//!
//! The job is the log's retention. The database records the actions of each server: each has its
//! own database user, and triggers record which user takes the lease and which one erases, with the
//! id of the claim at that moment.

use std::{collections::BTreeSet, time::Duration};

use harness::{
    Database, Guest, Host, Postgres, guest,
    host::{Setup, size},
    wait_for, wait_until,
};
use serde_json::json;

/// Time within which another server continues the work of a killed one.
const TAKEN_OVER: Duration = Duration::from_secs(15);
/// Interval of the job, in milliseconds.
const INTERVAL_MS: u64 = 3_600_000;
/// Number of excess pages in the log: more than a batch, so that the job can be interrupted in its
/// middle.
const EXCESS_PAGES: usize = 80;

/// Triggers that record which user takes the lease and which one erases a page, and delay each
/// erasure by `pace` seconds.
const WATCH_TRIGGERS: &str = "
    create table pace as select 0.05 as seconds;
    create table notes (number serial, what text, who text default session_user, claim text);
    create function erased() returns trigger language plpgsql as $$ begin
        perform pg_sleep(seconds) from pace;
        insert into notes (what, claim) select 'erased', body->'lease'->>'by' from leases where id = 'log_retention';
        return old;
    end $$;
    create trigger erased before delete on execution_pages for each row execute function erased();
    create function taken() returns trigger language plpgsql as $$ begin
        if new.id = 'log_retention' and new.body->'lease'->>'by' is distinct from old.body->'lease'->>'by' then
            insert into notes (what, claim) select 'taken', new.body->'lease'->>'by'
                where new.body->'lease'->>'by' is not null;
        end if;
        return new;
    end $$;
    create trigger taken after update on leases for each row execute function taken();
";

/// Servers on one database, with their database users.
struct Watched {
    hosts: Vec<(String, Host)>,
    setup: Setup,
}

impl Watched {
    /// Starts `count` idle servers.
    async fn start(count: usize) -> Self {
        let setup = Setup::embedded().on(Postgres::shared().database(None));
        let mut watched = Self {
            hosts: Vec::new(),
            setup,
        };
        for number in 1..=count {
            let own = if number == 1 {
                watched.setup.clone()
            } else {
                watched.setup.another()
            };
            let revision = match number {
                1 => 0,
                _ => watched.count("select revision from leases where id = 'log_retention'"),
            };
            let (url, user) = watched.database().url_of_new_superuser();
            let host = own.with("store", url).start().await;
            watched.hosts.push((user, host));
            // The first run after a start does not wait for the job's interval.
            let done = format!(
                "select count(*) from leases where id = 'log_retention' and revision > {revision} \
                 and json_typeof(body->'lease') = 'null' \
                 and (body->>'due')::bigint = (body->>'ran')::bigint + {INTERVAL_MS}"
            );
            wait_until("it has done the job once", || async {
                watched.count(&done) == 1
            })
            .await;
        }
        watched.database().say(WATCH_TRIGGERS);
        watched
    }

    fn database(&self) -> &Database {
        self.setup.database()
    }

    fn count(&self, statement: &str) -> usize {
        self.database().say(statement)[0].parse().unwrap()
    }

    /// Makes the job due on all servers.
    fn make_due(&self) {
        self.database().say(
            "update leases set revision = revision + 1, body = (body::jsonb || '{\"due\": 0, \"ran\": 0}')::json \
             where id = 'log_retention'",
        );
    }

    async fn wait_until_done(&self) {
        let done =
            "select count(*) from leases where id = 'log_retention' and (body->>'ran')::bigint > 0";
        wait_until("the job is done", || async { self.count(done) == 1 }).await;
    }

    fn pages(&self) -> usize {
        self.count("select count(*) from execution_pages")
    }

    /// Fills the log, makes the job due, and waits until a server is in the middle of it. Returns
    /// that server and the others.
    async fn amid_work(mut self) -> (Host, Self) {
        let first = &self.hosts[0].1;
        first
            .publish(Guest::echo().component(), &guest::manifest("logged"))
            .await;
        for _ in 0..EXCESS_PAGES {
            first
                .as_project()
                .execute(&guest::tool("logged"), json!({}))
                .await
                .data();
        }
        assert_eq!(self.pages(), EXCESS_PAGES);
        // All pages but the newest are past their time.
        self.database().say(
            "update execution_pages set created_at = created_at - 4000000000 \
             where id <> (select id from execution_pages order by created_at desc, id desc limit 1)",
        );
        self.make_due();
        let begun = "select count(*) from notes where what = 'erased'";
        wait_until("somebody has begun", || async { self.count(begun) > 0 }).await;
        let holder = &self
            .database()
            .say("select who from notes where what = 'taken'")[0];
        let place = self
            .hosts
            .iter()
            .position(|(user, _)| user == holder)
            .unwrap();
        let (_, holder) = self.hosts.remove(place);
        (holder, self)
    }

    /// Returns the users that took the lease, in order.
    fn holders(&self) -> Vec<String> {
        self.database()
            .say("select who from notes where what = 'taken' order by number")
    }

    /// Asserts that no page was erased twice, or by a server without the lease.
    fn assert_fenced(&self) {
        let [taken, erased] = ["taken", "erased"].map(|what| {
            self.database().say(&format!(
                "select who, claim from notes where what = '{what}'"
            ))
        });
        let leases: BTreeSet<_> = taken.into_iter().collect();
        assert!(
            erased.iter().all(|by| leases.contains(by)),
            "{leases:?} {erased:?}"
        );
        assert_eq!(erased.len(), EXCESS_PAGES - self.pages());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_servers_job_is_taken_over() {
    let (holder, rest) = Watched::start(2).await.amid_work().await;
    holder.kill();
    assert!(rest.pages() > 1, "it was killed too late");
    rest.database().say("update pace set seconds = 0");
    wait_for(TAKEN_OVER, "another server has done the work", || async {
        rest.pages() == 1
    })
    .await;
    let holders = rest.holders();
    assert!(
        holders.len() == 2 && holders[1] == rest.hosts[0].0,
        "{holders:?}"
    );
    rest.assert_fenced();
}

#[tokio::test(flavor = "multi_thread")]
async fn frozen_server_cannot_write_after_lease_loss() {
    let (holder, rest) = Watched::start(2).await.amid_work().await;
    holder.signal("STOP");
    assert!(rest.pages() > 1, "it was frozen too late");
    wait_for(TAKEN_OVER, "another server takes the lease", || async {
        rest.holders().len() == 2
    })
    .await;
    holder.signal("CONT");
    // The interrupted step does not complete, whichever it was.
    let told = [
        "this server stops working on it",
        "an attempt failed; it is retried",
        "it is retried later",
    ];
    let lost = || async { told.iter().any(|told| holder.output().contains(told)) };
    wait_until("the woken server knows that it has lost the lease", lost).await;
    rest.wait_until_done().await;
    assert_eq!(rest.pages(), 1);
    rest.assert_fenced();
    // The server sees what the other has left.
    let project = holder.as_project();
    let logs = project.post("/logs/tool_execution", &json!({})).await;
    assert_eq!(logs["logs"].as_array().unwrap().len(), 1, "{logs:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn due_job_runs_once_on_many_servers() {
    let watched = Watched::start(3).await;
    for round in 1..=size(16, 200) {
        watched.make_due();
        watched.wait_until_done().await;
        assert_eq!(watched.holders().len(), round);
    }
}
