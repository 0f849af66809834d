// A server made with the official Go SDK that reports what it reads.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/url"
	"path"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type arguments struct {
	Path   string   `json:"path"`
	Paths  []string `json:"paths"`
	Amount float64  `json:"amount"`
}

// Read with encoding/json, as a tool does that takes the raw arguments.
func run(_ context.Context, request *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	var read arguments
	if err := json.Unmarshal(request.Params.Arguments, &read); err != nil {
		return nil, err
	}
	text := fmt.Sprintf("reached tool %s path=%s amount=%v", request.Params.Name, path.Clean(read.Path), read.Amount)
	for _, one := range read.Paths {
		text += " path=" + path.Clean(one)
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil
}

func read(_ context.Context, request *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	parsed, err := url.Parse(request.Params.URI)
	if err != nil {
		return nil, err
	}
	text := fmt.Sprintf("reached resource %s://%s path=%s", parsed.Scheme, parsed.Host, path.Clean(parsed.Path))
	return &mcp.ReadResourceResult{
		Contents: []*mcp.ResourceContents{{URI: request.Params.URI, MIMEType: "text/plain", Text: text}},
	}, nil
}

func main() {
	made := mcp.NewServer(&mcp.Implementation{Name: "go-sdk-reader", Version: "1.0"}, nil)
	for _, name := range []string{"use", "secret_tool"} {
		made.AddTool(&mcp.Tool{Name: name, InputSchema: map[string]any{"type": "object"}}, run)
	}
	made.AddResource(&mcp.Resource{Name: "secret", URI: "secret://k"}, read)
	made.AddResource(&mcp.Resource{Name: "note", URI: "note://today"}, read)
	made.AddResourceTemplate(&mcp.ResourceTemplate{Name: "files", URITemplate: "file:{+path}"}, read)
	if err := made.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		log.Fatal(err)
	}
}
