package main

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/ext"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apiserver/pkg/cel/library"
)

// celQuestion asks for the value of an expression.
type celQuestion struct {
	Expression         string
	Self, Other, Value json.RawMessage
}

// mutations is the environment of mutations: the standard library and the API server's extensions for text, lists,
// patterns, URLs and quantities.
var mutations = sync.OnceValues(func() (*cel.Env, error) {
	return cel.NewEnv(
		cel.Variable("value", cel.DynType),
		cel.Variable("self", cel.DynType),
		cel.Variable("other", cel.DynType),
		ext.Strings(ext.StringsVersion(2)),
		ext.Lists(),
		library.Lists(),
		library.Regex(),
		library.URLs(),
		library.Quantity(),
	)
})

func answerCEL(line []byte) (answer, error) {
	var question celQuestion
	if err := json.Unmarshal(line, &question); err != nil {
		return nil, err
	}
	program, err := compileCEL(question.Expression)
	if err != nil {
		return nil, fmt.Errorf("compile: %w", err)
	}
	result, err := evaluate(program, question, json.Unmarshal)
	if err != nil {
		// The listed deviation: where numbers of `value` as doubles lead nowhere, whole ones are integers.
		result, err = evaluate(program, question, utiljson.Unmarshal)
	}
	if err != nil {
		return nil, fmt.Errorf("eval: %w", err)
	}
	native, err := toJSON(result)
	return answer{"result": native}, err
}

func compileCEL(expression string) (cel.Program, error) {
	env, err := mutations()
	if err != nil {
		return nil, err
	}
	ast, issues := env.Compile(expression)
	if issues.Err() != nil {
		return nil, issues.Err()
	}
	return env.Program(ast, cel.CostLimit(10_000_000))
}

// evaluate decodes the variables, `value` with the given function and the others as Kubernetes does, and evaluates.
func evaluate(program cel.Program, question celQuestion, value func([]byte, any) error) (ref.Val, error) {
	variables := map[string]any{}
	for name, raw := range map[string]json.RawMessage{"value": question.Value, "self": question.Self, "other": question.Other} {
		decode := value
		if name != "value" {
			decode = func(raw []byte, into any) error { return utiljson.Unmarshal(raw, into) }
		}
		var decoded any
		if len(raw) > 0 {
			if err := decode(raw, &decoded); err != nil {
				return nil, err
			}
		}
		variables[name] = decoded
	}
	result, _, err := program.Eval(variables)
	return result, err
}

// toJSON writes results as what they are, where the reference agent garbles them: the listed deviations.
func toJSON(value ref.Val) (any, error) {
	switch value := value.(type) {
	case types.Null:
		return nil, nil
	case types.Double:
		if math.IsNaN(float64(value)) || math.IsInf(float64(value), 0) {
			return nil, errors.New("not a number in JSON")
		}
		return float64(value), nil
	case types.Bytes:
		return base64.StdEncoding.EncodeToString(value), nil
	case types.Timestamp:
		return value.Time.UTC().Format(time.RFC3339Nano), nil
	case types.Duration:
		return value.Duration.String(), nil
	case *types.Type:
		return value.TypeName(), nil
	case traits.Lister:
		list := []any{}
		for each := value.Iterator(); each.HasNext() == types.True; {
			item, err := toJSON(each.Next())
			if err != nil {
				return nil, err
			}
			list = append(list, item)
		}
		return list, nil
	case traits.Mapper:
		object := map[string]any{}
		for each := value.Iterator(); each.HasNext() == types.True; {
			key := each.Next()
			item, err := toJSON(value.Get(key))
			if err != nil {
				return nil, err
			}
			object[fmt.Sprint(key.Value())] = item
		}
		return object, nil
	case types.Bool, types.Int, types.Uint, types.String:
		return value.Value(), nil
	}
	return nil, fmt.Errorf("a %s is nothing in JSON", value.Type().TypeName())
}
