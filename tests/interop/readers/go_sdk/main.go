// A server made with the official Go SDK that reports what it reads, on stdio or (http ADDRESS) over
// HTTP; and a client (call TOOL URL, or call TOOL COMMAND...) that lists the tools and calls one.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path"
	"strings"

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

func server() *mcp.Server {
	made := mcp.NewServer(&mcp.Implementation{Name: "go-sdk-reader", Version: "1.0"}, nil)
	for _, name := range []string{"use", "secret_tool"} {
		made.AddTool(&mcp.Tool{Name: name, InputSchema: map[string]any{"type": "object"}}, run)
	}
	made.AddResource(&mcp.Resource{Name: "secret", URI: "secret://k"}, read)
	made.AddResource(&mcp.Resource{Name: "note", URI: "note://today"}, read)
	made.AddResourceTemplate(&mcp.ResourceTemplate{Name: "files", URITemplate: "file:{+path}"}, read)
	return made
}

// Print the names of the tools and the text or error of a call, as JSON.
func call(ctx context.Context, tool string, where []string) error {
	var transport mcp.Transport = &mcp.CommandTransport{Command: exec.Command(where[0], where[1:]...)}
	if strings.HasPrefix(where[0], "http") {
		transport = &mcp.StreamableClientTransport{Endpoint: where[0]}
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "go-client", Version: "1.0"}, nil)
	session, err := client.Connect(ctx, transport, nil)
	if err != nil {
		return err
	}
	defer session.Close()
	listed, err := session.ListTools(ctx, nil)
	if err != nil {
		return err
	}
	said := map[string]any{}
	names := []string{}
	for _, one := range listed.Tools {
		names = append(names, one.Name)
	}
	said["tools"] = names
	arguments := map[string]any{"path": "/a/../b", "amount": 2}
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		said["error"] = err.Error()
	} else {
		said["text"] = result.Content[0].(*mcp.TextContent).Text
	}
	return json.NewEncoder(os.Stdout).Encode(said)
}

func main() {
	ctx := context.Background()
	mode := append(os.Args[1:], "stdio")[0]
	var err error
	switch mode {
	case "call":
		err = call(ctx, os.Args[2], os.Args[3:])
	case "http":
		made := server()
		handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return made }, nil)
		err = http.ListenAndServe(os.Args[2], handler)
	default:
		err = server().Run(ctx, &mcp.StdioTransport{})
	}
	if err != nil {
		log.Fatal(err)
	}
}
