#!/usr/bin/env bash
# The author's first hour, for each kind of toolkit: new, checked and published, called. JavaScript stands for the other
# languages.
# TOOLHOST_NET__REWRITE leads https://api.example.com to a provider that has items.
. "$(dirname "$0")/steps.sh"

install_commands
start_server
done_with "install and start"

# Publishes the toolkit in a folder, and greets with it.
publish_and_greet() {
    quietly toolkit publish "$1"
    done_with "$1: published"
    local called
    called=$(api "tools/execute/${1^^}_GREET" -d '{"arguments": {"name": "Ada"}}')
    holds "$called" '.data.text == "Hello, Ada!"'
    done_with "$1: called"
}

quietly toolkit new rust
done_with "rust: new"
publish_and_greet rust

quietly toolkit new js --lang js
done_with "js: new"
publish_and_greet js

cat >acme.yaml <<'END'
openapi: 3.1.0
info: { title: Acme }
servers: [{ url: https://api.example.com/v1 }]
paths:
  /items/{id}:
    get:
      operationId: get_item
      parameters: [{ name: id, in: path, required: true, schema: { type: integer } }]
      responses: { "200": { description: an item } }
END
quietly toolkit import openapi acme.yaml --slug acme
done_with "import: new"
quietly toolkit publish acme
done_with "import: published"
holds "$(api tools/execute/ACME_GET_ITEM -d '{"arguments": {"id": 7}}')" '.data.name == "seven"'
done_with "import: called"
stop_server
