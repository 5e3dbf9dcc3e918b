// Protobuf tells what Kubernetes' own Go libraries know about the protobuf encoding of built-in kinds.
//
//	protobuf table      the table of messages that the embedded plane reads: numbers, names and forms of all fields
//	protobuf vectors    random objects of every kind, with the start of the SHA-256 of their protobuf encoding, one JSON object per line
package main

import (
	"bufio"
	"fmt"
	"os"
	"reflect"
	"sort"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	admissionregistrationv1beta1 "k8s.io/api/admissionregistration/v1beta1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// scheme knows all kinds that are told about.
func scheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		admissionregistrationv1.AddToScheme, admissionregistrationv1beta1.AddToScheme, appsv1.AddToScheme,
		authenticationv1.AddToScheme, authorizationv1.AddToScheme, autoscalingv1.AddToScheme, autoscalingv2.AddToScheme,
		batchv1.AddToScheme, certificatesv1.AddToScheme, coordinationv1.AddToScheme, corev1.AddToScheme,
		discoveryv1.AddToScheme, eventsv1.AddToScheme, flowcontrolv1.AddToScheme, networkingv1.AddToScheme,
		nodev1.AddToScheme, policyv1.AddToScheme, rbacv1.AddToScheme, resourcev1.AddToScheme, schedulingv1.AddToScheme,
		storagev1.AddToScheme, apiextensionsv1.AddToScheme, metav1.AddMetaToScheme,
	} {
		utilruntime.Must(add(scheme))
	}
	// What discovery answers with.
	unversioned := schema.GroupVersion{Version: "v1"}
	scheme.AddUnversionedTypes(unversioned,
		&metav1.Status{}, &metav1.APIVersions{}, &metav1.APIGroupList{}, &metav1.APIGroup{}, &metav1.APIResourceList{})
	return scheme
}

// kind is one kind with its type and the name of its message.
type kind struct {
	gvk     schema.GroupVersionKind
	goType  reflect.Type
	message string
}

// kinds are all kinds that have a message, each once.
func kinds(scheme *runtime.Scheme) []kind {
	var all []kind
	for gvk, goType := range scheme.AllKnownTypes() {
		meta := strings.HasSuffix(goType.PkgPath(), "/apis/meta/v1")
		told := gvk.GroupVersion() == metav1.SchemeGroupVersion || gvk.GroupVersion() == schema.GroupVersion{Version: "v1"}
		_, encodes := reflect.New(goType).Interface().(runtime.ProtobufMarshaller)
		// Options belong to every group, and those of a query have no body; an event of a watch is not an object.
		query := strings.HasSuffix(gvk.Kind, "Options") && gvk.Kind != "DeleteOptions"
		if !encodes || gvk.Version == runtime.APIVersionInternal || meta && !told || query || gvk.Kind == "WatchEvent" {
			continue
		}
		all = append(all, kind{gvk, goType, messageName(goType)})
	}
	sort.Slice(all, func(i, j int) bool {
		return all[i].message+all[i].gvk.String() < all[j].message+all[j].gvk.String()
	})
	return all
}

func main() {
	out := bufio.NewWriterSize(os.Stdout, 1<<16)
	defer out.Flush()
	switch strings.Join(os.Args[1:], " ") {
	case "table":
		printTable(out, kinds(scheme()))
	case "vectors":
		printVectors(out, scheme())
	default:
		fmt.Fprintln(os.Stderr, "usage: protobuf table|vectors")
		os.Exit(2)
	}
}
