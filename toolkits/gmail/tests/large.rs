//! Tests with mails and files of several megabytes, which are too large for case files.

#![expect(
    clippy::unwrap_used,
    reason = "what goes wrong in a helper of a test fails the test"
)]

use data_encoding::{BASE64_MIME_PERMISSIVE, BASE64URL};
use serde_json::{Value, json};
use toolkit_sdk::testing::{self, Host};

const API_URL: &str = "https://gmail.googleapis.com/gmail/v1/users/me";
const UPLOAD_URL: &str = "https://gmail.googleapis.com/upload/gmail/v1/users/me";

/// Generates bytes in which no two pieces are equal.
fn bytes(count: usize) -> Vec<u8> {
    (0..count)
        .map(|place| (place % 251) as u8 ^ (place / 7919) as u8)
        .collect()
}

fn run(host: Host, tool: &str, arguments: &Value) -> (toolkit_sdk::Result<Value>, Host) {
    host.run(|| testing::call(&gmail::TOOLKIT, tool, arguments))
}

fn with_file(count: usize) -> (Host, Value) {
    let host = testing::host().file("big", "big.bin", "application/octet-stream", &bytes(count));
    (
        host,
        json!([{ "name": "big.bin", "mimetype": "application/octet-stream", "s3key": "big" }]),
    )
}

#[test]
fn large_reply_is_uploaded_into_its_conversation() {
    let (host, attachments) = with_file(5_000_000);
    let headers = [
        "From",
        "Reply-To",
        "To",
        "Cc",
        "Subject",
        "Message-ID",
        "References",
    ];
    let headers: String = headers
        .iter()
        .map(|name| format!("&metadataHeaders={name}"))
        .collect();
    let original = format!(
        "{API_URL}/messages/m1?format=metadata{headers}&fields=id%2CthreadId%2ClabelIds%2Cpayload%2Fheaders"
    );
    let told = json!({ "id": "m1", "threadId": "t1", "payload": { "headers": [{ "name": "From", "value": "ada@example.com" }] } });
    let host = host.exchange("GET", &original, 200, told);
    let host = host.exchange(
        "POST",
        &format!("{UPLOAD_URL}/messages/send?uploadType=multipart"),
        200,
        json!({ "id": "m2" }),
    );
    let arguments = json!({ "message_id": "m1", "body": "See the file.", "format": "text", "attachments": attachments });
    let (answer, host) = run(host, "reply_to_email", &arguments);
    assert_eq!(answer.unwrap()["id"], "m2");

    let sent = String::from_utf8(host.bytes_of("file_1").unwrap().to_vec()).unwrap();
    let parts: Vec<&str> = sent.split("--=_upload").collect();
    assert_eq!((parts.len(), parts[0], parts[3]), (4, "", "--\r\n"));
    assert_eq!(
        parts[1],
        "\r\nContent-Type: application/json\r\n\r\n{\"threadId\":\"t1\"}\r\n"
    );
    assert!(
        parts[2].starts_with("\r\nContent-Type: message/rfc822\r\n\r\nTo: ada@example.com\r\n")
    );
    let file = parts[2]
        .split("--=_mixed")
        .nth(2)
        .unwrap()
        .split_once("\r\n\r\n")
        .unwrap();
    assert!(file.0.contains("filename=\"big.bin\""), "{}", file.0);
    assert!(BASE64_MIME_PERMISSIVE.decode(file.1.as_bytes()).unwrap() == bytes(5_000_000));
}

#[test]
fn what_gmail_would_not_take_is_not_sent() {
    let (host, attachments) = with_file(27_000_000);
    let arguments =
        json!({ "to": ["ada@example.com"], "body": "See the file.", "attachments": attachments });
    let error = run(host, "send_email", &arguments).0.unwrap_err();
    assert_eq!(error.kind(), "invalid_input", "{error}");
}

/// Returns the content of the file that the tool creates from an attachment with this data.
fn fetched(data: &str) -> Vec<u8> {
    let part = json!({ "partId": "1", "mimeType": "application/pdf", "filename": "a.pdf", "body": { "attachmentId": "x", "size": 1 } });
    let mail =
        json!({ "id": "m1", "threadId": "t1", "payload": { "partId": "", "parts": [part] } });
    let host = testing::host().exchange(
        "GET",
        &format!("{API_URL}/messages/m1?format=full"),
        200,
        mail,
    );
    let answer = json!({ "data": data });
    let host = host.exchange(
        "GET",
        &format!("{API_URL}/messages/m1/attachments/x?fields=data"),
        200,
        answer,
    );
    let (answer, host) = run(
        host,
        "get_attachment",
        &json!({ "message_id": "m1", "part_id": "1" }),
    );
    let file = answer.unwrap()["file"]["s3url"]
        .as_str()
        .unwrap()
        .to_owned();
    host.bytes_of(&file).unwrap().to_vec()
}

#[test]
fn attachment_of_any_size_is_unchanged() {
    for count in [0, 1, 2, 3, 786_425, 786_431, 2_500_000] {
        let data = BASE64URL.encode(&bytes(count));
        assert!(fetched(&data) == bytes(count), "{count} bytes");
        assert!(
            fetched(data.trim_end_matches('=')) == bytes(count),
            "{count} bytes without padding"
        );
    }
}
