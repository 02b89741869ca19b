package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// browser is a headless Chromium, spoken to over two pipes. It belongs to one
// test.
type browser struct {
	t       *testing.T
	cmd     *exec.Cmd
	out     *os.File
	in      *bufio.Reader
	id      int
	session string
	events  []string // methods of what it told unasked, and exceptions whole
}

type message struct {
	ID     int             `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct{ Message string }
}

// newBrowser starts Chromium, or skips, or fails where nothing may be lacking.
func newBrowser(t *testing.T) *browser {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		if os.Getenv("REQUIRE_FAULTS") == "1" {
			t.Fatal("REQUIRE_FAULTS: no chromium; testdata/install-chromium.sh installs it")
		}
		skip(t, "no chromium; testdata/install-chromium.sh installs it")
	}
	toRead, toWrite, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	fromRead, fromWrite, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	b := &browser{t: t, out: toWrite, in: bufio.NewReader(fromRead)}
	b.cmd = exec.Command(path, "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--remote-debugging-pipe",
		"--disable-background-networking", "--user-data-dir="+t.TempDir(), "--window-size=1100,1600", "about:blank")
	b.cmd.ExtraFiles = []*os.File{toRead, fromWrite}
	if err := b.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = errors.Join(toRead.Close(), fromWrite.Close()) // the child has them
	kill := time.AfterFunc(patience, func() { _ = b.cmd.Process.Kill() })
	t.Cleanup(func() {
		b.session = ""
		b.send("Browser.close", nil)
		_ = b.cmd.Wait() // its exit code says nothing
		kill.Stop()
		_ = errors.Join(toWrite.Close(), fromRead.Close())
	})
	var target struct{ TargetID string }
	b.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct{ SessionID string }
	b.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	b.session = attached.SessionID
	for _, domain := range []string{"Page", "Runtime", "Network", "Log", "Accessibility"} {
		b.call(domain+".enable", nil, nil)
	}
	return b
}

func (b *browser) send(method string, params any) {
	b.id++
	m := map[string]any{"id": b.id, "method": method}
	if params != nil {
		m["params"] = params
	}
	if b.session != "" {
		m["sessionId"] = b.session
	}
	text, err := json.Marshal(m)
	if err != nil {
		b.t.Fatal(err)
	}
	_, _ = b.out.Write(append(text, 0)) // reading tells if it is gone
}

// next reads one message.
func (b *browser) next() message {
	b.t.Helper()
	text, err := b.in.ReadBytes(0)
	if err != nil {
		b.t.Fatalf("the browser is gone: %v", err)
	}
	var m message
	if err := json.Unmarshal(text[:len(text)-1], &m); err != nil {
		b.t.Fatal(err)
	}
	switch m.Method {
	case "":
	case "Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled":
		b.events = append(b.events, m.Method+" "+string(m.Params))
	case "Network.requestWillBeSent":
		var p struct{ Request struct{ URL string } }
		_ = json.Unmarshal(m.Params, &p)
		b.events = append(b.events, m.Method+" "+p.Request.URL)
	default:
		b.events = append(b.events, m.Method)
	}
	return m
}

func (b *browser) call(method string, params, result any) {
	b.t.Helper()
	b.send(method, params)
	for id := b.id; ; {
		m := b.next()
		if m.ID != id {
			continue
		}
		if m.Error != nil {
			b.t.Fatalf("%s: %s", method, m.Error.Message)
		}
		if result != nil {
			if err := json.Unmarshal(m.Result, result); err != nil {
				b.t.Fatal(err)
			}
		}
		return
	}
}

// load shows a file and waits until it is there.
func (b *browser) load(path string) {
	b.t.Helper()
	b.events = nil
	b.call("Page.navigate", map[string]any{"url": "file://" + path}, nil)
	for !strings.Contains(strings.Join(b.events, "\n"), "Page.loadEventFired") {
		b.next()
	}
}

// eval returns what an expression of the page is, as text.
func (b *browser) eval(expression string) string {
	b.t.Helper()
	var r struct {
		Result           struct{ Value any }
		ExceptionDetails any
	}
	b.call("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true}, &r)
	if r.ExceptionDetails != nil {
		b.t.Fatalf("%s: %v", expression, r.ExceptionDetails)
	}
	return fmt.Sprint(r.Result.Value)
}

func (b *browser) key(name string) {
	b.t.Helper()
	codes := map[string]int{"Tab": 9, "Enter": 13, "End": 35, "Home": 36, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
	for _, kind := range []string{"rawKeyDown", "keyUp"} {
		p := map[string]any{"type": kind, "key": name, "code": name, "windowsVirtualKeyCode": codes[name]}
		if name == "Enter" && kind == "rawKeyDown" {
			p["type"], p["text"] = "keyDown", "\r"
		}
		b.call("Input.dispatchKeyEvent", p, nil)
	}
}

func (b *browser) is(expression, want string) {
	b.t.Helper()
	if got := b.eval(expression); got != want {
		b.t.Errorf("%s is %q, want %q", expression, got, want)
	}
}

func (b *browser) has(expression, part string) {
	b.t.Helper()
	if got := b.eval(expression); !strings.Contains(got, part) {
		b.t.Errorf("%s is %q, without %q", expression, got, part)
	}
}

// quiet fails if the page asked for anything but itself, or complained.
func (b *browser) quiet() {
	b.t.Helper()
	for _, e := range b.events {
		asks := strings.HasPrefix(e, "Network.requestWillBeSent ") && !strings.Contains(e, " file://") && !strings.Contains(e, " data:")
		if asks || strings.HasPrefix(e, "Runtime.") && !strings.HasPrefix(e, "Runtime.executionContext") || strings.HasPrefix(e, "Log.") {
			b.t.Errorf("the page: %s", e)
		}
	}
}

// TestInspect_L53_HTMLInABrowser uses the page as people do: with the keyboard
// alone, through what a screen reader is told, in light and dark, on a phone.
func TestInspect_L53_HTMLInABrowser(t *testing.T) {
	t.Parallel()
	b := newBrowser(t)
	path, html := picturedLog(t)
	b.load(html)
	b.is("document.title", "run.log · Tidemark log")
	// Keyboard: the skip link first, then the map, cell by cell.
	b.key("Tab")
	b.has("document.activeElement.textContent", "Skip to the findings")
	b.key("Tab")
	b.is("document.activeElement.id", "map")
	for _, step := range []struct{ key, cell, says string }{
		{"ArrowRight", "0", "Page 0, from byte 0: header area"},
		{"ArrowRight", "1", "Page 1"},
		{"ArrowDown", "33", "Page 33"},
		{"ArrowUp", "1", "Page 1"},
		{"ArrowUp", "0", "Page 0"},
		{"End", "", "free: zeros ahead"},
		{"Home", "0", "header area 4 KiB"},
	} {
		b.key(step.key)
		if step.cell != "" {
			b.is("document.activeElement.getAttribute('aria-valuenow')", step.cell)
		}
		b.has("document.getElementById('cell').textContent", step.says)
		b.is("document.getElementById('cell').textContent == document.activeElement.getAttribute('aria-valuetext')", "true")
	}
	b.key("Tab")
	b.is("document.activeElement.tagName", "SUMMARY")
	b.key("Enter")
	b.is("document.activeElement.parentElement.open", "true")
	b.key("Tab")
	b.has("document.activeElement.textContent", "header area")
	b.key("Tab")
	b.is("document.activeElement.id", "line")
	b.key("End")
	b.has("document.getElementById('stretch').textContent", "to 551: ")
	b.is("document.querySelectorAll('#line rect.on').length", "1")
	// What a screen reader is told.
	for _, want := range []string{"slider|Cells of the map", "slider|Stretches of the timeline", "heading|Findings", "heading|Map of the file", "main|", "table|Payload bytes"} {
		if !strings.Contains(b.spoken(), want) {
			t.Errorf("a screen reader is not told of %q", want)
		}
	}
	// The marks tell of checkpoints and forks.
	b.has("[...document.querySelectorAll('#map title')].map(t => t.textContent).join()", "forked here from log")
	b.quiet()
	b.themes()
	b.phone()
	// Damage, and the link to its page.
	bad := read(t, path)
	bad[60000] ^= 1
	if err := os.WriteFile(path, bad, 0o600); err != nil {
		t.Fatal(err)
	}
	tidemark(t, "", "inspect", path, "--html", html).want(t, 1, "damage")
	b.load(html)
	b.eval("document.querySelector('a[data-page]').focus()")
	b.key("Enter")
	b.is("document.activeElement.id", "map")
	b.has("document.getElementById('cell').textContent", "Page 14, from byte 57344: 1 finding")
	b.has("document.getElementById('cell').textContent", "corrupt")
	b.quiet()
	if dir := os.Getenv("SCREENSHOTS"); dir != "" {
		b.shoot(filepath.Join(dir, "damage.png"))
	}
}

// spoken lists roles and names of the page's accessibility tree.
func (b *browser) spoken() string {
	b.t.Helper()
	var tree struct {
		Nodes []struct {
			Ignored bool
			Role    struct{ Value string }
			Name    struct{ Value string }
		}
	}
	b.call("Accessibility.getFullAXTree", nil, &tree)
	var text strings.Builder
	for _, n := range tree.Nodes {
		if !n.Ignored {
			fmt.Fprintf(&text, "%s|%s\n", n.Role.Value, n.Name.Value)
		}
	}
	return text.String()
}

// contrast computes, in the page, the lowest contrast of text to what is behind
// it.
const contrast = `(() => {
  const rgb = s => (s.match(/[\d.]+/g) || [0, 0, 0, 0]).map(Number);
  const lum = c => { const f = c.slice(0, 3).map(v => { v /= 255; return v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4; }); return .2126 * f[0] + .7152 * f[1] + .0722 * f[2]; };
  const ground = e => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c.length < 4 || c[3] > 0) return c; } return [255, 255, 255]; };
  let worst = 99, where = "";
  for (const e of document.querySelectorAll("h1,h2,p,dt,dd,small,td,th,caption,li,a,summary,span,code")) {
    if (!e.textContent.trim() || e.matches(".skip, .meter")) continue;
    const a = lum(rgb(getComputedStyle(e).color)), b = lum(ground(e)), r = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    if (r < worst) { worst = r; where = e.tagName + " " + e.textContent.slice(0, 30); }
  }
  return worst >= 4.5 ? "good" : worst.toFixed(2) + " " + where;
})()`

// themes looks at the page in light and dark.
func (b *browser) themes() {
	b.t.Helper()
	grounds := map[string]string{}
	for _, scheme := range []string{"light", "dark"} {
		b.call("Emulation.setEmulatedMedia", map[string]any{"features": []any{map[string]any{"name": "prefers-color-scheme", "value": scheme}}}, nil)
		grounds[scheme] = b.eval("getComputedStyle(document.body).backgroundColor")
		b.is(contrast, "good")
		if dir := os.Getenv("SCREENSHOTS"); dir != "" {
			b.shoot(filepath.Join(dir, scheme+".png"))
		}
	}
	if grounds["light"] == grounds["dark"] {
		b.t.Errorf("light and dark look alike: %v", grounds)
	}
}

// phone looks at the page on a narrow screen: it does not scroll sideways.
func (b *browser) phone() {
	b.t.Helper()
	b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": 375, "height": 800, "deviceScaleFactor": 1, "mobile": true}, nil)
	b.is("document.documentElement.scrollWidth <= 375", "true")
	b.call("Emulation.clearDeviceMetricsOverride", nil, nil)
}

// shoot takes a picture of the whole page.
func (b *browser) shoot(path string) {
	b.t.Helper()
	var shot struct{ Data []byte }
	b.call("Page.captureScreenshot", map[string]any{"captureBeyondViewport": true}, &shot)
	if err := os.WriteFile(path, shot.Data, 0o600); err != nil {
		b.t.Fatal(err)
	}
}
