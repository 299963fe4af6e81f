//! `toolhost events`: follows the events of a project, lists the deliveries of its webhook
//! subscription, and sends them again.
//!
//! Everything is read and done over the API with the project's own key, because events belong to the
//! project.

pub(super) mod server_sent;
mod tail;

use anyhow::anyhow;
use clap::ValueEnum;
use net::{Body, Method};
use serde_json::{Value, json};
use settings::Config;

use crate::{
    commands::running::{ProjectArgs, Running, check_id, text},
    open::Stop,
    terminal::Terminal,
};

const SUBSCRIPTIONS_PATH: &str = "webhook_subscriptions";
/// Characters of a response body that `show` prints.
const MAX_SHOWN_CHARS: usize = 200;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
    #[command(flatten)]
    project: ProjectArgs,
    /// Print JSON as the API returns it
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Print the events of the project as they happen
    ///
    /// Continues after interruptions without missing an event. Ends with Ctrl-C.
    Tail(tail::Filter),
    /// List the deliveries of the webhook subscription, newest first
    List {
        /// Only deliveries of this status
        #[arg(long)]
        status: Option<Status>,
        /// Maximum number of deliveries
        #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=1_000))]
        limit: u16,
    },
    /// Show a delivery and its attempts, oldest first
    Show {
        /// Id of the delivery, which `toolhost events list` prints
        id: String,
    },
    /// Send an event to the endpoint of the webhook subscription again
    ///
    /// A time range selects the events that the endpoint has not acknowledged, also those for which
    /// there was no subscription.
    Replay {
        /// Id of the delivery, which `toolhost events list` prints
        #[arg(required_unless_present_any = ["since", "until"])]
        id: Option<String>,
        /// Time of the first event of a range, in ISO 8601 [default: that of the oldest event]
        #[arg(long, value_name = "TIME", conflicts_with = "id")]
        since: Option<String>,
        /// Time after the last event of a range, in ISO 8601 [default: now]
        #[arg(long, value_name = "TIME", conflicts_with = "id")]
        until: Option<String>,
        /// Include the events of the range that were delivered
        #[arg(long, conflicts_with = "id")]
        delivered: bool,
        /// URL to send to [default: that of the subscription]
        #[arg(long, value_name = "URL")]
        to: Option<String>,
    },
}

/// Status of a delivery.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Status {
    /// An attempt is due
    Pending,
    /// The endpoint has acknowledged it
    Delivered,
    /// No attempt follows
    Failed,
}

pub(crate) const HELP_EXAMPLES: &str = "Examples:
  toolhost events tail --toolkit github
  toolhost events list --status failed
  toolhost events replay --since 2026-11-25T00:00:00Z";

pub(crate) async fn run(config: &Config, args: &Args, terminal: Terminal) -> Result<(), Stop> {
    let server = args.project.reach(config)?;
    match &args.action {
        Action::Tail(filter) => tail::run(&server, filter, args.json, terminal).await?,
        Action::List { status, limit } => {
            let filter = status
                .and_then(|status| status.to_possible_value())
                .map(|status| format!("&status={}", status.get_name()))
                .unwrap_or_default();
            let path = format!("{}?limit={limit}{filter}", deliveries(&server).await?);
            let page = get(&server, &path).await?;
            print_or(&page, args.json, terminal, print_list);
        }
        Action::Show { id } => {
            let path = delivery(&server, id).await?;
            let found = get(&server, &path).await?;
            print_or(&found, args.json, terminal, print_delivery);
        }
        Action::Replay {
            id: Some(id), to, ..
        } => {
            let path = format!("{}/replay", delivery(&server, id).await?);
            let body = json!({ "webhook_url": to });
            let done = server.send_json(Method::POST, &path, &body).await?;
            print_or(&done, args.json, terminal, |done, terminal| {
                terminal.good(&format!("{} is sent again", text(done, "message_id")));
            });
        }
        Action::Replay {
            since,
            until,
            delivered,
            to,
            ..
        } => {
            let path = format!("{}/replay", deliveries(&server).await?);
            let body = json!({
                "since": since, "until": until, "include_delivered": delivered, "webhook_url": to,
            });
            let done = server.send_json(Method::POST, &path, &body).await?;
            print_or(&done, args.json, terminal, |done, terminal| {
                let events = match done["replayed"].as_u64() {
                    Some(1) => "1 event is".to_owned(),
                    number => format!("{} events are", number.unwrap_or(0)),
                };
                terminal.good(&format!("{events} sent again"));
            });
        }
    }
    Ok(())
}

async fn get(server: &Running, path: &str) -> Result<Value, Stop> {
    let (_, response) = server.send(Method::GET, path, Body::Empty, None).await?;
    Ok(server.parse(&response)?)
}

/// Returns the path of the deliveries of the project's subscription.
async fn deliveries(server: &Running) -> Result<String, Stop> {
    let all = server.items(SUBSCRIPTIONS_PATH).await?;
    let id = all.first().map(|subscription| text(subscription, "id"));
    let id = id.ok_or_else(|| {
        anyhow!(
            "the project has no webhook subscription: create one with POST /api/v3.1/{SUBSCRIPTIONS_PATH}, or follow its events with `toolhost events tail`"
        )
    })?;
    Ok(format!("{SUBSCRIPTIONS_PATH}/{id}/deliveries"))
}

async fn delivery(server: &Running, id: &str) -> Result<String, Stop> {
    check_id(
        id,
        "a delivery: `toolhost events list` prints the ids of deliveries",
    )?;
    Ok(format!("{}/{id}", deliveries(server).await?))
}

fn print_or(response: &Value, json: bool, terminal: Terminal, print: fn(&Value, Terminal)) {
    match json {
        true => terminal.line(&format!("{response:#}")),
        false => print(response, terminal),
    }
}

fn print_list(page: &Value, terminal: Terminal) {
    let items = page["items"].as_array().map_or(&[][..], Vec::as_slice);
    for item in items {
        print_entry(item, terminal);
    }
    let total = page["total_items"].as_u64().unwrap_or(0);
    if total > items.len() as u64 {
        terminal.note(&format!(
            "{} of {total}; --limit shows more, --status selects",
            items.len()
        ));
    }
}

/// Prints a delivery as one line.
fn print_entry(delivery: &Value, terminal: Terminal) {
    let columns = format!(
        "{}  {}  {:<9}  {:<32}",
        text(delivery, "id"),
        text(delivery, "created_at"),
        text(delivery, "status"),
        text(delivery, "event_type")
    );
    let state = match text(delivery, "next_attempt_at") {
        "" => text(delivery, "failure").to_owned(),
        next => format!("next {next}"),
    };
    let attempts = format!("attempts {}", delivery["attempt_count"]);
    terminal.entry(&columns, format!("{attempts}  {state}").trim_end());
}

fn print_delivery(delivery: &Value, terminal: Terminal) {
    print_entry(delivery, terminal);
    for attempt in delivery["attempts"].as_array().into_iter().flatten() {
        let status = attempt["status"].as_u64();
        let status = status.map_or("-".to_owned(), |status| status.to_string());
        let columns = format!(
            "  {}  {status:>3}  {:>6} ms",
            text(attempt, "at"),
            attempt["duration_ms"]
        );
        let outcome = [text(attempt, "error"), text(attempt, "response")].concat();
        terminal.entry(&columns, &one_line(&outcome, MAX_SHOWN_CHARS));
    }
}

/// Returns the start of a string that others wrote, without characters that would control the
/// terminal.
fn one_line(text: &str, max_chars: usize) -> String {
    let plain = text.chars().map(|one| match one.is_control() {
        true => ' ',
        false => one,
    });
    let mut line: String = plain.clone().take(max_chars).collect();
    if plain.count() > max_chars {
        line.push('…');
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        assert_eq!(one_line("a\u{1b}[2J\nb", 10), "a [2J b");
        assert_eq!(one_line("abcdef", 3), "abc…");
    }
}
