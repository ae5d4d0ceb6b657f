package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sort"
	"strings"

	"gopkg.in/yaml.v3"
)

// file holds the settings of a config file by flag name.
type file struct {
	path   string
	values map[string]string
	lines  map[string]int
}

// readFile reads the YAML file at path. known tells whether a flag of this
// name exists in any command.
func readFile(path string, known func(flag string) bool, problems *Problems) *file {
	f := &file{path: path, values: map[string]string{}, lines: map[string]int{}}
	r, err := os.Open(path) //nolint:gosec // G304: the operator names the file
	if err != nil {
		problems.Add("config", "reading config file: %v", err)
		return f
	}
	defer func() { _ = r.Close() }() // only read from
	var root yaml.Node
	switch err := yaml.NewDecoder(r).Decode(&root); {
	case errors.Is(err, io.EOF): // an empty file
		return f
	case err != nil:
		problems.Add("config", "reading config file %s: %v", path, err)
		return f
	}
	f.collect("", root.Content[0], problems)
	for _, key := range f.keys() {
		if !known(key) {
			problems.AddLine("%s:%d: unknown setting %q", path, f.lines[key], key)
		}
	}
	return f
}

// collect flattens node: nested keys are joined by hyphens, lists by commas.
func (f *file) collect(prefix string, node *yaml.Node, problems *Problems) {
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	switch {
	case node.Kind == yaml.MappingNode:
		for i := 0; i < len(node.Content); i += 2 {
			key, value := node.Content[i], node.Content[i+1]
			f.collect(strings.TrimPrefix(prefix+"-"+key.Value, "-"), value, problems)
		}
	case prefix == "":
		problems.AddLine("%s: want settings as \"name: value\"", f.path)
	case f.lines[prefix] != 0:
		problems.AddLine("%s:%d: setting %q is already given in line %d", f.path, node.Line, prefix, f.lines[prefix])
	default:
		value, err := scalar(node)
		if err != nil {
			problems.AddLine("%s:%d: setting %q: %v", f.path, node.Line, prefix, err)
		}
		f.values[prefix], f.lines[prefix] = value, node.Line
	}
}

func scalar(node *yaml.Node) (string, error) {
	switch node.Kind {
	case yaml.ScalarNode:
		if node.Tag == "!!null" {
			return "", nil
		}
		return node.Value, nil
	case yaml.SequenceNode:
		items := make([]string, 0, len(node.Content))
		for _, item := range node.Content {
			if item.Kind != yaml.ScalarNode {
				return "", fmt.Errorf("want a list of plain values")
			}
			items = append(items, item.Value)
		}
		return strings.Join(items, ","), nil
	default:
		return "", fmt.Errorf("want a plain value or a list")
	}
}

func (f *file) keys() []string {
	keys := make([]string, 0, len(f.values))
	for key := range f.values {
		keys = append(keys, key)
	}
	sort.Slice(keys, func(i, j int) bool { return f.lines[keys[i]] < f.lines[keys[j]] })
	return keys
}
