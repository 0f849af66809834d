// A server made with mark3labs/mcp-go that reports what it reads.
package main

import (
	"context"
	"fmt"
	"log"
	"net/url"
	"path"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

type arguments struct {
	Path   string   `json:"path"`
	Paths  []string `json:"paths"`
	Amount float64  `json:"amount"`
}

func run(_ context.Context, request mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	var read arguments
	if err := request.BindArguments(&read); err != nil {
		return nil, err
	}
	text := fmt.Sprintf("reached tool %s path=%s amount=%v", request.Params.Name, path.Clean(read.Path), read.Amount)
	for _, one := range read.Paths {
		text += " path=" + path.Clean(one)
	}
	return mcp.NewToolResultText(text), nil
}

func read(_ context.Context, request mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
	parsed, err := url.Parse(request.Params.URI)
	if err != nil {
		return nil, err
	}
	text := fmt.Sprintf("reached resource %s://%s path=%s", parsed.Scheme, parsed.Host, path.Clean(parsed.Path))
	return []mcp.ResourceContents{
		mcp.TextResourceContents{URI: request.Params.URI, MIMEType: "text/plain", Text: text},
	}, nil
}

func main() {
	made := server.NewMCPServer("mcp-go-reader", "1.0", server.WithResourceCapabilities(false, false))
	for _, name := range []string{"use", "secret_tool"} {
		made.AddTool(mcp.NewTool(name), run)
	}
	made.AddResource(mcp.NewResource("secret://k", "secret"), read)
	made.AddResource(mcp.NewResource("note://today", "note"), read)
	made.AddResourceTemplate(mcp.NewResourceTemplate("file:{+path}", "files"), read)
	if err := server.ServeStdio(made); err != nil {
		log.Fatal(err)
	}
}
