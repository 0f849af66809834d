"""Header parameters, as a server's tool lists name them."""

from thoughtgate.gate.tool_headers import MAX_TOOLS, ToolHeaders

SCHEMA = {"properties": {"r": {"type": "string", "x-mcp-header": "R"}}}


def test_what_tools_want_repeated_is_learned_and_forgotten() -> None:
    tools = ToolHeaders()
    tools.learn("prompts/list", ({"name": "a", "inputSchema": SCHEMA},))
    assert tools.of("a") == ()
    tools.learn("tools/list", ({"name": "a", "inputSchema": SCHEMA}, {"name": 5}))
    assert [one.header for one in tools.of("a")] == [b"mcp-param-r"]
    tools.learn("tools/list", ({"name": "a", "inputSchema": {}},))
    assert tools.of("a") == ()


def test_a_tool_that_no_list_has_shown_is_not_known() -> None:
    tools = ToolHeaders()
    assert tools.known("a") is None
    tools.learn("tools/list", ({"name": "a"},))
    assert tools.known("a") == ()
    assert tools.known("b") is None


def test_a_flood_of_tools_is_bounded() -> None:
    tools = ToolHeaders()
    tools.learn(
        "tools/list",
        tuple({"name": f"t{number}", "inputSchema": SCHEMA} for number in range(MAX_TOOLS + 5)),
    )
    assert tools.of(f"t{MAX_TOOLS + 1}") == ()
    assert tools.of("t1") != ()
