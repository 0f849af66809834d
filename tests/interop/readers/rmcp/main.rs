// A server made with the official Rust SDK that reports what it reads.
use std::path::{Component, Path, PathBuf};

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ReadResourceRequestParams,
    ReadResourceResponse, ReadResourceResult, ResourceContents,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt};
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

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let running = Reader.serve(rmcp::transport::io::stdio()).await?;
    running.waiting().await?;
    Ok(())
}
