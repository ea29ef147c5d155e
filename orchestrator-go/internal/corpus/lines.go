// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"pybench/orchestrator/internal/fault"
)

// appendField adds the text of one field of a JSON line to text. Everything that Go's decoder would mend in silence
// (bytes that are not UTF-8, half a surrogate pair) is refused: other paths would mend it otherwise, or not at all.
func appendField(text, line []byte, field, place string) ([]byte, error) {
	if bad := firstBadByte(line); bad >= 0 {
		return text, NotUTF8(place, "", int64(bad))
	}
	var record map[string]json.RawMessage
	if err := json.Unmarshal(line, &record); err != nil || record == nil {
		return text, fault.New(fault.Input, "a .jsonl file has one JSON object in each line", "%s is not a JSON object", place)
	}
	raw, found := record[field]
	if !found {
		return text, fault.New(fault.Input, "set `corpus_field` to the field that contains the text", "%s has no field %s (it has: %s)", place, field, keysOf(record))
	}
	if raw[0] != '"' {
		return text, fault.New(fault.Input, "set `corpus_field` to the field that contains the text", "%s: field %s is not a string", place, field)
	}
	if !bytes.ContainsRune(raw, '\\') {
		return append(text, raw[1:len(raw)-1]...), nil
	}
	if hasLoneSurrogate(raw) {
		return text, fault.New(fault.Input, "write the character itself, or both halves", "%s: field %s contains half a surrogate pair", place, field)
	}
	var value string
	if err := json.Unmarshal(raw, &value); err != nil {
		return text, fault.New(fault.Internal, "", "%s: %v", place, err)
	}
	return append(text, value...), nil
}

func keysOf(record map[string]json.RawMessage) string {
	names := make([]string, 0, len(record))
	for name := range record {
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

func firstBadByte(text []byte) int {
	if utf8.Valid(text) {
		return -1
	}
	for at := 0; at < len(text); {
		character, size := utf8.DecodeRune(text[at:])
		if character == utf8.RuneError && size == 1 {
			return at
		}
		at += size
	}
	return -1
}

// hasLoneSurrogate looks at the \u escapes of a valid JSON string.
func hasLoneSurrogate(raw []byte) bool {
	high := false // the escape just before was the first half of a pair
	for at := 0; at < len(raw); {
		if raw[at] != '\\' || raw[at+1] != 'u' {
			if high {
				return true
			}
			at++
			if raw[at-1] == '\\' {
				at++
			}
			continue
		}
		unit, _ := strconv.ParseUint(string(raw[at+2:at+6]), 16, 16)
		isLow := unit >= 0xDC00 && unit <= 0xDFFF
		if high != isLow {
			return true
		}
		high = unit >= 0xD800 && unit <= 0xDBFF
		at += 6
	}
	return high
}

// NotUTF8 is the error for a document that is not UTF-8; file is its name for the hint, or "" where none helps.
func NotUTF8(place, file string, position int64) error {
	hint := "write it as UTF-8"
	if file != "" {
		hint = "convert it, as in: iconv -f latin1 -t utf-8 " + file
	}
	return fault.New(fault.Input, hint, "%s is not UTF-8: byte %d begins no character", place, position)
}
