package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// seen writes down what an informer tells.
type seen struct {
	sync.Mutex
	events []string
}

func (s *seen) add(kind string, object any) {
	if gone, is := object.(cache.DeletedFinalStateUnknown); is {
		object = gone.Obj
	}
	of, err := meta.Accessor(object)
	if err != nil {
		panic(err)
	}
	s.Lock()
	defer s.Unlock()
	s.events = append(s.events, kind+" "+of.GetName())
}

func (s *seen) handler() cache.ResourceEventHandlerFuncs {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { s.add("add", object) },
		UpdateFunc: func(_, object any) { s.add("update", object) },
		DeleteFunc: func(object any) { s.add("delete", object) },
	}
}

func (s *seen) became(ctx context.Context, who string, wanted ...string) error {
	return until(ctx, fmt.Sprintf("%s sees %v", who, wanted), func(context.Context) (bool, error) {
		s.Lock()
		defer s.Unlock()
		if fmt.Sprint(s.events) == fmt.Sprint(wanted) {
			return true, nil
		}
		return false, fmt.Errorf("it saw %v", s.events)
	})
}

// typedInformers are a factory's informers for one namespace with a label selector, listers and an index.
func typedInformers(ctx context.Context, config *rest.Config) error {
	set, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	space, err := set.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: named("informers")}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactoryWithOptions(set, time.Hour, informers.WithNamespace(space.Name),
		informers.WithTweakListOptions(func(options *metav1.ListOptions) { options.LabelSelector = "wanted=yes" }))
	secrets := factory.Core().V1().Secrets()
	var events seen
	if _, err := secrets.Informer().AddEventHandler(events.handler()); err != nil {
		return err
	}
	err = secrets.Informer().AddIndexers(cache.Indexers{"color": func(object any) ([]string, error) {
		return []string{string(object.(*corev1.Secret).Data["color"])}, nil
	}})
	if err != nil {
		return err
	}
	factory.Start(ctx.Done())
	for kind, ok := range factory.WaitForCacheSync(ctx.Done()) {
		if !ok {
			return fmt.Errorf("%v did not sync", kind)
		}
	}
	create := func(name, wanted string) (*corev1.Secret, error) {
		return set.CoreV1().Secrets(space.Name).Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"wanted": wanted}},
			StringData: map[string]string{"color": "red"},
		}, metav1.CreateOptions{})
	}
	one, err := create("one", "yes")
	if err != nil {
		return err
	}
	if _, err := create("two", "no"); err != nil {
		return err
	}
	if err := events.became(ctx, "the informer", "add one"); err != nil {
		return err
	}
	found, err := secrets.Informer().GetIndexer().ByIndex("color", "red")
	if err != nil || len(found) != 1 {
		return fmt.Errorf("the index finds %d: %v", len(found), err)
	}
	// Leaving the selection looks like a deletion, and joining it like a creation.
	one.Labels["wanted"] = "no"
	if _, err := set.CoreV1().Secrets(space.Name).Update(ctx, one, metav1.UpdateOptions{}); err != nil {
		return err
	}
	patch := []byte(`{"metadata":{"labels":{"wanted":"yes"}}}`)
	if _, err := set.CoreV1().Secrets(space.Name).Patch(ctx, "two", "application/merge-patch+json", patch, metav1.PatchOptions{}); err != nil {
		return err
	}
	if err := events.became(ctx, "the informer", "add one", "delete one", "add two"); err != nil {
		return err
	}
	listed, err := secrets.Lister().Secrets(space.Name).List(labels.Everything())
	if err != nil || len(listed) != 1 {
		return fmt.Errorf("the lister knows %d: %v", len(listed), err)
	}
	return set.CoreV1().Namespaces().Delete(ctx, space.Name, metav1.DeleteOptions{})
}

// dynamicInformers are those of a kind that the program has no type for, once with whole objects and once with their metadata only.
func dynamicInformers(ctx context.Context, config *rest.Config) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop, err := install(config, "dynamic.carrick.test", false)
	if err != nil {
		return err
	}
	defer stop()
	boats := boatsOf("dynamic.carrick.test")
	whole, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	part, err := metadata.NewForConfig(config)
	if err != nil {
		return err
	}
	var wholes, parts seen
	of := dynamicinformer.NewFilteredDynamicSharedInformerFactory(whole, 0, "default", nil)
	informer := of.ForResource(boats)
	if _, err := informer.Informer().AddEventHandler(wholes.handler()); err != nil {
		return err
	}
	of.Start(ctx.Done())
	of.WaitForCacheSync(ctx.Done())
	ofParts := metadatainformer.NewFilteredSharedInformerFactory(part, 0, "default", nil)
	if _, err := ofParts.ForResource(boats).Informer().AddEventHandler(parts.handler()); err != nil {
		return err
	}
	ofParts.Start(ctx.Done())
	ofParts.WaitForCacheSync(ctx.Done())
	client := whole.Resource(boats).Namespace("default")
	boat := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "dynamic.carrick.test/v1", "kind": "Boat", "metadata": map[string]any{"name": "wherry"},
		"spec": map[string]any{"length": int64(12)},
	}}
	made, err := client.Create(ctx, boat, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	color, _, _ := unstructured.NestedString(made.Object, "spec", "color")
	if err := expect("the default color", color, "black"); err != nil {
		return err
	}
	if err := unstructured.SetNestedField(made.Object, "afloat", "status", "state"); err != nil {
		return err
	}
	if _, err := client.UpdateStatus(ctx, made, metav1.UpdateOptions{}); err != nil {
		return err
	}
	if err := client.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		return err
	}
	for who, events := range map[string]*seen{"the dynamic informer": &wholes, "the metadata informer": &parts} {
		if err := events.became(ctx, who, "add wherry", "update wherry", "delete wherry"); err != nil {
			return err
		}
	}
	return nil
}
