package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const (
	finalizer = "carrick.test/yard"
	byColor   = "spec.color"
)

// yard builds boats: a ConfigMap for each, a status with a condition, an event, and a finalizer that is removed when the boat is scrapped.
type yard struct {
	client.Client
	recorder record.EventRecorder
	scrapped atomic.Int64
}

func (y *yard) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	boat := &Boat{}
	if err := y.Get(ctx, request.NamespacedName, boat); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !boat.DeletionTimestamp.IsZero() {
		if controllerutil.RemoveFinalizer(boat, finalizer) {
			// The cache may be behind: a second attempt finds nothing.
			if err := y.Update(ctx, boat); err != nil {
				return ctrl.Result{}, client.IgnoreNotFound(err)
			}
			y.scrapped.Add(1)
		}
		return ctrl.Result{}, nil
	}
	if controllerutil.AddFinalizer(boat, finalizer) {
		if err := y.Update(ctx, boat); err != nil {
			return ctrl.Result{}, err
		}
	}
	plan := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: boat.Name, Namespace: boat.Namespace}}
	done, err := controllerutil.CreateOrUpdate(ctx, y.Client, plan, func() error {
		plan.Data = map[string]string{"length": fmt.Sprint(boat.Spec.Length), "color": boat.Spec.Color}
		return controllerutil.SetControllerReference(boat, plan, y.Scheme())
	})
	if err != nil {
		return ctrl.Result{}, err
	}
	if done != controllerutil.OperationResultNone {
		y.recorder.Eventf(boat, corev1.EventTypeNormal, "Built", "the plan was %s", done)
	}
	before := boat.DeepCopyObject().(*Boat)
	boat.Status.State = "afloat"
	changed := meta.SetStatusCondition(&boat.Status.Conditions, metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Built", ObservedGeneration: boat.Generation})
	if before.Status.State != boat.Status.State || changed {
		return ctrl.Result{}, y.Status().Patch(ctx, boat, client.MergeFrom(before))
	}
	return ctrl.Result{}, nil
}

// runManager starts a manager with the controller, an index and leader election, and says how to stop it.
func runManager(ctx context.Context, rest *rest.Config, scheme *runtime.Scheme, space, identity string) (*yard, ctrl.Manager, func() error, error) {
	m, err := ctrl.NewManager(rest, ctrl.Options{
		Scheme: scheme, Metrics: server.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		LeaderElection: true, LeaderElectionID: "yard", LeaderElectionNamespace: space, LeaderElectionReleaseOnCancel: true,
		LeaseDuration: ptr.To(15 * time.Second), RenewDeadline: ptr.To(10 * time.Second), RetryPeriod: ptr.To(200 * time.Millisecond),
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
	})
	if err != nil {
		return nil, nil, nil, err
	}
	y := &yard{Client: m.GetClient(), recorder: m.GetEventRecorderFor(identity)}
	color := func(object client.Object) []string { return []string{object.(*Boat).Spec.Color} }
	if err := m.GetFieldIndexer().IndexField(ctx, &Boat{}, byColor, color); err != nil {
		return nil, nil, nil, err
	}
	if err := ctrl.NewControllerManagedBy(m).For(&Boat{}).Owns(&corev1.ConfigMap{}).Complete(y); err != nil {
		return nil, nil, nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- m.Start(ctx) }()
	return y, m, func() error { cancel(); return <-ended }, nil
}

// manager is a controller as kubebuilder lays it out, from the first object to the last, with a second replica that takes over.
func manager(ctx context.Context, rest *rest.Config) error {
	const group = "manager.carrick.test"
	stop, err := install(rest, group, false)
	if err != nil {
		return err
	}
	defer stop()
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return err
	}
	boatScheme(scheme, group)
	direct, err := client.New(rest, client.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	space := &corev1.Namespace{ObjectMeta: named("manager")}
	if err := direct.Create(ctx, space); err != nil {
		return err
	}
	first, running, stopFirst, err := runManager(ctx, rest, scheme, space.Name, "first")
	if err != nil {
		return err
	}
	select {
	case <-running.Elected():
	case <-time.After(patience):
		return fmt.Errorf("the first manager was not elected")
	}
	second, taking, stopSecond, err := runManager(ctx, rest, scheme, space.Name, "second")
	if err != nil {
		return err
	}
	boat := &Boat{ObjectMeta: metav1.ObjectMeta{Name: "wherry", Namespace: space.Name}, Spec: BoatSpec{Length: 12}}
	if err := direct.Create(ctx, boat); err != nil {
		return err
	}
	if err := direct.Create(ctx, &Boat{ObjectMeta: metav1.ObjectMeta{Name: "none", Namespace: space.Name}, Spec: BoatSpec{Length: -1}}); !apierrors.IsInvalid(err) {
		return fmt.Errorf("a boat of negative length was not refused: %v", err)
	}
	key := client.ObjectKeyFromObject(boat)
	ready := func(ctx context.Context) (bool, error) {
		if err := direct.Get(ctx, key, boat); err != nil {
			return false, err
		}
		condition := meta.FindStatusCondition(boat.Status.Conditions, "Ready")
		return condition != nil && condition.ObservedGeneration == boat.Generation && boat.Status.State == "afloat", nil
	}
	if err := until(ctx, "the boat is built", ready); err != nil {
		return err
	}
	plan := &corev1.ConfigMap{}
	if err := direct.Get(ctx, key, plan); err != nil {
		return err
	}
	if err := expect("the plan", fmt.Sprint(plan.Data), "map[color:black length:12]"); err != nil {
		return err
	}
	// A plan that somebody removes comes back.
	if err := direct.Delete(ctx, plan); err != nil {
		return err
	}
	err = until(ctx, "the plan comes back", func(ctx context.Context) (bool, error) {
		err := direct.Get(ctx, key, plan)
		return err == nil, client.IgnoreNotFound(err)
	})
	if err != nil {
		return err
	}
	events := &corev1.EventList{}
	err = until(ctx, "an event", func(ctx context.Context) (bool, error) {
		err := direct.List(ctx, events, client.InNamespace(space.Name), client.MatchingFields{"involvedObject.name": "wherry", "reason": "Built"})
		return len(events.Items) > 0, err
	})
	if err != nil {
		return err
	}
	boats := &BoatList{}
	if err := first.List(ctx, boats, client.InNamespace(space.Name), client.MatchingFields{byColor: "black"}); err != nil {
		return err
	}
	if err := expect("black boats", len(boats.Items), 1); err != nil {
		return err
	}
	if err := stopFirst(); err != nil {
		return fmt.Errorf("the first manager: %w", err)
	}
	select {
	case <-taking.Elected():
	case <-time.After(patience):
		return fmt.Errorf("the second manager did not take over")
	}
	boat.Spec.Color = "red"
	if err := direct.Update(ctx, boat); err != nil {
		return err
	}
	if err := until(ctx, "the boat is painted", ready); err != nil {
		return err
	}
	if err := direct.Delete(ctx, boat); err != nil {
		return err
	}
	err = until(ctx, "the boat is scrapped", func(ctx context.Context) (bool, error) {
		return apierrors.IsNotFound(direct.Get(ctx, key, boat)), nil
	})
	if err != nil {
		return err
	}
	if err := expect("scrapped by the second manager", second.scrapped.Load(), 1); err != nil {
		return err
	}
	if err := stopSecond(); err != nil {
		return fmt.Errorf("the second manager: %w", err)
	}
	return direct.Delete(ctx, space)
}
