// A server made with the official Rust SDK that reports what it reads, on stdio or (http ADDRESS) over
// HTTP; and a client (call TOOL URL, or call TOOL COMMAND...) that lists the tools and calls one.
use std::path::{Component, Path, PathBuf};

use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ListToolsResult,
    PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult,
    ResourceContents, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{RequestContext, RunningService};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpClientTransport, StreamableHttpService, TokioChildProcess};
use rmcp::{ErrorData, RoleClient, RoleServer, ServerHandler, ServiceExt};
use serde::Deserialize;

#[derive(Deserialize, Default)]
#[serde(default)]
struct Arguments {
    path: String,
    paths: Vec<String>,
    amount: f64,
}

fn resolve(path: &str) -> String {
    let mut resolved = PathBuf::new();
    for component in Path::new(path).components() {
        match component {
            Component::ParentDir => {
                resolved.pop();
            }
            other => resolved.push(other),
        }
    }
    resolved.display().to_string()
}

#[derive(Clone)]
struct Reader;

impl ServerHandler for Reader {
    fn get_info(&self) -> ServerConfig {
        let able = ServerCapabilities::builder().enable_tools().enable_resources().build();
        ServerConfig::new(able)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let schema = Arc::new(serde_json::Map::from_iter([("type".to_string(), "object".into())]));
        let named = |name| Tool::new_with_raw(name, None, schema.clone());
        Ok(ListToolsResult::with_all_items(vec![named("use"), named("secret_tool")]))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let given = serde_json::Value::Object(request.arguments.unwrap_or_default());
        let read: Arguments = serde_json::from_value(given)
            .map_err(|error| ErrorData::invalid_params(error.to_string(), None))?;
        if request.name != "use" && request.name != "secret_tool" {
            return Err(ErrorData::invalid_params("unknown tool", None));
        }
        let mut text = format!("reached tool {} path={} amount={}", request.name, resolve(&read.path), read.amount);
        for path in &read.paths {
            text += &format!(" path={}", resolve(path));
        }
        Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let parsed = url::Url::parse(&request.uri)
            .map_err(|error| ErrorData::invalid_params(error.to_string(), None))?;
        let path = match parsed.to_file_path() {
            Ok(path) => path.display().to_string(),
            Err(()) => parsed.path().to_string(),
        };
        let host = parsed.host_str().unwrap_or("");
        let text = format!("reached resource {}://{} path={}", parsed.scheme(), host, resolve(&path));
        Ok(ReadResourceResult::new(vec![ResourceContents::text(text, request.uri)]).into())
    }
}

type Failure = Box<dyn std::error::Error>;

// Print the names of the tools and the text or error of a call, as JSON.
async fn call(tool: String, place: &[String]) -> Result<(), Failure> {
    let client: RunningService<RoleClient, ()> = if place[0].starts_with("http") {
        ().serve(StreamableHttpClientTransport::from_uri(place[0].as_str())).await?
    } else {
        let mut command = tokio::process::Command::new(&place[0]);
        command.args(&place[1..]);
        ().serve(TokioChildProcess::new(command)?).await?
    };
    let tools: Vec<_> = client.list_all_tools().await?.into_iter().map(|tool| tool.name).collect();
    let given = serde_json::json!({"path": "/a/../b", "amount": 2});
    let arguments = given.as_object().cloned().unwrap_or_default();
    let asked = CallToolRequestParams::new(tool).with_arguments(arguments);
    let said = match client.call_tool(asked).await {
        Ok(result) => serde_json::json!({"tools": tools, "text": serde_json::to_value(&result)?["content"][0]["text"]}),
        Err(error) => serde_json::json!({"tools": tools, "error": error.to_string()}),
    };
    println!("{said}");
    client.cancel().await?;
    Ok(())
}

async fn listen(address: &str) -> Result<(), Failure> {
    let service: StreamableHttpService<Reader, LocalSessionManager> =
        StreamableHttpService::new(|| Ok(Reader), Default::default(), Default::default());
    let router = axum::Router::new().fallback_service(service);
    axum::serve(tokio::net::TcpListener::bind(address).await?, router).await?;
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.first().map(String::as_str) {
        Some("call") => call(words[1].clone(), &words[2..]).await,
        Some("http") => listen(&words[1]).await,
        _ => {
            let running = Reader.serve(rmcp::transport::io::stdio()).await?;
            running.waiting().await?;
            Ok(())
        }
    }
}
