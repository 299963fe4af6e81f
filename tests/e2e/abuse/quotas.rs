//! Amounts that one project may store, and what is written about its runs.

use std::{fs, os::unix::fs::PermissionsExt};

use harness::{Host, host::Setup};
use serde_json::Value;

use crate::given;

#[tokio::test]
async fn a_log_that_cannot_be_written_ends_nothing() {
    for nowhere in ["2>/dev/full", "2> >(:)"] {
        let shell = |setup: Setup| {
            let script = format!("exec \"$0\" \"$@\" {nowhere}");
            setup.run_by(["bash", "-c", &script].map(str::to_owned).to_vec())
        };
        let host = shell(Setup::new().with("log", "debug")).start().await;
        for _ in 0..3 {
            host.as_project().get("/auth/session/info").await.expect(200);
        }
        host.terminate().await;
        // The last line cannot be written either; the code tells what it would have said.
        let refused = shell(Setup::new().with("listen", "nowhere")).try_start().await.unwrap_err();
        assert_eq!((refused.code, refused.signal), (Some(1), None), "{refused:?}");
    }
}

#[tokio::test]
async fn a_data_folder_open_to_others_is_refused() {
    let (setup, _) = Setup::new().start().await.terminate().await;
    let mode = |mode| fs::set_permissions(setup.data(), fs::Permissions::from_mode(mode)).unwrap();
    assert_eq!(fs::metadata(setup.data()).unwrap().permissions().mode() & 0o777, 0o700);
    for open in [0o710, 0o702] {
        mode(open);
        let refused = setup.clone().try_start().await.unwrap_err();
        assert_eq!(refused.code, Some(78), "{refused:?}");
        assert!(refused.output.contains("chmod 700"), "{refused:?}");
        let doctor = setup.command(&["doctor"]);
        assert!(doctor.code == Some(1) && doctor.stdout.contains("chmod 700"), "{doctor:?}");
    }
    mode(0o700);
    setup.start().await;
}

#[tokio::test]
async fn short_secrets_are_masked_whole() {
    let project = Host::shared().await.new_project().await;
    let config = given::auth_config(&project).await;
    for (secret, shown) in [("1234567", "REDACTED"), ("12345678", "1234...")] {
        let made = project.post("/connected_accounts", &given::account(&config, secret, secret)).await.expect(201);
        let read = project.get(&format!("/connected_accounts/{}", made["id"].as_str().unwrap())).await.expect(200);
        assert_eq!(read["state"]["val"]["api_key"], Value::from(shown));
    }
}
