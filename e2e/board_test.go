//go:build e2e

package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"deliverystat/codecs"
	"deliverystat/e2e/broker"
	"deliverystat/e2e/browser"
	"deliverystat/e2e/replica"
)

// soon is how long the board may take to say that its numbers are not current.
const soon = 10 * time.Second

// openBoard opens the board of a replica in Chromium.
func openBoard(t *testing.T, r *replica.Replica, query string) *browser.Page {
	t.Helper()
	page, err := browser.Open(t.Context(), "http://"+r.HTTP+"/"+query)
	require.NoError(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			_ = page.Screenshot("failed-" + t.Name())
		}
		page.Close()
	})
	return page
}

// shown is what the board shows at one moment.
type shown struct {
	State    string           `json:"state"`    // current, not-current, waiting
	Words    string           `json:"words"`    // about the age
	Position string           `json:"position"` // "–" before there is one
	Total    int64            `json:"total"`
	Live     map[string]int64 `json:"live"`
	Closed   map[string]int64 `json:"closed"`
}

// look reads the board. Nothing is drawn between two lines of a script.
func look(t *testing.T, page *browser.Page) shown {
	t.Helper()
	s, err := browser.Eval[shown](page, `(() => {
		const number = (e) => Number(e.textContent.replace(/[^0-9-]/g, "")) || 0;
		const tiles = (id) => Object.fromEntries(Array.from(document.querySelectorAll("#" + id + " li"), (li) => [li.dataset.status, number(li.querySelector("b"))]));
		const state = ["not-current", "waiting"].find((c) => document.body.classList.contains(c)) ?? "current";
		return {state, words: document.querySelector(".freshness").textContent.replace(/\s+/g, " ").trim(),
			position: document.getElementById("position").textContent,
			total: number(document.getElementById("total")), live: tiles("live"), closed: tiles("closed")};
	})()`)
	require.NoError(t, err)
	return s
}

// waitShown waits until the board shows what is asked for.
func waitShown(t *testing.T, page *browser.Page, what string, within time.Duration, ok func(shown) bool) shown {
	t.Helper()
	var last shown
	began := time.Now()
	eventually(t, "the board shows "+what, func() (string, bool) {
		last = look(t, page)
		return fmt.Sprintf("%+v", last), ok(last)
	})
	require.Less(t, time.Since(began), within, "until the board showed %s", what)
	return last
}

func isCurrent(s shown) bool { return s.State == "current" }

func isNotCurrent(s shown) bool { return s.State == "not-current" }

// While events flow, every look at the page gives the numbers of the model at the
// position that the page names; in the end those of the API too.
func TestTheBoardShowsTheTruth(t *testing.T) {
	d := install(t)
	r := d.serve("one", "--dimensions=region,service", "--stuck-after=2s")
	waitReady(t, r)
	page := openBoard(t, r, "")
	waitShown(t, page, "that it is current", patience, isCurrent)

	simulation := d.simulate("--events=30000", "--deliveries=6000", "--rate=3000", "--seed=3", "--duplicates=0.1", "--out-of-order=0.1")
	var looks []shown
	for running := true; running; {
		select {
		case <-simulation.done:
			running = false
		default:
		}
		looks = append(looks, look(t, page))
	}
	truth := simulation.wait(t)
	d.requireExact(truth, r)
	end := waitShown(t, page, "the end of the input", patience, func(s shown) bool { return s.Position == d.end() && isCurrent(s) })

	require.Equal(t, nonZero(truth.Counts), nonZero(end.Live))
	require.Equal(t, nonZero(truth.Closed), nonZero(end.Closed))
	require.Equal(t, truth.Live, end.Total)
	world := d.world()
	positions := map[string]bool{}
	for _, s := range append(looks, end) {
		if s.Position == "–" || s.Position == "0" {
			continue
		}
		p, err := codecs.ParsePosition(s.Position, partitions)
		require.NoError(t, err)
		live, closed := world.Counts("", p.Next)
		require.Equal(t, nonZero(wide(live)), nonZero(s.Live), s.Position)
		require.Equal(t, nonZero(wide(closed)), nonZero(s.Closed), s.Position)
		require.Equal(t, sum(s.Live), s.Total)
		positions[s.Position] = true
	}
	require.GreaterOrEqual(t, len(positions), 10, "different positions")
	require.Empty(t, page.Problems())

	t.Run("narrowed to a region", func(t *testing.T) {
		eventually(t, "the region is offered", func() (string, bool) {
			chosen, err := browser.Eval[string](page, `(() => { const s = document.getElementById("dimension");
				s.value = JSON.stringify({dimension: "region", value: "seoul"});
				if (s.value) s.dispatchEvent(new Event("change"));
				return s.value; })()`)
			require.NoError(t, err)
			return chosen, chosen != ""
		})
		seoul, err := r.Counts(t.Context(), "region=seoul")
		require.NoError(t, err)
		got := waitShown(t, page, "the counts of the region", patience, func(s shown) bool { return s.Total == seoul.Live && isCurrent(s) })
		require.Equal(t, nonZero(seoul.Counts), nonZero(got.Live))
		address, err := browser.Eval[string](page, "location.search")
		require.NoError(t, err)
		require.Equal(t, "?region=seoul", address)
	})
	t.Run("the longest stuck ones, and one of them by search", func(t *testing.T) {
		eventually(t, "stuck deliveries of the region", func() (string, bool) {
			n, err := browser.Eval[string](page, `document.getElementById("stuck-total").textContent`)
			require.NoError(t, err)
			answer, err := r.Get(t.Context(), "/v1/deliveries?region=seoul&older_than=2s&limit=1")
			require.NoError(t, err)
			var list struct {
				Total int64 `json:"total"`
			}
			require.NoError(t, json.Unmarshal(answer.Body, &list))
			return n, list.Total > 0 && strings.ReplaceAll(n, ",", "") == strconv.FormatInt(list.Total, 10)
		})
		id, err := browser.Eval[string](page, `(() => { const b = document.querySelector("#stuck button"); b.click(); return b.textContent; })()`)
		require.NoError(t, err)
		delivery, err := r.Delivery(t.Context(), id)
		require.NoError(t, err)
		eventually(t, "its timeline", func() (string, bool) {
			rows, err := browser.Eval[int](page, `document.querySelectorAll("#found tbody tr").length`)
			require.NoError(t, err)
			heading, err := browser.Eval[string](page, `document.querySelector("#found h3")?.textContent ?? ""`)
			require.NoError(t, err)
			return heading, rows == len(delivery.Timeline) && heading == id
		})
	})
}

// The server goes, and the server stays but its broker goes: the page says so
// soon, keeps its numbers, and finds its way back by itself.
func TestTheBoardSaysWhenItIsNotCurrent(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cluster, err := broker.StartProxied(ctx, t.TempDir(), 1)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, cluster.Close()) })
	d := newDeploymentOn(t, cluster.Cluster)
	d.createTopics("--partitions=" + strconv.Itoa(partitions))
	r := d.serve("one", "--kafka-brokers="+cluster.ClientAddresses())
	truth := d.simulate("--events=3000", "--seed=3").wait(t)
	d.requireExact(truth, r)
	page := openBoard(t, r, "")
	before := waitShown(t, page, "that it is current", patience, func(s shown) bool { return isCurrent(s) && s.Total == truth.Live })

	require.NoError(t, r.Kill())
	gone := waitShown(t, page, "that the server is gone", soon, isNotCurrent)
	require.Contains(t, gone.Words, "no connection")
	require.Equal(t, before.Live, gone.Live, "the last numbers stay")
	require.NoError(t, r.Start())
	waitShown(t, page, "that it is current again", patience, isCurrent)

	cluster.Proxies[0].Refuse(true)
	old := waitShown(t, page, "that the numbers grow old", soon, isNotCurrent)
	require.Regexp(t, `numbers are \d+ s old|numbers are \d\.\d s old`, old.Words)
	require.Equal(t, before.Live, old.Live)
	require.NoError(t, page.Screenshot("not-current"))
	cluster.Proxies[0].Refuse(false)
	waitShown(t, page, "that it is current again", patience, isCurrent)
	require.Empty(t, page.Problems())
}

// The page is public, and the numbers are not: it asks for the token, once.
func TestTheBoardAsksForTheToken(t *testing.T) {
	d := install(t)
	file := filepath.Join(t.TempDir(), "tokens")
	require.NoError(t, os.WriteFile(file, []byte("first-token-of-the-desk\n"), 0o600))
	r := d.serve("one", "--api-token-file="+file)
	waitReady(t, r)
	page := openBoard(t, r, "")
	asks := func() (string, bool) {
		why, err := browser.Eval[string](page, `document.getElementById("login").hidden ? "" : document.getElementById("login-why").textContent`)
		require.NoError(t, err)
		return why, why != ""
	}
	enter := func(token string) {
		_, err := browser.Eval[bool](page, `document.getElementById("token").focus() ?? true`)
		require.NoError(t, err)
		require.NoError(t, page.Type(token+"\r"))
	}

	eventually(t, "the board asks for a token", asks)
	enter("wrong")
	eventually(t, "the board says that it is wrong", func() (string, bool) {
		why, _ := asks()
		return why, strings.Contains(why, "not valid")
	})
	enter("first-token-of-the-desk")
	waitShown(t, page, "that it is current", patience, isCurrent)

	require.NoError(t, os.WriteFile(file, []byte("second-token-of-the-desk\n"), 0o600))
	eventually(t, "the board asks again, after the token was taken back", asks)
	require.Equal(t, "not-current", look(t, page).State)
	enter("second-token-of-the-desk")
	waitShown(t, page, "that it is current again", patience, isCurrent)
	stored, err := browser.Eval[string](page, `JSON.stringify(localStorage) + document.cookie + location.href.replace(/^.*\//, "")`)
	require.NoError(t, err)
	require.Equal(t, "{}", stored, "the token is kept for the tab only, and never in the address")
}

// Ten hours of an answer a second, with a clock of its own: past midnight,
// with a sleep of an hour, and no more memory in the end than after one hour.
func TestTenHoursOnTheBoard(t *testing.T) {
	d := install(t)
	r := d.serve("one")
	waitReady(t, r)
	page := openBoard(t, r, "?lang=en")
	waitShown(t, page, "that it is current", patience, isCurrent)
	// A second board in the page of the first, which is stopped by going on
	// without its timers: what it draws is drawn over.
	_, err := browser.Eval[bool](page, `(async () => {
		const { Board } = await import("/board/board.js");
		const setInterval = window.setInterval;
		window.clock = new Date(2026, 10, 30, 18, 0, 0).getTime();
		window.board = new Board(document, () => window.clock);
		board.statuses = (await (await fetch("/v1/statuses")).json()).statuses;
		board.heard = window.clock;
		board.speak();
		window.n = 0;
		window.pass = (hours) => {
			for (const end = window.clock + hours * 3600e3; window.clock < end;) {
				window.clock += 1000;
				n++;
				board.heard = window.clock;
				const at = new Date(window.clock).toISOString();
				board.counts({live: 7 + n % 90, counts: {UNKNOWN: 0, CREATED: 3 + n % 50, ASSIGNED: 4 + n % 40}, closed: {DELIVERED: n, CANCELLED: 3},
					closed_window_seconds: 86400, as_of: {position: "0:" + n, event_time: at, lag_records: 0, staleness_seconds: 0.2, stale: false, replica: "one"}});
				board.tick();
			}
			return true;
		};
		return true;
	})()`)
	require.NoError(t, err)
	pass := func(hours float64) int64 {
		_, err := browser.Eval[bool](page, fmt.Sprintf("pass(%v)", hours))
		require.NoError(t, err)
		heap, err := page.HeapBytes()
		require.NoError(t, err)
		return heap
	}
	// The page's own board goes on drawing beside it: what the second one says is
	// read in one breath with letting it speak.
	words := func(prepare string) string {
		text, err := browser.Eval[string](page, prepare+`; board.render(); document.querySelector(".freshness").textContent.replace(/\s+/g, " ").trim()`)
		require.NoError(t, err)
		return text
	}

	first := pass(1)
	require.Contains(t, words(""), "last event 19:00:00")
	pass(5.5) // midnight has passed
	require.Contains(t, words(""), "last event 00:30:00", "an event of today, though the page was opened yesterday")
	require.Contains(t, words("clock += 3600e3; board.tick()"), "Not current", "woken up after an hour")
	require.Contains(t, words("pass(0.01)"), "Current")
	last := pass(3.5)

	t.Logf("heap after one hour %d bytes, after ten %d", first, last)
	require.Less(t, last, first+first/4)
	points, err := browser.Eval[int](page, `board.series.get("CREATED").samples.length`)
	require.NoError(t, err)
	require.Equal(t, 180, points, "15 minutes")
	require.Empty(t, page.Problems())
}

// Over HTTP/1.1 a browser has six connections to a host: pages that nobody looks
// at keep none, or the seventh would wait for ever.
func TestABoardThatNobodyLooksAtKeepsNoConnection(t *testing.T) {
	d := install(t)
	r := d.serve("one")
	waitReady(t, r)
	page := openBoard(t, r, "")
	for n := range 8 {
		require.NoError(t, page.Go(fmt.Sprintf("http://%s/?n=%d", r.HTTP, n)))
		waitShown(t, page, "that it is current", soon, isCurrent)
	}
	clients := func(want float64) {
		eventually(t, fmt.Sprintf("%v clients of the stream", want), func() (string, bool) {
			samples, err := r.Metrics(t.Context())
			require.NoError(t, err)
			got := samples["deliverystat_stream_clients"]
			return fmt.Sprint(got), got == want
		})
	}
	clients(1)
	hide := func(hidden bool) {
		_, err := browser.Eval[bool](page, fmt.Sprintf(`Object.defineProperty(document, "hidden", {value: %v, configurable: true}) && document.dispatchEvent(new Event("visibilitychange"))`, hidden))
		require.NoError(t, err)
	}
	hide(true)
	clients(0)
	hide(false)
	clients(1)
	waitShown(t, page, "that it is current again", soon, isCurrent)
	require.Empty(t, page.Problems())
}

// The page keeps the rules of axe-core in every language, colour and width, and
// can be used by keyboard. The pictures are for people.
func TestTheBoardIsAccessible(t *testing.T) {
	d := install(t)
	r := d.serve("one", "--dimensions=region", "--stuck-after=2s")
	waitReady(t, r)
	d.simulate("--events=30000", "--seed=3").wait(t)
	page := openBoard(t, r, "")
	for _, width := range []struct {
		name          string
		width, height int64
	}{{"phone", 360, 780}, {"desk", 1440, 900}, {"wall", 2560, 1440}} {
		for _, look := range []struct{ lang, theme string }{{"en", "light"}, {"ko", "dark"}} {
			name := strings.Join([]string{width.name, look.lang, look.theme}, "-")
			require.NoError(t, page.Size(width.width, width.height))
			require.NoError(t, page.Go("http://"+r.HTTP+"/?lang="+look.lang+"&theme="+look.theme))
			waitShown(t, page, "that it is current", patience, func(s shown) bool { return isCurrent(s) && s.Total > 0 })
			eventually(t, "stuck deliveries", func() (string, bool) {
				n, err := browser.Eval[int](page, `document.querySelectorAll("#stuck tbody tr").length`)
				require.NoError(t, err)
				return strconv.Itoa(n), n > 0
			})
			_, err := browser.Eval[bool](page, `document.querySelector("#stuck button").click() ?? true`)
			require.NoError(t, err)
			eventually(t, "a timeline", func() (string, bool) {
				n, err := browser.Eval[int](page, `document.querySelectorAll("#found tbody tr").length`)
				require.NoError(t, err)
				return strconv.Itoa(n), n > 0
			})

			broken, err := page.Axe()

			require.NoError(t, err)
			require.Empty(t, broken, name)
			wider, err := browser.Eval[bool](page, `document.documentElement.scrollWidth > innerWidth`)
			require.NoError(t, err)
			require.False(t, wider, "%s: nothing is wider than the window", name)
			require.NoError(t, page.Screenshot(name))
		}
	}
	// Slash goes to the search, tab from there to its button, and enter asks.
	require.NoError(t, page.Go("http://"+r.HTTP+"/?lang=en"))
	waitShown(t, page, "that it is current", patience, isCurrent)
	require.NoError(t, page.Type("/"))
	require.NoError(t, page.Type("no-such-delivery\r"))
	eventually(t, "the answer", func() (string, bool) {
		text, err := browser.Eval[string](page, `document.getElementById("found").textContent`)
		require.NoError(t, err)
		return text, strings.HasPrefix(text, "Nothing found")
	})
	var reached []string
	for range 40 {
		require.NoError(t, page.Type("\t"))
		id, err := browser.Eval[string](page, `document.activeElement.id || document.activeElement.tagName`)
		require.NoError(t, err)
		reached = append(reached, id)
	}
	for _, id := range []string{"dimension", "language", "theme", "id", "BUTTON", "A"} {
		require.Contains(t, reached, id, "by tab")
	}
	require.Empty(t, page.Problems())
}

// What the page decides by, module by module.
func TestModulesOfTheBoard(t *testing.T) {
	d := install(t)
	r := d.serve("one")
	waitReady(t, r)
	page := openBoard(t, r, "")
	for name, tt := range map[string]struct{ expression, want string }{
		"events, however they are cut": {
			`const {Parser} = await import("/board/stream.js"); const p = new Parser();
			const text = "retry: 7\nevent: counts\nid: 0:1@x\ndata: {\"a\":1}\n\n: a comment\nevent: as_of\ndata:2\n\n";
			return Array.from(text).flatMap((c) => p.feed(c));`,
			`[{"type":"counts","data":"{\"a\":1}","id":"0:1@x","retry":7},{"type":"as_of","data":"2","id":null,"retry":null}]`,
		},
		"pauses grow, to a bound": {`const {pause} = await import("/board/stream.js"); return [0, 1, 3, 4, 9].map((n) => pause(n, 1));`, `[500,1000,4000,8000,8000]`},
		"ages in words": {
			`const {Words} = await import("/board/words.js"); const [en, ko] = [new Words("en"), new Words("ko")];
			return [0.04, 9.94, 9.95, 119.9, 120, 7199, 7200, 7500, 172800, 180000].map((s) => en.age(s)).concat(ko.age(7500), ko.age(3), en.age(-3));`,
			`["0.0 s","9.9 s","9 s","119 s","2 min","119 min","2 h","2 h 5 min","2 d","2 d 2 h","2시간 5분","3.0초","0.0 s"]`,
		},
		"spans in words":                         {`const {Words} = await import("/board/words.js"); const w = new Words("en"); return [86400, 1800, 90, 600].map((s) => w.span(s));`, `["24 h","30 min","90 s","10 min"]`},
		"both languages say as much":             {`const {Words} = await import("/board/words.js"); const keys = (l) => Object.keys(new Words(l).texts).sort().join(); return keys("en") === keys("ko") && keys("en").length > 100;`, `true`},
		"a number that is not known yet is no 0": {`const {Words} = await import("/board/words.js"); const w = new Words("en"); return [w.number(null), w.change(null), w.number(0), w.change(7)];`, `["–","–","0","+7"]`},
		"a history is bounded, and so is a change": {`const {Series} = await import("/board/series.js"); const s = new Series();
			for (let t = 0; t <= 3600e3; t += 1000) s.add(t, t / 1000);
			return [s.samples.length, s.change(3600e3, 300e3), s.change(3600e3, 895e3), s.change(3600e3, 1e9), new Series().change(0, 1)];`, `[180,296,891,null,null]`},
		"a clock that goes back begins anew": {`const {Series} = await import("/board/series.js"); const s = new Series(); s.add(1e6, 1); s.add(2e6, 2); s.add(1e6, 5); return s.samples.length;`, `1`},
		"a sparkline fits its box":           {`const {Series} = await import("/board/series.js"); const s = new Series(); s.add(0, 5); s.add(5000, 10); s.add(10000, 0); return s.points();`, `"0.0,12.0 50.0,2.0 100.0,22.0"`},
		"records consumed":                   {`const {consumed} = await import("/board/series.js"); return [consumed("0:5,1:7"), consumed("")];`, `[12,0]`},
		"what is current": {
			`const {judge} = await import("/board/freshness.js");
			const seen = (staleness_seconds, stale = false) => ({at: 1000, asOf: {staleness_seconds, stale}});
			return [judge(null, 0, ""), judge(null, 0, "noConnection"), judge(seen(0.5), 2000, ""), judge(seen(0.5), 7500, ""), judge(seen(0.5), 7501, ""),
				judge(seen(0.5, true), 1000, ""), judge(seen(null), 1000, ""), judge(seen(0.5), 2000, "noAnswer"), judge(seen(0.5), 0, "")].map((j) => [j.state, j.age, j.why].join());`,
			`["waiting,,","notCurrent,,noConnection","current,1.5,","current,7,","notCurrent,7.001,old","notCurrent,0.5,old","notCurrent,,unproved","notCurrent,1.5,noAnswer","current,0.5,"]`,
		},
		"one question if all limits are the same": {
			`const {stuckQuestions} = await import("/board/deliveries.js");
			const s = (name, stuck_after_seconds, terminal = false) => ({name, stuck_after_seconds, terminal});
			return [stuckQuestions([s("A", 60), s("B", 60), s("X", null, true)], {region: "a b"}, 9), stuckQuestions([s("A", 60), s("B", 90)], {}, 9),
				stuckQuestions([s("A", 60), s("B", null)], {}, 9), stuckQuestions([s("A", null)], {}, 9)];`,
			`[["v1/deliveries?region=a+b&older_than=60s&limit=9"],["v1/deliveries?status=A&older_than=60s&limit=9","v1/deliveries?status=B&older_than=90s&limit=9"],["v1/deliveries?status=A&older_than=60s&limit=9"],[]]`,
		},
		"the furthest beyond their limit first": {`const {worst} = await import("/board/deliveries.js");
			const d = (delivery_id, status, since) => ({delivery_id, status, since: new Date(since).toISOString()});
			const w = worst([{total: 5, deliveries: [d("a", "A", 10000)]}, {total: 2, deliveries: [d("b", "B", 0), d("c", "B", 5000)]}],
				[{name: "A", stuck_after_seconds: 10}, {name: "B", stuck_after_seconds: 60}], 100000, 2);
			return [w.total, w.rows.map((r) => [r.delivery.delivery_id, r.seconds, r.limit])];`, `[7,[["a",90,10],["b",100,60]]]`},
		"a timeline in the order of time": {`const {legs} = await import("/board/deliveries.js");
			return legs({timeline: [{status: "B", first: "2026-01-01T00:01:00Z"}, {status: "A", first: "2026-01-01T00:00:00Z"}]}).map((l) => [l.status, l.seconds]);`, `[["A",60],["B",null]]`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := browser.Eval[string](page, "(async () => { "+strings.ReplaceAll(tt.expression, "return ", "const out = ")+" return JSON.stringify(out); })()")
			require.NoError(t, err)
			require.Equal(t, tt.want, got)
		})
	}
	require.NotEmpty(t, slices.Collect(maps.Keys(look(t, page).Live)))
}
