//! Documents without account or network: conversion, queries, comparison, templates, hashes, dates.

mod dates;
mod hash;
mod json;
mod markup;
mod tables;
mod template;
mod text;

use toolkit_sdk::prelude::*;

toolkit! {
    slug: "documents",
    name: "Documents",
    description: "Converts, queries, compares and fills in text: HTML, Markdown, CSV, JSON, templates, hashes and dates. Needs \
                  no account and reaches no network.",
    categories: ["documents", "developer-tools"],
    version: "20261121_00",
    logo: "logo.svg",
    tools: [
        markup::html_to_markdown,
        markup::markdown_to_html,
        tables::csv_to_json,
        tables::json_to_csv,
        json::query_json,
        json::validate_json,
        text::diff_text,
        text::extract_matches,
        template::render_template,
        hash::hash,
        dates::parse_date,
        dates::add_to_date,
        dates::compare_dates,
        dates::format_date,
    ],
}

cases!();
