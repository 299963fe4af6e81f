//! Tests of `link`.

use super::*;
use crate::files::State;

fn links() -> Links {
    Links {
        key: Zeroizing::new([7; 32]),
        base_url: OnceLock::new(),
    }
}

fn file() -> File {
    File {
        toolkit: "t".into(),
        tool: "T_X".into(),
        name: "n".into(),
        media_type: "text/plain; a=b".into(),
        md5: "0".repeat(32),
        size: 0,
        state: State::Awaited,
        content: None,
    }
}

fn parameters(url: &str) -> Parameters {
    let query = url.split_once('?').unwrap().1;
    let mut found = Parameters::default();
    for (name, value) in url::form_urlencoded::parse(query.as_bytes()).into_owned() {
        match name.as_str() {
            "expires" => found.expires = value,
            "md5" => found.md5 = value,
            "type" => found.media_type = value,
            "size" => found.size = value,
            _ => found.signature = value,
        }
    }
    found
}

#[test]
fn expired_or_foreign_link_is_refused() {
    let ticket = Ticket {
        project: ProjectId::random(),
        id: FileId::random(),
        expires_at: Time(1_000),
    };
    let (project, id) = (ticket.project.as_str(), ticket.id.as_str());
    let good = parameters(&links().sign(SignedOperation::Put, &ticket, &file(), 9));
    let verify = |method, project, id, given: &Parameters, now| {
        links().verify(method, project, id, given, Time(now))
    };
    assert_eq!(
        verify(SignedOperation::Put, project, id, &good, 999).unwrap(),
        (ticket.clone(), 9)
    );
    assert!(
        verify(SignedOperation::Put, project, id, &good, 1_000)
            .is_err_and(|error| error.is(&errors::LINK_EXPIRED))
    );
    let (other_project, other_file) = (ProjectId::random(), FileId::random());
    assert!(verify(SignedOperation::Put, other_project.as_str(), id, &good, 1).is_err());
    assert!(verify(SignedOperation::Put, project, other_file.as_str(), &good, 1).is_err());
}
