// SPDX-License-Identifier: Apache-2.0

// Package tokenizertest finds the real shared object and vocabulary for tests; there is no stand-in for either.
package tokenizertest

import (
	"os"
	"testing"

	"pybench/orchestrator/internal/tokenizer"
)

const (
	objectVariable = "PYBENCH_TOKENIZER_OBJECT"
	jsonVariable   = "PYBENCH_TOKENIZER_JSON"
)

// Paths skips the test when the environment names no object; an object that is named and broken is a failure.
func Paths(t *testing.T) (object, json string) {
	t.Helper()
	object, json = os.Getenv(objectVariable), os.Getenv(jsonVariable)
	if object == "" || json == "" {
		t.Skipf("NOT TESTED against the real tokenizer: set %s and %s", objectVariable, jsonVariable)
	}
	return object, json
}

// Model loads what Paths names.
func Model(t *testing.T) *tokenizer.Model {
	t.Helper()
	object, json := Paths(t)
	library, err := tokenizer.Open(object)
	if err != nil {
		t.Fatal(err)
	}
	model, err := library.Load(json)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(model.Close)
	return model
}
