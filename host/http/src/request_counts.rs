//! Counts of requests by method, route and class of status.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use axum::http::{Method, StatusCode};
use parking_lot::Mutex;
use store::{DurationCounts, Durations};

/// Methods that are counted separately. The last one covers all others.
const COUNTED_METHODS: [&str; 8] = [
    "GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "other",
];
/// Classes of statuses. The last one covers requests whose clients disconnected before the response
/// started.
const STATUS_CLASSES: [&str; 6] = ["1xx", "2xx", "3xx", "4xx", "5xx", "disconnected"];
/// Route of requests that match no route.
const NO_ROUTE: &str = "(none)";

/// Counts of all requests.
#[derive(Debug)]
pub struct Requests {
    routes: Mutex<Vec<Arc<RouteCounts>>>,
    unmatched: Arc<RouteCounts>,
}

/// Counts of the requests of a route.
#[derive(Debug)]
pub struct RouteCounts {
    path: Box<str>,
    /// Counts of each of [`COUNTED_METHODS`], once there was a request.
    methods: [OnceLock<Box<MethodCounts>>; COUNTED_METHODS.len()],
}

/// Counts of the requests of a route with one method, as they were when they were read.
#[derive(Debug)]
pub struct ReadCounts {
    /// Path of the route.
    pub path: Box<str>,
    /// Name under which the method is counted.
    pub method: &'static str,
    /// Requests by class of status, for example `2xx`, without those that are zero.
    pub statuses: Vec<(&'static str, u64)>,
    /// Times from the head of a request to the head of its response.
    pub durations: DurationCounts,
}

#[derive(Debug, Default)]
struct MethodCounts {
    classes: [AtomicU64; STATUS_CLASSES.len()],
    durations: Durations,
}

impl Default for Requests {
    fn default() -> Self {
        let unmatched = Arc::new(RouteCounts::new(NO_ROUTE));
        Self {
            routes: Mutex::new(vec![unmatched.clone()]),
            unmatched,
        }
    }
}

impl Requests {
    /// Returns the counts of a new route with this path, in which placeholders stand for ids.
    pub(crate) fn add_route(&self, path: &str) -> Arc<RouteCounts> {
        let route = Arc::new(RouteCounts::new(path));
        self.routes.lock().push(route.clone());
        route
    }

    /// Counts a request. Without a status, its client disconnected.
    pub(crate) fn count(
        &self,
        route: Option<&RouteCounts>,
        method: &Method,
        status: Option<StatusCode>,
        duration: Duration,
    ) {
        let route = route.unwrap_or(&self.unmatched);
        let method = &route.methods[method_index(method)];
        let counts = method.get_or_init(Box::default);
        let class = status.map_or(STATUS_CLASSES.len(), |status| {
            usize::from(status.as_u16() / 100)
        });
        if let Some(count) = counts.classes.get(class.saturating_sub(1)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        counts.durations.record(duration);
    }

    /// Returns the counts of all routes that had requests, by route and method.
    pub fn read(&self) -> Vec<ReadCounts> {
        let routes = self.routes();
        routes.iter().flat_map(|route| route.read()).collect()
    }

    /// Returns the counts of all routes, of which each has a path.
    pub(crate) fn routes(&self) -> Vec<Arc<RouteCounts>> {
        self.routes.lock().clone()
    }
}

/// Returns the name under which a method is counted.
pub(crate) fn counted_method(method: &Method) -> &'static str {
    COUNTED_METHODS[method_index(method)]
}

fn method_index(method: &Method) -> usize {
    let name = method.as_str();
    let known = COUNTED_METHODS.iter().position(|known| *known == name);
    known.unwrap_or(COUNTED_METHODS.len() - 1)
}

impl RouteCounts {
    fn new(path: &str) -> Self {
        Self {
            path: path.into(),
            methods: Default::default(),
        }
    }

    /// Returns the path of the route.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    fn read(&self) -> impl Iterator<Item = ReadCounts> {
        let methods = COUNTED_METHODS.into_iter().zip(&self.methods);
        methods.filter_map(|(method, counts)| {
            let counts = counts.get()?;
            let statuses = STATUS_CLASSES.into_iter().zip(&counts.classes);
            Some(ReadCounts {
                path: self.path.clone(),
                method,
                statuses: statuses
                    .map(|(class, count)| (class, count.load(Ordering::Relaxed)))
                    .filter(|(_, count)| *count > 0)
                    .collect(),
                durations: counts.durations.read(),
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_by_class() {
        let requests = Requests::default();
        let route = requests.add_route("/x/{id}");
        let duration = Duration::from_millis(1);
        for status in [Some(200), Some(204), Some(503), None] {
            let status = status.map(|status| StatusCode::from_u16(status).unwrap());
            requests.count(Some(&*route), &Method::GET, status, duration);
        }
        let unknown = Method::from_bytes(b"BREW").unwrap();
        requests.count(None, &unknown, Some(StatusCode::NOT_FOUND), duration);
        let read = requests.read();
        let counts: Vec<_> = read
            .iter()
            .map(|counts| (&*counts.path, counts.method, &counts.statuses[..]))
            .collect();
        let expected: [(_, _, &[_]); 2] = [
            ("(none)", "other", &[("4xx", 1)]),
            (
                "/x/{id}",
                "GET",
                &[("2xx", 2), ("5xx", 1), ("disconnected", 1)],
            ),
        ];
        assert_eq!(counts, expected);
        assert_eq!(read[1].durations.count, 4);
    }
}
