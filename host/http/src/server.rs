//! The server as its handlers see it: the app, the settings, and the limits and counts of requests.

use std::{
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use app::{App, core::tasks::Tasks};
use gate::KeyedLimit;
use net::ipnet::IpNet;
use settings::Config;
use tokio::sync::Semaphore;

use crate::{branding::Branding, limiter::RequestLimiter, request_counts::Requests};

/// State that handlers share.
pub struct Server {
    pub app: Arc<App>,
    /// Limits of requests by client, key and project.
    pub limiter: RequestLimiter,
    /// Open connections of all listeners.
    pub(crate) connections: Arc<Semaphore>,
    /// Open connections from one address.
    pub(crate) connections_by_address: KeyedLimit<IpAddr>,
    /// Counts of requests.
    pub requests: Requests,
    /// Tasks that answer requests. A stopping server waits for them as for other requests, and
    /// aborts them afterwards.
    pub detached: Tasks,
    /// Operator word in identifiers of the API.
    pub branding: Arc<Branding>,
    /// Address ranges of the proxies whose forwarding headers are trusted.
    pub trusted_proxies: Vec<IpNet>,
    /// Settings as read at the start.
    pub config: Config,
    serving: AtomicBool,
}

impl Server {
    pub fn new(app: Arc<App>, config: Config) -> anyhow::Result<Self> {
        let limiter = RequestLimiter::new(&config.limits, &config.sandbox);
        let branding = Arc::new(Branding::new(&config.operator_word));
        let trusted_proxies = config.trusted_proxies()?;
        Ok(Self {
            app,
            limiter,
            connections: Arc::new(Semaphore::new(config.limits.connections)),
            connections_by_address: KeyedLimit::new(config.limits.connections_per_address()),
            requests: Requests::default(),
            detached: Tasks::default(),
            branding,
            trusted_proxies,
            config,
            serving: AtomicBool::new(false),
        })
    }

    /// Returns true if clients should be routed to this server.
    pub fn is_serving(&self) -> bool {
        self.serving.load(Ordering::Relaxed)
    }

    pub fn set_serving(&self, serving: bool) {
        self.serving.store(serving, Ordering::Relaxed);
    }
}
