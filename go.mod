module github.com/tidemark-log/tidemark

go 1.26.0

require (
	github.com/klauspost/compress v1.20.4
	github.com/zeebo/xxh3 v1.1.0
)

require (
	github.com/inconshreveable/mousetrap v1.1.0 // indirect
	github.com/klauspost/cpuid/v2 v2.2.10 // indirect
	github.com/spf13/cobra v1.10.2
	github.com/spf13/pflag v1.0.9
	golang.org/x/sys v0.50.0
	pgregory.net/rapid v1.3.0
)
