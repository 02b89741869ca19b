package frame

import (
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// field is one line of a byte table.
type field struct {
	name         string
	offset, size int64
	meaning      string
}

// structures names the tables of layout.go, by the first words of their
// comments, and the size of each structure.
var structures = map[string]int64{
	"Identity": IdentitySize, "Lineage entry": lineageSize, "Slot": SlotSize,
	"Page header": PageHeaderSize, "Group header": GroupHeaderSize, "Record header": RecordHeaderSize,
}

// layoutTables reads the byte tables out of layout.go.
func layoutTables(t testing.TB) map[string][]field {
	t.Helper()
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "layout.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	pkg, err := new(types.Config).Check("frame", fset, []*ast.File{f}, nil)
	if err != nil {
		t.Fatal(err)
	}
	tables := map[string][]field{}
	for _, d := range f.Decls {
		decl, ok := d.(*ast.GenDecl)
		if !ok || decl.Doc == nil {
			continue
		}
		title, _, _ := strings.Cut(decl.Doc.Text(), ":")
		if _, ok := structures[title]; !ok {
			continue
		}
		for _, s := range decl.Specs {
			spec := s.(*ast.ValueSpec)
			name := spec.Names[0].Name
			offset, _ := constant.Int64Val(pkg.Scope().Lookup(name).(*types.Const).Val())
			size, meaning, _ := strings.Cut(strings.TrimSpace(spec.Comment.Text()), " ")
			n, err := strconv.ParseInt(size, 10, 64)
			if err != nil {
				t.Fatalf("%s: the comment does not begin with a size", name)
			}
			tables[title] = append(tables[title], field{name, offset, n, meaning})
		}
	}
	return tables
}

var tableLine = regexp.MustCompile(`^\| (\d+) \| (\d+) \| (.+) \|$`)

// formatTables reads the byte tables out of docs/FORMAT.md: those below a
// heading that names a structure.
func formatTables(t testing.TB) map[string][]field {
	t.Helper()
	text, err := os.ReadFile("../docs/FORMAT.md")
	if err != nil {
		t.Fatal(err)
	}
	tables, title := map[string][]field{}, ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if h, ok := strings.CutPrefix(line, "#"); ok {
			title = strings.TrimSpace(strings.TrimLeft(h, "#"))
			title, _, _ = strings.Cut(title, ",")
		}
		m := tableLine.FindStringSubmatch(line)
		if _, known := structures[title]; !known || m == nil {
			continue
		}
		offset, _ := strconv.ParseInt(m[1], 10, 64)
		size, _ := strconv.ParseInt(m[2], 10, 64)
		tables[title] = append(tables[title], field{offset: offset, size: size, meaning: m[3]})
	}
	return tables
}

func TestLayout_MatchesFormat(t *testing.T) {
	code, doc := layoutTables(t), formatTables(t)
	for title := range structures {
		var want []field
		for _, f := range code[title] {
			want = append(want, field{"", f.offset, f.size, f.meaning})
		}
		if len(want) == 0 {
			t.Errorf("%s: no table in layout.go", title)
		}
		if !slices.Equal(doc[title], want) {
			t.Errorf("%s:\nFORMAT.md %+v\nlayout.go %+v", title, doc[title], want)
		}
	}
}

// TestLayout_ExampleIsGolden keeps the worked example true.
func TestLayout_ExampleIsGolden(t *testing.T) {
	text, err := os.ReadFile("../docs/FORMAT.md")
	if err != nil {
		t.Fatal(err)
	}
	example, err := os.ReadFile("testdata/group.hex")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), strings.TrimSpace(string(example))) {
		t.Error("the example in FORMAT.md is not testdata/group.hex")
	}
}

func TestLayout_FieldsAreContiguous(t *testing.T) {
	for title, fields := range layoutTables(t) {
		at := int64(0)
		for _, f := range fields {
			if f.offset != at || f.size <= 0 {
				t.Errorf("%s: %s is at %d with %d bytes, want it at %d", title, f.name, f.offset, f.size, at)
			}
			at = f.offset + f.size
		}
		if at != structures[title] {
			t.Errorf("%s: fields end at %d, want %d", title, at, structures[title])
		}
	}
}

// TestLayout_Places holds the places of the header area against each other.
func TestLayout_Places(t *testing.T) {
	ends := []int64{
		IdentityOffset, IdentityOffset + IdentitySize, SlotOffsetA, SlotOffsetA + SlotSize,
		SlotOffsetB, SlotOffsetB + SlotSize, IdentityCopyOffset, IdentityCopyOffset + IdentitySize, minHeaderArea,
	}
	if !slices.IsSorted(ends) {
		t.Errorf("the header area's structures overlap: %d", ends)
	}
	if (idReserved2-idEntries)/lineageSize != MaxLineage {
		t.Errorf("the identity holds %d entries, want %d", (idReserved2-idEntries)/lineageSize, MaxLineage)
	}
	for _, page := range pageSizes {
		if got := testGeometry(page, 8).HeaderArea(); got != max(16<<10, int64(page)) {
			t.Errorf("page size %d: header area %d", page, got)
		}
	}
}
