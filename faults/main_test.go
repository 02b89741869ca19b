package faults_test

import (
	"os"
	"testing"

	"github.com/tidemark-log/tidemark/faults/internal/lab"
)

func TestMain(m *testing.M) { os.Exit(lab.Main(m)) }
