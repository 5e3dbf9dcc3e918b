package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// leader lets two candidates compete for a Lease: one leads at a time, and the other takes over when the first one lets go.
func leader(ctx context.Context, config *rest.Config) error {
	set, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	space, err := set.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: named("leader")}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	events := make(chan string, 10)
	run := func(name string) context.CancelFunc {
		lock, err := resourcelock.New(resourcelock.LeasesResourceLock, space.Name, "lock", set.CoreV1(), set.CoordinationV1(), resourcelock.ResourceLockConfig{Identity: name})
		if err != nil {
			panic(err)
		}
		ctx, cancel := context.WithCancel(ctx)
		go leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
			Lock: lock, LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 100 * time.Millisecond,
			ReleaseOnCancel: true,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(context.Context) { events <- name + " leads" },
				OnStoppedLeading: func() { events <- name + " has stopped" },
			},
		})
		return cancel
	}
	next := func(wanted string) error {
		select {
		case got := <-events:
			return expect("what happened", got, wanted)
		case <-time.After(patience):
			return fmt.Errorf("not within %s: %s", patience, wanted)
		}
	}
	stopFirst := run("first")
	if err := next("first leads"); err != nil {
		return err
	}
	stopSecond := run("second")
	defer stopSecond()
	lease, err := set.CoordinationV1().Leases(space.Name).Get(ctx, "lock", metav1.GetOptions{})
	if err != nil {
		return err
	}
	if err := expect("holder", *lease.Spec.HolderIdentity, "first"); err != nil {
		return err
	}
	// It is renewed while the second one waits.
	err = until(ctx, "a renewal", func(ctx context.Context) (bool, error) {
		now, err := set.CoordinationV1().Leases(space.Name).Get(ctx, "lock", metav1.GetOptions{})
		return err == nil && now.Spec.RenewTime.After(lease.Spec.RenewTime.Time), err
	})
	if err != nil {
		return err
	}
	stopFirst()
	// Both happen at about the same time.
	got := map[string]bool{}
	for range 2 {
		select {
		case event := <-events:
			got[event] = true
		case <-time.After(patience):
			return fmt.Errorf("nobody took over, only %v", got)
		}
	}
	if !got["first has stopped"] || !got["second leads"] {
		return fmt.Errorf("it went wrong: %v", got)
	}
	lease, err = set.CoordinationV1().Leases(space.Name).Get(ctx, "lock", metav1.GetOptions{})
	if err != nil {
		return err
	}
	if err := expect("transitions", *lease.Spec.LeaseTransitions, 1); err != nil {
		return err
	}
	return set.CoreV1().Namespaces().Delete(ctx, space.Name, metav1.DeleteOptions{})
}
