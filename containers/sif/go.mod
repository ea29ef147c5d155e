// SPDX-License-Identifier: Apache-2.0
module pybench/containers/sif

go 1.26

require (
	github.com/google/uuid v1.6.0
	github.com/sylabs/sif/v2 v2.24.1
)

require github.com/google/go-containerregistry v0.21.6 // indirect
