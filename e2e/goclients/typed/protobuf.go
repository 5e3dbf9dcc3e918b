package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

const media = "application/vnd.kubernetes.protobuf"

// strict lets no answer pass that is not protobuf.
type strict struct{ next http.RoundTripper }

func (s strict) RoundTrip(request *http.Request) (*http.Response, error) {
	answer, err := s.next.RoundTrip(request)
	if err == nil && !strings.HasPrefix(answer.Header.Get("Content-Type"), media) {
		return nil, fmt.Errorf("%s %s was answered in %q", request.Method, request.URL.Path, answer.Header.Get("Content-Type"))
	}
	return answer, err
}

// onlyProtobuf plays a client that sends and accepts nothing else.
func onlyProtobuf(ctx context.Context, config *rest.Config) error {
	config = rest.CopyConfig(config)
	config.ContentType, config.AcceptContentTypes = media, media
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return strict{next} })
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	const space = "only-protobuf"
	if _, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: named(space)}, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create Namespace: %w", err)
	}
	for what, part := range map[string]func(context.Context, *rest.Config, *kubernetes.Clientset, string) error{
		"config maps": configMaps, "reviews and tokens": reviews, "roles": roles, "definitions": definitions, "deployments": deployments,
	} {
		if err := part(ctx, config, client, space); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
	return client.CoreV1().Namespaces().Delete(ctx, space, metav1.DeleteOptions{})
}

func named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Labels: map[string]string{"from": "protobuf"}}
}

// configMaps are created, listed, patched, applied and deleted, and a watch sees all of it.
func configMaps(ctx context.Context, config *rest.Config, client *kubernetes.Clientset, space string) error {
	maps := client.CoreV1().ConfigMaps(space)
	watcher, err := maps.Watch(ctx, metav1.ListOptions{LabelSelector: "from"})
	if err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	defer watcher.Stop()
	sent := &corev1.ConfigMap{ObjectMeta: named("a"), Data: map[string]string{"k": "", "l": "v"}, BinaryData: map[string][]byte{"b": {0, 255}}}
	made, err := maps.Create(ctx, sent, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create: %w", err)
	}
	if made.UID == "" || made.CreationTimestamp.IsZero() || len(made.ManagedFields) != 1 || len(made.BinaryData["b"]) != 2 || len(made.Data) != 2 {
		return fmt.Errorf("created: %v", made)
	}
	made.Data["l"] = "w"
	if _, err := maps.Update(ctx, made, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("update: %w", err)
	}
	if _, err := maps.Update(ctx, sent, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("update without a revision: %w", err)
	}
	made.ResourceVersion = "1"
	if _, err := maps.Update(ctx, made, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		return fmt.Errorf("update of an old revision: %v", err)
	}
	change := []byte(`{"data":{"p":"q"}}`)
	patched, err := maps.Patch(ctx, "a", types.StrategicMergePatchType, change, metav1.PatchOptions{})
	if err != nil || patched.Data["p"] != "q" {
		return fmt.Errorf("patch: %v %w", patched, err)
	}
	list, err := maps.List(ctx, metav1.ListOptions{LabelSelector: "from"})
	if err != nil || len(list.Items) != 1 || list.ResourceVersion == "" || list.Items[0].Data["p"] != "q" {
		return fmt.Errorf("list: %v %w", list, err)
	}
	if err := maps.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "from"}); err != nil {
		return fmt.Errorf("delete all: %w", err)
	}
	if _, err := maps.Get(ctx, "a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		return fmt.Errorf("get of a deleted one: %v", err)
	}
	// The update without a revision and without a change wrote data back.
	return expect(watcher, watch.Added, watch.Modified, watch.Modified, watch.Modified, watch.Deleted)
}

// expect waits for events of these kinds.
func expect(watcher watch.Interface, kinds ...watch.EventType) error {
	limit := time.After(30 * time.Second)
	for number, kind := range kinds {
		select {
		case event := <-watcher.ResultChan():
			if event.Type != kind {
				return fmt.Errorf("event %d is %s %v, not %s", number, event.Type, event.Object, kind)
			}
		case <-limit:
			return fmt.Errorf("event %d, %s, did not come", number, kind)
		}
	}
	return nil
}

func reviews(ctx context.Context, _ *rest.Config, client *kubernetes.Clientset, space string) error {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "get", Resource: "configmaps", Namespace: space},
	}}
	answer, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil || !answer.Status.Allowed {
		return fmt.Errorf("review: %v %w", answer, err)
	}
	accounts := client.CoreV1().ServiceAccounts(space)
	if _, err := accounts.Create(ctx, &corev1.ServiceAccount{ObjectMeta: named("a")}, metav1.CreateOptions{}); err != nil {
		return err
	}
	seconds := int64(1200)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	token, err := accounts.CreateToken(ctx, "a", request, metav1.CreateOptions{})
	if err != nil || token.Status.Token == "" || *token.Spec.ExpirationSeconds != seconds {
		return fmt.Errorf("token: %v %w", token, err)
	}
	return nil
}

// roles may be empty.
func roles(ctx context.Context, _ *rest.Config, client *kubernetes.Clientset, space string) error {
	roles := client.RbacV1().Roles(space)
	made, err := roles.Create(ctx, &rbacv1.Role{ObjectMeta: named("a")}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	made.Rules = []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"secrets"}}}
	if made, err = roles.Update(ctx, made, metav1.UpdateOptions{}); err != nil || len(made.Rules) != 1 || made.Rules[0].APIGroups[0] != "" {
		return fmt.Errorf("update: %v %w", made, err)
	}
	uid := types.UID("another")
	if err := roles.Delete(ctx, "a", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}); !apierrors.IsConflict(err) {
		return fmt.Errorf("delete of another one: %v", err)
	}
	return roles.Delete(ctx, "a", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &made.UID}})
}

// definitions are made, used and deleted; the metadata of their objects comes as protobuf as well.
func definitions(ctx context.Context, config *rest.Config, _ *kubernetes.Clientset, _ string) error {
	client, err := apiextensions.NewForConfig(config)
	if err != nil {
		return err
	}
	one, keep := float64(1), true
	spec := apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
		"size": {Type: "integer", Minimum: &one, Default: &apiextensionsv1.JSON{Raw: []byte("3")}},
		"kind": {Type: "string", Enum: []apiextensionsv1.JSON{{Raw: []byte(`"a"`)}, {Raw: []byte(`"b"`)}}},
		"free": {Type: "object", XPreserveUnknownFields: &keep},
		"port": {XIntOrString: true},
		"tags": {Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &apiextensionsv1.JSONSchemaProps{Type: "string"}}},
		"more": {Type: "object", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: &apiextensionsv1.JSONSchemaProps{Type: "string"}}},
	}}
	definition := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: named("boats.protobuf.example.io"),
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "protobuf.example.io", Scope: apiextensionsv1.ClusterScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "boats", Kind: "Boat"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": spec},
				}},
			}},
		},
	}
	definitions := client.ApiextensionsV1().CustomResourceDefinitions()
	watcher, err := definitions.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + definition.Name})
	if err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	defer watcher.Stop()
	made, err := definitions.Create(ctx, definition, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create: %w", err)
	}
	got := made.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	if string(got.Properties["size"].Default.Raw) != "3" || *got.Properties["size"].Minimum != 1 || len(got.Properties["kind"].Enum) != 2 ||
		!got.Properties["port"].XIntOrString || got.Properties["tags"].Items.Schema.Type != "string" || !*got.Properties["free"].XPreserveUnknownFields ||
		got.Properties["more"].AdditionalProperties.Schema.Type != "string" {
		return fmt.Errorf("created: %v", got)
	}
	if err := established(watcher); err != nil {
		return err
	}
	metadatas, err := metadata.NewForConfig(config)
	if err != nil {
		return err
	}
	boats := metadatas.Resource(apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions"))
	if list, err := boats.List(ctx, metav1.ListOptions{LabelSelector: "from"}); err != nil || len(list.Items) != 1 || list.Items[0].UID != made.UID {
		return fmt.Errorf("metadata: %v %w", list, err)
	}
	return definitions.Delete(ctx, definition.Name, metav1.DeleteOptions{})
}

// established waits until a definition is served.
func established(watcher watch.Interface) error {
	limit := time.After(30 * time.Second)
	for {
		select {
		case event := <-watcher.ResultChan():
			if definition, ok := event.Object.(*apiextensionsv1.CustomResourceDefinition); ok {
				for _, condition := range definition.Status.Conditions {
					if condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue {
						return nil
					}
				}
			}
		case <-limit:
			return fmt.Errorf("the definition was not established")
		}
	}
}

// deployments only exist in a service cluster.
func deployments(ctx context.Context, _ *rest.Config, client *kubernetes.Clientset, space string) error {
	deployments := client.AppsV1().Deployments(space)
	replicas := int32(2)
	labels := map[string]string{"app": "a"}
	deployment := &appsv1.Deployment{ObjectMeta: named("a"), Spec: appsv1.DeploymentSpec{
		Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
		},
	}}
	if _, err := deployments.Create(ctx, deployment, metav1.CreateOptions{}); apierrors.IsNotFound(err) || err != nil && strings.Contains(err.Error(), "text/plain") {
		return nil
	} else if err != nil {
		return fmt.Errorf("create: %w", err)
	}
	scale, err := deployments.GetScale(ctx, "a", metav1.GetOptions{})
	if err != nil || scale.Spec.Replicas != 2 {
		return fmt.Errorf("scale: %v %w", scale, err)
	}
	scale.Spec.Replicas = 5
	if scale, err = deployments.UpdateScale(ctx, "a", scale, metav1.UpdateOptions{}); err != nil || scale.Spec.Replicas != 5 {
		return fmt.Errorf("scaled: %v %w", scale, err)
	}
	return deployments.Delete(ctx, "a", metav1.DeleteOptions{})
}
