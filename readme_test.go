package tidemark_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestReadme_IsTheExample holds the README's Go to the example that the package
// documentation shows and that go test runs: the same lines, but for the path.
func TestReadme_IsTheExample(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	example, err := os.ReadFile("pagelog/example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```go\n.*?func main\\(\\) \\{\n(.*?)\n\\}\n```").FindSubmatch(readme)
	if block == nil {
		t.Fatal("the README has no program in Go")
	}
	body := strings.Replace(string(block[1]), `"hello.log"`, `filepath.Join(dir, "hello.log")`, 1)
	if !strings.Contains(string(example), body+"\n\t// Output:") {
		t.Errorf("pagelog/example_test.go does not hold what the README shows:\n%s", body)
	}
}
