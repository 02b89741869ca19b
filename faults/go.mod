module github.com/tidemark-log/tidemark/faults

go 1.26.0

replace github.com/tidemark-log/tidemark => ../

require (
	github.com/hanwen/go-fuse/v2 v2.12.1
	github.com/tidemark-log/tidemark v0.0.0-00010101000000-000000000000
	golang.org/x/sys v0.50.0
)

require (
	github.com/klauspost/compress v1.20.4 // indirect
	github.com/klauspost/cpuid/v2 v2.2.10 // indirect
	github.com/zeebo/xxh3 v1.1.0 // indirect
)
