// kcp's own clients: workspaces, an APIExport and its bindings with the typed clients of the sdk, and cluster-aware informers, typed and
// dynamic, over all consumers by way of the virtual workspace. KUBECONFIG is the admin.kubeconfig of kcp.
package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	kcpdynamic "github.com/kcp-dev/client-go/dynamic"
	"github.com/kcp-dev/client-go/dynamic/dynamicinformer"
	kcpinformers "github.com/kcp-dev/client-go/informers"
	kcpkubernetes "github.com/kcp-dev/client-go/kubernetes"
	"github.com/kcp-dev/logicalcluster/v3"
	apisv1alpha1 "github.com/kcp-dev/sdk/apis/apis/v1alpha1"
	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	corev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	tenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	kcpclientset "github.com/kcp-dev/sdk/client/clientset/versioned/cluster"
	sdkinformers "github.com/kcp-dev/sdk/client/informers/externalversions"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const patience = time.Minute

var boats = schema.GroupVersionResource{Group: "workspaces.carrick.test", Version: "v1", Resource: "boats"}

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
	fmt.Println("done")
}

func until(ctx context.Context, what string, ask func() (bool, error)) error {
	var last error
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		yes, err := ask()
		if yes && err == nil {
			return nil
		}
		last = err
	}
	return fmt.Errorf("%s: not within %s, last error: %v", what, patience, last)
}

func inContext(name string) (*rest.Config, error) {
	rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: os.Getenv("KUBECONFIG")}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: name}).ClientConfig()
	if err == nil {
		config.QPS = -1
	}
	return config, err
}

func run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	base, err := inContext("base")
	if err != nil {
		return err
	}
	kcp, err := kcpclientset.NewForConfig(base)
	if err != nil {
		return err
	}
	kube, err := kcpkubernetes.NewForConfig(base)
	if err != nil {
		return err
	}
	root := logicalcluster.NewPath("root")
	suffix := rand.String(6)
	provider, first, second := root.Join("provider-"+suffix), root.Join("first-"+suffix), root.Join("second-"+suffix)
	for _, path := range []logicalcluster.Path{provider, first, second} {
		parent, name := path.Split()
		workspace := &tenancyv1alpha1.Workspace{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: tenancyv1alpha1.WorkspaceSpec{
			Type: &tenancyv1alpha1.WorkspaceTypeReference{Name: "universal", Path: "root"},
		}}
		if _, err := kcp.Cluster(parent).TenancyV1alpha1().Workspaces().Create(ctx, workspace, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create workspace: %w", err)
		}
	}
	names := map[logicalcluster.Path]logicalcluster.Name{}
	for _, path := range []logicalcluster.Path{provider, first, second} {
		parent, name := path.Split()
		err := until(ctx, path.String()+" is ready", func() (bool, error) {
			workspace, err := kcp.Cluster(parent).TenancyV1alpha1().Workspaces().Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return false, err
			}
			names[path] = logicalcluster.Name(workspace.Spec.Cluster)
			return workspace.Status.Phase == corev1alpha1.LogicalClusterPhaseReady, nil
		})
		if err != nil {
			return err
		}
	}
	if err := publish(ctx, kcp, provider); err != nil {
		return err
	}
	for _, path := range []logicalcluster.Path{first, second} {
		if err := bind(ctx, kcp, provider, path); err != nil {
			return err
		}
	}
	if err := atTheProvider(ctx, base, kcp, kube, provider, names[first], names[second]); err != nil {
		return err
	}
	if err := everywhere(ctx, kube, names[first]); err != nil {
		return err
	}
	for _, path := range []logicalcluster.Path{first, second, provider} {
		parent, name := path.Split()
		if err := kcp.Cluster(parent).TenancyV1alpha1().Workspaces().Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// publish makes the schema and the export, which claims config maps.
func publish(ctx context.Context, kcp kcpclientset.ClusterInterface, provider logicalcluster.Path) error {
	raw := `{"type":"object","properties":{"spec":{"type":"object","properties":{"length":{"type":"integer"}}},"status":{"type":"object","properties":{"state":{"type":"string"}}}}}`
	kind := &apisv1alpha1.APIResourceSchema{ObjectMeta: metav1.ObjectMeta{Name: "v1." + boats.GroupResource().String()}, Spec: apisv1alpha1.APIResourceSchemaSpec{
		Group: boats.Group, Scope: "Namespaced",
		Versions: []apisv1alpha1.APIResourceVersion{{Name: "v1", Served: true, Storage: true, Schema: runtime.RawExtension{Raw: []byte(raw)}}},
	}}
	kind.Spec.Names.Plural, kind.Spec.Names.Singular, kind.Spec.Names.Kind, kind.Spec.Names.ListKind = "boats", "boat", "Boat", "BoatList"
	kind.Spec.Versions[0].Subresources.Status = &apiextensionsv1.CustomResourceSubresourceStatus{}
	if _, err := kcp.Cluster(provider).ApisV1alpha1().APIResourceSchemas().Create(ctx, kind, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create schema: %w", err)
	}
	export := &apisv1alpha2.APIExport{ObjectMeta: metav1.ObjectMeta{Name: boats.Group}, Spec: apisv1alpha2.APIExportSpec{
		Resources: []apisv1alpha2.ResourceSchema{{
			Name: "boats", Group: boats.Group, Schema: kind.Name, Storage: apisv1alpha2.ResourceSchemaStorage{CRD: &apisv1alpha2.ResourceSchemaStorageCRD{}},
		}},
		PermissionClaims: []apisv1alpha2.PermissionClaim{{GroupResource: apisv1alpha2.GroupResource{Resource: "configmaps"}, Verbs: []string{"*"}}},
	}}
	if _, err := kcp.Cluster(provider).ApisV1alpha2().APIExports().Create(ctx, export, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create export: %w", err)
	}
	return nil
}

// bind binds the export in a workspace and accepts its claim.
func bind(ctx context.Context, kcp kcpclientset.ClusterInterface, provider, consumer logicalcluster.Path) error {
	binding := &apisv1alpha2.APIBinding{ObjectMeta: metav1.ObjectMeta{Name: "boats"}, Spec: apisv1alpha2.APIBindingSpec{
		Reference: apisv1alpha2.BindingReference{Export: &apisv1alpha2.ExportBindingReference{Path: provider.String(), Name: boats.Group}},
		PermissionClaims: []apisv1alpha2.AcceptablePermissionClaim{{
			State: apisv1alpha2.ClaimAccepted,
			ScopedPermissionClaim: apisv1alpha2.ScopedPermissionClaim{
				PermissionClaim: apisv1alpha2.PermissionClaim{GroupResource: apisv1alpha2.GroupResource{Resource: "configmaps"}, Verbs: []string{"*"}},
				Selector:        apisv1alpha2.PermissionClaimSelector{MatchAll: true},
			},
		}},
	}}
	// A new export takes a moment to be known.
	err := until(ctx, "binding in "+consumer.String(), func() (bool, error) {
		_, err := kcp.Cluster(consumer).ApisV1alpha2().APIBindings().Create(ctx, binding, metav1.CreateOptions{})
		return err == nil, err
	})
	if err != nil {
		return err
	}
	return until(ctx, consumer.String()+" is bound", func() (bool, error) {
		now, err := kcp.Cluster(consumer).ApisV1alpha2().APIBindings().Get(ctx, "boats", metav1.GetOptions{})
		return err == nil && now.Status.Phase == apisv1alpha2.APIBindingPhaseBound, err
	})
}

// atTheProvider watches boats and claimed config maps of all consumers, and writes a status.
func atTheProvider(ctx context.Context, base *rest.Config, kcp kcpclientset.ClusterInterface, kube kcpkubernetes.ClusterInterface, provider logicalcluster.Path, consumers ...logicalcluster.Name) error {
	address := ""
	err := until(ctx, "an address in the endpoint slice", func() (bool, error) {
		slice, err := kcp.Cluster(provider).ApisV1alpha1().APIExportEndpointSlices().Get(ctx, boats.Group, metav1.GetOptions{})
		if err != nil || len(slice.Status.APIExportEndpoints) == 0 {
			return false, err
		}
		address = slice.Status.APIExportEndpoints[0].URL
		return true, nil
	})
	if err != nil {
		return err
	}
	at := rest.CopyConfig(base)
	at.Host = address
	objects, err := kcpdynamic.NewForConfig(at)
	if err != nil {
		return err
	}
	claimed, err := kcpkubernetes.NewForConfig(at)
	if err != nil {
		return err
	}
	bindings, err := kcpclientset.NewForConfig(at)
	if err != nil {
		return err
	}
	dynamics := dynamicinformer.NewDynamicSharedInformerFactory(objects, 0)
	typed := kcpinformers.NewSharedInformerFactory(claimed, 0)
	ours := sdkinformers.NewSharedInformerFactory(bindings, 0)
	boat, maps, bound := dynamics.ForResource(boats), typed.Core().V1().ConfigMaps(), ours.Apis().V1alpha2().APIBindings()
	boat.Informer()
	maps.Informer()
	bound.Informer()
	dynamics.Start(ctx.Done())
	typed.Start(ctx.Done())
	ours.Start(ctx.Done())
	dynamics.WaitForCacheSync(ctx.Done())
	typed.WaitForCacheSync(ctx.Done())
	ours.WaitForCacheSync(ctx.Done())

	direct, err := kcpdynamic.NewForConfig(base)
	if err != nil {
		return err
	}
	for _, consumer := range consumers {
		object := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "workspaces.carrick.test/v1", "kind": "Boat", "metadata": map[string]any{"name": "wherry"}, "spec": map[string]any{"length": int64(12)},
		}}
		err := until(ctx, "a boat in "+consumer.String(), func() (bool, error) {
			_, err := direct.Cluster(consumer.Path()).Resource(boats).Namespace("default").Create(ctx, object, metav1.CreateOptions{})
			return err == nil, err
		})
		if err != nil {
			return err
		}
		plan := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "plan"}, Data: map[string]string{"of": consumer.String()}}
		if _, err := kube.Cluster(consumer.Path()).CoreV1().ConfigMaps("default").Create(ctx, plan, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	for _, consumer := range consumers {
		err := until(ctx, "informers know "+consumer.String(), func() (bool, error) {
			if _, err := boat.Lister().ByCluster(consumer).ByNamespace("default").Get("wherry"); err != nil {
				return false, err
			}
			plan, err := maps.Lister().Cluster(consumer).ConfigMaps("default").Get("plan")
			if err != nil {
				return false, err
			}
			if logicalcluster.From(plan) != consumer || plan.Data["of"] != consumer.String() {
				return false, fmt.Errorf("the plan of %s is in %s", plan.Data["of"], logicalcluster.From(plan))
			}
			_, err = bound.Lister().Cluster(consumer).Get("boats")
			return err == nil, err
		})
		if err != nil {
			return err
		}
		here := objects.Cluster(consumer.Path()).Resource(boats).Namespace("default")
		object, err := here.Get(ctx, "wherry", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if err := unstructured.SetNestedField(object.Object, "afloat", "status", "state"); err != nil {
			return err
		}
		if _, err := here.UpdateStatus(ctx, object, metav1.UpdateOptions{}); err != nil {
			return fmt.Errorf("status by way of the virtual workspace: %w", err)
		}
		seen, err := direct.Cluster(consumer.Path()).Resource(boats).Namespace("default").Get(ctx, "wherry", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if state, _, _ := unstructured.NestedString(seen.Object, "status", "state"); state != "afloat" {
			return fmt.Errorf("the consumer sees the state %q", state)
		}
	}
	all, err := boat.Lister().List(labels.Everything())
	if err != nil || len(all) != len(consumers) {
		return fmt.Errorf("the lister knows %d boats: %v", len(all), err)
	}
	return nil
}

// everywhere lists all workspaces at once, as the administrator of the shard may.
func everywhere(ctx context.Context, kube kcpkubernetes.ClusterInterface, first logicalcluster.Name) error {
	shard, err := inContext("shard-base")
	if err != nil {
		return err
	}
	all, err := kcpkubernetes.NewForConfig(shard)
	if err != nil {
		return err
	}
	factory := kcpinformers.NewSharedInformerFactory(all, 0)
	spaces := factory.Core().V1().Namespaces()
	spaces.Informer()
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	if _, err := spaces.Lister().Cluster(first).Get("default"); err != nil {
		return fmt.Errorf("over all workspaces: %w", err)
	}
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "harbour"}}
	if _, err := kube.Cluster(first.Path()).CoreV1().Namespaces().Create(ctx, space, metav1.CreateOptions{}); err != nil {
		return err
	}
	return until(ctx, "the new namespace is seen over all workspaces", func() (bool, error) {
		found, err := spaces.Lister().List(labels.Everything())
		return slices.ContainsFunc(found, func(space *corev1.Namespace) bool {
			return space.Name == "harbour" && logicalcluster.From(space) == first
		}), err
	})
}
