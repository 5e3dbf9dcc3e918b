package main

import (
	"encoding/json"
	"fmt"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"
)

// pathQuestion asks what a path reads from, writes to or deletes from a JSON text.
type pathQuestion struct {
	Op    string
	Path  string
	Input string
	Value any
}

func answerPath(line []byte) (answer, error) {
	var question pathQuestion
	if err := json.Unmarshal(line, &question); err != nil {
		return nil, err
	}
	switch question.Op {
	case "gjson":
		found := gjson.Get(question.Input, question.Path)
		return answer{"output": fmt.Sprintf("exists=%v type=%v raw=%s str=%s", found.Exists(), found.Type, found.Raw, found)}, nil
	case "sjsonset":
		output, err := sjson.Set(question.Input, question.Path, question.Value)
		return answer{"output": output}, err
	case "sjsondel":
		output, err := sjson.Delete(question.Input, question.Path)
		return answer{"output": output}, err
	}
	return nil, fmt.Errorf("unknown op %q", question.Op)
}
