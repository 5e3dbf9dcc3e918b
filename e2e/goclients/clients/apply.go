package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// apply is server-side apply with typed apply configurations: two owners, a conflict, force, what an owner has applied, and giving up fields.
func apply(ctx context.Context, config *rest.Config) error {
	set, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	space, err := set.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: named("apply")}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	maps := set.CoreV1().ConfigMaps(space.Name)
	first := corev1apply.ConfigMap("shared", space.Name).WithLabels(map[string]string{"owner": "one"}).WithData(map[string]string{"a": "1", "b": "1"})
	if _, err := maps.Apply(ctx, first, metav1.ApplyOptions{FieldManager: "one"}); err != nil {
		return fmt.Errorf("first apply: %w", err)
	}
	second := corev1apply.ConfigMap("shared", space.Name).WithData(map[string]string{"b": "2", "c": "2"})
	_, err = maps.Apply(ctx, second, metav1.ApplyOptions{FieldManager: "two"})
	if !apierrors.IsConflict(err) {
		return fmt.Errorf("a conflict was expected, not %v", err)
	}
	causes := err.(apierrors.APIStatus).Status().Details.Causes
	if len(causes) != 1 || causes[0].Type != metav1.CauseTypeFieldManagerConflict || causes[0].Field != ".data.b" {
		return fmt.Errorf("the conflict has the causes %v", causes)
	}
	both, err := maps.Apply(ctx, second, metav1.ApplyOptions{FieldManager: "two", Force: true})
	if err != nil {
		return fmt.Errorf("forced apply: %w", err)
	}
	if err := expect("data", fmt.Sprint(both.Data), "map[a:1 b:2 c:2]"); err != nil {
		return err
	}
	ones, err := corev1apply.ExtractConfigMap(both, "one")
	if err != nil {
		return err
	}
	if err := expect("what one has left", fmt.Sprint(ones.Data, ones.Labels), "map[a:1] map[owner:one]"); err != nil {
		return err
	}
	// What is no longer applied goes away, unless somebody else has it.
	left, err := maps.Apply(ctx, corev1apply.ConfigMap("shared", space.Name).WithData(map[string]string{"b": "2"}), metav1.ApplyOptions{FieldManager: "two"})
	if err != nil {
		return fmt.Errorf("apply less: %w", err)
	}
	if err := expect("data", fmt.Sprint(left.Data), "map[a:1 b:2]"); err != nil {
		return err
	}
	// The same with controller-runtime, and again: nothing may change.
	c, err := client.New(config, client.Options{})
	if err != nil {
		return err
	}
	again := corev1apply.ConfigMap("shared", space.Name).WithData(map[string]string{"b": "2"})
	if err := c.Apply(ctx, again, client.FieldOwner("two")); err != nil {
		return fmt.Errorf("apply with controller-runtime: %w", err)
	}
	if err := expect("resource version", *again.ResourceVersion, left.ResourceVersion); err != nil {
		return err
	}
	return set.CoreV1().Namespaces().Delete(ctx, space.Name, metav1.DeleteOptions{})
}
