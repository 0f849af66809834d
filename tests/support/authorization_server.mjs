// A real OAuth authorization server, npm's oidc-provider, for tests; see authorization_server.py.
//
//   node authorization_server.mjs PATH-OF-OIDC-PROVIDER
//
// Listens on a free loopback port and prints its URL. Everybody is signed in and consents as the
// settings say, which POST /test/settings changes; POST /test/revoke ends tokens, GET /test/seen
// returns what was issued and counted. It ends when its standard input does.

import { createServer } from "node:http";
import { pathToFileURL } from "node:url";

const { default: Provider } = await import(pathToFileURL(process.argv[2]));

const settings = {
  account: "alice", // who signs in next
  consent: true, // false: the user refuses
  tokenLifetime: 3600, // seconds
  refreshTokens: true,
  registration: true, // false: unknown clients cannot register themselves
  documents: {}, // client id metadata documents: URL -> document
};
const seen = { accessTokens: [], refreshTokens: [], grants: {}, errors: [], registered: 0, revoked: 0 };

const resourceScopes = "tools:read tools:write";

const client = (fields) => ({ token_endpoint_auth_method: "client_secret_basic", ...fields });

const server = createServer();
await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
const issuer = `http://127.0.0.1:${server.address().port}`;

const provider = new Provider(issuer, {
  clients: [
    client({ client_id: "resource-server", client_secret: "resource-server-secret", redirect_uris: [], response_types: [], grant_types: [] }),
    client({
      client_id: "machine",
      client_secret: "machine-secret",
      redirect_uris: [],
      response_types: [],
      grant_types: ["client_credentials"],
      scope: resourceScopes,
    }),
    client({
      client_id: "registered-app",
      client_secret: "registered-app-secret",
      application_type: "native",
      redirect_uris: ["http://127.0.0.1/callback"],
      response_types: ["code"],
      grant_types: ["authorization_code", "refresh_token", "urn:ietf:params:oauth:grant-type:device_code"],
    }),
  ],
  scopes: ["openid", "offline_access", "tools:read", "tools:write"],
  clientDefaults: { id_token_signed_response_alg: "RS256" },
  cookies: { keys: ["a key for a server that lives for one test"] },
  interactions: { url: (ctx, interaction) => `/interaction/${interaction.uid}` },
  findAccount: (ctx, sub) => ({ accountId: sub, claims: () => ({ sub }) }),
  issueRefreshToken: (ctx, client) => settings.refreshTokens && client.grantTypeAllowed("refresh_token"),
  rotateRefreshToken: true,
  pkce: { required: () => true },
  expiresWithSession: () => false,
  ttl: {
    AccessToken: () => settings.tokenLifetime,
    ClientCredentials: () => settings.tokenLifetime,
    RefreshToken: 86400,
    AuthorizationCode: 60,
    DeviceCode: 600,
    Grant: 86400,
    Interaction: 600,
    Session: 86400,
    IdToken: 600,
  },
  fetch: (url, options) => {
    const document = settings.documents[String(url)];
    return document ? Response.json(document) : globalThis.fetch(url, options);
  },
  features: {
    devInteractions: { enabled: false },
    clientCredentials: { enabled: true },
    deviceFlow: { enabled: true },
    introspection: { enabled: true, allowedPolicy: (ctx, client) => client.clientId === "resource-server" },
    revocation: { enabled: true },
    registration: { enabled: true },
    clientIdMetadataDocument: { enabled: true, ack: "draft-02" },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => undefined,
      useGrantedResource: () => true,
      getResourceServerInfo: (ctx, resource) => ({
        scope: resourceScopes,
        audience: resource,
        accessTokenTTL: settings.tokenLifetime,
        accessTokenFormat: "opaque",
      }),
    },
  },
});

provider.on("grant.success", (ctx) => {
  const grant = ctx.oidc.params.grant_type;
  seen.grants[grant] = (seen.grants[grant] ?? 0) + 1;
  seen.accessTokens.push(ctx.body.access_token);
  if (ctx.body.refresh_token) seen.refreshTokens.push(ctx.body.refresh_token);
});
provider.on("grant.error", (ctx, error) => seen.errors.push(`${error.error}: ${error.error_detail ?? error.error_description}`));
provider.on("server_error", (ctx, error) => console.error(error));
provider.on("registration_create.success", () => (seen.registered += 1));

provider.use(async (ctx, next) => {
  if (ctx.path === "/reg" && !settings.registration) ctx.throw(403);
  if (ctx.path === "/token/revocation" && ctx.method === "POST") seen.revoked += 1;
  await next();
  if (ctx.path.startsWith("/.well-known/") && !settings.registration) delete ctx.body.registration_endpoint;
});

// The page on which a user would sign in and consent: it does both at once.
async function interact(request, response) {
  const { prompt, params, grantId, session } = await provider.interactionDetails(request, response);
  if (!settings.consent) {
    return provider.interactionFinished(request, response, { error: "access_denied", error_description: "the user refused" });
  }
  if (prompt.name === "login") {
    return provider.interactionFinished(request, response, { login: { accountId: settings.account } }, { mergeWithLastSubmission: false });
  }
  const grant = (grantId && (await provider.Grant.find(grantId))) || new provider.Grant({ accountId: session.accountId, clientId: params.client_id });
  const { missingOIDCScope, missingResourceScopes } = prompt.details;
  if (missingOIDCScope) grant.addOIDCScope(missingOIDCScope.join(" "));
  for (const [resource, scopes] of Object.entries(missingResourceScopes ?? {})) grant.addResourceScope(resource, scopes.join(" "));
  return provider.interactionFinished(request, response, { consent: { grantId: await grant.save() } }, { mergeWithLastSubmission: true });
}

async function body(request) {
  const parts = [];
  for await (const part of request) parts.push(part);
  return parts.length ? JSON.parse(Buffer.concat(parts)) : {};
}

async function control(request, response) {
  if (request.url === "/test/settings") Object.assign(settings, await body(request));
  if (request.url === "/test/revoke") {
    const kinds = (await body(request)).kinds ?? ["AccessToken", "RefreshToken"];
    const issued = { AccessToken: seen.accessTokens, RefreshToken: seen.refreshTokens };
    for (const kind of kinds) for (const token of issued[kind]) await (await provider[kind].find(token))?.destroy();
  }
  response.setHeader("content-type", "application/json").end(JSON.stringify({ settings, seen }));
}

const oidc = provider.callback();
server.on("request", (request, response) => {
  const handle = request.url.startsWith("/test/") ? control : request.url.startsWith("/interaction/") ? interact : oidc;
  Promise.resolve(handle(request, response)).catch((error) => {
    console.error(error);
    response.writeHead(500).end();
  });
});

process.stdin.on("end", () => process.exit(0)).resume();
console.log(issuer);
