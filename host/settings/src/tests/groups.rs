//! Tests of settings of one group, and of their secrets.

use super::read;

#[test]
fn bucket_keys_come_from_environment_and_stay_hidden() {
    let keys = [
        ("AWS_ACCESS_KEY_ID", "AKID"),
        ("AWS_SECRET_ACCESS_KEY", "0012e7"),
        ("AWS_REGION", "eu-west-1"),
    ];
    let blobs = [("TOOLHOST_BLOBS", "s3://bucket/a/b/")];
    let with = |more: &[(&'static str, &'static str)]| read(&[&keys[..], &blobs, more].concat());
    let config = with(&[("TOOLHOST_S3__ENDPOINT", "http://127.0.0.1:9000")]).unwrap();
    assert!(!format!("{config:?}").contains("0012e7"), "{config:?}");
    let bucket = config.bucket().unwrap().unwrap();
    assert_eq!(
        (&*bucket.bucket, &*bucket.prefix, &*bucket.region),
        ("bucket", "a/b", "eu-west-1")
    );
    assert_eq!(bucket.endpoint.as_deref(), Some("http://127.0.0.1:9000"));
    assert_eq!(
        (&*bucket.access_key_id, &*bucket.secret_access_key),
        ("AKID", "0012e7")
    );
    let own = with(&[("TOOLHOST_S3__SECRET_ACCESS_KEY", "00042")]).unwrap();
    let own = own.bucket().unwrap().unwrap();
    assert_eq!((&*own.secret_access_key, own.endpoint), ("00042", None));
    for blobs in ["bucket", "s3://", "https://bucket"] {
        let error = read(&[keys.as_slice(), &[("TOOLHOST_BLOBS", blobs)]].concat()).unwrap_err();
        assert!(error.to_string().contains("s3://bucket/prefix"), "{error}");
    }
    let error = read(&[("TOOLHOST_BLOBS", "s3://bucket")]).unwrap_err();
    assert!(
        error.to_string().contains("AWS_SECRET_ACCESS_KEY"),
        "{error}"
    );
}

#[test]
fn language_model_settings_hide_the_key() {
    let pairs = [
        ("TOOLHOST_LLM__BASE_URL", "http://127.0.0.1:9/v1/"),
        ("TOOLHOST_LLM__MODEL", "small"),
        ("TOOLHOST_LLM__KEY", "0012"),
        ("TOOLHOST_LLM__HEADERS", "X-Trace,x-team"),
    ];
    let config = read(&pairs).unwrap();
    assert!(!format!("{config:?}").contains("0012"), "{config:?}");
    let model = config.model().unwrap().unwrap();
    assert_eq!(model.url.as_str(), "http://127.0.0.1:9/v1/chat/completions");
    assert_eq!(model.key.unwrap().as_str(), "0012");
    assert_eq!(model.headers, ["x-trace", "x-team"]);
    assert!(read(&[]).unwrap().model().unwrap().is_none());
}

#[test]
fn oauth_apps_from_environment_hide_secrets() {
    let pairs = [
        ("TOOLHOST_OAUTH_APPS__GITHUB__CLIENT_ID", "007"),
        ("TOOLHOST_OAUTH_APPS__GITHUB__CLIENT_SECRET", "0012e7"),
        ("TOOLHOST_OAUTH_APPS__GITHUB__SCOPES", "repo, user"),
        ("TOOLHOST_OAUTH_APPS__GOOGLE_DRIVE__CLIENT_ID", "public"),
    ];
    let config = read(&pairs).unwrap();
    assert!(!format!("{config:?}").contains("0012e7"), "{config:?}");
    let [github, drive] = &config.oauth_apps().collect::<Vec<_>>()[..] else {
        panic!("{config:?}")
    };
    assert_eq!(
        (&*drive.toolkit, &*drive.client_id, &*drive.client_secret),
        ("google_drive", "public", "")
    );
    assert_eq!(
        (&*github.toolkit, &*github.client_id, &*github.client_secret),
        ("github", "007", "0012e7")
    );
    assert_eq!(github.scopes, ["repo", "user"]);
    for (key, wrong) in [("SECRET", "github.secret` is not"), ("SCOPES", "client_id")] {
        let name = format!("TOOLHOST_OAUTH_APPS__GITHUB__{key}");
        let error = read(&[(&*name, "x")]).unwrap_err();
        assert!(format!("{error:#}").contains(wrong), "{error:#}");
    }
}

#[test]
fn sink_address_is_checked_and_hidden() {
    let url = ("TOOLHOST_SINK__URL", "nats://u:0012e7@10.0.0.7:4222");
    let config = read(&[url]).unwrap();
    assert!(!format!("{config:?}").contains("0012e7"), "{config:?}");
    assert_eq!(config.sink_url().unwrap().unwrap().as_str(), url.1);
    for (address, told) in [
        ("kafka://u:0012e7@h", "tls://"),
        ("nats://u:0012e7@", "tls://"),
        ("u:0012e7@h:99999", "tls://"),
        ("amqp://u:0012e7@h:5672/v", "bridge"),
        ("amqps://u:0012e7@h", "bridge"),
    ] {
        let error = read(&[("TOOLHOST_SINK__URL", address)]).unwrap_err();
        let error = format!("{error:#}");
        assert!(error.contains("nats://user"), "{error}");
        assert!(error.contains(told), "{error}");
        assert!(!error.contains("0012e7"), "{error}");
    }
    assert!(read(&[]).unwrap().sink_url().unwrap().is_none());
}

#[test]
fn collector_settings_are_checked_and_hidden() {
    let endpoint = ("TOOLHOST_TELEMETRY__OTLP_ENDPOINT", "http://127.0.0.1:4318");
    let headers = (
        "TOOLHOST_TELEMETRY__OTLP_HEADERS",
        "Authorization=Basic 0012e7==, x-team=a",
    );
    let ratio = ("TOOLHOST_TELEMETRY__SAMPLE_RATIO", "0.25");
    let config = read(&[endpoint, headers, ratio]).unwrap();
    assert!(!format!("{config:?}").contains("0012e7"), "{config:?}");
    assert!(!config.traces().unwrap().propagates);
    let collector = config.collector().unwrap().unwrap();
    assert_eq!(collector.headers["authorization"], "Basic 0012e7==");
    assert_eq!(collector.headers["x-team"], "a");
    for (key, value, told) in [
        ("OTLP_ENDPOINT", "http://u:0012e7@collector", "otlp_headers"),
        ("OTLP_ENDPOINT", "grpc://collector", "http://host:4318"),
        ("OTLP_HEADERS", "Basic 0012e7", "name=value"),
        ("SAMPLE_RATIO", "1.5", "0 to 1"),
    ] {
        let name = format!("TOOLHOST_TELEMETRY__{key}");
        let error = format!("{:#}", read(&[(name.as_str(), value)]).unwrap_err());
        assert!(error.contains(told), "{error}");
        assert!(!error.contains("0012e7"), "{error}");
    }
    assert!(read(&[]).unwrap().traces().is_none());
}
