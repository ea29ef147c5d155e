// SPDX-License-Identifier: Apache-2.0

module pybench/orchestrator

go 1.26.0

require (
	github.com/ebitengine/purego v0.11.3
	github.com/klauspost/compress v1.20.3
	golang.org/x/sync v0.24.0
	golang.org/x/sys v0.49.0
)
