//! The route for which a request was probably meant whose path is unknown or does not take its method.

use app::core::spelling::is_near_miss;

use crate::{Server, path::API_PREFIXES};

/// Returns the path of the route that is most similar to an unknown path, with placeholders for ids. The
/// unknown path may lack the prefix of the API.
pub fn similar_route(server: &Server, path: &str) -> Option<String> {
    let path = path.trim_end_matches('/');
    let prefixed = format!("{}{path}", API_PREFIXES[1]);
    let routes = server.requests.routes();
    let similar = routes.iter().filter_map(|route| {
        let wrong = wrong_segments(path, route.path());
        let wrong = wrong.or_else(|| wrong_segments(&prefixed, route.path()));
        Some((wrong?, route.path()))
    });
    similar
        .min_by_key(|(wrong, _)| *wrong)
        .map(|(_, route)| route.to_owned())
}

/// Returns the path of the route that a path leads to with one more segment, for example an id or a slug.
pub(crate) fn longer_route(server: &Server, path: &str) -> Option<String> {
    let routes = server.requests.routes();
    let longer = routes.iter().find(|route| {
        let rest = route.path().strip_prefix(path);
        rest.and_then(|rest| rest.strip_prefix('/'))
            .is_some_and(|last| last.starts_with('{') && !last.contains('/'))
    });
    longer.map(|route| route.path().to_owned())
}

/// Returns the number of misspelled segments of a path that was meant as that of a route, or `None` if it
/// was not.
fn wrong_segments(path: &str, route: &str) -> Option<usize> {
    let mut segments = path.split('/');
    let mut wrong = 0;
    for known in route.split('/') {
        let segment = segments.next()?;
        if segment == known || known.starts_with('{') {
            continue;
        }
        if !is_near_miss(segment, known) {
            return None;
        }
        wrong += 1;
    }
    segments.next().is_none().then_some(wrong)
}
