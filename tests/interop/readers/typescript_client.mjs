// A client made with the official TypeScript SDK: lists the tools, calls one and prints both as JSON.
// Arguments: the folder with the packages, the tool, and a URL or a command line.
import { createRequire } from "node:module";
import path from "node:path";

const [, , home, tool, place, ...words] = process.argv;
const require = createRequire(path.join(home, "package.json"));
const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = require("@modelcontextprotocol/sdk/client/stdio.js");
const { StreamableHTTPClientTransport } = require("@modelcontextprotocol/sdk/client/streamableHttp.js");

const client = new Client({ name: "typescript-client", version: "1.0" });
const transport = place.startsWith("http")
    ? new StreamableHTTPClientTransport(new URL(place))
    : new StdioClientTransport({ command: place, args: words, env: process.env });
await client.connect(transport);
const said = { tools: (await client.listTools()).tools.map((one) => one.name) };
try {
    const result = await client.callTool({ name: tool, arguments: { path: "/a/../b", amount: 2 } });
    said.text = result.content[0].text;
} catch (error) {
    said.error = error.message;
}
console.log(JSON.stringify(said));
await client.close();
