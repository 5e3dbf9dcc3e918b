package main

import (
	"context"
	"fmt"
	"net/http"

	"gomodules.xyz/jsonpatch/v2"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

const webhooksGroup = "webhooks.carrick.test"

func webhookOptions(group string) envtest.WebhookInstallOptions {
	rules := []admissionregistrationv1.RuleWithOperations{{
		Operations: []admissionregistrationv1.OperationType{"CREATE", "UPDATE"},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{"v1"}, Resources: []string{"boats"}},
	}}
	at := func(path string) admissionregistrationv1.WebhookClientConfig {
		return admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Name: "webhooks", Namespace: "default", Path: &path}}
	}
	fail, none := admissionregistrationv1.Fail, admissionregistrationv1.SideEffectClassNone
	return envtest.WebhookInstallOptions{
		MutatingWebhooks: []*admissionregistrationv1.MutatingWebhookConfiguration{{
			ObjectMeta: metav1.ObjectMeta{Name: "mutate." + group},
			Webhooks: []admissionregistrationv1.MutatingWebhook{{
				Name: "mutate." + group, Rules: rules, ClientConfig: at("/mutate"), FailurePolicy: &fail, SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
			}},
		}},
		ValidatingWebhooks: []*admissionregistrationv1.ValidatingWebhookConfiguration{{
			ObjectMeta: metav1.ObjectMeta{Name: "validate." + group},
			Webhooks: []admissionregistrationv1.ValidatingWebhook{{
				Name: "validate." + group, Rules: rules, ClientConfig: at("/validate"), FailurePolicy: &fail, SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
			}},
		}},
	}
}

// webhooks serves a mutating and a validating webhook with controller-runtime, and checks that the server calls both.
func webhooks(ctx context.Context, rest *rest.Config) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop, err := install(rest, webhooksGroup, true)
	if err != nil {
		return err
	}
	defer stop()
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return err
	}
	boatScheme(scheme, webhooksGroup)
	at := installed.WebhookInstallOptions
	m, err := ctrl.NewManager(rest, ctrl.Options{
		Scheme: scheme, Metrics: server.Options{BindAddress: "0"},
		WebhookServer: webhook.NewServer(webhook.Options{Host: at.LocalServingHost, Port: at.LocalServingPort, CertDir: at.LocalServingCertDir}),
	})
	if err != nil {
		return err
	}
	decoder := admission.NewDecoder(scheme)
	handle := func(answer func(*Boat, admission.Request) admission.Response) *admission.Webhook {
		return &admission.Webhook{Handler: admission.HandlerFunc(func(_ context.Context, request admission.Request) admission.Response {
			boat := &Boat{}
			if err := decoder.Decode(request, boat); err != nil {
				return admission.Errored(http.StatusBadRequest, err)
			}
			return answer(boat, request)
		})}
	}
	m.GetWebhookServer().Register("/mutate", handle(func(*Boat, admission.Request) admission.Response {
		return admission.Patched("painted", jsonpatch.NewOperation("replace", "/spec/color", "white"))
	}))
	m.GetWebhookServer().Register("/validate", handle(func(boat *Boat, request admission.Request) admission.Response {
		if boat.Spec.Length > 100 {
			return admission.Denied(fmt.Sprintf("%s is too long for %s", boat.Name, request.Namespace))
		}
		return admission.Allowed("").WithWarnings("boats need water")
	}))
	ended := make(chan error, 1)
	go func() { ended <- m.Start(ctx) }()
	err = until(ctx, "the webhook server listens", func(context.Context) (bool, error) {
		err := m.GetWebhookServer().StartedChecker()(nil)
		return err == nil, err
	})
	if err != nil {
		return err
	}
	direct, err := client.New(rest, client.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	boat := &Boat{ObjectMeta: metav1.ObjectMeta{Name: "wherry", Namespace: "default"}, Spec: BoatSpec{Length: 12}}
	// A configuration takes a moment to be known.
	err = until(ctx, "the boat is painted by the webhook", func(ctx context.Context) (bool, error) {
		if err := direct.Create(ctx, boat); err != nil {
			return false, err
		}
		if boat.Spec.Color == "white" {
			return true, nil
		}
		defer func() { boat.ResourceVersion, boat.UID = "", "" }()
		return false, client.IgnoreNotFound(direct.Delete(ctx, boat.DeepCopyObject().(*Boat)))
	})
	if err != nil {
		return err
	}
	boat.Spec.Length = 101
	err = direct.Update(ctx, boat)
	if !apierrors.IsForbidden(err) {
		return fmt.Errorf("a boat that is too long was not refused: %v", err)
	}
	wanted := fmt.Sprintf("admission webhook %q denied the request: wherry is too long for default", "validate."+webhooksGroup)
	if err := expect("the refusal", err.Error(), wanted); err != nil {
		return err
	}
	if err := direct.Delete(ctx, boat, client.GracePeriodSeconds(0)); err != nil {
		return err
	}
	cancel()
	return <-ended
}
