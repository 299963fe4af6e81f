//! Amounts that one project may store, and what is written about its runs.

use harness::host::Setup;

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
