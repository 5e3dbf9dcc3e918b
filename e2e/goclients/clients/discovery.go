package main

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/openapi3"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// discover asks what the server has in every way that client-go knows: groups, resources, preferred versions, version, OpenAPI.
func discover(ctx context.Context, config *rest.Config) error {
	stop, err := install(config, "discovery.carrick.test", false)
	if err != nil {
		return err
	}
	defer stop()
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	if _, err := client.ServerVersion(); err != nil {
		return fmt.Errorf("version: %w", err)
	}
	groups, resources, err := client.ServerGroupsAndResources()
	if err != nil {
		return fmt.Errorf("groups and resources: %w", err)
	}
	has := func(name string) bool {
		return slices.ContainsFunc(groups, func(group *metav1.APIGroup) bool { return group.Name == name })
	}
	for _, group := range []string{"", "rbac.authorization.k8s.io", "apiextensions.k8s.io", "coordination.k8s.io", "discovery.carrick.test"} {
		if !has(group) {
			return fmt.Errorf("there is no group %q", group)
		}
	}
	boats := discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"create", "watch", "deletecollection", "patch"}}, resources)
	if !slices.ContainsFunc(boats, func(list *metav1.APIResourceList) bool { return list.GroupVersion == "discovery.carrick.test/v1" }) {
		return fmt.Errorf("boats do not support what all kinds do")
	}
	preferred, err := client.ServerPreferredNamespacedResources()
	if err != nil {
		return fmt.Errorf("preferred resources: %w", err)
	}
	kinds, err := discovery.GroupVersionResources(preferred)
	if err != nil {
		return err
	}
	if _, ok := kinds[boatsOf("discovery.carrick.test")]; !ok {
		return fmt.Errorf("boats are not among the preferred kinds")
	}
	list, err := client.ServerResourcesForGroupVersion("discovery.carrick.test/v1")
	if err != nil {
		return err
	}
	for _, resource := range list.APIResources {
		if resource.Name == "boats" {
			got := fmt.Sprintf("%s %t %s %v", resource.SingularName, resource.Namespaced, resource.Kind, resource.ShortNames)
			if err := expect("the boats", got, "boat true Boat [bt]"); err != nil {
				return err
			}
		}
	}
	if _, err := client.OpenAPISchema(); err != nil {
		return fmt.Errorf("OpenAPI v2: %w", err)
	}
	// OpenAPI follows a new kind with some delay on the real servers.
	return until(ctx, "OpenAPI v3 of boats", func(context.Context) (bool, error) {
		root := openapi3.NewRoot(client.OpenAPIV3())
		document, err := root.GVSpec(schema.GroupVersion{Group: "discovery.carrick.test", Version: "v1"})
		if err != nil {
			return false, err
		}
		boat := document.Components.Schemas["test.carrick.discovery.v1.Boat"]
		if boat == nil {
			return false, fmt.Errorf("the document has no boat")
		}
		spec := boat.Properties["spec"]
		if spec.Properties["color"].Default != "black" {
			return false, fmt.Errorf("the default of color is %v", spec.Properties["color"].Default)
		}
		return true, nil
	})
}

// mapper finds kinds and resources by each other, with client-go's mapper and with controller-runtime's, also for a kind that comes later.
func mapper(ctx context.Context, config *rest.Config) error {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	http, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	lazy, err := apiutil.NewDynamicRESTMapper(config, http)
	if err != nil {
		return err
	}
	deferred := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client))
	shortcuts := restmapper.NewShortcutExpander(deferred, client, nil)
	boat := schema.GroupKind{Group: "mapper.carrick.test", Kind: "Boat"}
	for name, mapper := range map[string]meta.RESTMapper{"client-go's": deferred, "controller-runtime's": lazy} {
		role, err := mapper.RESTMapping(schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"})
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := expect("roles", fmt.Sprint(role.Resource.Resource, role.Scope.Name()), "clusterrolesroot"); err != nil {
			return err
		}
		if _, err := mapper.RESTMapping(boat); !meta.IsNoMatchError(err) {
			return fmt.Errorf("%s knows boats already: %v", name, err)
		}
	}
	stop, err := install(config, "mapper.carrick.test", false)
	if err != nil {
		return err
	}
	defer stop()
	deferred.Reset()
	for name, mapper := range map[string]meta.RESTMapper{"client-go's": deferred, "controller-runtime's": lazy} {
		found, err := mapper.RESTMapping(boat, "v1")
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := expect("boats", fmt.Sprint(found.Resource.Resource, found.Scope.Name()), "boatsnamespace"); err != nil {
			return err
		}
	}
	short, err := shortcuts.ResourceFor(schema.GroupVersionResource{Resource: "bt"})
	if err != nil {
		return err
	}
	return expect("bt", short, boatsOf("mapper.carrick.test"))
}
