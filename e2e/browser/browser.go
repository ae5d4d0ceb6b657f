package browser

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"deliverystat/e2e/broker"
)

// patience bounds each action in the browser.
const patience = 2 * time.Minute

// Page is a page in a browser of its own.
type Page struct {
	ctx context.Context //nolint:containedctx // chromedp keeps the browser in it
	end func()

	mu       sync.Mutex
	problems []string
}

// Open starts a browser and opens url in it. Close ends it.
func Open(ctx context.Context, url string) (*Page, error) {
	path, err := executable()
	if err != nil {
		return nil, err
	}
	allocator, endAllocator := chromedp.NewExecAllocator(ctx, chromedp.ExecPath(path), chromedp.Headless, chromedp.NoSandbox,
		chromedp.Flag("lang", "en-GB"))
	tab, endTab := chromedp.NewContext(allocator)
	p := &Page{ctx: tab, end: func() { endTab(); endAllocator() }}
	if err := chromedp.Listen(tab, p.listen); err != nil {
		p.Close()
		return nil, fmt.Errorf("starting Chromium: %w", err)
	}
	if err := p.Go(url); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

func executable() (string, error) {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("no Chromium: install the package chromium")
}

// Close ends the browser.
func (p *Page) Close() { p.end() }

// listen notes what went wrong in the page.
func (p *Page) listen(event any) {
	problem := ""
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		problem = e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			problem += " " + e.ExceptionDetails.Exception.Description
		}
	case *runtime.EventConsoleAPICalled:
		if e.Type == "error" {
			b, _ := json.Marshal(e.Args)
			problem = "console: " + string(b)
		}
	}
	if problem != "" {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.problems = append(p.problems, problem)
	}
}

// Problems are exceptions and errors that the page reported. Refused requests are
// none of them.
func (p *Page) Problems() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.problems
}

func run[T any](p *Page, doing string, action chromedp.Action[T]) (T, error) {
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, action)
	if err != nil {
		return v, fmt.Errorf("%s in Chromium: %w", doing, err)
	}
	return v, nil
}

// Go opens url.
func (p *Page) Go(url string) error {
	_, err := run(p, "opening "+url, chromedp.Navigate(url))
	return err
}

// Eval evaluates an expression, which may be a promise.
func Eval[T any](p *Page, expression string) (T, error) {
	return run(p, "evaluating "+expression[:min(len(expression), 200)], chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
}

// Type types keys into what has the focus.
func (p *Page) Type(keys string) error {
	_, err := run(p, "typing", chromedp.KeyEvent(keys))
	return err
}

// Size makes the window so many CSS pixels large.
func (p *Page) Size(width, height int64) error {
	_, err := run(p, "sizing", chromedp.EmulateViewport(width, height))
	return err
}

// Dark says whether the system prefers dark colours.
func (p *Page) Dark(dark bool) error {
	value := map[bool]string{true: "dark", false: "light"}[dark]
	_, err := call(p, "choosing colours", emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: value}},
	})
	return err
}

// HeapBytes collects garbage and returns how much the scripts of the page use.
func (p *Page) HeapBytes() (int64, error) {
	if _, err := call(p, "collecting garbage", heapprofiler.CollectGarbage, cdp.Empty{}); err != nil {
		return 0, err
	}
	usage, err := call(p, "measuring the heap", runtime.GetHeapUsage, cdp.Empty{})
	return int64(usage.UsedSize), err
}

// Screenshot keeps a picture of the whole page as e2e/.cache/board/NAME.png.
func (p *Page) Screenshot(name string) error {
	cache, err := broker.CacheDir()
	if err != nil {
		return err
	}
	dir := filepath.Join(cache, "board")
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("making the folder of screenshots: %w", err)
	}
	whole := true
	picture, err := call(p, "taking a screenshot", page.CaptureScreenshot, page.CaptureScreenshotParams{CaptureBeyondViewport: &whole})
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), picture.Data, 0o600); err != nil {
		return fmt.Errorf("keeping a screenshot: %w", err)
	}
	return nil
}

func call[P, R any](p *Page, doing string, command cdp.Command[P, R], params P) (R, error) {
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	result, err := chromedp.Call(ctx, command, params)
	if err != nil {
		return result, fmt.Errorf("%s in Chromium: %w", doing, err)
	}
	return result, nil
}
