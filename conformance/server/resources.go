package main

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/yosida95/uritemplate/v3"

	"github.com/mcp-roster/roster/mcp"
	"github.com/mcp-roster/roster/server"
)

const watchedURI = "test://watched-resource"

func addResources(m *server.Memory) error {
	resources := []struct{ uri, name, mimeType, content string }{
		{"test://static-text", "Static text", "text/plain", `"text":"This is the content of the static text resource."`},
		{"test://static-binary", "Static image", "image/png", `"blob":"` + png + `"`},
		{watchedURI, "Watched", "text/plain", `"text":"This changes every other second, but looks the same."`},
	}
	for _, r := range resources {
		definition := fmt.Appendf(nil, `{"uri":%s,"name":%s,"description":"For the conformance suite","mimeType":%s}`,
			mcp.String(r.uri), mcp.String(r.name), mcp.String(r.mimeType))
		resource, err := server.NewResource(definition, func(_ context.Context, _ *server.Request, uri string) (jsontext.Value, error) {
			return fmt.Appendf(nil, `{"contents":[{"uri":%s,"mimeType":%s,%s}]}`, mcp.String(uri), mcp.String(r.mimeType), r.content), nil
		})
		if err != nil {
			return err
		}
		if err := m.Resources.Add(resource); err != nil {
			return err
		}
	}
	template, err := server.NewTemplate(
		jsontext.Value(`{"uriTemplate":"test://template/{id}/data","name":"Data by id","description":"For the conformance suite","mimeType":"application/json"}`),
		readData)
	if err != nil {
		return err
	}
	return m.Templates.Add(template)
}

func readData(_ context.Context, _ *server.Request, uri string, values uritemplate.Values) (jsontext.Value, error) {
	id := values.Get("id").String()
	return server.TextContents(uri, "application/json",
		fmt.Sprintf(`{"id":%s,"templateTest":true,"data":%s}`, mcp.String(id), mcp.String("Data for ID: "+id))), nil
}
