// A server made with the official TypeScript SDK that reports what it reads.
// Arguments: the folder with the packages, the major version of the SDK, and for HTTP (version 1) a port.
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import path from "node:path";
import { fileURLToPath } from "node:url";

const [, , home, major, port] = process.argv;
const require = createRequire(path.join(home, "package.json"));
const z = require("zod");

function load() {
    if (major === "1") {
        const { McpServer, ResourceTemplate } = require("@modelcontextprotocol/sdk/server/mcp.js");
        const { StdioServerTransport } = require("@modelcontextprotocol/sdk/server/stdio.js");
        return { McpServer, ResourceTemplate, StdioServerTransport };
    }
    const { McpServer, ResourceTemplate } = require("@modelcontextprotocol/server");
    const { StdioServerTransport } = require("@modelcontextprotocol/server/stdio");
    return { McpServer, ResourceTemplate, StdioServerTransport };
}

const { McpServer, ResourceTemplate, StdioServerTransport } = load();
const schema = {
    path: z.string().optional(),
    paths: z.array(z.string()).optional(),
    amount: z.number().optional(),
};

async function read(uri) {
    let file = uri.pathname;
    if (uri.protocol === "file:") {
        try {
            file = fileURLToPath(uri);
        } catch {
            file = decodeURIComponent(uri.pathname);  // what a careless server does
        }
    }
    const text = `reached resource ${uri.protocol}//${uri.host} path=${path.posix.normalize(file)}`;
    return { contents: [{ uri: uri.href, text }] };
}

function makeServer() {
    const server = new McpServer({ name: `typescript-${major}-reader`, version: "1.0" });
    for (const name of ["use", "secret_tool"]) {
        const inputSchema = major === "1" ? schema : z.object(schema);
        server.registerTool(name, { inputSchema }, async (read) => {
            const paths = [read.path ?? "", ...(read.paths ?? [])];
            const seen = paths.map((one) => `path=${path.posix.normalize(one)}`).join(" ");
            return { content: [{ type: "text", text: `reached tool ${name} ${seen} amount=${read.amount}` }] };
        });
    }
    server.registerResource("secret", "secret://k", {}, read);
    server.registerResource("note", "note://today", {}, read);
    server.registerResource("files", new ResourceTemplate("file://{+path}", { list: undefined }), {}, read);
    return server;
}

// One transport per session, as the SDK's own examples do it.
async function listen() {
    const { StreamableHTTPServerTransport } = require("@modelcontextprotocol/sdk/server/streamableHttp.js");
    const sessions = new Map();
    createServer(async (request, response) => {
        const known = request.headers["mcp-session-id"];
        let transport = sessions.get(known);
        if (known && !transport) {
            response.writeHead(404).end();
            return;
        }
        if (!transport) {
            transport = new StreamableHTTPServerTransport({
                sessionIdGenerator: randomUUID,
                onsessioninitialized: (id) => sessions.set(id, transport),
            });
            await makeServer().connect(transport);
        }
        await transport.handleRequest(request, response);
    }).listen(Number(port), "127.0.0.1");
}

await (port ? listen() : makeServer().connect(new StdioServerTransport()));
