//! The address of a server: that of the running one, or that of the settings.

use std::{io::ErrorKind, net::SocketAddr};

use settings::Config;
use tokio::net::{TcpListener, lookup_host};

use super::Finding::{self, Bad, Good, Note};
use crate::{
    commands::{
        health::{self, Answer},
        serve::announced_url,
    },
    control::Addresses,
    open::Stop,
};

/// Checks the address of a running server, or the one of the settings if no server runs.
/// `addresses` are unknown for a server of an earlier version.
pub(super) async fn address(
    config: &Config,
    running: bool,
    addresses: Option<&Addresses>,
) -> Result<Finding, Stop> {
    let data = config.data.display();
    if let Some(addresses) = addresses {
        return of_running(config, addresses).await;
    }
    if running {
        return Ok(Note(format!(
            "a server of another version runs on {data}, which does not tell its address"
        )));
    }
    let listen = &config.listen;
    Ok(match health::ask(config, listen).await? {
        Answer::Ready | Answer::NotReady(_) => Bad(format!(
            "a server answers on {listen}, but none runs on {data}: set `data` to the data directory of that server to check it, \
             or `listen` to another address to start a second server"
        )),
        Answer::OtherProgram => Bad(format!(
            "another program accepts connections on {listen}: set `listen` to another address"
        )),
        Answer::Nothing => free_address(listen).await,
    })
}

async fn of_running(config: &Config, addresses: &Addresses) -> Result<Finding, Stop> {
    let Addresses { url, listen } = addresses;
    let data = config.data.display();
    let server = if *url == format!("http://{listen}") {
        format!("a server runs on {data} as {url}")
    } else {
        format!("a server runs on {data} as {url}, listens on {listen}")
    };
    Ok(match health::ask(config, &listen.to_string()).await? {
        Answer::Ready if is_set(config, *listen).await => Good(format!("{server}: it is ready")),
        Answer::Ready => Good(format!(
            "{server}: it is ready; it was started with another value of `listen` than {}",
            config.listen
        )),
        Answer::NotReady(reason) => Bad(format!("{server}: it is not ready, because {reason}")),
        Answer::OtherProgram | Answer::Nothing => {
            Bad(format!("{server}: it does not answer; start it again"))
        }
    })
}

/// Returns true if the settings name the address of a server.
async fn is_set(config: &Config, listen: SocketAddr) -> bool {
    let resolved = lookup_host(&config.listen).await;
    resolved.is_ok_and(|mut addresses| {
        addresses.any(|set| set.ip() == listen.ip() && [0, listen.port()].contains(&set.port()))
    })
}

async fn free_address(listen: &str) -> Finding {
    match TcpListener::bind(listen).await {
        Ok(_) => Good(format!("the address {listen} is free")),
        Err(cause) if cause.kind() == ErrorKind::AddrInUse => Bad(format!(
            "another program uses the address {listen}, although it accepts no connections: set `listen` to another address"
        )),
        Err(cause) => Bad(format!(
            "cannot listen on {listen}: {cause}; set `listen` to an address of this machine"
        )),
    }
}

/// Reports the URL that clients are told.
pub(super) async fn announced(config: &Config, addresses: Option<&Addresses>) -> Finding {
    let url = match addresses {
        Some(addresses) => addresses.url.clone(),
        None => match lookup_host(&config.listen).await.map(|mut all| all.next()) {
            Ok(Some(address)) => announced_url(config, address),
            _ => format!("http://{}", config.listen),
        },
    };
    match &config.public_url {
        Some(_) => Good(format!(
            "clients receive {url} as the address of the server"
        )),
        None => Note(format!(
            "`public_url` is not set: clients receive {url} as the address of the server, which other machines may not reach"
        )),
    }
}
