//! Layout of a component in a registry, shared by WebAssembly tools: one configuration that names
//! imports and exports, and one layer. The CNCF's "Wasm OCI Artifact layout" specifies it.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use chrono::{DateTime, Utc};
use oci_client::{
    annotations::ORG_OPENCONTAINERS_IMAGE_TITLE,
    client::{Config, ImageLayer},
};
use serde_json::json;
use wit_parser::decoding::{DecodedWasm, decode};

/// Media type of the configuration.
pub(crate) const CONFIG_MEDIA_TYPE: &str = "application/vnd.wasm.config.v0+json";
/// Media type of the component.
pub(crate) const LAYER_MEDIA_TYPE: &str = "application/wasm";

/// Returns the configuration and the layer of a component. General tools use `file_name` when they
/// write the layer to a file.
pub(crate) fn describe(
    component: Vec<u8>,
    file_name: String,
    created: DateTime<Utc>,
) -> Result<(Config, ImageLayer)> {
    let decoded = decode(&component).context("cannot read the interface of the component")?;
    let DecodedWasm::Component(resolve, world) = decoded else {
        bail!("the file contains interfaces and no component")
    };
    let world = &resolve.worlds[world];
    let exports = world.exports.keys().map(|key| resolve.name_world_key(key));
    let imports = world.imports.keys().map(|key| resolve.name_world_key(key));
    let title = (ORG_OPENCONTAINERS_IMAGE_TITLE.to_owned(), file_name);
    let layer = ImageLayer::new(
        component,
        LAYER_MEDIA_TYPE.to_owned(),
        Some(BTreeMap::from([title])),
    );
    // The order of members is kept, so that a repeated push has the digest of the first.
    let content = json!({
        "created": created,
        "author": null,
        "architecture": "wasm",
        "os": "wasip2",
        "layerDigests": [layer.sha256_digest()],
        "component": {
            "exports": exports.collect::<Vec<_>>(),
            "imports": imports.collect::<Vec<_>>(),
            "target": null,
        },
    });
    let config = Config::new(content.to_string(), CONFIG_MEDIA_TYPE.to_owned(), None);
    Ok((config, layer))
}
