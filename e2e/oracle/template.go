package main

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha3"
	"encoding/hex"
	"encoding/json"
	"errors"
	htmltemplate "html/template"
	"io"
	"text/template"

	"github.com/Masterminds/sprig/v3"
	"github.com/tidwall/gjson"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// templateQuestion asks what a template makes of data.
type templateQuestion struct {
	Template string
	Data     json.RawMessage
	// HTML asks for html/template.
	HTML bool
	// Path makes .Value the gjson result of this path in LocalObject.
	Path *string
}

// executor is a compiled template of either package.
type executor interface {
	Execute(io.Writer, any) error
}

func answerTemplate(line []byte) (answer, error) {
	var question templateQuestion
	if err := json.Unmarshal(line, &question); err != nil {
		return nil, err
	}
	compiled, err := compileTemplate(question.Template, question.HTML)
	if err != nil {
		return nil, err
	}
	data, err := templateData(question.Data, question.Path)
	if err != nil {
		return nil, err
	}
	var output bytes.Buffer
	if err := compiled.Execute(&output, data); err != nil {
		return nil, err
	}
	return answer{"output": output.String()}, nil
}

func compileTemplate(text string, html bool) (executor, error) {
	if html {
		return htmltemplate.New("mutation").Funcs(htmlFunctions).Parse(text)
	}
	return template.New("inline").Funcs(textFunctions).Parse(text)
}

// templateData decodes as Kubernetes does: whole numbers are int64.
func templateData(raw json.RawMessage, path *string) (any, error) {
	var data any
	if len(raw) > 0 {
		if err := utiljson.Unmarshal(raw, &data); err != nil {
			return nil, err
		}
	}
	if path == nil {
		return data, nil
	}
	fields, ok := data.(map[string]any)
	if !ok {
		return nil, errors.New("with a path, data must be an object")
	}
	object, err := json.Marshal(fields["LocalObject"])
	if err != nil {
		return nil, err
	}
	fields["Value"] = gjson.GetBytes(object, *path)
	return fields, nil
}

// htmlFunctions are sprig's; textFunctions are those and the three of the agent.
var (
	htmlFunctions = sprig.TxtFuncMap()
	textFunctions = withHashes(sprig.TxtFuncMap())
)

func withHashes(functions template.FuncMap) template.FuncMap {
	functions["sha3sum"] = sha3sum
	functions["sha3short"] = func(text string, lengths ...int) (string, error) {
		length := 20
		switch {
		case len(lengths) > 1:
			return "", errors.New("sha3short takes one length at most")
		case len(lengths) == 1 && lengths[0] <= 0:
			return "", errors.New("sha3short needs a positive length")
		case len(lengths) == 1:
			length = min(lengths[0], 64)
		}
		return sha3sum(text)[:length], nil
	}
	functions["shortHash"] = func(value any) (string, error) {
		text, ok := value.(string)
		if !ok {
			encoded, err := json.Marshal(value)
			if err != nil {
				return "", err
			}
			text = string(encoded) + "\n"
		}
		sum := sha1.Sum([]byte(text))
		return hex.EncodeToString(sum[:])[:20], nil
	}
	return functions
}

func sha3sum(text string) string {
	sum := sha3.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
