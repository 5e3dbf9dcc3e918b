// The typed client of controller-runtime, which sends protobuf for kinds that come with Kubernetes: each of four kinds is created, read,
// updated, patched and deleted. Then client-go's typed clients, which accept nothing but protobuf, with kinds, definitions and watches.
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// counter counts the bodies that are protobuf.
type counter struct {
	next     http.RoundTripper
	protobuf *atomic.Int64
}

func (c counter) RoundTrip(request *http.Request) (*http.Response, error) {
	if strings.Contains(request.Header.Get("Content-Type"), "protobuf") {
		c.protobuf.Add(1)
	}
	return c.next.RoundTrip(request)
}

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
	fmt.Println("done")
}

func run(ctx context.Context) error {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	var protobuf atomic.Int64
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return counter{next, &protobuf} })
	c, err := client.New(config, client.Options{})
	if err != nil {
		return err
	}
	meta := metav1.ObjectMeta{Name: "typed", Namespace: "typed", Labels: map[string]string{"from": "typed"}}
	now := metav1.NewMicroTime(time.Now().Truncate(time.Microsecond))
	holder, seconds := "me", int32(15)
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "typed"}}
	if err := c.Create(ctx, space); err != nil {
		return fmt.Errorf("create Namespace: %w", err)
	}
	secret := &corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"k": {0, 255, 1}}, StringData: map[string]string{"s": "text"}}
	err = life(ctx, c, secret, func() { secret.Data["k"] = []byte("changed") }, func() error {
		if string(secret.Data["k"]) != "changed" || string(secret.Data["s"]) != "text" || secret.Type != corev1.SecretTypeOpaque {
			return fmt.Errorf("it holds %v of type %q", secret.Data, secret.Type)
		}
		return nil
	})
	if err != nil {
		return err
	}
	lease := &coordinationv1.Lease{ObjectMeta: meta, Spec: coordinationv1.LeaseSpec{
		HolderIdentity: &holder, LeaseDurationSeconds: &seconds, AcquireTime: &now, RenewTime: &now,
	}}
	later := metav1.NewMicroTime(now.Add(time.Second))
	err = life(ctx, c, lease, func() { lease.Spec.RenewTime = &later }, func() error {
		if !lease.Spec.RenewTime.Equal(&later) || !lease.Spec.AcquireTime.Equal(&now) || *lease.Spec.HolderIdentity != holder {
			return fmt.Errorf("it holds %v", lease.Spec)
		}
		return nil
	})
	if err != nil {
		return err
	}
	event := &corev1.Event{
		ObjectMeta: meta, Reason: "Tried", Message: "a message", Type: corev1.EventTypeNormal, Count: 1,
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Name: "typed", Namespace: "typed", UID: "u"},
		Source:         corev1.EventSource{Component: "typed"}, FirstTimestamp: metav1.Now(), LastTimestamp: metav1.Now(),
	}
	err = life(ctx, c, event, func() { event.Count = 2 }, func() error {
		if event.Count != 2 || event.InvolvedObject.Name != "typed" || event.Source.Component != "typed" {
			return fmt.Errorf("it holds %v", event)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := patch(ctx, c, space); err != nil {
		return err
	}
	space.Labels["updated"] = "yes"
	if err := c.Update(ctx, space); err != nil {
		return fmt.Errorf("update Namespace: %w", err)
	}
	if err := c.Delete(ctx, space); err != nil {
		return fmt.Errorf("delete Namespace: %w", err)
	}
	if protobuf.Load() < 8 {
		return fmt.Errorf("only %d bodies were protobuf", protobuf.Load())
	}
	fmt.Printf("%d bodies were protobuf\n", protobuf.Load())
	return onlyProtobuf(ctx, config)
}

// life creates, changes, patches, reads, checks and deletes an object.
func life(ctx context.Context, c client.Client, object client.Object, change func(), check func() error) error {
	what := fmt.Sprintf("%T", object)
	if err := c.Create(ctx, object); err != nil {
		return fmt.Errorf("create %s: %w", what, err)
	}
	change()
	if err := c.Update(ctx, object); err != nil {
		return fmt.Errorf("update %s: %w", what, err)
	}
	if err := patch(ctx, c, object); err != nil {
		return err
	}
	key := client.ObjectKeyFromObject(object)
	if err := c.Get(ctx, key, object); err != nil {
		return fmt.Errorf("get %s: %w", what, err)
	}
	if err := check(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	uid := object.GetUID()
	if err := c.Delete(ctx, object, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		return fmt.Errorf("delete %s: %w", what, err)
	}
	if err := c.Get(ctx, key, object); !apierrors.IsNotFound(err) {
		return fmt.Errorf("get deleted %s: %v", what, err)
	}
	return nil
}

// patch adds a label, by merge patch with optimistic lock and by strategic merge patch.
func patch(ctx context.Context, c client.Client, object client.Object) error {
	for _, way := range []string{"merge", "strategic"} {
		before := object.DeepCopyObject().(client.Object)
		labels := object.GetLabels()
		labels[way] = "yes"
		object.SetLabels(labels)
		change := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
		if way == "strategic" {
			change = client.StrategicMergeFrom(before)
		}
		if err := c.Patch(ctx, object, change); err != nil {
			return fmt.Errorf("%s patch of %T: %w", way, object, err)
		}
		if object.GetLabels()[way] != "yes" {
			return fmt.Errorf("%s patch of %T had no effect", way, object)
		}
	}
	return nil
}
