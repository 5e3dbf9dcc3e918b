package main

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// impersonate acts as somebody else, who may do only what a role says.
func impersonate(ctx context.Context, config *rest.Config) error {
	admin, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	space, err := admin.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: named("impersonate")}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	as := rest.CopyConfig(config)
	as.Impersonate = rest.ImpersonationConfig{UserName: "jane", Groups: []string{"sailors"}}
	jane, err := kubernetes.NewForConfig(as)
	if err != nil {
		return err
	}
	// kcp lets somebody into a workspace only with the verb access on its root.
	enter := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: space.Name}, Rules: []rbacv1.PolicyRule{{NonResourceURLs: []string{"/"}, Verbs: []string{"access"}}}}
	if _, err := admin.RbacV1().ClusterRoles().Create(ctx, enter, metav1.CreateOptions{}); err != nil {
		return err
	}
	sailors := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "sailors"}}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: space.Name}, Subjects: sailors, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: space.Name}}
	if _, err := admin.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		return err
	}
	err = until(ctx, "jane is let in", func(ctx context.Context) (bool, error) {
		who, err := jane.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		if err != nil {
			return false, err
		}
		return true, expect("who", fmt.Sprint(who.Status.UserInfo.Username, who.Status.UserInfo.Groups), "jane[sailors system:authenticated]")
	})
	if err != nil {
		return err
	}
	if _, err := jane.CoreV1().ConfigMaps(space.Name).List(ctx, metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		return fmt.Errorf("jane may list config maps: %v", err)
	}
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "reader"}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list"}}}}
	if _, err := admin.RbacV1().Roles(space.Name).Create(ctx, role, metav1.CreateOptions{}); err != nil {
		return err
	}
	bound := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "reader"}, Subjects: sailors, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "reader"}}
	if _, err := admin.RbacV1().RoleBindings(space.Name).Create(ctx, bound, metav1.CreateOptions{}); err != nil {
		return err
	}
	err = until(ctx, "jane may list config maps", func(ctx context.Context) (bool, error) {
		_, err := jane.CoreV1().ConfigMaps(space.Name).List(ctx, metav1.ListOptions{})
		return err == nil, err
	})
	if err != nil {
		return err
	}
	review, err := jane.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: space.Name, Verb: "delete", Resource: "configmaps"},
	}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if review.Status.Allowed {
		return fmt.Errorf("jane is told that she may delete config maps")
	}
	return admin.CoreV1().Namespaces().Delete(ctx, space.Name, metav1.DeleteOptions{})
}
