mod nothing {
    toolkit_sdk::toolkit! {}
}

mod words {
    toolkit_sdk::toolkit! {
        slug: "Demo",
        name: "Demo",
        description: "Shows.",
        version: "20261321_00",
    }
}

mod key {
    toolkit_sdk::toolkit! {
        slug: "demo",
        title: "Demo",
    }
}

mod egress {
    toolkit_sdk::toolkit! {
        slug: "demo",
        name: "Demo",
        description: "Shows.",
        egress: ["localhost", "get api.example.com", "api.example.com:https"],
    }
}

mod auth {
    toolkit_sdk::toolkit! {
        slug: "demo",
        name: "Demo",
        description: "Shows.",
        auth: [
            api_key(header: "Authorization", value: "{api_key}"),
            api_key(header: "x-key", value: "{key}"),
            api_key(),
            oauth(),
            basic(user: "x"),
            api_key(fields: [password(key)], query: "key"),
            bearer_token(verify: "api.example.com"),
            oauth2(authorize_url: "https://example.com/{site}", token_url: "https://example.com"),
            oauth2(authorize_url: "https://example.com/authorize"),
            oauth2(authorize_url: "https://example.com", token_url: "https://example.com", pkce: "no"),
            oauth2(authorize_url: "https://example.com", token_url: "https://example.com", client_auth: "cookie"),
            basic(token_url: "https://example.com"),
        ],
    }
}

mod limits {
    toolkit_sdk::toolkit! {
        slug: "demo",
        name: "Demo",
        description: "Shows.",
        limits: { memory: 64 },
    }
}

mod logo {
    toolkit_sdk::toolkit! {
        slug: "demo",
        name: "Demo",
        description: "Shows.",
        logo: "logo.jpg",
    }
}

fn main() {}
