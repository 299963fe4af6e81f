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
use store::Durations;

use super::families::{Families, Kind};

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
pub(crate) struct Requests {
    routes: Mutex<Vec<Arc<RouteCounts>>>,
    unmatched: Arc<RouteCounts>,
}

/// Counts of the requests of a route.
#[derive(Debug)]
pub(crate) struct RouteCounts {
    path: Box<str>,
    /// Counts of each of [`COUNTED_METHODS`], once there was a request.
    methods: [OnceLock<Box<MethodCounts>>; COUNTED_METHODS.len()],
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

    /// Adds the metrics of all routes that had requests.
    pub(super) fn write(&self, families: &mut Families) {
        let routes = self.routes.lock().clone();
        let counted: Vec<_> = routes.iter().flat_map(|route| route.counted()).collect();
        let help = "Requests, by method, route and class of status";
        families.family("toolhost_http_requests_total", Kind::Counter, help);
        for (path, method, counts) in &counted {
            for (class, count) in STATUS_CLASSES.into_iter().zip(&counts.classes) {
                let count = count.load(Ordering::Relaxed);
                if count > 0 {
                    let labels = [("method", *method), ("route", *path), ("status", class)];
                    families.sample(&labels, count);
                }
            }
        }
        let name = "toolhost_http_request_duration_seconds";
        let help = "Time from the head of a request to the head of its response";
        families.family(name, Kind::Histogram, help);
        for (path, method, counts) in &counted {
            let labels = [("method", *method), ("route", *path)];
            families.sample(&labels, counts.durations.read());
        }
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

    fn counted(&self) -> impl Iterator<Item = (&str, &'static str, &MethodCounts)> {
        let methods = COUNTED_METHODS.into_iter().zip(&self.methods);
        methods.filter_map(|(method, counts)| Some((self.path(), method, &**counts.get()?)))
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
        let mut families = Families::default();
        requests.write(&mut families);
        let text = super::super::text::format(&families);
        let name = "toolhost_http_requests_total";
        for line in [
            "{method=\"GET\",route=\"/x/{id}\",status=\"2xx\"} 2",
            "{method=\"GET\",route=\"/x/{id}\",status=\"5xx\"} 1",
            "{method=\"GET\",route=\"/x/{id}\",status=\"disconnected\"} 1",
            "{method=\"other\",route=\"(none)\",status=\"4xx\"} 1",
        ] {
            assert!(text.contains(&format!("{name}{line}\n")), "{line}\n{text}");
        }
        assert_eq!(text.matches(name).count(), 6, "{text}");
    }
}
