from dataclasses import dataclass
from typing import Annotated

from toolkit_sdk import Client, ToolError, Toolkit

api = Client("https://api.example.com/v1")

toolkit = Toolkit(
    slug="{{slug}}",
    name="{{title}}",
    description="Says hello, and reads items of an example.",
    logo="logo.svg",
    egress=["api.example.com"],
)


@dataclass
class Greeting:
    text: str


@dataclass
class Item:
    name: str


@toolkit.tool(read_only=True, examples=[{"name": "Ada"}])
def greet(name: Annotated[str, "Name of the person to greet."]) -> Greeting:
    """Greets a person by name."""
    if not name.strip():
        raise ToolError.invalid_input("`name` is empty: give the name of a person")
    return Greeting(f"Hello, {name}!")


@toolkit.tool(read_only=True)
def get_item(id: Annotated[int, "Number of the item, for example 7.", {"minimum": 1}]) -> Item:
    """Reads one item by its number."""
    item = api.get("/items/{id}").path("id", id).send().json()
    return Item(name=item["name"])
