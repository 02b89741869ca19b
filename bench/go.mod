module github.com/tidemark-log/tidemark/bench

go 1.26.0

replace github.com/tidemark-log/tidemark => ../
