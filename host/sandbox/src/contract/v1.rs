//! Generated types, traits and linker functions of `toolhost:toolkit@1.0.0`.

mod bindings {
    wasmtime::component::bindgen!({
        path: "../../toolkit-sdk/wit/v1",
        world: "toolkit",
        imports: {
            "toolhost:toolkit/http.send": async | trappable,
            "toolhost:toolkit/http.send-all": async | trappable,
            "toolhost:toolkit/clock.sleep": async | trappable,
            default: trappable,
        },
        exports: { default: async },
    });
}

pub(crate) use bindings::toolhost::toolkit::{
    blob, clock, http, log, random, state, types, webhook,
};

/// Response to a request of a guest, or the error for which it has no response.
pub(crate) type HttpResult = Result<http::Response, http::Error>;
