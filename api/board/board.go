// Package board holds the live board: one page with its style and scripts, as
// they are served, without a build step or a dependency. Package api serves the
// page at / and the rest under /board/.
//
// It promises: the page reads the public API only and makes no request to
// another host; its numbers are those of one answer of the stream; it says that
// they are not current as soon as it can not prove that they are at most seven
// seconds old. It does not promise a history: it knows what it saw since it was
// opened, for at most 15 minutes.
//
// board.js draws; what it decides by is in modules that do not know the page:
// freshness.js, series.js, stream.js, words.js, deliveries.js.
package board

import (
	"embed"
	"io/fs"
	"path"
)

//go:embed index.html board.css *.js
var files embed.FS

// Policy is the Content-Security-Policy of the page: its own scripts and style,
// requests to its own origin, and nothing else.
const Policy = "default-src 'none'; connect-src 'self'; script-src 'self'; style-src 'self'; img-src data:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Page returns the page.
func Page() []byte { return read("index.html") }

// File is one of the files that the page loads.
type File struct {
	Name        string
	ContentType string
	Content     []byte
}

// Files returns the files that the page loads.
func Files() []File {
	types := map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8"}
	entries, err := fs.ReadDir(files, ".")
	if err != nil { // it is in the binary
		panic(err)
	}
	var out []File
	for _, e := range entries {
		if typ, ok := types[path.Ext(e.Name())]; ok {
			out = append(out, File{e.Name(), typ, read(e.Name())})
		}
	}
	return out
}

func read(name string) []byte {
	b, err := files.ReadFile(name)
	if err != nil { // it is in the binary
		panic(err)
	}
	return b
}
