//! `metrics.*`: metrics for the operator.

use super::setting::settings;

settings! {
    /// Metrics for the operator.
    pub struct Metrics {
        /// Address and port that serve metrics in the text format of Prometheus at `/metrics`, for
        /// monitoring. They need no key: choose an address that only the operator reaches. Port 0
        /// takes a free one.
        #[setting(unset = "no metrics", example = "127.0.0.1:9464")] pub listen: Option<String>,
    }
}
