package browser

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"deliverystat/e2e/broker"
)

// axeVersion is the version of axe-core, of which npm checks the content.
const axeVersion = "4.10.3"

// Violation is a rule of axe-core that the page breaks, and where.
type Violation struct {
	ID    string   `json:"id"`
	Help  string   `json:"help"`
	Nodes []string `json:"nodes"`
}

// Axe checks the page, as it stands, by the rules for WCAG 2.2 AA and good
// practice.
func (p *Page) Axe() ([]Violation, error) {
	script, err := axe(p.ctx)
	if err != nil {
		return nil, err
	}
	if _, err := Eval[bool](p, string(script)+";true"); err != nil {
		return nil, fmt.Errorf("loading axe-core: %w", err)
	}
	return Eval[[]Violation](p, `axe.run(document).then(r => r.violations.map(v => ({id: v.id, help: v.help, nodes: v.nodes.map(n => n.html + " " + n.failureSummary)})))`)
}

// axe returns the script, which npm fetches once.
func axe(ctx context.Context) ([]byte, error) {
	cache, err := broker.CacheDir()
	if err != nil {
		return nil, err
	}
	path := filepath.Join(cache, "axe-"+axeVersion+".js")
	if b, err := os.ReadFile(path); err == nil {
		return b, nil
	}
	work, err := os.MkdirTemp(cache, "axe-fetch-")
	if err != nil {
		return nil, fmt.Errorf("making a folder for axe-core: %w", err)
	}
	defer func() { _ = os.RemoveAll(work) }()
	for _, command := range [][]string{
		{"npm", "pack", "--silent", "axe-core@" + axeVersion},
		{"tar", "-xzf", "axe-core-" + axeVersion + ".tgz", "package/axe.min.js"},
	} {
		cmd := exec.CommandContext(ctx, command[0], command[1:]...)
		cmd.Dir = work
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("fetching axe-core: %v: %w\n%s", command, err, out)
		}
	}
	if err := os.Rename(filepath.Join(work, "package", "axe.min.js"), path); err != nil {
		return nil, fmt.Errorf("keeping axe-core: %w", err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading axe-core: %w", err)
	}
	return b, nil
}
