//! The configurations of reverse proxies that the page of operators shows: nginx and Caddy run with them.

use std::fs;

use harness::{
    free_port,
    host::Setup,
    manual::{Shell, Step, steps},
};

use super::{page, variables};

const PUBLIC_HOST: &str = "toolhost.example.com";
/// Options of nginx that a distribution sets in the file which includes the one of the page.
const NGINX_FRAME: &str = "daemon off; pid nginx.pid; error_log nginx.log; events {} http { access_log off; \
    client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; \
    scgi_temp_path scgi; include toolhost.conf; }";
/// Certificate where certbot would place it.
const MAKE_CERTIFICATE: &str = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 \
    -subj /CN=toolhost.example.com -keyout privkey.pem -out fullchain.pem 2>/dev/null";
/// Requests through the proxy; prints what the test expects, a line each.
const PROXIED_REQUESTS: &str = r#"
through() { curl -sSk --resolve "toolhost.example.com:$HTTPS_PORT:127.0.0.1" "$@"; }
url=https://toolhost.example.com:$HTTPS_PORT
through --retry 60 --retry-delay 1 --retry-connrefused "$url/health/ready" 2>/dev/null; echo
curl -sS -o /dev/null -w '%{redirect_url}\n' -H 'host: toolhost.example.com' "http://127.0.0.1:$HTTP_PORT/docs"
address() { through -o /dev/null -w '%{http_code}\n' -H "x-api-key: $RESTRICTED_KEY" "$@" "$url/api/v3.1/toolkits"; }
address --interface 127.0.0.2
address --interface 127.0.0.3 -H 'x-forwarded-for: 127.0.0.2' -H 'forwarded: for=127.0.0.2'
# A stream never ends by itself: its beginning has to arrive within this time.
through -N --max-time 3 -H "x-api-key: $TOOLHOST_API_KEY" "$url/api/v3.1/trigger_instances/stream" 2>/dev/null | grep -o '^id:' || true
head -c 2000000 /dev/zero | through -T - -X POST -H "x-api-key: $TOOLHOST_API_KEY" -H 'content-type: application/json' \
  "$url/api/v3.1/auth_configs" | jq -r .error.slug
"#;

/// Returns the content of a file that a page shows.
fn shown<'a>(steps: &'a [Step], file: &str) -> &'a str {
    let content = steps.iter().find_map(|step| match step {
        Step::Write(path, content) if path == file => Some(content.as_str()),
        _ => None,
    });
    content.unwrap_or_else(|| panic!("the page shows no {file}"))
}

#[tokio::test]
async fn reverse_proxies_of_operator_page_work() {
    let folder = tempfile::tempdir().unwrap();
    let steps = steps(&page("docs/operator.md"));
    let mut shell = Shell::open(folder.path(), &variables(""));
    fs::write(
        folder.path().join("toolhost.toml"),
        shown(&steps, "toolhost.toml"),
    )
    .unwrap();
    let settings = shell.run("toolhost config").await;
    assert!(settings.contains(PUBLIC_HOST), "{settings}");

    let host = Setup::new()
        .with("public_url", format!("https://{PUBLIC_HOST}"))
        .with("net.trusted_proxies", "127.0.0.1/32,::1/128")
        .start()
        .await;
    let server = host.url.strip_prefix("http://").unwrap();
    let known = format!(
        "export TOOLHOST_API_KEY={}; RESTRICTED_KEY=$(toolhost keys add demo restricted --from 127.0.0.2 --url {} --org-key {})",
        host.project_key, host.url, host.org_key
    );
    shell.run(&known).await;
    shell.run(MAKE_CERTIFICATE).await;
    let at = folder.path().display().to_string();
    let programs = page("target/parts/usr").display().to_string();
    let find = format!(
        "PATH=$PATH:{programs}/sbin:{programs}/bin; export HOME='{at}' XDG_DATA_HOME='{at}'"
    );
    shell.run(&find).await;
    for name in ["nginx", "caddy"] {
        let [http, https] = [free_port(), free_port()];
        let command = if name == "nginx" {
            let configuration = shown(&steps, "/etc/nginx/conf.d/toolhost.conf")
                .replace("127.0.0.1:8080", server)
                .replace("[::]:80;", &format!("[::1]:{http};"))
                .replace("[::]:443", &format!("[::1]:{https}"))
                .replace("listen 80;", &format!("listen {http};"))
                .replace("listen 443", &format!("listen {https}"))
                .replace(&format!("/etc/letsencrypt/live/{PUBLIC_HOST}"), &at);
            fs::write(folder.path().join("toolhost.conf"), configuration).unwrap();
            fs::write(folder.path().join("nginx.conf"), NGINX_FRAME).unwrap();
            format!("nginx -p '{at}' -c nginx.conf")
        } else {
            let site = shown(&steps, "/etc/caddy/Caddyfile").replace("127.0.0.1:8080", server);
            // Its own authority signs the certificate, because no public one can reach it.
            let options = format!(
                "{{\nhttp_port {http}\nhttps_port {https}\nlocal_certs\nskip_install_trust\nadmin off\n}}\n"
            );
            fs::write(folder.path().join("Caddyfile"), options + &site).unwrap();
            "caddy run --config Caddyfile --adapter caddyfile".to_owned()
        };
        shell.leave(&command, "").await;
        shell
            .run(&format!("HTTP_PORT={http} HTTPS_PORT={https}"))
            .await;
        let said = shell.run(PROXIED_REQUESTS).await;
        let lines: Vec<_> = said.lines().filter(|line| !line.is_empty()).collect();
        let expected = [
            r#"{"status":"ready"}"#,
            &format!("https://{PUBLIC_HOST}/docs"),
            "200",
            "403",
            "id:",
            "HTTP_PayloadTooLarge",
        ];
        assert_eq!(lines, expected, "{name}");
        shell.run("kill $!; wait $! || true").await;
    }
}
