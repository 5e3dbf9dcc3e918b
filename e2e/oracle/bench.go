package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"syscall"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// work is what both languages are timed with.
//
//go:embed bench.json
var work []byte

type inputs struct {
	Template struct {
		Object                                      json.RawMessage
		Cluster, Default, Provider, Mutation, Value string
		ClusterPath                                 string `json:"cluster_path"`
	}
	CEL struct {
		Object     json.RawMessage
		Expression string
	}
	JSON struct {
		Object                                    json.RawMessage
		Field, Element, Query, Collect            string
		Value, Delete, Pattern, Replacement, Text string
	}
}

// timed is a name and what to do.
type timed struct {
	name string
	work func()
}

// bench prints nanoseconds per operation, one JSON object per line.
func bench(out io.Writer) error {
	var in inputs
	if err := json.Unmarshal(work, &in); err != nil {
		return err
	}
	encoder := json.NewEncoder(out)
	for _, each := range slices.Concat(templates(in), expressions(in), paths(in)) {
		if err := encoder.Encode(map[string]any{"name": each.name, "ns": measure(each.work)}); err != nil {
			return err
		}
	}
	return nil
}

func templates(in inputs) []timed {
	object := decoded(in.Template.Object)
	naming := map[string]any{"Object": object, "ClusterName": in.Template.Cluster, "ClusterPath": in.Template.ClusterPath}
	text := must(json.Marshal(map[string]any{"value": in.Template.Value}))
	mutation := map[string]any{"LocalObject": object, "RemoteObject": object, "Value": gjson.GetBytes(text, "value")}
	var all []timed
	for _, each := range []struct {
		name, text string
		html       bool
		data       any
	}{
		{"the default name", in.Template.Default, false, naming},
		{"a provider's name", in.Template.Provider, false, naming},
		{"a mutation", in.Template.Mutation, true, mutation},
	} {
		compiled := must(compileTemplate(each.text, each.html))
		all = append(all,
			timed{"template: compile and render " + each.name, func() { render(must(compileTemplate(each.text, each.html)), each.data) }},
			timed{"template: render " + each.name, func() { render(compiled, each.data) }},
		)
	}
	return all
}

func expressions(in inputs) []timed {
	variables := map[string]any{"self": decoded(in.CEL.Object), "other": map[string]any{}, "value": nil}
	compiled := must(compileCEL(in.CEL.Expression))
	return []timed{
		{"cel: compile and evaluate a mutation", func() { eval(must(compileCEL(in.CEL.Expression)), variables) }},
		{"cel: evaluate a mutation", func() { eval(compiled, variables) }},
	}
}

func paths(in inputs) []timed {
	object := decoded(in.JSON.Object)
	text := string(must(json.Marshal(object)))
	pattern := regexp.MustCompile(in.JSON.Pattern)
	return []timed{
		{"path: read a field", func() { sink = gjson.Get(text, in.JSON.Field) }},
		{"path: read in a list", func() { sink = gjson.Get(text, in.JSON.Element) }},
		{"path: read with a query", func() { sink = gjson.Get(text, in.JSON.Query) }},
		{"path: collect from lists", func() { sink = gjson.Get(text, in.JSON.Collect) }},
		{"path: write", func() { sink = must(sjson.Set(text, in.JSON.Element, in.JSON.Value)) }},
		{"path: delete", func() { sink = must(sjson.Delete(text, in.JSON.Delete)) }},
		{"path: read from an object in memory", func() { sink = gjson.GetBytes(must(json.Marshal(object)), in.JSON.Element) }},
		{"path: write to an object in memory", func() {
			sink = decoded(must(sjson.SetBytes(must(json.Marshal(object)), in.JSON.Element, in.JSON.Value)))
		}},
		{"json: encode", func() { sink = must(json.Marshal(object)) }},
		{"regex: compile", func() { sink = regexp.MustCompile(in.JSON.Pattern) }},
		{"regex: replace", func() { sink = pattern.ReplaceAllString(in.JSON.Text, in.JSON.Replacement) }},
	}
}

// decoded reads an object as Kubernetes does.
func decoded(text []byte) (object map[string]any) {
	if err := utiljson.Unmarshal(text, &object); err != nil {
		panic(err)
	}
	return object
}

// sink keeps results alive, so that no work is left out.
var sink any

func render(template executor, data any) {
	var output bytes.Buffer
	if err := template.Execute(&output, data); err != nil {
		panic(err)
	}
	sink = output.String()
}

func eval(program cel.Program, variables map[string]any) {
	result, _, err := program.Eval(variables)
	if err != nil {
		panic(err)
	}
	sink = must(toJSON(result))
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(fmt.Sprint("the work of the benchmark failed: ", err))
	}
	return value
}

// measure gives the best of three samples of at least 0.3 s of processor time each.
func measure(work func()) float64 {
	runs, samples := 1, []float64{}
	for len(samples) < 3 {
		start := processorTime()
		for range runs {
			work()
		}
		took := processorTime() - start
		if took < 300*time.Millisecond {
			runs *= 2
			continue
		}
		samples = append(samples, float64(took.Nanoseconds())/float64(runs))
	}
	return slices.Min(samples)
}

// processorTime is what all threads of this process have used, the collector of garbage included.
func processorTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
