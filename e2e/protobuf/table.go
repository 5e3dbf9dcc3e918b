package main

import (
	"fmt"
	"io"
	"reflect"
	"sort"
	"strconv"
	"strings"
)

// forms are types that are encoded in a way of their own, by the name of their message.
var forms = map[string]string{
	"meta.Time":                                  "time",
	"meta.MicroTime":                             "microtime",
	"meta.FieldsV1":                              "json",
	"resource.Quantity":                          "quantity",
	"intstr.IntOrString":                         "intstr",
	"runtime.RawExtension":                       "json",
	"apiextensions.JSON":                         "json",
	"apiextensions.JSONSchemaPropsOrArray":       "schema|schemas",
	"apiextensions.JSONSchemaPropsOrBool":        "schema|flag",
	"apiextensions.JSONSchemaPropsOrStringArray": "schema|texts",
}

// messageName is the name of a type in the table: `core.Pod`, `autoscaling/v2.MetricSpec`.
func messageName(goType reflect.Type) string {
	parts := strings.Split(goType.PkgPath(), "/")
	last := parts[len(parts)-1]
	if strings.HasPrefix(last, "v") && len(parts) > 1 {
		if last == "v1" {
			last = parts[len(parts)-2]
		} else {
			last = parts[len(parts)-2] + "/" + last
		}
	}
	return last + "." + goType.Name()
}

// printTable writes API versions, then messages.
func printTable(out io.Writer, kinds []kind) {
	fmt.Fprintln(out, "# The messages of built-in kinds, as k8s.io/api 0.34.2 has them. Made by e2e/protobuf; do not edit.")
	fmt.Fprintln(out, "# <kind's API version> = <package of its messages>; then <message>[!]: <number><flags> <name> <form>; ...   ! it is a kind;")
	fmt.Fprintln(out, "# flags: = its fields belong to the message around it, * it can be unset, ! JSON shows it even if it is empty;")
	fmt.Fprintln(out, "# forms: [] repeated, {} map, @ another message.")
	packages, types := map[string]string{}, map[string]reflect.Type{}
	whole := map[string]bool{}
	var collect func(reflect.Type)
	collect = func(goType reflect.Type) {
		name := messageName(goType)
		if types[name] != nil || forms[name] != "" || goType.Kind() != reflect.Struct {
			return
		}
		types[name] = goType
		for _, field := range fields(goType) {
			collect(element(field.goType))
		}
	}
	for _, kind := range kinds {
		name, _, _ := strings.Cut(kind.message, ".")
		if name != "meta" {
			packages[kind.gvk.GroupVersion().String()] = name
		}
		whole[kind.message] = true
		collect(kind.goType)
	}
	for _, version := range sorted(packages) {
		fmt.Fprintf(out, "%s = %s\n", version, packages[version])
	}
	for _, name := range sorted(types) {
		var told []string
		for _, field := range fields(types[name]) {
			told = append(told, field.String())
		}
		mark := ""
		if whole[name] {
			mark = "!"
		}
		fmt.Fprintf(out, "%s%s: %s\n", name, mark, strings.Join(told, "; "))
	}
}

func sorted[T any](values map[string]T) []string {
	var keys []string
	for key := range values {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	return keys
}

// field is one field of a message.
type field struct {
	number int
	flags  string
	name   string
	form   string
	goType reflect.Type
}

func (f field) String() string {
	return fmt.Sprintf("%d%s %s %s", f.number, f.flags, f.name, f.form)
}

// element is the type behind pointers, lists and maps; lists of bytes are one value.
func element(goType reflect.Type) reflect.Type {
	for {
		switch {
		case goType.Kind() == reflect.Pointer || goType.Kind() == reflect.Map:
			goType = goType.Elem()
		case goType.Kind() == reflect.Slice && goType.Elem().Kind() != reflect.Uint8:
			goType = goType.Elem()
		default:
			return goType
		}
	}
}

// fields are the fields of a struct that have a number, by number.
func fields(goType reflect.Type) []field {
	var all []field
	for i := range goType.NumField() {
		member := goType.Field(i)
		tag := strings.Split(member.Tag.Get("protobuf"), ",")
		if len(tag) < 2 {
			continue
		}
		number, err := strconv.Atoi(tag[1])
		if err != nil {
			panic(fmt.Sprint(goType, ".", member.Name, ": ", err))
		}
		json := strings.Split(member.Tag.Get("json"), ",")
		options := strings.Join(json[1:], ",")
		f := field{number: number, name: json[0], form: form(member.Type), goType: member.Type}
		inline := strings.Contains(options, "inline")
		pointer := member.Type.Kind() == reflect.Pointer
		omits := strings.Contains(options, "omitempty")
		if member.Type.Kind() == reflect.Struct {
			// Structs are never empty for encoding/json.
			omits = strings.Contains(options, "omitzero")
		}
		switch {
		case inline:
			f.flags, f.name = "=", strings.ToLower(member.Name[:1])+member.Name[1:]
		case pointer && omits:
			f.flags = "*"
		case pointer:
			f.flags = "*!"
		case !omits:
			f.flags = "!"
		}
		all = append(all, f)
	}
	sort.Slice(all, func(i, j int) bool { return all[i].number < all[j].number })
	return all
}

// form is how a value is encoded.
func form(goType reflect.Type) string {
	if special := forms[messageName(goType)]; special != "" && goType.Kind() == reflect.Struct {
		return special
	}
	switch goType.Kind() {
	case reflect.Pointer:
		return form(goType.Elem())
	case reflect.Struct:
		return "@" + messageName(goType)
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "flag"
	case reflect.Int32:
		return "int32"
	case reflect.Int64:
		return "int64"
	case reflect.Float64:
		return "double"
	case reflect.Map:
		return "{}" + form(goType.Elem())
	case reflect.Slice:
		switch {
		case goType.Elem().Kind() == reflect.Uint8:
			return "bytes"
		// A named list of texts is a message around them.
		case goType.Name() != "" && goType.Elem().Kind() == reflect.String && hasMarshal(goType):
			return "texts"
		}
		return "[]" + form(goType.Elem())
	}
	panic(fmt.Sprint("no form for ", goType))
}

func hasMarshal(goType reflect.Type) bool {
	_, has := reflect.PointerTo(goType).MethodByName("MarshalTo")
	if !has {
		_, has = goType.MethodByName("MarshalTo")
	}
	return has
}
