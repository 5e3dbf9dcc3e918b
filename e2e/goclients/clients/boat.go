package main

import (
	"encoding/json"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// Boat is a kind of its own for everybody who needs one.
type Boat struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              BoatSpec   `json:"spec,omitempty"`
	Status            BoatStatus `json:"status,omitempty"`
}

// BoatSpec is what is wanted.
type BoatSpec struct {
	Length int64  `json:"length,omitempty"`
	Color  string `json:"color,omitempty"`
}

// BoatStatus is what is.
type BoatStatus struct {
	State      string             `json:"state,omitempty"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// BoatList is a list of them.
type BoatList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Boat `json:"items"`
}

// DeepCopyObject copies by way of JSON: short, and fast enough for a test.
func (b *Boat) DeepCopyObject() runtime.Object { return copied(b, &Boat{}) }

// DeepCopyObject copies by way of JSON.
func (b *BoatList) DeepCopyObject() runtime.Object { return copied(b, &BoatList{}) }

func copied[T runtime.Object](from, to T) T {
	text, err := json.Marshal(from)
	if err == nil {
		err = json.Unmarshal(text, to)
	}
	if err != nil {
		panic(err)
	}
	return to
}

// boatScheme knows boats of a group.
func boatScheme(scheme *runtime.Scheme, group string) {
	version := schema.GroupVersion{Group: group, Version: "v1"}
	scheme.AddKnownTypes(version, &Boat{}, &BoatList{})
	metav1.AddToGroupVersion(scheme, version)
}

func boatsOf(group string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: group, Version: "v1", Resource: "boats"}
}

// boatCRD has validation, defaults, a status, a scale and columns.
func boatCRD(group string) *apiextensionsv1.CustomResourceDefinition {
	text := apiextensionsv1.JSONSchemaProps{Type: "string"}
	open := apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: ptr.To(true)}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "boats." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "boats", Singular: "boat", Kind: "Boat", ListKind: "BoatList", ShortNames: []string{"bt"}},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Subresources:             &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
				AdditionalPrinterColumns: []apiextensionsv1.CustomResourceColumnDefinition{{Name: "Length", Type: "integer", JSONPath: ".spec.length"}},
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object",
					Properties: map[string]apiextensionsv1.JSONSchemaProps{
						"spec": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
							"length": {Type: "integer", Format: "int64", Minimum: ptr.To(1.0)},
							"color":  {Type: "string", Default: &apiextensionsv1.JSON{Raw: []byte(`"black"`)}},
						}},
						"status": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
							"state":      text,
							"conditions": {Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &open}},
						}},
					},
				}},
			}},
		},
	}
}

// install brings boats of a group into the server as envtest does, and says how to take them away again. Webhooks are called if wanted.
func install(config *rest.Config, group string, withWebhooks bool) (func(), error) {
	environment := environmentOf(config, group)
	if withWebhooks {
		environment.WebhookInstallOptions = webhookOptions(group)
	}
	if _, err := environment.Start(); err != nil {
		return nil, err
	}
	installed = environment
	return func() {
		if err := environment.Stop(); err != nil {
			panic(err)
		}
	}, nil
}

// installed is the environment of the last installation.
var installed *envtest.Environment

func environmentOf(config *rest.Config, group string) *envtest.Environment {
	return &envtest.Environment{
		UseExistingCluster: ptr.To(true), Config: config,
		CRDInstallOptions: envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{boatCRD(group)}, CleanUpAfterUse: true},
	}
}
