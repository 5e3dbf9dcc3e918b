package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math/rand"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/randfill"
)

// vector is one object: as JSON, and what its other encoding is like.
type vector struct {
	JSON   json.RawMessage `json:"json"`
	SHA256 string          `json:"sha256"`
}

// attempts is how many random objects of a kind are made.
const attempts = 40

// printVectors writes an empty object of every kind, and further ones until each field of each message was set once.
func printVectors(out io.Writer, scheme *runtime.Scheme) {
	serializer := protobuf.NewSerializer(scheme, scheme)
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	seen := map[string]bool{}
	for number, kind := range kinds(scheme) {
		random := rand.New(rand.NewSource(int64(number)))
		for attempt := range attempts {
			object := reflect.New(kind.goType).Interface().(runtime.Object)
			if attempt > 0 {
				// Small objects come first.
				filler(random, 0.9-0.9*float64(attempt)/attempts, kind.gvk.Kind == "Pod").Fill(object)
				shorten(reflect.ValueOf(object).Elem())
			}
			// Few objects differ in the two encodings: an empty list, for example, becomes none in protobuf.
			found, err := encode(serializer, kind, object)
			if err != nil && attempt > 0 || !cover(seen, reflect.ValueOf(object).Elem()) && attempt > 0 {
				continue
			}
			if err == nil {
				err = encoder.Encode(found)
			}
			if err != nil {
				panic(fmt.Sprintf("%v: %v", kind.gvk, err))
			}
		}
	}
}

// shorten cuts texts of types of their own, which are filled with something long.
func shorten(value reflect.Value) {
	switch value.Kind() {
	case reflect.Pointer:
		if !value.IsNil() {
			shorten(value.Elem())
		}
	case reflect.Slice:
		for i := range value.Len() {
			shorten(value.Index(i))
		}
	case reflect.Struct:
		for i := range value.NumField() {
			if value.Type().Field(i).Tag.Get("protobuf") != "" {
				shorten(value.Field(i))
			}
		}
	case reflect.String:
		if runes := []rune(value.String()); len(runes) > 2 && value.Type().PkgPath() != "" {
			value.SetString(string(runes[:2]))
		}
	}
}

// cover notes the fields that are set, and tells whether one of them is new.
func cover(seen map[string]bool, value reflect.Value) bool {
	isNew := false
	switch value.Kind() {
	case reflect.Pointer:
		return !value.IsNil() && cover(seen, value.Elem())
	case reflect.Slice:
		for i := range value.Len() {
			isNew = cover(seen, value.Index(i)) || isNew
		}
	case reflect.Map:
		for entries := value.MapRange(); entries.Next(); {
			isNew = cover(seen, entries.Value()) || isNew
		}
	case reflect.Struct:
		name := messageName(value.Type())
		if forms[name] != "" {
			return false
		}
		for i := range value.NumField() {
			member := value.Type().Field(i)
			if member.Tag.Get("protobuf") == "" || value.Field(i).IsZero() {
				continue
			}
			key := name + "." + member.Name
			isNew = cover(seen, value.Field(i)) || !seen[key] || isNew
			seen[key] = true
		}
	}
	return isNew
}

func encode(serializer runtime.Serializer, kind kind, object runtime.Object) (*vector, error) {
	object.GetObjectKind().SetGroupVersionKind(kind.gvk)
	var first, second bytes.Buffer
	if err := serializer.Encode(object, &first); err != nil {
		return nil, err
	}
	back, _, err := serializer.Decode(first.Bytes(), nil, nil)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(back)
	if err != nil {
		return nil, err
	}
	again := reflect.New(kind.goType).Interface().(runtime.Object)
	if err := json.Unmarshal(text, again); err != nil {
		return nil, err
	}
	if err := serializer.Encode(again, &second); err != nil {
		return nil, err
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		return nil, fmt.Errorf("it differs in the two encodings: %s", text)
	}
	sum := sha256.Sum256(first.Bytes())
	return &vector{JSON: text, SHA256: hex.EncodeToString(sum[:8])}, nil
}

// filler fills objects with short values of every form; what many kinds contain is only rarely filled, templates of pods never.
func filler(random *rand.Rand, unset float64, pods bool) *randfill.Filler {
	texts := []string{"", "a", "some-name", "x.example.io/y", "zwölf <&> 日本"}
	raws := []string{`{"a":1,"b":[true,null,"é"]}`, `"text"`, `0.5`, `[]`}
	depth := 0
	text := func() string { return texts[random.Intn(len(texts))] }
	return randfill.New().RandSource(random).NilChance(unset).NumElements(1, 2).MaxDepth(40).Funcs(
		func(value *string, _ randfill.Continue) { *value = text() },
		func(value *[]byte, _ randfill.Continue) { *value = []byte{0, 255, byte(random.Intn(256))} },
		func(value *int32, _ randfill.Continue) {
			*value = []int32{0, 1, -1, 300, 1<<31 - 1, -1 << 31}[random.Intn(6)]
		},
		func(value *int64, _ randfill.Continue) {
			*value = []int64{0, 1, -1, 300, 1<<63 - 1, -1 << 63}[random.Intn(6)]
		},
		func(value *float64, _ randfill.Continue) { *value = []float64{0, 1, -2.5, 1e-7, 1e30}[random.Intn(5)] },
		func(value *metav1.TypeMeta, _ randfill.Continue) {},
		func(value *metav1.Time, _ randfill.Continue) {
			if random.Intn(4) > 0 {
				value.Time = time.Unix(random.Int63n(4e9)-1e9, 0)
			}
		},
		func(value *metav1.MicroTime, _ randfill.Continue) {
			if random.Intn(4) > 0 {
				value.Time = time.Unix(random.Int63n(4e9)-1e9, random.Int63n(1e6)*1000)
			}
		},
		func(value *resource.Quantity, _ randfill.Continue) {
			*value = resource.MustParse([]string{"0", "1", "100m", "2Gi", "1e3", "-5"}[random.Intn(6)])
		},
		func(value *intstr.IntOrString, _ randfill.Continue) {
			*value = intstr.FromInt32(random.Int31())
			if random.Intn(2) == 0 {
				*value = intstr.FromString(text())
			}
		},
		func(value *metav1.ObjectMeta, c randfill.Continue) {
			value.Name = text()
			if random.Intn(20) == 0 {
				c.FillNoCustom(value)
			}
		},
		func(value *corev1.PodSpec, c randfill.Continue) {
			value.NodeName = text()
			if pods {
				c.FillNoCustom(value)
			}
		},
		func(value *runtime.RawExtension, _ randfill.Continue) { value.Raw = []byte(raws[0]) },
		func(value *metav1.FieldsV1, _ randfill.Continue) { value.Raw = []byte(`{"f:a":{}}`) },
		func(value *apiextensionsv1.JSON, _ randfill.Continue) {
			value.Raw = []byte(raws[random.Intn(len(raws))])
		},
		func(value *apiextensionsv1.JSONSchemaProps, c randfill.Continue) {
			value.Type = text()
			if depth++; depth < 2 {
				c.FillNoCustom(value)
			}
			depth--
		},
		func(value *apiextensionsv1.JSONSchemaPropsOrArray, c randfill.Continue) {
			if random.Intn(2) == 0 {
				c.Fill(&value.Schema)
			} else {
				c.Fill(&value.JSONSchemas)
			}
		},
		func(value *apiextensionsv1.JSONSchemaPropsOrBool, c randfill.Continue) {
			c.Fill(&value.Schema)
			value.Allows = value.Schema != nil || random.Intn(2) == 0
		},
		func(value *apiextensionsv1.JSONSchemaPropsOrStringArray, c randfill.Continue) {
			if random.Intn(2) == 0 {
				c.Fill(&value.Schema)
			} else {
				c.Fill(&value.Property)
			}
		},
	)
}
